//! Runs sequences of requests to an API server, each on a new server, and compares the answers.
//!
//! ```text
//! fixtures.jsonl   {metadata, spec…}   definitions that are there before every sequence
//! *.jsonl          {name, namespace?, steps: [{n, request, response}]}
//! ```
//!
//! A step is a case, `SEQUENCE/STEP`. Later steps depend on earlier ones, so that one failure may cause others.

mod compare;
mod replay;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

pub(super) use self::compare::Bindings;
use self::replay::Replay;
pub(super) use self::replay::{Received, receive, recorded, send, server};
use super::{Replayed, fixtures};
use crate::corpus::{CorpusError, Folder};
use crate::report::{Aspect, Check};
use crate::run::Outcome;

pub(crate) const KIND: Replayed = Replayed { recognises, outcomes };

fn recognises(folder: &Folder) -> bool {
    super::has_step_with(folder, "request")
}

fn outcomes(folder: &Folder, only: Option<&str>) -> Result<Vec<Outcome>, CorpusError> {
    let fixtures = fixtures(folder);
    let sequences = super::sequences(folder, only);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let replays = thread::scope(|scope| {
        let work = || -> std::io::Result<Replays> {
            let mut done = Vec::new();
            while let Some((at, sequence)) = take(&next, &sequences) {
                done.push((at, clockwork()?.block_on(replayed(sequence, &fixtures))));
            }
            Ok(done)
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let ended = workers.into_iter().map(|worker| worker.join().unwrap_or_else(|_| Ok(Vec::new())));
        ended.collect::<std::io::Result<Vec<Replays>>>()
    });
    let replays = replays.map_err(|error| CorpusError::io(&folder.path, error))?;
    let mut replays: Replays = replays.into_iter().flatten().collect();
    replays.sort_by_key(|(at, _)| *at);
    Ok(replays.into_iter().flat_map(|(_, outcomes)| outcomes).collect())
}

/// The outcomes of sequences, with the places that these have in the corpus.
type Replays = Vec<(usize, Vec<Outcome>)>;

fn take<'s>(next: &AtomicUsize, sequences: &[&'s Value]) -> Option<(usize, &'s Value)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    sequences.get(at).map(|sequence| (at, *sequence))
}

/// A runtime whose clock stands still while anything is left to do, and then goes on to the next timer at once: a watch
/// ends when the steps that were sent during it are done, however busy the machine is.
pub(super) fn clockwork() -> std::io::Result<Runtime> {
    Builder::new_current_thread().enable_all().start_paused(true).build()
}

async fn replayed(sequence: &Value, fixtures: &[Value]) -> Vec<Outcome> {
    let name = sequence["name"].as_str().unwrap_or_default();
    let steps = match Replay::start(sequence, fixtures).await {
        Ok(mut replay) => replay.run(sequence).await,
        // Nothing can be said of any step when the server does not come up as recorded.
        Err(problem) => super::steps(sequence)
            .map(|step| (step["n"].as_u64().unwrap_or_default(), Err(problem.clone())))
            .collect(),
    };
    steps
        .into_iter()
        .map(|(step, result)| {
            let actual = result.err().unwrap_or_else(|| AS_RECORDED.to_owned());
            let check = Check::new(Aspect::Verdict, AS_RECORDED, actual);
            Outcome { id: format!("{name}/{step}"), checks: vec![check] }
        })
        .collect()
}

const AS_RECORDED: &str = "as recorded";
