//! Decides which condition to report for one collector. Pure.
//!
//! | first that holds | word |
//! |---|---|
//! | `enableMetrics: false` | Disabled |
//! | no Service of Prometheus | NotSupported |
//! | the Deployment does not come about | UpdateFailure |
//! | it is another than was told of | UpdateSuccesful |
//! | the one for user workloads is there no more | Disabled |

use crate::controllers::observability::vocabulary::Meaning;

/// One of the two collectors.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::controllers::observability) enum Collector {
    Platform,
    Workloads,
}

impl Collector {
    pub(super) const ALL: [Self; 2] = [Self::Platform, Self::Workloads];
}

/// The relevant state of a collector's Deployment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::controllers::observability) enum Deployed {
    /// It is not known yet, or cannot be read.
    #[default]
    NotKnown,
    Absent,
    /// It exists in this version, which changes with its spec.
    Runs(String),
    /// It exists in this version, and its rollout has failed.
    Fails(String),
}

/// What is known of one collector.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sight {
    pub(super) collector: Collector,
    pub(super) enabled: bool,
    /// Whether Prometheus has a Service; None if that is not required, or not known yet.
    pub(super) prometheus: Option<bool>,
    pub(super) deployed: Deployed,
    /// Whether it has a condition already.
    pub(super) spoken: bool,
    /// Whether anything was reported about it. Collectors that report without a known Deployment belong to another program.
    pub(super) told: bool,
}

/// A report, with the mark that records it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Word {
    pub(super) meaning: Meaning,
    pub(super) message: &'static str,
    pub(super) mark: String,
}

/// Returns the report; None if there is nothing to report.
pub(super) fn word(sight: &Sight) -> Option<Word> {
    let word = |meaning, message, mark: &str| Some(Word { meaning, message, mark: mark.to_owned() });
    let uwl = sight.collector == Collector::Workloads;
    let is_there = matches!(sight.deployed, Deployed::Runs(_) | Deployed::Fails(_));
    // The collector of user workloads is optional, that of the platform is not.
    let concerned = !uwl || sight.spoken || is_there;
    let disabled = if uwl { "UWL Metrics collector disabled" } else { "Metrics collector disabled" };
    if !concerned {
        return None;
    }
    if !sight.enabled {
        return word(Meaning::Disabled, disabled, "disabled");
    }
    if sight.prometheus == Some(false) {
        return word(Meaning::NotSupported, "Prometheus service not found", "not-supported");
    }
    match &sight.deployed {
        Deployed::Fails(version) => {
            let mark = format!("failed.{version}");
            word(Meaning::UpdateFailure, "Failed to update metrics collector", &mark)
        }
        Deployed::Runs(version) => word(Meaning::UpdateSuccessful, "Metrics collector updated", version),
        Deployed::Absent if uwl && sight.told => word(Meaning::Disabled, disabled, "disabled"),
        Deployed::Absent | Deployed::NotKnown => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sight(deployed: Deployed) -> Sight {
        Sight {
            collector: Collector::Platform,
            enabled: true,
            prometheus: None,
            deployed,
            spoken: false,
            told: false,
        }
    }

    fn said(sight: &Sight) -> Option<(Meaning, &'static str, String)> {
        word(sight).map(|word| (word.meaning, word.message, word.mark))
    }

    #[test]
    fn ob_03_what_the_endpoint_operator_writes_when() {
        let runs = || Deployed::Runs("u.1".to_owned());
        let updated = Some((Meaning::UpdateSuccessful, "Metrics collector updated", "u.1".to_owned()));
        assert_eq!(said(&sight(runs())), updated);
        assert_eq!(said(&Sight { prometheus: Some(true), ..sight(runs()) }), updated);
        let failed = said(&sight(Deployed::Fails("u.1".to_owned()))).unwrap();
        assert_eq!(failed.0, Meaning::UpdateFailure);
        assert_ne!(failed.2, "u.1", "a failure is not told by the mark of its success");
        let off = Sight { enabled: false, prometheus: Some(false), ..sight(runs()) };
        assert_eq!(said(&off).map(|said| said.1), Some("Metrics collector disabled"));
        let unsupported = Sight { prometheus: Some(false), ..sight(runs()) };
        assert_eq!(said(&unsupported).map(|said| said.1), Some("Prometheus service not found"));
        assert_eq!(said(&sight(Deployed::NotKnown)), None);
        assert_eq!(said(&sight(Deployed::Absent)), None);
    }

    #[test]
    fn ob_03_the_component_of_user_workloads_is_disabled_and_never_made_up() {
        let of = |deployed, told, enabled| {
            let sight =
                Sight { collector: Collector::Workloads, spoken: told, told, enabled, ..sight(deployed) };
            said(&sight).map(|said| (said.0, said.1))
        };
        let disabled = Some((Meaning::Disabled, "UWL Metrics collector disabled"));
        assert_eq!(of(Deployed::Absent, true, true), disabled);
        assert_eq!(of(Deployed::Absent, false, true), None);
        assert_eq!(of(Deployed::Absent, false, false), None);
        assert_eq!(of(Deployed::NotKnown, true, true), None);
        assert_eq!(of(Deployed::Runs("u.1".to_owned()), false, false), disabled);
        let theirs = Sight { collector: Collector::Workloads, spoken: true, ..sight(Deployed::Absent) };
        assert_eq!(said(&theirs), None, "it reports, and was never seen here");
    }
}
