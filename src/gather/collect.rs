//! Runs gatherers side by side under a bound. Each is isolated: an error, a panic or a stall of one is a row of its
//! own and never touches the others.

use std::num::NonZeroUsize;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::{FutureExt, StreamExt, stream};
use tokio::time::Instant;
use tracing::{info, warn};

use super::gatherer::{Context, Failure, Gatherer, Yield};
use super::record::Record;
use crate::telemetry::panic_text;

/// How long one gatherer may take before it is given up.
pub const GATHERER_TIMEOUT: Duration = Duration::from_mins(5);

/// What became of one gatherer.
#[derive(Debug)]
pub struct Outcome {
    pub id: String,
    pub duration: Duration,
    pub verdict: Verdict,
    pub records: Vec<Record>,
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
pub async fn collect(
    gatherers: Vec<&'static Gatherer>,
    context: &Context,
    bound: NonZeroUsize,
) -> Vec<Outcome> {
    let runs: Vec<_> = gatherers
        .into_iter()
        .enumerate()
        .map(|(at, gatherer)| isolated(gatherer, context.clone()).map(move |outcome| (at, outcome)))
        .collect();
    let mut rows: Vec<_> = stream::iter(runs).buffer_unordered(bound.get()).collect().await;
    rows.sort_by_key(|(at, _)| *at);
    rows.into_iter().map(|(_, outcome)| outcome).collect()
}

async fn isolated(gatherer: &'static Gatherer, context: Context) -> Outcome {
    let started = Instant::now();
    let run = AssertUnwindSafe(async { (gatherer.run)(context).await }).catch_unwind();
    let ended = tokio::time::timeout(GATHERER_TIMEOUT, run).await;
    let duration = started.elapsed();
    let (verdict, found) = match ended {
        Ok(Ok(Ok(found))) => (verdict(&found), found),
        Ok(Ok(Err(failure))) => (failed(&failure), Yield::default()),
        Ok(Err(panic)) => (Verdict::Panicked(panic_text(panic.as_ref())), Yield::default()),
        Err(_) => (failed(&Failure::Timeout(GATHERER_TIMEOUT)), Yield::default()),
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
    Outcome { id: id.to_owned(), duration, verdict, records: found.records, warnings: found.warnings }
}

fn verdict(found: &Yield) -> Verdict {
    let records = found.records.len();
    match (records, found.errors.is_empty()) {
        (0, true) => Verdict::NoData("nothing found".to_owned()),
        (0, false) => Verdict::Failed(found.errors.join("; ")),
        (records, true) => Verdict::Gathered { records },
        (records, false) => Verdict::GatheredWithErrors { records, errors: found.errors.clone() },
    }
}

fn failed(failure: &Failure) -> Verdict {
    match failure {
        Failure::MissingApi(_) => Verdict::NoData(failure.to_string()),
        Failure::Api { .. } | Failure::Timeout(_) => Verdict::Failed(failure.to_string()),
    }
}
