//! Provides a library for collectors, and for programs that roll them out: reports the condition of a component.
//!
//! ```no_run
//! use admit::controllers::observability::report::{Report, Reporter};
//! use admit::controllers::observability::vocabulary::{Meaning, SEED};
//!
//! # async fn collect(client: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
//! let reporter = Reporter::new(client, &SEED);
//! let report = Report::of(&SEED, SEED.collector, Meaning::ForwardSuccessful, "Cluster metrics sent successfully")?;
//! println!("{}", reporter.report(&report).await?);
//! # Ok(())
//! # }
//! ```

use std::fmt;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::PostParams;
use kube::{Api, Client};

use super::crd::{NAME, ObservabilityAddon, SPOKE_NAMESPACE};
use super::vocabulary::{Meaning, Reason, Vocabulary};
use crate::controllers::kit::clock::Clock;
use crate::controllers::kit::conditions::{self, Statement, Truth};
use crate::controllers::kit::conflict::on_conflict;
use crate::controllers::kit::retry::{Remedy, remedy};
use crate::telemetry::{Outside, Secrets, with_causes};

/// The state that a component reports.
#[derive(Clone, Debug)]
pub struct Report {
    component: &'static str,
    reason: &'static Reason,
    message: String,
}

/// A report with a component or reason that the vocabulary does not have.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("the {vocabulary} vocabulary knows no {what}; it knows {known}")]
pub struct Unknown {
    vocabulary: &'static str,
    what: String,
    known: String,
}

impl Report {
    /// # Errors
    /// [`Unknown`] when `meaning` has no name in `vocabulary`.
    pub fn of(
        vocabulary: &Vocabulary,
        component: &'static str,
        meaning: Meaning,
        message: impl Into<String>,
    ) -> Result<Self, Unknown> {
        let reason = vocabulary.reasons.iter().find(|reason| reason.meaning == meaning);
        let reason = reason.ok_or_else(|| Unknown::reason(vocabulary, &format!("{meaning:?}")))?;
        Ok(Self { component, reason, message: message.into() })
    }

    /// Like [`Self::of`], with the reason as it is spelled in conditions.
    ///
    /// # Errors
    /// [`Unknown`] when it is not in `vocabulary`.
    pub fn named(
        vocabulary: &Vocabulary,
        component: &'static str,
        reason: &str,
        message: impl Into<String>,
    ) -> Result<Self, Unknown> {
        let reason = vocabulary.reason(reason).ok_or_else(|| Unknown::reason(vocabulary, reason))?;
        Ok(Self { component, reason, message: message.into() })
    }
}

impl Unknown {
    fn reason(vocabulary: &Vocabulary, reason: &str) -> Self {
        let known: Vec<&str> = vocabulary.reasons.iter().map(|reason| reason.name).collect();
        Self { vocabulary: vocabulary.name, what: format!("reason `{reason}`"), known: known.join(", ") }
    }
}

/// The result of a report. It was written only in the first case; retrying does not help in the others.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Written,
    /// The condition is the same already.
    Same,
    /// The transition from the current reason is not allowed.
    NotAllowed {
        from: String,
        to: &'static str,
    },
    /// The API server or one of its policies rejected the write.
    Refused(Outside),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Written => f.write_str("written"),
            Self::Same => f.write_str("unchanged: it says so already"),
            Self::NotAllowed { from, to } => write!(f, "skipped: {to} may not follow {from}"),
            Self::Refused(message) => write!(f, "skipped: {message}"),
        }
    }
}

/// Why a report has no outcome.
#[derive(Debug, thiserror::Error)]
#[error("cannot report to {namespace}/{name}: {}", with_causes(source))]
pub struct ReportError {
    namespace: String,
    name: String,
    #[source]
    source: Box<kube::Error>,
}

impl ReportError {
    /// Returns how to handle the error.
    #[must_use]
    pub fn remedy(&self) -> Remedy {
        remedy(&self.source)
    }
}

/// Writes reports into the add-on of this cluster.
#[derive(Clone)]
pub struct Reporter {
    client: Client,
    vocabulary: &'static Vocabulary,
    namespace: String,
    name: String,
    clock: Clock,
}

impl fmt::Debug for Reporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reporter")
            .field("namespace", &self.namespace)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Reporter {
    #[must_use]
    pub fn new(client: Client, vocabulary: &'static Vocabulary) -> Self {
        let (namespace, name) = (SPOKE_NAMESPACE.to_owned(), NAME.to_owned());
        Self { client, vocabulary, namespace, name, clock: Clock::default() }
    }

    /// Reports to another object than the default one.
    #[must_use]
    pub fn to(mut self, namespace: &str, name: &str) -> Self {
        namespace.clone_into(&mut self.namespace);
        name.clone_into(&mut self.name);
        self
    }

    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Writes the report: reads the conditions, checks the transition, and writes them. On a conflict with another
    /// writer it starts again.
    ///
    /// # Errors
    /// [`ReportError`] when the object cannot be read or written. A rejection is an outcome and no error.
    pub async fn report(&self, report: &Report) -> Result<Outcome, ReportError> {
        self.report_unless(report, |_| false).await
    }

    /// Does the same, unless `said` is true for the version of the object that is about to be written.
    ///
    /// # Errors
    /// [`ReportError`], as for [`Self::report`].
    pub(super) async fn report_unless(
        &self,
        report: &Report,
        said: impl Fn(&ObservabilityAddon) -> bool + Sync,
    ) -> Result<Outcome, ReportError> {
        let api: Api<ObservabilityAddon> = Api::namespaced(self.client.clone(), &self.namespace);
        let reported = on_conflict(|| self.attempt(&api, report, &said)).await;
        match reported {
            Ok(outcome) => Ok(outcome),
            Err(kube::Error::Api(status)) if matches!(status.code, 403 | 422) => {
                Ok(Outcome::Refused(Outside::of(&status.message, &Secrets::default())))
            }
            Err(source) => {
                let (namespace, name) = (self.namespace.clone(), self.name.clone());
                Err(ReportError { namespace, name, source: Box::new(source) })
            }
        }
    }

    async fn attempt(
        &self,
        api: &Api<ObservabilityAddon>,
        report: &Report,
        said: &(impl Fn(&ObservabilityAddon) -> bool + Sync),
    ) -> Result<Outcome, kube::Error> {
        let mut object = api.get(&self.name).await?;
        if said(&object) {
            return Ok(Outcome::Same);
        }
        let mut status = object.status.take().unwrap_or_default();
        let outcome = state(&mut status.conditions, self.vocabulary, report, self.clock.now());
        if outcome == Outcome::Written {
            object.status = Some(status);
            api.replace_status(&self.name, &PostParams::default(), &object).await?;
        }
        Ok(outcome)
    }
}

/// Adds `report` to `conditions` if the transition is allowed.
pub fn state(
    conditions: &mut Vec<Condition>,
    vocabulary: &Vocabulary,
    report: &Report,
    now: Timestamp,
) -> Outcome {
    let Report { component, reason, message } = report;
    let old = conditions.iter().find(|condition| condition.type_ == *component);
    let from = old.map(|condition| condition.reason.as_str());
    if !vocabulary.allows(from, reason) {
        return Outcome::NotAllowed { from: from.unwrap_or_default().to_owned(), to: reason.name };
    }
    let is_told = |old: &Condition| {
        old.reason == reason.name && old.message == *message && old.status == Truth::True.as_str()
    };
    if old.is_some_and(is_told) {
        return Outcome::Same;
    }
    conditions::set(
        conditions,
        Statement::new(component, Truth::True, reason.name, message.clone()),
        None,
        now,
    );
    Outcome::Written
}

impl Report {
    #[must_use]
    pub const fn meaning(&self) -> Meaning {
        self.reason.meaning
    }
}

#[cfg(test)]
mod tests {
    use super::super::vocabulary::SEED;
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn report(reason: &str, message: &str) -> Report {
        Report::named(&SEED, SEED.collector, reason, message).unwrap()
    }

    #[test]
    fn ob_07_a_collector_does_not_undo_a_failed_update() {
        let mut conditions = Vec::new();
        assert_eq!(state(&mut conditions, &SEED, &report("UpdateFailure", "m"), at(1)), Outcome::Written);
        let before = conditions.clone();
        let refused = state(&mut conditions, &SEED, &report("ForwardSuccessful", "m"), at(2));
        assert_eq!(refused.to_string(), "skipped: ForwardSuccessful may not follow UpdateFailure");
        assert_eq!(conditions, before);
    }

    #[test]
    fn ob_07_the_same_words_are_not_written_again_and_new_ones_are() {
        let mut conditions = Vec::new();
        assert_eq!(state(&mut conditions, &SEED, &report("ForwardSuccessful", "a"), at(1)), Outcome::Written);
        assert_eq!(state(&mut conditions, &SEED, &report("ForwardSuccessful", "a"), at(2)), Outcome::Same);
        assert_eq!(state(&mut conditions, &SEED, &report("ForwardSuccessful", "b"), at(3)), Outcome::Written);
        assert_eq!((conditions.len(), conditions[0].message.as_str()), (1, "b"));
    }

    #[test]
    fn an_unknown_reason_is_named_with_those_that_there_are() {
        let unknown = Report::named(&SEED, SEED.collector, "Forwarded", "").unwrap_err().to_string();
        assert!(unknown.contains("reason `Forwarded`") && unknown.contains("UpdateSuccesful"), "{unknown}");
        let loops = Report::of(&SEED, SEED.collector, Meaning::LoopDetected, "").unwrap_err();
        assert!(loops.to_string().contains("seed vocabulary"), "{loops}");
    }
}
