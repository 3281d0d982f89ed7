//! Writes the planned conditions of the collectors, each one once.

use kube::api::PostParams;
use kube::{Api, Client, ResourceExt};
use tracing::info;

use super::plan::{Collector, Sight, Word, word};
use super::workloads::Workloads;
use crate::controllers::kit::conditions;
use crate::controllers::kit::conflict::on_conflict;
use crate::controllers::kit::retry::{Remedy, remedy};
use crate::controllers::observability::crd::{NAME, ObservabilityAddon, TOLD};
use crate::controllers::observability::report::{Outcome, Report, ReportError, Reporter, Unknown};
use crate::controllers::observability::vocabulary::Vocabulary;
use crate::telemetry::{Outside, with_causes};

pub(in crate::controllers::observability) struct Operator {
    pub(in crate::controllers::observability) client: Client,
    pub(in crate::controllers::observability) vocabulary: &'static Vocabulary,
    pub(in crate::controllers::observability) workloads: Workloads,
}

/// Why the condition of a collector could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Report(#[from] ReportError),
    #[error(transparent)]
    Unknown(#[from] Unknown),
    #[error("what is to be said of the collectors is refused: {0}")]
    Refused(Outside),
    #[error("cannot note what was said of the collectors: {}", with_causes(.0))]
    Note(#[from] kube::Error),
}

impl Error {
    pub(in crate::controllers::observability) fn remedy(&self) -> Remedy {
        match self {
            Self::Report(error) => error.remedy(),
            Self::Unknown(_) => Remedy::Change,
            Self::Refused(_) => Remedy::Refused,
            Self::Note(error) => remedy(error),
        }
    }
}

impl Operator {
    /// Reports the state of the collectors of `object`; returns whether anything was written, so that the object has changed.
    ///
    /// # Errors
    /// [`Error`]; the next reconciliation repeats the report.
    pub(in crate::controllers::observability) async fn look(
        &self,
        object: &ObservabilityAddon,
    ) -> Result<bool, Error> {
        if object.name_any() != NAME || object.metadata.deletion_timestamp.is_some() {
            return Ok(false);
        }
        let components = [self.vocabulary.collector, self.vocabulary.workloads_collector];
        let mut said = false;
        for ((collector, component), mark) in Collector::ALL.into_iter().zip(components).zip(TOLD) {
            let spoken = conditions::has(object.conditions(), component);
            let told = object.annotations().get(mark);
            let sight = Sight {
                collector,
                enabled: object.spec.enable_metrics != Some(false),
                prometheus: self.workloads.prometheus(),
                deployed: self.workloads.deployed(collector),
                spoken,
                told: told.is_some(),
            };
            // If somebody removed the condition, it must be written again.
            let new = |word: &Word| !spoken || told != Some(&word.mark);
            if let Some(word) = word(&sight).filter(new) {
                self.say(object, component, mark, &word).await?;
                self.note(object, mark, &word.mark).await?;
                said = true;
            }
        }
        Ok(said)
    }

    async fn say(
        &self,
        object: &ObservabilityAddon,
        component: &'static str,
        mark: &str,
        word: &Word,
    ) -> Result<(), Error> {
        let report = Report::of(self.vocabulary, component, word.meaning, word.message)?;
        let namespace = object.namespace().unwrap_or_default();
        let reporter = Reporter::new(self.client.clone(), self.vocabulary).to(&namespace, NAME);
        // After a suspension, another leader may have reported the same, and the component may have changed since.
        let said = |there: &ObservabilityAddon| {
            there.annotations().get(mark) == Some(&word.mark)
                && conditions::has(there.conditions(), component)
        };
        match reporter.report_unless(&report, said).await? {
            Outcome::Refused(message) => return Err(Error::Refused(message)),
            // The transition table forbids this report after a loop, whose end is reported by another writer.
            outcome @ (Outcome::Written | Outcome::Same | Outcome::NotAllowed { .. }) => {
                info!(component, message = word.message, %outcome, "told of a collector");
            }
        }
        Ok(())
    }

    /// Records that a report was sent. This comes after the report, since a repeated report is better than a missing one.
    async fn note(&self, object: &ObservabilityAddon, key: &str, mark: &str) -> Result<(), kube::Error> {
        let api: Api<ObservabilityAddon> =
            Api::namespaced(self.client.clone(), &object.namespace().unwrap_or_default());
        on_conflict(|| async {
            let Some(mut there) = api.get_opt(NAME).await? else { return Ok(()) };
            let before = there.annotations_mut().insert(key.to_owned(), mark.to_owned());
            if before.as_deref() == Some(mark) {
                return Ok(());
            }
            there.managed_fields_mut().clear();
            api.replace(NAME, &PostParams::default(), &there).await.map(drop)
        })
        .await
    }
}
