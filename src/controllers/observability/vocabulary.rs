//! Defines the names of conditions and reasons of an add-on, which reason may follow which, and their precedence. All of it
//! is data: the deciding code contains no names.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// A set of reasons, with their precedence and their transitions.
#[derive(Debug, PartialEq)]
pub struct Vocabulary {
    /// Its name on the command line.
    pub name: &'static str,
    /// The condition of the platform's collector.
    pub collector: &'static str,
    /// The condition of the collector of user workloads.
    pub workloads_collector: &'static str,
    /// The condition types of the aggregate, of which at most one is True.
    pub standards: &'static [&'static str],
    /// The reasons of components, in descending precedence.
    pub reasons: &'static [Reason],
}

/// A reason that a component may report.
#[derive(Debug, PartialEq)]
pub struct Reason {
    pub name: &'static str,
    /// Its meaning, independent of the name.
    pub meaning: Meaning,
    /// The condition type of the aggregate for this reason.
    pub standard: &'static str,
    /// The message of the standard condition; without one it is the component's.
    pub message: Option<&'static str>,
    /// Reasons that may follow. The same reason may always follow.
    pub next: &'static [Meaning],
}

/// The meaning of a reason, independent of its name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Meaning {
    NotSupported,
    ForwardFailure,
    UpdateFailure,
    LoopDetected,
    UpdateSuccessful,
    LoopStopped,
    ForwardSuccessful,
    Disabled,
}

use Meaning::{
    Disabled, ForwardFailure, ForwardSuccessful, LoopDetected, LoopStopped, NotSupported, UpdateFailure,
    UpdateSuccessful,
};

// The registration agent of the hub writes Available with this very message; with another one it would alternate.
const IS_AVAILABLE: Option<&str> = Some("observability-controller add-on is available.");
const IS_PROGRESSING: Option<&str> = Some("observability-controller add-on is progressing.");
const IS_DISABLED: Option<&str> = Some("observability-controller add-on is disabled.");

const AFTER_DISABLED: &[Meaning] = &[UpdateSuccessful, UpdateFailure, NotSupported];
const AFTER_NOT_SUPPORTED: &[Meaning] = &[UpdateSuccessful, UpdateFailure, Disabled];
// A collector that continues to forward does not undo a failed update: the operator has to succeed first.
const AFTER_UPDATE_FAILURE: &[Meaning] = &[UpdateSuccessful, Disabled, NotSupported];

/// The names and the precedence of the design document.
pub const SEED: Vocabulary = Vocabulary {
    name: "seed",
    collector: "MetricsCollectorStatus",
    workloads_collector: "UwlMetricsCollectorStatus",
    standards: &["Available", "Degraded", "Progressing", "Disabled", "NotSupported"],
    reasons: &[
        reason("NotSupported", NotSupported, "NotSupported", None, AFTER_NOT_SUPPORTED),
        reason(
            "ForwardFailure",
            ForwardFailure,
            "Degraded",
            None,
            &[ForwardSuccessful, UpdateSuccessful, UpdateFailure, Disabled, NotSupported],
        ),
        reason("UpdateFailure", UpdateFailure, "Degraded", None, AFTER_UPDATE_FAILURE),
        reason(
            "UpdateSuccesful",
            UpdateSuccessful,
            "Progressing",
            IS_PROGRESSING,
            &[UpdateFailure, ForwardSuccessful, ForwardFailure, Disabled, NotSupported],
        ),
        reason(
            "ForwardSuccessful",
            ForwardSuccessful,
            "Available",
            IS_AVAILABLE,
            &[ForwardFailure, UpdateSuccessful, UpdateFailure, Disabled, NotSupported],
        ),
        reason("DisabledMetrics", Disabled, "Disabled", IS_DISABLED, AFTER_DISABLED),
    ],
};

/// The names and the precedence of the released operator.
pub const SHIPPED: Vocabulary = Vocabulary {
    name: "shipped",
    collector: "MetricsCollector",
    workloads_collector: "UwlMetricsCollector",
    // The last two are never set. An add-on with the names of the seed may have one of them True, which must be reset.
    standards: &["Available", "Degraded", "Progressing", "Disabled", "NotSupported"],
    reasons: &[
        reason("NotSupported", NotSupported, "Degraded", None, AFTER_NOT_SUPPORTED),
        reason("UpdateFailed", UpdateFailure, "Degraded", None, AFTER_UPDATE_FAILURE),
        reason(
            "CMOReconcileLoopDetected",
            LoopDetected,
            "Degraded",
            None,
            &[LoopStopped, Disabled, NotSupported],
        ),
        reason(
            "ForwardFailed",
            ForwardFailure,
            "Degraded",
            None,
            &[ForwardSuccessful, UpdateSuccessful, UpdateFailure, LoopDetected, Disabled, NotSupported],
        ),
        reason(
            "UpdateSuccessful",
            UpdateSuccessful,
            "Progressing",
            IS_PROGRESSING,
            &[UpdateFailure, ForwardSuccessful, ForwardFailure, LoopDetected, Disabled, NotSupported],
        ),
        reason(
            "CMOReconcileLoopStopped",
            LoopStopped,
            "Progressing",
            IS_PROGRESSING,
            &[
                UpdateSuccessful,
                UpdateFailure,
                ForwardSuccessful,
                ForwardFailure,
                LoopDetected,
                Disabled,
                NotSupported,
            ],
        ),
        reason(
            "ForwardSuccessful",
            ForwardSuccessful,
            "Available",
            IS_AVAILABLE,
            &[ForwardFailure, UpdateSuccessful, UpdateFailure, LoopDetected, Disabled, NotSupported],
        ),
        reason("Disabled", Disabled, "Degraded", IS_DISABLED, AFTER_DISABLED),
    ],
};

/// Both vocabularies.
pub const ALL: &[&Vocabulary] = &[&SEED, &SHIPPED];

const fn reason(
    name: &'static str,
    meaning: Meaning,
    standard: &'static str,
    message: Option<&'static str>,
    next: &'static [Meaning],
) -> Reason {
    Reason { name, meaning, standard, message, next }
}

impl Vocabulary {
    /// Returns the reason with this name, if this vocabulary has it.
    #[must_use]
    pub fn reason(&self, name: &str) -> Option<&'static Reason> {
        self.reasons.iter().find(|reason| reason.name == name)
    }

    /// Returns the name of `meaning`; None if it has none: the seed vocabulary has no loops.
    #[must_use]
    pub fn called(&self, meaning: Meaning) -> Option<&'static str> {
        self.reasons.iter().find(|reason| reason.meaning == meaning).map(|reason| reason.name)
    }

    /// Whether a component may change from reason `old` to `new`. An unknown `old`, from another version, forbids
    /// nothing: otherwise no component could ever leave it.
    #[must_use]
    pub fn allows(&self, old: Option<&str>, new: &Reason) -> bool {
        match old.and_then(|old| self.reason(old)) {
            None => true,
            Some(old) => old.name == new.name || old.next.contains(&new.meaning),
        }
    }

    /// Whether `condition` is the condition of a component.
    #[must_use]
    pub fn is_component(&self, condition: &Condition) -> bool {
        condition.type_ == self.collector || condition.type_ == self.workloads_collector
    }

    /// Whether `condition` is one of the aggregate's conditions.
    #[must_use]
    pub fn is_standard(&self, condition: &Condition) -> bool {
        self.standards.contains(&condition.type_.as_str())
    }

    /// Returns the precedence of `reason`, 0 being the highest. None for an unknown one.
    #[must_use]
    pub fn rank(&self, reason: &str) -> Option<usize> {
        self.reasons.iter().position(|known| known.name == reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks a table whose rows are old reasons and columns new ones; `y` allowed, `-` not, `=` the same.
    fn table(vocabulary: &Vocabulary, columns: &[&str], rows: &[(&str, &str)]) {
        for (old, verdicts) in rows {
            let old_reason = (*old != "(none)").then_some(*old);
            for (new, verdict) in columns.iter().zip(verdicts.split_whitespace()) {
                let allowed = vocabulary.allows(old_reason, vocabulary.reason(new).unwrap());
                assert_eq!(allowed, verdict != "-", "{}: {old} to {new}", vocabulary.name);
                assert_eq!(verdict == "=", old == new, "the diagonal of the table");
            }
            assert_eq!(verdicts.split_whitespace().count(), columns.len());
        }
    }

    #[test]
    fn ob_03_transitions_of_the_seed() {
        let columns = [
            "UpdateSuccesful",
            "UpdateFailure",
            "ForwardSuccessful",
            "ForwardFailure",
            "DisabledMetrics",
            "NotSupported",
        ];
        table(
            &SEED,
            &columns,
            &[
                ("(none)", "y y y y y y"),
                ("UpdateSuccesful", "= y y y y y"),
                ("UpdateFailure", "y = - - y y"),
                ("ForwardSuccessful", "y y = y y y"),
                ("ForwardFailure", "y y y = y y"),
                ("DisabledMetrics", "y y - - = y"),
                ("NotSupported", "y y - - y ="),
                ("OfAnotherVersion", "y y y y y y"),
            ],
        );
    }

    #[test]
    fn ob_03_transitions_as_shipped() {
        let columns = [
            "UpdateSuccessful",
            "UpdateFailed",
            "ForwardSuccessful",
            "ForwardFailed",
            "Disabled",
            "NotSupported",
            "CMOReconcileLoopDetected",
            "CMOReconcileLoopStopped",
        ];
        table(
            &SHIPPED,
            &columns,
            &[
                ("(none)", "y y y y y y y y"),
                ("UpdateSuccessful", "= y y y y y y -"),
                ("UpdateFailed", "y = - - y y - -"),
                ("ForwardSuccessful", "y y = y y y y -"),
                ("ForwardFailed", "y y y = y y y -"),
                ("Disabled", "y y - - = y - -"),
                ("NotSupported", "y y - - y = - -"),
                ("CMOReconcileLoopDetected", "- - - - y y = y"),
                ("CMOReconcileLoopStopped", "y y y y y y y ="),
            ],
        );
    }

    #[test]
    fn every_reason_is_told_by_a_standard_type_of_its_vocabulary() {
        for vocabulary in ALL {
            for reason in vocabulary.reasons {
                assert!(vocabulary.standards.contains(&reason.standard), "{}", reason.name);
                for next in reason.next {
                    assert!(vocabulary.called(*next).is_some(), "{} knows no {next:?}", vocabulary.name);
                }
            }
        }
    }
}
