//! The kill test: `admit up` is killed with SIGKILL at twenty random moments of a gathering and started again on the
//! same folder. A gathering has one archive at most, and none stays Running.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Instant, SystemTime};

use admit::controllers::datagather::crd::{DataGather, DataGatherSpec, State};
use kube::api::{ListParams, PostParams};
use kube::runtime::wait::await_condition;
use kube::{Api, ResourceExt};

use crate::running::Workplace;
use crate::support::cluster::PATIENCE;

const KILLS: u32 = 20;
/// Fixed, so that a failure can be looked at again.
const SEED: u64 = 0x0ad1_9172_54a5_5eed;

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_at_any_moment_leaves_one_archive_at_most_and_nothing_running() {
    let place = Workplace::new();
    let mut running = place.start();
    let mut api: Api<DataGather> = Api::all(place.client().await);

    // How long a gathering takes here, so that the kills fall before, into and after it.
    let started = Instant::now();
    create(&api, "warm-up").await;
    assert_eq!(ended(&api, "warm-up").await, State::Completed, "{}", place.log());
    let whole = started.elapsed();

    let mut seen = archives(place.path());
    assert_eq!(seen.len(), 1);
    let mut random = SEED;
    let mut outcomes = (0, 0);
    for kill in 0..KILLS {
        let name = format!("kill-{kill}");
        create(&api, &name).await;
        let moment = whole.mul_f64(1.2 * f64::from(next(&mut random)) / f64::from(u32::MAX));
        // Not a wait for something to happen: the moment of the kill is what the test varies.
        std::thread::sleep(moment);
        running.kill();

        running = place.start();
        api = Api::all(place.client().await);
        let state = ended(&api, &name).await;
        let now = archives(place.path());
        let new: Vec<_> = now.difference(&seen).cloned().collect();
        let limit = usize::from(state == State::Completed)..=1;
        assert!(limit.contains(&new.len()), "{name} killed after {moment:?} is {state:?} with {new:?}");
        seen.extend(now);
        match state {
            State::Completed => outcomes.0 += 1,
            _ => outcomes.1 += 1,
        }
    }
    settled(&api).await;
    assert!(leftovers(place.path()).is_empty(), "{:?}", leftovers(place.path()));
    eprintln!("{KILLS} kills: {} completed, {} failed, gathering takes {whole:?}", outcomes.0, outcomes.1);
    assert!(running.terminate().success());
}

async fn create(api: &Api<DataGather>, name: &str) {
    let object = DataGather::new(name, DataGatherSpec::default());
    api.create(&PostParams::default(), &object).await.unwrap();
}

/// Waits for the final state; an object that is gone was created and then lost.
async fn ended(api: &Api<DataGather>, name: &str) -> State {
    let state = |object: &DataGather| object.status.as_ref()?.data_gather_state;
    let over = |object: Option<&DataGather>| {
        object.is_none_or(|object| matches!(state(object), Some(State::Completed | State::Failed)))
    };
    let ended = tokio::time::timeout(PATIENCE, await_condition(api.clone(), name, over)).await;
    let object = ended.unwrap_or_else(|_| panic!("{name} does not end")).unwrap();
    state(&object.unwrap_or_else(|| panic!("{name} is lost"))).unwrap()
}

async fn settled(api: &Api<DataGather>) {
    for object in api.list(&ListParams::default()).await.unwrap() {
        let name = object.name_any();
        let status = object.status.unwrap();
        let over = matches!(status.data_gather_state, Some(State::Completed | State::Failed));
        assert!(over && status.finish_time.is_some(), "{name}: {:?}", status.data_gather_state);
        let told = status.conditions.iter().all(|condition| !condition.message.is_empty());
        assert!(told, "{name}: a condition without a message");
    }
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder.join(".admit/archives")).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Archives by name and age: the name of one that was pruned may be taken again.
fn archives(folder: &Path) -> BTreeSet<(String, SystemTime)> {
    let archives = names(folder).into_iter().filter(|name| name.starts_with("insights-"));
    let aged = archives.map(|name| {
        let file = fs::metadata(folder.join(".admit/archives").join(&name)).unwrap();
        (name, file.modified().unwrap())
    });
    aged.collect()
}

fn leftovers(folder: &Path) -> Vec<String> {
    names(folder).into_iter().filter(|name| name.starts_with(".partial")).collect()
}

/// xorshift; the high half is the better one.
fn next(state: &mut u64) -> u32 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    u32::try_from(*state >> 32).unwrap()
}
