//! A Suite document to typed cases. A case inherits what it leaves out from the suite's `defaults`; its objects are
//! merge patches on those of the defaults.

use std::sync::Arc;

use regex_automata::meta::Regex;
use serde_json::Value;
use thiserror::Error;

use super::patch::merge;
use super::{API_VERSION, Case, Expectation, Outcome, Suite, Text};
use crate::decision::Reason;
use crate::decode::{DecodeError, Fields};
use crate::request::{Operation, UserInfo};

const SUITE_FIELDS: &[&str] = &["apiVersion", "kind", "documents", "defaults", "cases"];
const CASE_FIELDS: &[&str] = &[
    "name",
    "policies",
    "operation",
    "resource",
    "subresource",
    "namespace",
    "object",
    "oldObject",
    "options",
    "dryRun",
    "user",
    "params",
    "namespaces",
    "expect",
];
const EXPECT_FIELDS: &[&str] = &["outcome", "message", "reason", "field", "annotations"];

/// A suite that cannot be used.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum SuiteError {
    #[error("{0}")]
    Field(#[from] DecodeError),
    #[error("{path}: {problem}")]
    Value { path: String, problem: String },
}

impl SuiteError {
    /// The field that is wrong.
    pub fn path(&self) -> &str {
        match self {
            Self::Field(error) => &error.path,
            Self::Value { path, .. } => path,
        }
    }
}

impl Suite {
    /// Whether `document` says that it is a suite.
    pub fn is(document: &Value) -> bool {
        document.get("kind").and_then(Value::as_str) == Some("Suite")
            && document
                .get("apiVersion")
                .and_then(Value::as_str)
                .is_some_and(|version| version.starts_with("admit/"))
    }

    /// Reads a suite, or tells the first thing that is wrong with it.
    pub fn decode(document: &Value) -> Result<Self, SuiteError> {
        let fields = Fields::of(document, "")?;
        let version = fields.string("apiVersion")?;
        if version != API_VERSION {
            return Err(wrong("apiVersion", format!("must be `{API_VERSION}`, not `{version}`")));
        }
        known(&fields, SUITE_FIELDS)?;
        let defaults = fields.object("defaults")?;
        known(&defaults, CASE_FIELDS)?;
        let cases: Vec<Case> = fields
            .objects("cases")?
            .iter()
            .map(|case| Layered { case, defaults: &defaults }.decode())
            .collect::<Result<_, _>>()?;
        if cases.is_empty() {
            return Err(wrong("cases", "must have at least one case"));
        }
        Ok(Self { documents: fields.strings("documents")?, cases })
    }
}

/// A case over the suite's defaults.
struct Layered<'a> {
    case: &'a Fields<'a>,
    defaults: &'a Fields<'a>,
}

impl Layered<'_> {
    fn decode(&self) -> Result<Case, SuiteError> {
        known(self.case, CASE_FIELDS)?;
        let name = self.case.string("name")?;
        if name.is_empty() {
            return Err(wrong(self.case.path_of("name"), "must be specified"));
        }
        let object = self.merged("object");
        let old_object = self.merged("oldObject");
        if object.is_none() && old_object.is_none() {
            return Err(wrong(self.case.path(), "must have `object`, `oldObject` or both"));
        }
        Ok(Case {
            name,
            policies: self.of("policies").strings("policies")?,
            operation: self.operation(object.is_some(), old_object.is_some())?,
            resource: self.of("resource").optional_string("resource")?,
            subresource: self.of("subresource").string("subresource")?,
            namespace: self.of("namespace").optional_string("namespace")?,
            object,
            old_object,
            options: self.of("options").get("options").cloned().map(Arc::new),
            dry_run: self.of("dryRun").bool("dryRun")?,
            user: self.user()?,
            existing: self.existing()?,
            expect: expectation(self.case)?,
        })
    }

    /// The layer that says something about `key`.
    fn of(&self, key: &str) -> &Fields<'_> {
        if self.case.get(key).is_some() { self.case } else { self.defaults }
    }

    /// The default object, patched with the case's own.
    fn merged(&self, key: &str) -> Option<Arc<Value>> {
        let (default, own) = (self.defaults.get(key), self.case.get(key));
        let mut object = default.or(own)?.clone();
        if let (Some(_), Some(patch)) = (default, own) {
            merge(&mut object, patch);
        }
        Some(Arc::new(object))
    }

    /// What the objects imply, unless it is said.
    fn operation(&self, object: bool, old_object: bool) -> Result<Operation, SuiteError> {
        let fields = self.of("operation");
        match fields.optional_string("operation")? {
            Some(name) => name.parse().map_err(|_| {
                let problem = format!("`{name}` is not one of CREATE, UPDATE, DELETE, CONNECT");
                wrong(fields.path_of("operation"), problem)
            }),
            None if !old_object => Ok(Operation::Create),
            None if object => Ok(Operation::Update),
            None => Ok(Operation::Delete),
        }
    }

    fn user(&self) -> Result<UserInfo, SuiteError> {
        let fields = self.of("user");
        match fields.get("user") {
            None => Ok(UserInfo { username: "admin".to_owned(), ..UserInfo::default() }),
            Some(Value::String(name)) => Ok(UserInfo { username: name.clone(), ..UserInfo::default() }),
            Some(_) => Ok(UserInfo::decode(&fields.object("user")?)?),
        }
    }

    fn existing(&self) -> Result<Vec<Arc<Value>>, SuiteError> {
        let mut existing = Vec::new();
        for key in ["params", "namespaces"] {
            for (path, item) in self.of(key).list(key)? {
                Fields::of(item, &path)?;
                existing.push(Arc::new(item.clone()));
            }
        }
        Ok(existing)
    }
}

fn expectation(case: &Fields<'_>) -> Result<Expectation, SuiteError> {
    let Some(Value::String(word)) = case.get("expect") else {
        let fields = case.object("expect")?;
        known(&fields, EXPECT_FIELDS)?;
        return Ok(Expectation {
            outcome: outcome(&fields.path_of("outcome"), &fields.string("outcome")?)?,
            message: text(&fields)?,
            reason: reason(&fields)?,
            field: fields.optional_string("field")?,
            annotations: fields.string_map("annotations")?,
        });
    };
    let outcome = outcome(&case.path_of("expect"), word)?;
    Ok(Expectation { outcome, message: None, reason: None, field: None, annotations: Vec::new() })
}

fn outcome(path: &str, word: &str) -> Result<Outcome, SuiteError> {
    let problem = || format!("`{word}` is not one of allow, deny, warn, audit, unmatched, error");
    Outcome::from_name(word).ok_or_else(|| wrong(path, problem()))
}

fn text(fields: &Fields<'_>) -> Result<Option<Text>, SuiteError> {
    match fields.get("message") {
        None => return Ok(None),
        Some(Value::String(text)) => return Ok(Some(Text::Equals(text.clone()))),
        Some(_) => {}
    }
    let message = fields.object("message")?;
    known(&message, &["equals", "contains", "regex"])?;
    if let Some(text) = message.optional_string("equals")? {
        return Ok(Some(Text::Equals(text)));
    }
    if let Some(part) = message.optional_string("contains")? {
        return Ok(Some(Text::Contains(part)));
    }
    let Some(pattern) = message.optional_string("regex")? else {
        return Err(wrong(message.path(), "must have `equals`, `contains` or `regex`"));
    };
    let regex = Regex::new(&pattern)
        .map_err(|error| wrong(message.path_of("regex"), format!("is not a regular expression: {error}")))?;
    Ok(Some(Text::Regex { pattern, regex: Box::new(regex) }))
}

fn reason(fields: &Fields<'_>) -> Result<Option<Reason>, SuiteError> {
    let Some(name) = fields.optional_string("reason")? else { return Ok(None) };
    match Reason::from_name(&name) {
        Some(reason) => Ok(Some(reason)),
        None => Err(wrong(fields.path_of("reason"), format!("`{name}` is not a reason"))),
    }
}

fn known(fields: &Fields<'_>, known: &[&str]) -> Result<(), SuiteError> {
    match fields.unknown(known).next() {
        Some(path) => Err(wrong(path, format!("is not a field here; these are: {}", known.join(", ")))),
        None => Ok(()),
    }
}

pub(super) fn wrong(path: impl Into<String>, problem: impl Into<String>) -> SuiteError {
    SuiteError::Value { path: path.into(), problem: problem.into() }
}
