//! Aggregates the conditions of the components into one condition. Pure: no client and no clock.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::vocabulary::Vocabulary;
use crate::controllers::kit::conditions::{self, Statement, Truth};

/// The longest message of the aggregate in characters; a longer one is cut and ends in `...`, as in the released operator.
const MAX_MESSAGE: usize = 256;

/// Computes the conditions with the standard ones updated from the components' conditions; None if nothing changes,
/// or no component has reported a known reason.
#[must_use]
pub fn aggregated(
    conditions: &[Condition],
    vocabulary: &Vocabulary,
    now: Timestamp,
) -> Option<Vec<Condition>> {
    let aggregate = aggregate(conditions, vocabulary)?;
    let is_told = |condition: &Condition| {
        let told = condition.status == Truth::True.as_str();
        if condition.type_ == aggregate.type_ {
            told && condition.reason == aggregate.reason && condition.message == aggregate.message
        } else {
            !told
        }
    };
    let mut standards = conditions.iter().filter(|condition| vocabulary.is_standard(condition));
    if conditions::has(conditions, aggregate.type_) && standards.all(is_told) {
        return None;
    }
    let mut conditions = conditions.to_vec();
    for other in conditions.iter_mut().filter(|condition| vocabulary.is_standard(condition)) {
        // It stays in the list with its reason and time, which say when and why it was last true.
        if other.type_ != aggregate.type_ && other.status == Truth::True.as_str() {
            Truth::False.as_str().clone_into(&mut other.status);
        }
    }
    conditions::set(&mut conditions, aggregate, None, now);
    Some(conditions)
}

/// Returns the aggregate of the components: the reason with the highest precedence, of the first component by name.
fn aggregate(conditions: &[Condition], vocabulary: &Vocabulary) -> Option<Statement> {
    let (component, reason) = conditions
        .iter()
        .filter(|condition| vocabulary.is_component(condition))
        .filter_map(|condition| {
            let rank = vocabulary.rank(&condition.reason)?;
            Some((condition, vocabulary.reasons.get(rank)?, rank))
        })
        .min_by(|(one, _, rank), (other, _, other_rank)| (rank, &one.type_).cmp(&(other_rank, &other.type_)))
        .map(|(component, reason, _)| (component, reason))?;
    let message = reason
        .message
        .map_or_else(|| shortened(format!("{}: {}", component.type_, component.message)), ToOwned::to_owned);
    Some(Statement::new(reason.standard, Truth::True, reason.name, message))
}

fn shortened(message: String) -> String {
    const CUT: &str = "...";
    if message.chars().count() <= MAX_MESSAGE {
        return message;
    }
    let kept: String = message.chars().take(MAX_MESSAGE.saturating_sub(CUT.len())).collect();
    kept + CUT
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::super::vocabulary::{SEED, SHIPPED};
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Condition {
        Condition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: message.to_owned(),
            observed_generation: None,
            last_transition_time: Time(at(1)),
        }
    }

    fn said(mc: &str, uwl: &str) -> Vec<Condition> {
        let component = |type_: &str, reason: &str| condition(type_, "True", reason, "of its own");
        vec![component("MetricsCollectorStatus", mc), component("UwlMetricsCollectorStatus", uwl)]
    }

    /// Returns type, reason and message of the only standard condition that is True.
    fn told(conditions: &[Condition], vocabulary: &Vocabulary) -> (String, String, String) {
        let mut told = conditions.iter().filter(|c| vocabulary.is_standard(c) && c.status == "True");
        let one = told.next().unwrap();
        assert_eq!(told.next(), None, "two standard conditions are True");
        (one.type_.clone(), one.reason.clone(), one.message.clone())
    }

    #[test]
    fn ob_04_the_table_of_the_seed() {
        let (ff, fs, uf, us) = ("ForwardFailure", "ForwardSuccessful", "UpdateFailure", "UpdateSuccesful");
        let columns = [ff, fs, uf, us];
        let rows =
            [(ff, [ff, ff, ff, ff]), (fs, [ff, fs, uf, us]), (uf, [ff, uf, uf, uf]), (us, [ff, us, uf, us])];
        for (mc, row) in rows {
            for (uwl, wanted) in columns.iter().zip(row) {
                let conditions = aggregated(&said(mc, uwl), &SEED, at(2)).unwrap();
                assert_eq!(told(&conditions, &SEED).1, wanted, "{mc} and {uwl}");
            }
        }
        for (mc, uwl, wanted) in [
            ("NotSupported", ff, ("NotSupported", "NotSupported")),
            ("DisabledMetrics", fs, ("Available", fs)),
            ("DisabledMetrics", "DisabledMetrics", ("Disabled", "DisabledMetrics")),
            ("OfAnotherVersion", us, ("Progressing", us)),
        ] {
            let told = told(&aggregated(&said(mc, uwl), &SEED, at(2)).unwrap(), &SEED);
            assert_eq!((told.0.as_str(), told.1.as_str()), wanted, "{mc} and {uwl}");
        }
    }

    #[test]
    fn ob_04_the_order_as_shipped() {
        let component = |type_: &str, reason: &str| condition(type_, "True", reason, "m");
        for (mc, uwl, wanted) in [
            ("ForwardFailed", "UpdateFailed", ("Degraded", "UpdateFailed")),
            ("ForwardFailed", "CMOReconcileLoopDetected", ("Degraded", "CMOReconcileLoopDetected")),
            ("CMOReconcileLoopStopped", "ForwardSuccessful", ("Progressing", "CMOReconcileLoopStopped")),
            ("Disabled", "Disabled", ("Degraded", "Disabled")),
        ] {
            let said = [component("MetricsCollector", mc), component("UwlMetricsCollector", uwl)];
            let told = told(&aggregated(&said, &SHIPPED, at(2)).unwrap(), &SHIPPED);
            assert_eq!((told.0.as_str(), told.1.as_str()), wanted);
        }
    }

    #[test]
    fn ob_07_nothing_is_said_without_components() {
        assert_eq!(aggregated(&[], &SEED, at(2)), None);
        let available = [condition("Available", "True", "ForwardSuccessful", "observability")];
        assert_eq!(aggregated(&available, &SEED, at(2)), None);
        assert_eq!(aggregated(&said("Odd", "Odder"), &SEED, at(2)), None);
    }

    #[test]
    fn ob_07_a_failure_makes_available_false_and_keeps_its_time() {
        let mut conditions =
            aggregated(&said("ForwardSuccessful", "ForwardSuccessful"), &SEED, at(2)).unwrap();
        assert_eq!(
            told(&conditions, &SEED),
            (
                "Available".to_owned(),
                "ForwardSuccessful".to_owned(),
                "observability-controller add-on is available.".to_owned()
            )
        );
        conditions[1].reason = "ForwardFailure".to_owned();
        conditions[1].message = "Metrics failed".to_owned();
        let conditions = aggregated(&conditions, &SEED, at(3)).unwrap();
        assert_eq!(told(&conditions, &SEED).2, "UwlMetricsCollectorStatus: Metrics failed");
        let types: Vec<_> = conditions.iter().map(|c| (c.type_.as_str(), c.status.as_str())).collect();
        assert_eq!(types[2..], [("Available", "False"), ("Degraded", "True")]);
        assert_eq!(conditions[2].last_transition_time, Time(at(2)));
        assert_eq!(conditions[3].last_transition_time, Time(at(3)));
    }

    #[test]
    fn ob_07_the_same_aggregate_is_not_written_again() {
        let conditions = aggregated(&said("UpdateSuccesful", "ForwardSuccessful"), &SEED, at(2)).unwrap();
        assert_eq!(aggregated(&conditions, &SEED, at(3)), None);
        let mut two = conditions;
        two.push(condition("Degraded", "True", "ForwardFailure", "left behind"));
        let mended = aggregated(&two, &SEED, at(3)).unwrap();
        assert_eq!(told(&mended, &SEED).0, "Progressing");
    }

    #[test]
    fn a_tie_is_told_by_the_first_name_and_in_256_characters() {
        let mut conditions = said("UpdateFailure", "UpdateFailure");
        conditions.reverse();
        conditions[1].message = "ä".repeat(300);
        let message = told(&aggregated(&conditions, &SEED, at(2)).unwrap(), &SEED).2;
        assert!(message.starts_with("MetricsCollectorStatus: ää") && message.ends_with("ä..."), "{message}");
        assert_eq!(message.chars().count(), 256);
    }
}
