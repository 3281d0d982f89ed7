//! Runs one gatherer to its row, whatever goes wrong with it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::time::{Instant, timeout_at};
use tracing::{info, warn};

use super::failure::Failure;
use super::gatherer::Context;
use super::recorder::Tally;
use crate::telemetry::panic_text;

/// The time limit for one gatherer.
pub const GATHERER_TIMEOUT: Duration = Duration::from_mins(5);

/// The result of one gatherer. Its records were written by the recorder of its context.
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
    /// Some records were written although parts could not be read.
    GatheredWithErrors {
        records: usize,
        errors: Vec<String>,
    },
    /// There is nothing to gather: an empty collection, or an API that the server does not serve.
    NoData(String),
    /// It could not be read, or the choice of gatherers makes no sense.
    Failed(String),
    Panicked(String),
}

/// How a gatherer has ended.
#[derive(Clone, Debug)]
pub(super) enum Ended {
    Well,
    Failed(Arc<Failure>),
    Panicked(String),
    Late,
}

/// A running gatherer.
pub(super) struct UnderWay {
    /// Its index in the table.
    at: usize,
    id: &'static str,
    context: Context,
    started: Instant,
}

impl UnderWay {
    pub(super) fn new(at: usize, id: &'static str, context: &Context) -> Self {
        let context = Context { recorder: context.recorder.of_another(), ..context.clone() };
        Self { at, id, context, started: Instant::now() }
    }

    pub(super) fn deadline(&self) -> Instant {
        self.started + GATHERER_TIMEOUT
    }

    pub(super) fn warn(&self, text: String) {
        self.context.recorder.warn(text);
    }

    /// Returns the result of one of its steps, or the row if the step failed.
    pub(super) async fn guard<T>(
        &self,
        step: impl FnOnce(Context) -> BoxFuture<'static, Result<T, Failure>>,
    ) -> Result<T, Ended> {
        let context = self.context.clone();
        guard(self.deadline(), async { step(context).await }).await
    }

    pub(super) fn row(self, ended: &Ended) -> (usize, Row) {
        let Self { at, id, context, started } = self;
        let duration = started.elapsed();
        let (verdict, warnings) = {
            let tally = context.recorder.tally();
            let verdict = match ended {
                Ended::Well => verdict(&tally, None),
                Ended::Failed(failure) => verdict(&tally, Some(failure)),
                Ended::Panicked(panic) => Verdict::Panicked(panic.clone()),
                Ended::Late => verdict(&tally, Some(&Failure::Timeout(GATHERER_TIMEOUT))),
            };
            (verdict, tally.warnings())
        };
        match &verdict {
            Verdict::Gathered { .. } | Verdict::NoData(_) => {
                info!(gatherer = id, ?duration, ?verdict, "gatherer ended")
            }
            Verdict::GatheredWithErrors { .. } | Verdict::Failed(_) | Verdict::Panicked(_) => {
                warn!(gatherer = id, ?duration, ?verdict, "gatherer ended");
            }
        }
        (at, Row { id: id.to_owned(), duration, verdict, warnings })
    }
}

/// Returns the result of `step`, or how it ended: by an error, a panic or the `deadline`.
pub(super) async fn guard<T>(
    deadline: Instant,
    step: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Ended> {
    match timeout_at(deadline, AssertUnwindSafe(step).catch_unwind()).await {
        Ok(Ok(Ok(brought))) => Ok(brought),
        Ok(Ok(Err(failure))) => Err(Ended::Failed(Arc::new(failure))),
        Ok(Err(panic)) => Err(Ended::Panicked(panic_text(panic.as_ref()))),
        Err(_) => Err(Ended::Late),
    }
}

/// Returns the verdict: records before a failure are kept, and the failure is one of its errors.
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
