//! Runs gatherers side by side under a bound. Each is isolated: an error, a panic or a stall of one is a row of its
//! own and never touches the others.

use std::num::NonZeroUsize;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::{FutureExt, StreamExt, stream};
use tokio::time::Instant;
use tracing::{info, warn};

use super::gatherer::{Context, Failure, Gatherer};
use super::keeper::Tally;
use crate::telemetry::panic_text;

/// How long one gatherer may take before it is given up.
pub const GATHERER_TIMEOUT: Duration = Duration::from_mins(5);

/// How one gatherer fared. Its records are where its context has put them.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub id: String,
    pub duration: Duration,
    pub verdict: Verdict,
    pub warnings: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Everything was read.
    Gathered {
        records: usize,
    },
    /// Some records were taken although parts could not be read.
    GatheredWithErrors {
        records: usize,
        errors: Vec<String>,
    },
    /// Nothing there to gather: an empty collection or an API the server does not serve.
    NoData(String),
    /// Could not be read, or the choice of gatherers makes no sense.
    Failed(String),
    Panicked(String),
}

/// Four gatherers per CPU: they wait for the API server most of the time, and more would only queue there.
pub fn default_bound() -> NonZeroUsize {
    let cpus = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    cpus.saturating_mul(NonZeroUsize::new(4).unwrap_or(NonZeroUsize::MIN))
}

/// Runs `gatherers`, at most `bound` at a time. Rows come back in the order of the table, whatever ended first.
pub async fn collect(gatherers: Vec<&'static Gatherer>, context: &Context, bound: NonZeroUsize) -> Vec<Row> {
    let runs: Vec<_> = gatherers
        .into_iter()
        .enumerate()
        .map(|(at, gatherer)| isolated(gatherer, context.clone()).map(move |row| (at, row)))
        .collect();
    let mut rows: Vec<_> = stream::iter(runs).buffer_unordered(bound.get()).collect().await;
    rows.sort_by_key(|(at, _)| *at);
    rows.into_iter().map(|(_, row)| row).collect()
}

async fn isolated(gatherer: &'static Gatherer, context: Context) -> Row {
    let keeper = context.keeper.of_another();
    let context = Context { keeper: keeper.clone(), ..context };
    let started = Instant::now();
    let run = AssertUnwindSafe(async { (gatherer.run)(context).await }).catch_unwind();
    let ended = tokio::time::timeout(GATHERER_TIMEOUT, run).await;
    let duration = started.elapsed();
    let (verdict, warnings) = {
        let tally = keeper.tally();
        let verdict = match ended {
            Ok(Ok(Ok(()))) => verdict(&tally, None),
            Ok(Ok(Err(failure))) => verdict(&tally, Some(&failure)),
            Ok(Err(panic)) => Verdict::Panicked(panic_text(panic.as_ref())),
            Err(_) => verdict(&tally, Some(&Failure::Timeout(GATHERER_TIMEOUT))),
        };
        (verdict, tally.warnings())
    };
    let id = gatherer.id;
    match &verdict {
        Verdict::Gathered { .. } | Verdict::NoData(_) => {
            info!(gatherer = id, ?duration, ?verdict, "gatherer ended")
        }
        Verdict::GatheredWithErrors { .. } | Verdict::Failed(_) | Verdict::Panicked(_) => {
            warn!(gatherer = id, ?duration, ?verdict, "gatherer ended");
        }
    }
    Row { id: id.to_owned(), duration, verdict, warnings }
}

/// What was kept before a failure stays, and the failure is one of its errors.
fn verdict(tally: &Tally, failure: Option<&Failure>) -> Verdict {
    let (records, mut errors) = (tally.records, tally.errors());
    if let Some(failure) = failure {
        if records == 0 && errors.is_empty() {
            return failed(failure);
        }
        errors.push(failure.to_string());
    }
    match (records, errors.is_empty()) {
        (0, true) => Verdict::NoData("nothing found".to_owned()),
        (0, false) => Verdict::Failed(errors.join("; ")),
        (records, true) => Verdict::Gathered { records },
        (records, false) => Verdict::GatheredWithErrors { records, errors },
    }
}

fn failed(failure: &Failure) -> Verdict {
    match failure {
        Failure::MissingApi(_) => Verdict::NoData(failure.to_string()),
        Failure::Api { .. } | Failure::Unreadable { .. } | Failure::Disk(_) | Failure::Timeout(_) => {
            Verdict::Failed(failure.to_string())
        }
    }
}
