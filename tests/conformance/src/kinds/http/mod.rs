//! Requests to an API server and its answers, in sequences that each begin with a server of their own.
//!
//! ```text
//! fixtures.jsonl   {metadata, spec…}   definitions that are there before every sequence
//! *.jsonl          {name, namespace?, steps: [{n, request, response}]}
//! ```
//!
//! A step is a case, `SEQUENCE/STEP`. Later steps see what earlier ones did, so that one failure may bring others.

mod compare;
mod replay;

use futures::stream::{self, StreamExt as _};
use serde_json::Value;

use self::replay::Replay;
use super::{Replayed, fixtures, runtime};
use crate::corpus::{CorpusError, Folder};
use crate::report::{Aspect, Check};
use crate::run::Outcome;

pub(crate) const KIND: Replayed = Replayed { recognises, outcomes };

/// Sequences that run side by side. Most of their time is watches that wait for their end.
const CONCURRENT: usize = 16;

fn recognises(folder: &Folder) -> bool {
    super::has_step_with(folder, "request")
}

fn outcomes(folder: &Folder, only: Option<&str>) -> Result<Vec<Outcome>, CorpusError> {
    let fixtures = fixtures(folder);
    let sequences = super::sequences(folder, only);
    let runtime = runtime(folder)?;
    let outcomes = runtime.block_on(async {
        let replays = sequences.iter().map(|sequence| replayed(sequence, &fixtures));
        stream::iter(replays).buffered(CONCURRENT).concat().await
    });
    Ok(outcomes)
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
