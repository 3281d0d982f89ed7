//! Lists of `metav1.Condition`, keyed by type.
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

/// What a condition is to say.
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

/// Longest message that the API takes, in characters.
const MAX_MESSAGE: usize = 32768;

/// Puts `statement` into `conditions`: over the condition of its type, or at the end.
pub fn set(conditions: &mut Vec<Condition>, statement: Statement, generation: Option<i64>, now: Timestamp) {
    let Statement { type_, truth, reason, message } = statement;
    let known = conditions.iter().position(|condition| condition.type_ == type_);
    let since = known
        .and_then(|at| conditions.get(at))
        .filter(|condition| condition.status == truth.as_str())
        .map_or(Time(now), |condition| condition.last_transition_time.clone());
    let stated = Condition {
        type_: type_.to_owned(),
        status: truth.as_str().to_owned(),
        reason,
        // Whatever it quotes, from wherever.
        message: Outside::at_most(MAX_MESSAGE, message, &Secrets::default()).into_string(),
        observed_generation: generation,
        last_transition_time: since,
    };
    match known.and_then(|at| conditions.get_mut(at)) {
        Some(condition) => *condition = stated,
        None => conditions.push(stated),
    }
}

/// Whether the condition `type_` is there with status `truth`.
pub fn is(conditions: &[Condition], type_: &str, truth: Truth) -> bool {
    conditions.iter().any(|condition| condition.type_ == type_ && condition.status == truth.as_str())
}

pub fn has(conditions: &[Condition], type_: &str) -> bool {
    conditions.iter().any(|condition| condition.type_ == type_)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transition_time_moves_only_with_the_status() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut conditions = Vec::new();
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
