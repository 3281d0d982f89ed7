//! Replays the recorded HTTP sequences against the router in process and compares every answer.
//!
//! A sequence is one state, so that a step that fails may take later ones with it; each step counts by itself. Known
//! failures stand in `tests/known-failures/http.txt` by `SEQUENCE/STEP`, below headings that say why; a step that
//! passes although it stands there fails the run until it is struck off.

use std::collections::BTreeMap;
use std::path::Path;

use admit_apiserver::Server;
use futures::stream::{self, StreamExt as _};
use serde_json::Value;

use crate::corpus;

mod compare;
mod replay;

use replay::{Outcome, Replay};

/// The areas that this server covers.
const AREAS: [&str; 9] = ["auth", "bodies", "crd", "crud", "delete", "list", "patch", "paths", "validation"];
const WATCH: [&str; 1] = ["watch"];
const MORE: [&str; 3] = ["discovery", "negotiation", "ssa"];
const CONCURRENT: usize = 16;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recorded_sequences() {
    let Some(folder) = corpus::folder("http") else { return };
    let known = corpus::known_failures("http");
    let mut failed: BTreeMap<String, String> = BTreeMap::new();
    let mut areas: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let only = std::env::var("HTTP_ONLY").unwrap_or_default();
    let fixtures = sequences(&folder.join("fixtures.jsonl"));
    let all: Vec<(&str, Value)> = AREAS
        .into_iter()
        .chain(WATCH)
        .chain(MORE)
        .flat_map(|area| {
            sequences(&folder.join(format!("{area}.jsonl"))).into_iter().map(move |one| (area, one))
        })
        .filter(|(_, sequence)| sequence["name"].as_str().unwrap().starts_with(&only))
        .collect();
    // Watches wait for their timeouts; sequences do not know of one another.
    let mut replays = stream::iter(all.iter().map(|(area, sequence)| replayed(area, sequence, &fixtures)))
        .buffer_unordered(CONCURRENT);
    while let Some((area, name, outcomes)) = replays.next().await {
        for (step, outcome) in outcomes {
            let (passed, total) = areas.entry(area).or_default();
            *total += 1;
            match outcome {
                Ok(()) => *passed += 1,
                Err(why) => {
                    failed.insert(format!("{name}/{step}"), why);
                }
            }
        }
    }
    for (area, (passed, total)) in &areas {
        println!("http/{area}: {passed} of {total} steps");
    }
    let (passed, total) = areas.values().fold((0, 0), |sum, area| (sum.0 + area.0, sum.1 + area.1));
    println!("http: {passed} passed, {} known to fail, {total} in all", failed.len());
    let unexpected: Vec<_> = failed.iter().filter(|(id, _)| !known.contains(*id)).collect();
    for (id, why) in &unexpected {
        println!("FAILED {id}: {why}");
    }
    let fixed: Vec<_> = known.iter().filter(|id| !failed.contains_key(*id)).collect();
    if only.is_empty() {
        assert!(fixed.is_empty(), "known failures that pass: strike them off: {fixed:?}");
    }
    assert!(unexpected.is_empty(), "{} steps fail unexpectedly", unexpected.len());
}

async fn replayed<'a>(
    area: &'a str,
    sequence: &Value,
    fixtures: &[Value],
) -> (&'a str, String, Vec<Outcome>) {
    let server = Server::builder().build().await.unwrap();
    let mut replay = Replay::new(&server);
    replay.fixtures(fixtures).await;
    (area, sequence["name"].as_str().unwrap().to_owned(), replay.run(sequence).await)
}

fn sequences(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
