//! What a case expects, and how an answer differs from it.

use regex_automata::meta::Regex;

use super::Outcome;
use crate::decision::Reason;
use crate::vap::Missed;

/// What must come of a case. Absent parts are not looked at.
#[derive(Debug)]
pub struct Expectation {
    pub outcome: Outcome,
    pub message: Option<Text>,
    pub reason: Option<Reason>,
    /// Path of the field that a CRD's rule or schema complains about.
    pub field: Option<String>,
    /// Audit annotations that must be there.
    pub annotations: Vec<(String, String)>,
}

/// A condition on a text.
#[derive(Debug)]
pub enum Text {
    Equals(String),
    Contains(String),
    Regex { pattern: String, regex: Box<Regex> },
}

/// One difference.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Mismatch {
    /// What differs: `outcome`, `message`, …
    pub what: &'static str,
    pub expected: String,
    pub actual: String,
}

/// The parts of an answer that expectations speak about.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) outcome: Option<Outcome>,
    /// Failed rules were also written to the audit log.
    pub(super) audited: bool,
    /// What the rules in question said.
    pub(super) messages: Vec<String>,
    pub(super) reason: Option<Reason>,
    pub(super) fields: Vec<String>,
    /// The policy that spoke; none where a definition did.
    pub(super) policy: Option<String>,
    pub(super) annotations: Vec<(String, String)>,
    /// Policies that were not asked, with the reasons; only where the case is recorded.
    pub(super) missed: Vec<Missed>,
}

impl Expectation {
    pub(super) fn mismatches(&self, answer: &Answer) -> Vec<Mismatch> {
        let mut found = Vec::new();
        let actual = answer.outcome.unwrap_or(Outcome::Unmatched);
        let also_audited = self.outcome == Outcome::Audit && actual == Outcome::Warn && answer.audited;
        if actual != self.outcome && !also_audited {
            found.push(Mismatch::new("outcome", self.outcome.as_str(), actual.as_str()));
        }
        if let Some(text) = &self.message
            && !answer.messages.iter().any(|message| text.holds(message))
        {
            found.push(Mismatch::new("message", &text.describe(), &answer.messages.join("\n")));
        }
        if let Some(reason) = self.reason
            && answer.reason != Some(reason)
        {
            let actual = answer.reason.map(Reason::as_str).unwrap_or_default();
            found.push(Mismatch::new("reason", reason.as_str(), actual));
        }
        if let Some(field) = &self.field
            && !answer.fields.contains(field)
        {
            found.push(Mismatch::new("field", field, &answer.fields.join(", ")));
        }
        for (key, value) in &self.annotations {
            let actual = answer.annotations.iter().find(|(name, _)| name == key).map(|(_, value)| value);
            if actual != Some(value) {
                let actual = actual.map_or("(absent)", String::as_str);
                found.push(Mismatch::new("annotation", &format!("{key}: {value}"), actual));
            }
        }
        found
    }
}

impl Text {
    fn holds(&self, text: &str) -> bool {
        match self {
            Self::Equals(expected) => text == expected,
            Self::Contains(part) => text.contains(part.as_str()),
            Self::Regex { regex, .. } => regex.is_match(text),
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Equals(text) => text.clone(),
            Self::Contains(part) => format!("a text that contains `{part}`"),
            Self::Regex { pattern, .. } => format!("a text that matches /{pattern}/"),
        }
    }
}

impl Mismatch {
    pub(super) fn new(what: &'static str, expected: &str, actual: &str) -> Self {
        Self { what, expected: expected.to_owned(), actual: actual.to_owned() }
    }
}
