//! Waits until the ClusterOperators of a payload are healthy, as installers and updates do.

use std::fmt;

use futures::StreamExt;
use kube::core::DeserializeGuard;
use kube::runtime::watcher;
use kube::{Api, Client};
use tokio::time::{Instant, sleep_until};

use super::crd::{ClusterOperator, ClusterOperatorSpec};
use super::fetch::Live;
use super::health::{Trouble, Verdict, verdict};
use super::payload::{PayloadError, Source, Wanted};
use super::{DEBOUNCE, Settings};
use crate::controllers::kit::watch;

/// The verdicts on all ClusterOperators of a payload, in the payload's order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    pub verdicts: Vec<Verdict>,
}

impl Report {
    fn new(operators: &[Wanted], live: &Live, initializing: bool) -> Self {
        // An object that cannot be parsed has no known status.
        let unread = ClusterOperator::new("", ClusterOperatorSpec {});
        let of = |wanted: &Wanted| {
            let live = live.get(&wanted.name).map(|live| live.unwrap_or(&unread));
            verdict(wanted, live, initializing)
        };
        Self { verdicts: operators.iter().map(of).collect() }
    }

    /// Whether all ClusterOperators are healthy.
    #[must_use]
    pub fn is_well(&self) -> bool {
        self.verdicts.iter().all(|verdict| verdict.trouble.is_none())
    }

    fn troubles(&self) -> impl Iterator<Item = (&Verdict, &Trouble)> {
        self.verdicts.iter().filter_map(|verdict| Some((verdict, verdict.trouble.as_ref()?)))
    }

    /// Returns the reason: of the only one in trouble, the plural if several have the same, or `MultipleErrors`. None if all
    /// are healthy.
    #[must_use]
    pub fn reason(&self) -> Option<&'static str> {
        let mut troubles = self.troubles().map(|(_, trouble)| trouble);
        let first = troubles.next()?;
        let others: Vec<_> = troubles.collect();
        Some(if others.is_empty() {
            first.reason()
        } else if others.iter().all(|other| other.reason() == first.reason()) {
            first.plural_reason()
        } else {
            "MultipleErrors"
        })
    }
}

/// Lists those in trouble, in the payload's order.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<_> = self.troubles().map(|(verdict, _)| verdict.to_string()).collect();
        f.write_str(&texts.join("; "))
    }
}

/// Waits until all ClusterOperators of the payload are healthy, and returns the final report. `tell` is called with
/// each report that differs from the one before. The payload is read once; reporting mistakes in it is left to the
/// caller. It also waits for ClusterOperators to be served.
///
/// # Errors
/// When the payload cannot be read.
pub async fn until_well(
    client: Client,
    settings: &Settings,
    initializing: bool,
    mut tell: impl FnMut(&Report),
) -> Result<Report, PayloadError> {
    let payload = Source::new(settings.payload.as_deref(), settings.inclusion.clone()).read()?;
    let operators = &payload.operators;
    let mut live = Live::default();
    let mut told = Report::new(operators, &live, initializing);
    tell(&told);
    let watched: Api<DeserializeGuard<ClusterOperator>> = Api::all(client);
    let mut events = watch::events(watched, watcher::Config::default()).boxed();
    let mut due = None;
    loop {
        tokio::select! {
            Some(event) = events.next() => {
                live.hear(event);
                due = due.or_else(|| Some(Instant::now() + DEBOUNCE)).filter(|_| live.listed());
            }
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                due = None;
                let report = Report::new(operators, &live, initializing);
                if report.is_well() {
                    return Ok(report);
                }
                if report != told {
                    tell(&report);
                    told = report;
                }
            }
        }
    }
}
