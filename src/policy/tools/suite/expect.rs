//! Defines the expectations of a test case, and compares a result with them.

use admit_apimachinery::field_error::FieldErrorKind;
use regex_automata::meta::Regex;
use serde_json::Value;

use super::Outcome;
use crate::read::decode::{Fields, FieldsError, known, wrong};
use crate::report::decision::{Reason, reason_named};
use crate::vap::Missed;

/// The expected result of a case. Absent parts are not compared; field, message and cause must belong to one rule.
#[derive(Debug)]
pub struct Expectation {
    pub outcome: Outcome,
    pub message: Option<Text>,
    pub reason: Option<ExpectedReason>,
    /// Path of the field that a CRD's rule or schema complains about.
    pub field: Option<String>,
    /// Audit annotations that must be there.
    pub annotations: Vec<(String, String)>,
    /// The expected object after mutations: maps may have more members, a null means absence, and lists are compared as a whole.
    pub object: Option<Value>,
    /// Whether policies leave an object as it is that they have changed once.
    pub idempotent: bool,
}

/// A reason by the place that a `Status` has it in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ExpectedReason {
    /// The reason of the whole `Status`.
    Status(Reason),
    /// The reason of one of the causes of a CRD's refusal.
    Cause(FieldErrorKind),
}

/// A condition on a string.
#[derive(Debug)]
pub enum Text {
    Equals(String),
    Contains(String),
    Regex { pattern: String, regex: Box<Regex> },
}

/// A difference.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Mismatch {
    /// The part that differs: `outcome`, `message`, …
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
    /// What the rules reported.
    pub(super) told: Vec<Told>,
    pub(super) reason: Option<Reason>,
    /// The policy that decided; None where a definition did.
    pub(super) policy: Option<String>,
    pub(super) annotations: Vec<(String, String)>,
    /// Policies that did not apply, with the reasons; only where the case is recorded.
    pub(super) missed: Vec<Missed>,
    /// The object as policies left it.
    pub(super) object: Option<Value>,
    /// The object after a second run of mutations; only if requested.
    pub(super) again: Option<Value>,
    /// The whole message of a server that rejects the object, whatever policies say.
    pub(super) refusal: Option<String>,
    /// What the object names that no document has, and was taken as being there.
    pub(super) assumed: Vec<String>,
}

/// The report of one rule.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) message: String,
    pub(super) field: String,
    /// The error type, if a definition rejects it.
    pub(super) cause: Option<FieldErrorKind>,
}

impl Answer {
    /// Returns the first report.
    pub(super) fn first(&self) -> (String, String) {
        self.told.first().map(|told| (told.message.clone(), told.field.clone())).unwrap_or_default()
    }
}

impl Expectation {
    /// Builds an answer with only an outcome.
    pub(super) const fn of(outcome: Outcome) -> Self {
        Self {
            outcome,
            message: None,
            reason: None,
            field: None,
            annotations: Vec::new(),
            object: None,
            idempotent: false,
        }
    }

    pub(super) fn mismatches(&self, answer: &Answer) -> Vec<Mismatch> {
        let found = self.differences(answer);
        match &answer.refusal {
            Some(refusal) if !found.is_empty() || !self.names_what_is_told() => {
                vec![Mismatch::new("object", "one that a server takes", refusal)]
            }
            _ => found,
        }
    }

    /// Whether more is expected than any policy could answer: `deny` with the reason `Invalid` also matches a server's rejection of an
    /// object before the policy under test ran.
    fn names_what_is_told(&self) -> bool {
        self.message.is_some()
            || self.field.is_some()
            || matches!(self.reason, Some(ExpectedReason::Cause(_)))
    }

    fn differences(&self, answer: &Answer) -> Vec<Mismatch> {
        let mut found = Vec::new();
        let actual = answer.outcome.unwrap_or(Outcome::Unmatched);
        let also_audited = self.outcome == Outcome::Audit && actual == Outcome::Warn && answer.audited;
        if actual != self.outcome && !also_audited {
            found.push(Mismatch::new("outcome", self.outcome.as_str(), actual.as_str()));
        }
        if let Some(ExpectedReason::Status(reason)) = self.reason
            && answer.reason != Some(reason)
        {
            let actual = answer.reason.map(Reason::as_str).unwrap_or_default();
            found.push(Mismatch::new("reason", reason.as_str(), actual));
        }
        self.of_one_rule(&answer.told, &mut found);
        if let Some(expected) = &self.object {
            let actual = answer.object.as_ref().unwrap_or(&Value::Null);
            differences(expected, actual, &mut "object".to_owned(), &mut found);
        }
        if let (true, Some(once), Some(again)) = (self.idempotent, &answer.object, &answer.again) {
            let mut changed = Vec::new();
            differences(once, again, &mut "object".to_owned(), &mut changed);
            differences(again, once, &mut "object".to_owned(), &mut changed);
            let told = changed.first().map(|Mismatch { expected, actual, .. }| (expected, actual));
            found.extend(told.map(|(expected, actual)| Mismatch::new("idempotent", expected, actual)));
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

    /// Each part is compared with the rules that match all parts before it.
    fn of_one_rule(&self, told: &[Told], found: &mut Vec<Mismatch>) {
        let mut left: Vec<&Told> = told.iter().collect();
        let mut narrow =
            |what, expected: &str, holds: &dyn Fn(&Told) -> bool, shown: fn(&Told) -> &str, gap| {
                if left.iter().any(|told| holds(told)) {
                    left.retain(|told| holds(told));
                } else {
                    let shown: Vec<&str> = left.iter().map(|told| shown(told)).collect();
                    found.push(Mismatch::new(what, expected, &shown.join(gap)));
                }
            };
        if let Some(field) = &self.field {
            narrow("field", field, &|told| told.field == *field, |told| &told.field, ", ");
        }
        if let Some(text) = &self.message {
            narrow(
                "message",
                &text.describe(),
                &|told| text.holds(&told.message),
                |told| &told.message,
                "\n",
            );
        }
        if let Some(ExpectedReason::Cause(kind)) = self.reason {
            let holds = |told: &Told| told.cause == Some(kind);
            narrow(
                "reason",
                kind.reason(),
                &holds,
                |told| told.cause.map_or("", FieldErrorKind::reason),
                ", ",
            );
        }
    }
}

/// Lists where `actual` differs from `expected`.
fn differences(expected: &Value, actual: &Value, path: &mut String, found: &mut Vec<Mismatch>) {
    let length = path.len();
    match (expected, actual) {
        (Value::Object(members), Value::Object(others)) => {
            for (name, member) in members {
                path.push('.');
                path.push_str(name);
                differences(member, others.get(name).unwrap_or(&Value::Null), path, found);
                path.truncate(length);
            }
        }
        (Value::Array(items), Value::Array(others)) if items.len() == others.len() => {
            for (at, (item, other)) in items.iter().zip(others).enumerate() {
                path.push_str(&format!("[{at}]"));
                differences(item, other, path, found);
                path.truncate(length);
            }
        }
        (expected, actual) if expected == actual => {}
        (expected, actual) => {
            found.push(Mismatch::new("object", &format!("{path}: {expected}"), &actual.to_string()));
        }
    }
}

impl ExpectedReason {
    /// The reason of that name, if it is one that answers have.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        let cause = || FieldErrorKind::of_reason(name).map(Self::Cause);
        reason_named(name).map(Self::Status).or_else(cause)
    }
}

impl Text {
    pub(super) fn holds(&self, text: &str) -> bool {
        match self {
            Self::Equals(expected) => text == expected,
            Self::Contains(part) => text.contains(part.as_str()),
            Self::Regex { regex, .. } => regex.is_match(text),
        }
    }

    pub(super) fn describe(&self) -> String {
        match self {
            Self::Equals(text) => text.clone(),
            Self::Contains(part) => format!("a text that contains `{part}`"),
            Self::Regex { pattern, .. } => format!("a text that matches /{pattern}/"),
        }
    }
}

/// Parses the condition on a string at `key`, if there is one.
pub(super) fn text(fields: &Fields<'_>, key: &str) -> Result<Option<Text>, FieldsError> {
    match fields.get(key) {
        None => return Ok(None),
        Some(Value::String(text)) => return Ok(Some(Text::Equals(text.clone()))),
        Some(_) => {}
    }
    let message = fields.object(key)?;
    known(&message, &["equals", "contains", "regex"])?;
    if message.keys().count() > 1 {
        return Err(wrong(message.path(), "must have one of `equals`, `contains` and `regex`, not several"));
    }
    if let Some(text) = message.optional_string("equals")? {
        return Ok(Some(Text::Equals(text)));
    }
    if let Some(part) = message.optional_string("contains")? {
        return Ok(Some(Text::Contains(part)));
    }
    let Some(pattern) = message.optional_string("regex")? else {
        return Err(wrong(message.path(), "must have `equals`, `contains` or `regex`"));
    };
    let regex =
        Regex::new(&pattern).map_err(|error| wrong(message.path_of("regex"), not_a_pattern(&error)))?;
    Ok(Some(Text::Regex { pattern, regex: Box::new(regex) }))
}

/// Explains in one line why a pattern is invalid: the syntax error, if that is it.
fn not_a_pattern(error: &regex_automata::meta::BuildError) -> String {
    let told = error.syntax_error().map_or_else(|| error.to_string(), ToString::to_string);
    let reason = told.lines().last().unwrap_or_default();
    format!("is not a regular expression: {}", reason.strip_prefix("error: ").unwrap_or(reason))
}

impl Mismatch {
    pub(super) fn new(what: &'static str, expected: &str, actual: &str) -> Self {
        Self { what, expected: expected.to_owned(), actual: actual.to_owned() }
    }
}
