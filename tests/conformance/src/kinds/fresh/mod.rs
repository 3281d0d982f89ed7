//! Runs generated requests with recorded answers: one file a subject, and beside it the objects that existed before.
//!
//! ```text
//! PART.jsonl.gz            {id, request, response, …}   the rows
//! PART.setup.jsonl.gz      {method, path, body}         requests before, in order
//! PART.crds.jsonl.gz       {crd, lax, strict}           definitions of rows that name one
//! ```
//!
//! Rows that change nothing (`dryRun=All`) are sent in any order, to as many servers as there are processors; others in
//! the order of their file.

mod place;
mod rows;
mod wire;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::Value;

use self::place::Place;
use self::rows::{Group, Rows};
use super::http::clockwork;
use super::{Parted, Parts};
use crate::corpus::{CorpusError, Folder};
use crate::report::{Aspect, Check};
use crate::run::Outcome;

pub(crate) const KIND: Parted = Parted { recognises, outcomes };

fn recognises(folder: &Folder) -> bool {
    folder.has_row_with(&["id", "request", "response"])
}

fn outcomes(folder: &Folder, only: Option<&str>) -> Result<Parts, CorpusError> {
    let mut parts = Vec::new();
    for file in &folder.files {
        let Some(rows) = Rows::of(folder, file) else { continue };
        let groups = rows.groups(only);
        if !groups.is_empty() {
            let done = run(&groups).map_err(|error| CorpusError::io(&folder.path, error))?;
            parts.push((format!("{}-{}", folder.name, file.name), done));
        }
    }
    Ok(parts)
}

/// Runs groups side by side; the outcomes are in the order of the rows.
fn run(groups: &[Group<'_>]) -> std::io::Result<Vec<Outcome>> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let done = thread::scope(|scope| {
        let work = || -> std::io::Result<Vec<(usize, Outcome)>> {
            let mut done = Vec::new();
            while let Some(group) = groups.get(next.fetch_add(1, Ordering::Relaxed)) {
                done.extend(clockwork()?.block_on(asked(group)));
            }
            Ok(done)
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let ended = workers.into_iter().map(|worker| {
            worker
                .join()
                .unwrap_or_else(|_| Err(std::io::Error::other("a worker panicked: run one case with --case")))
        });
        ended.collect::<std::io::Result<Vec<_>>>()
    })?;
    let mut done: Vec<(usize, Outcome)> = done.into_iter().flatten().collect();
    done.sort_by_key(|(at, _)| *at);
    Ok(each_once(done.into_iter().map(|(_, outcome)| outcome).collect()))
}

/// Ids say what was asked in short: rows of one id are told apart by their number.
fn each_once(mut outcomes: Vec<Outcome>) -> Vec<Outcome> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for outcome in &mut outcomes {
        // Ids are cut at some length, perhaps before a blank, which lists of ids do not hold.
        outcome.id.truncate(outcome.id.trim_end().len());
        let count = seen.entry(outcome.id.clone()).or_default();
        *count += 1;
        if *count > 1 {
            outcome.id = format!("{} (row {count})", outcome.id);
        }
    }
    outcomes
}

async fn asked(group: &Group<'_>) -> Vec<(usize, Outcome)> {
    let mut place = Place::start(group).await;
    let mut outcomes = Vec::new();
    for (at, row) in &group.rows {
        let answer = match &mut place {
            Ok(place) => place.ask(row).await,
            // Nothing can be said of any row when the server does not come up as recorded.
            Err(problem) => Err(problem.clone()),
        };
        let actual = answer.err().unwrap_or_else(|| AS_RECORDED.to_owned());
        let id = row["id"].as_str().unwrap_or_default().to_owned();
        outcomes.push((*at, Outcome { id, checks: vec![Check::new(Aspect::Verdict, AS_RECORDED, actual)] }));
    }
    outcomes
}

const AS_RECORDED: &str = "as recorded";

/// The text of a member, empty where there is none.
fn text<'v>(value: &'v Value, member: &str) -> &'v str {
    value[member].as_str().unwrap_or_default()
}
