//! Updates lists of conditions, keyed by type, in every form that APIs use: `metav1.Condition`, which add-ons use without a
//! generation, and that of ClusterOperators. The content of a condition is a [`Statement`] in all of them.
//!
//! INVARIANT: `lastTransitionTime` changes only together with `status`, as the Kubernetes API conventions ask; waiting
//! clients compare it.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::telemetry::{Outside, Secrets};

/// The three values of a condition's status.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Truth {
    True,
    False,
    Unknown,
}

impl Truth {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// The content of a condition: type, status, reason and message.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    pub type_: &'static str,
    pub truth: Truth,
    pub reason: String,
    pub message: String,
}

impl Statement {
    pub fn new(type_: &'static str, truth: Truth, reason: &str, message: impl Into<String>) -> Self {
        Self { type_, truth, reason: reason.to_owned(), message: message.into() }
    }
}

/// A condition type of an API.
pub trait Shape: Sized {
    fn type_(&self) -> &str;
    fn status(&self) -> &str;
    /// Returns the last transition time.
    fn since(&self) -> &Time;
    /// Creates a condition with the transition time `since`, for an object of the generation.
    fn stated(statement: Statement, since: Time, generation: Option<i64>) -> Self;
}

impl Shape for Condition {
    fn type_(&self) -> &str {
        &self.type_
    }

    fn status(&self) -> &str {
        &self.status
    }

    fn since(&self) -> &Time {
        &self.last_transition_time
    }

    fn stated(statement: Statement, since: Time, generation: Option<i64>) -> Self {
        let Statement { type_, truth, reason, message } = statement;
        Self {
            type_: type_.to_owned(),
            status: truth.as_str().to_owned(),
            reason,
            message,
            observed_generation: generation,
            last_transition_time: since,
        }
    }
}

/// The longest message that the API accepts, in characters.
const MAX_MESSAGE: usize = 32768;

/// Sets `statement` in `conditions`: replaces the condition of its type, or appends it.
pub fn set<C: Shape>(conditions: &mut Vec<C>, statement: Statement, generation: Option<i64>, now: Timestamp) {
    let known = conditions.iter().position(|condition| condition.type_() == statement.type_);
    let since = known
        .and_then(|at| conditions.get(at))
        .filter(|condition| condition.status() == statement.truth.as_str())
        .map_or(Time(now), |condition| condition.since().clone());
    // The message may quote untrusted text.
    let message = Outside::at_most(MAX_MESSAGE, statement.message, &Secrets::default()).into_string();
    let stated = C::stated(Statement { message, ..statement }, since, generation);
    match known.and_then(|at| conditions.get_mut(at)) {
        Some(condition) => *condition = stated,
        None => conditions.push(stated),
    }
}

/// Whether there is a condition `type_` with status `truth`.
pub fn is<C: Shape>(conditions: &[C], type_: &str, truth: Truth) -> bool {
    conditions.iter().any(|condition| condition.type_() == type_ && condition.status() == truth.as_str())
}

pub fn has<C: Shape>(conditions: &[C], type_: &str) -> bool {
    conditions.iter().any(|condition| condition.type_() == type_)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::kit::operator::crd::OperatorCondition;

    #[test]
    fn one_statement_has_the_shape_of_each_api() {
        let said = || Statement::new("A", Truth::True, "Because", "it is");
        let (mut metav1, mut operator) = (Vec::<Condition>::new(), Vec::<OperatorCondition>::new());
        set(&mut metav1, said(), Some(3), Timestamp::UNIX_EPOCH);
        set(&mut operator, said(), Some(3), Timestamp::UNIX_EPOCH);
        let plain = serde_json::json!({"type": "A", "status": "True", "reason": "Because", "message": "it is",
            "lastTransitionTime": "1970-01-01T00:00:00Z"});
        assert_eq!(serde_json::to_value(&operator[0]).unwrap(), plain);
        let mut with_generation = plain;
        with_generation["observedGeneration"] = serde_json::json!(3);
        assert_eq!(serde_json::to_value(&metav1[0]).unwrap(), with_generation);
        assert!(is(&operator, "A", Truth::True) && !has(&operator, "B"));
        set(&mut operator, Statement::new("A", Truth::False, "", ""), None, Timestamp::UNIX_EPOCH);
        assert_eq!((&operator[0].reason, &operator[0].message), (&None, &None));
    }

    #[test]
    fn the_transition_time_moves_only_with_the_status() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut conditions = Vec::<Condition>::new();
        set(&mut conditions, Statement::new("A", Truth::Unknown, "NotYet", ""), None, at(1));
        set(&mut conditions, Statement::new("B", Truth::Unknown, "NotYet", ""), None, at(1));
        set(&mut conditions, Statement::new("B", Truth::Unknown, "StillNot", "waiting"), Some(2), at(2));
        assert_eq!(conditions[1].last_transition_time, Time(at(1)));
        assert_eq!((conditions[1].reason.as_str(), conditions[1].observed_generation), ("StillNot", Some(2)));
        set(&mut conditions, Statement::new("B", Truth::True, "Done", ""), None, at(3));
        assert_eq!(conditions[1].last_transition_time, Time(at(3)));
        assert_eq!(conditions.iter().map(|c| c.type_.as_str()).collect::<Vec<_>>(), ["A", "B"]);
        assert!(is(&conditions, "B", Truth::True) && !is(&conditions, "A", Truth::True));
    }
}
