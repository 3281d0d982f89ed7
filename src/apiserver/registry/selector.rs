//! Label and field selectors: parsed with Kubernetes' error texts, matched against objects held as JSON.

use admit_apimachinery::labels;
use std::collections::HashSet;

use serde_json::Value;

use crate::object;
use crate::resources::{ResourceInfo, Scope};
use crate::status::{Cause, Refusal};

/// Both selectors of a list or watch.
#[derive(Clone, Debug, Default)]
pub(super) struct Selector {
    labels: Vec<Requirement>,
    fields: Vec<FieldTerm>,
}

impl Selector {
    /// # Errors
    /// 400 with the parser's text, or for a field that `info` does not select by.
    pub(super) fn parse(info: &ResourceInfo, labels: &str, fields: &str) -> Result<Self, Refusal> {
        let labels = LabelParser::new(labels).selector().map_err(Refusal::bad_request)?;
        let fields = field_terms(fields).map_err(Refusal::bad_request)?;
        for term in &fields {
            if !selectable(info, &term.path) {
                return Err(unknown_field(info, &term.path));
            }
        }
        Ok(Self { labels, fields })
    }

    #[must_use]
    pub(super) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether the metadata of objects are all that has to be looked at.
    #[must_use]
    pub(super) fn asks_metadata(&self) -> bool {
        self.fields.iter().all(|term| field_path(&term.path).starts_with("metadata."))
    }

    /// `object` as the resource's clients see it.
    #[must_use]
    pub(super) fn matches(&self, object: &Value) -> bool {
        self.labels.iter().all(|requirement| requirement.matches(object))
            && self.fields.iter().all(|term| term.matches(object))
    }
}

/// The name that a field selector asks for, where it asks for one.
#[must_use]
pub(crate) fn exact_name(fields: &str) -> Option<String> {
    let terms = field_terms(fields).ok()?;
    terms.into_iter().find(|term| term.equal && term.path == "metadata.name").map(|term| term.value)
}

#[derive(Clone, Debug)]
struct FieldTerm {
    path: String,
    value: String,
    equal: bool,
}

impl FieldTerm {
    fn matches(&self, object: &Value) -> bool {
        (field_text(object, &self.path) == self.value) == self.equal
    }
}

/// A field's value as selectors compare it: text, with the zero value for what is absent.
fn field_text(object: &Value, path: &str) -> String {
    let mut value = object;
    for step in field_path(path).split('.') {
        value = value.get(step).unwrap_or(&Value::Null);
    }
    match value {
        Value::String(text) => text.clone(),
        Value::Null if path == "spec.unschedulable" || path == "spec.hostNetwork" => "false".to_owned(),
        Value::Null if path == "status.successful" => "0".to_owned(),
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

/// Where the object holds what a selector calls `path`.
fn field_path(path: &str) -> &str {
    match path {
        "status.successful" => "status.succeeded",
        "source" => "source.component",
        "name" => "metadata.name",
        other => other,
    }
}

fn selectable(info: &ResourceInfo, path: &str) -> bool {
    match path {
        "metadata.name" => true,
        "metadata.namespace" => info.scope == Scope::Namespaced || info.builtin,
        other => info.selectable_fields.iter().any(|field| field == other),
    }
}

fn unknown_field(info: &ResourceInfo, path: &str) -> Refusal {
    if !info.builtin {
        return Refusal::bad_request(format!("field label not supported: {path}"));
    }
    if info.selectable_fields.is_empty() {
        return Refusal::bad_request(format!(
            "\"{path}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
        ));
    }
    Refusal::bad_request(match info.kind.as_str() {
        "Job" => format!("field label \"{path}\" not supported for Job"),
        _ => format!("field label not supported: {path}"),
    })
}

fn field_terms(text: &str) -> Result<Vec<FieldTerm>, String> {
    let mut terms = Vec::new();
    for part in split_terms(text) {
        if part.is_empty() {
            continue;
        }
        let split = [("!=", false), ("==", true), ("=", true)]
            .into_iter()
            .filter_map(|(operator, equal)| part.find(operator).map(|at| (at, operator, equal)))
            .min_by_key(|(at, operator, _)| (*at, std::cmp::Reverse(operator.len())));
        let Some((at, operator, equal)) = split else {
            return Err(format!("invalid selector: '{text}'; can't understand '{part}'"));
        };
        let path = part.get(..at).unwrap_or_default().to_owned();
        let value = unescaped(part.get(at + operator.len()..).unwrap_or_default())?;
        // Upstream drops a term that says nothing on either side.
        if path.is_empty() && value.is_empty() {
            continue;
        }
        terms.push(FieldTerm { path, value, equal });
    }
    Ok(terms)
}

/// Parts between commas that no backslash escapes.
fn split_terms(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut escaped = false;
    for c in text.chars() {
        if c == ',' && !escaped {
            parts.push(String::new());
        } else if let Some(part) = parts.last_mut() {
            part.push(c);
        }
        escaped = c == '\\' && !escaped;
    }
    parts
}

fn unescaped(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(next @ ('\\' | ',' | '=')) => out.push(next),
                Some(other) => {
                    return Err(format!("invalid field selector: invalid escape sequence: \\{other}"));
                }
                None => return Err("invalid field selector: invalid escape sequence: \\".to_owned()),
            },
            ',' | '=' => {
                return Err(format!("invalid field selector: unescaped character in value: {c}"));
            }
            other => out.push(other),
        }
    }
    Ok(out)
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
    /// The same values, to be looked up: lists ask for each object.
    lookup: HashSet<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    In,
    NotIn,
    Exists,
    Absent,
    Greater,
    Less,
}

impl Requirement {
    fn matches(&self, object: &Value) -> bool {
        let label = object::label(object, &self.key);
        let listed = |label: &str| self.lookup.contains(label);
        match self.operator {
            Operator::In => label.is_some_and(listed),
            Operator::NotIn => !label.is_some_and(listed),
            Operator::Exists => label.is_some(),
            Operator::Absent => label.is_none(),
            Operator::Greater | Operator::Less => self.compares(label),
        }
    }

    fn compares(&self, label: Option<&str>) -> bool {
        let number = |text: &str| text.parse::<i64>().ok();
        let (Some(label), Some(bound)) =
            (label.and_then(number), self.values.first().and_then(|value| number(value)))
        else {
            return false;
        };
        if self.operator == Operator::Greater { label > bound } else { label < bound }
    }

    fn check(&self) -> Result<(), String> {
        if let Some(why) = labels::in_one(&labels::key(&self.key)) {
            return Err(Cause::invalid("<nil>", &self.key.as_str().into(), &why).to_string());
        }
        for (index, value) in self.values.iter().enumerate() {
            if let Some(why) = labels::in_one(&labels::value(value)) {
                let field = format!("values[{index}][{}]", self.key);
                return Err(Cause::invalid(field, &value.as_str().into(), &why).to_string());
            }
        }
        if matches!(self.operator, Operator::Greater | Operator::Less) {
            let value = self.values.first().map(String::as_str).unwrap_or_default();
            if value.parse::<i64>().is_err() {
                let field = "values[0]";
                let why = "for 'Gt', 'Lt' operators, the value must be an integer";
                return Err(Cause::invalid(field, &value.into(), why).to_string());
            }
        }
        Ok(())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Symbol(&'static str),
    End,
}

impl Token {
    fn text(&self) -> &str {
        match self {
            Self::Word(word) => word,
            Self::Symbol(symbol) => symbol,
            Self::End => "",
        }
    }
}

/// Longer symbols stand before those that they begin with.
const SYMBOLS: [&str; 9] = ["==", "!=", "=", "!", "(", ")", ",", ">", "<"];

struct LabelParser {
    tokens: Vec<Token>,
    at: usize,
}

impl LabelParser {
    fn new(text: &str) -> Self {
        let mut tokens = Vec::new();
        let mut rest = text.trim_start();
        while let Some(first) = rest.chars().next() {
            let symbol = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol));
            let length = match symbol {
                Some(symbol) => {
                    tokens.push(Token::Symbol(symbol));
                    symbol.len()
                }
                None => {
                    let end = |c: char| c.is_whitespace() || "=!(),><".contains(c);
                    let length = rest.find(end).unwrap_or(rest.len()).max(first.len_utf8());
                    tokens.push(Token::Word(rest.get(..length).unwrap_or_default().to_owned()));
                    length
                }
            };
            rest = rest.get(length..).unwrap_or_default().trim_start();
        }
        Self { tokens, at: 0 }
    }

    fn peek(&self) -> Token {
        self.tokens.get(self.at).cloned().unwrap_or(Token::End)
    }

    fn next(&mut self) -> Token {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn selector(mut self) -> Result<Vec<Requirement>, String> {
        let mut requirements = Vec::new();
        loop {
            match self.peek() {
                Token::Word(_) | Token::Symbol("!") => {
                    let parsed = self.requirement().and_then(|requirement| {
                        requirement.check()?;
                        Ok(requirement)
                    });
                    let requirement =
                        parsed.map_err(|error| format!("unable to parse requirement: {error}"))?;
                    requirements.push(requirement);
                    match self.next() {
                        Token::End => return Ok(sorted(requirements)),
                        Token::Symbol(",") => match self.peek() {
                            Token::Word(_) | Token::Symbol("!") => {}
                            other => {
                                return Err(format!(
                                    "found '{}', expected: identifier after ','",
                                    other.text()
                                ));
                            }
                        },
                        other => {
                            return Err(format!(
                                "found '{}', expected: ',' or 'end of string'",
                                other.text()
                            ));
                        }
                    }
                }
                Token::End => return Ok(sorted(requirements)),
                other @ Token::Symbol(_) => {
                    return Err(format!(
                        "found '{}', expected: !, identifier, or 'end of string'",
                        other.text()
                    ));
                }
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        if self.peek() == Token::Symbol("!") {
            self.at += 1;
            let key = self.identifier()?;
            return Ok(Requirement {
                key,
                operator: Operator::Absent,
                values: Vec::new(),
                lookup: HashSet::new(),
            });
        }
        let key = self.identifier()?;
        let (operator, list) = match self.peek() {
            Token::End | Token::Symbol(",") => {
                return Ok(Requirement {
                    key,
                    operator: Operator::Exists,
                    values: Vec::new(),
                    lookup: HashSet::new(),
                });
            }
            Token::Symbol("=" | "==") => (Operator::In, false),
            Token::Symbol("!=") => (Operator::NotIn, false),
            Token::Symbol(">") => (Operator::Greater, false),
            Token::Symbol("<") => (Operator::Less, false),
            Token::Word(word) if word == "in" => (Operator::In, true),
            Token::Word(word) if word == "notin" => (Operator::NotIn, true),
            other => {
                return Err(format!("found '{}', expected: in, notin, =, ==, !=, gt, lt", other.text()));
            }
        };
        self.at += 1;
        let values = if list { self.values()? } else { vec![self.one_value()?] };
        let lookup = values.iter().cloned().collect();
        Ok(Requirement { key, operator, values, lookup })
    }

    fn identifier(&mut self) -> Result<String, String> {
        match self.next() {
            Token::Word(word) => Ok(word),
            other => Err(format!("found '{}', expected: identifier", other.text())),
        }
    }

    fn one_value(&mut self) -> Result<String, String> {
        match self.peek() {
            Token::End | Token::Symbol(",") => Ok(String::new()),
            Token::Word(word) => {
                self.at += 1;
                Ok(word)
            }
            other @ Token::Symbol(_) => Err(format!("found '{}', expected: identifier", other.text())),
        }
    }

    fn values(&mut self) -> Result<Vec<String>, String> {
        match self.next() {
            Token::Symbol("(") => {}
            other => return Err(format!("found '{}' expected: '('", other.text())),
        }
        let mut values = Vec::new();
        loop {
            match self.next() {
                Token::Word(word) => {
                    values.push(word);
                    match self.peek() {
                        Token::Symbol("," | ")") => {}
                        other => return Err(format!("found '{}', expected: ',' or ')'", other.text())),
                    }
                }
                Token::Symbol(",") => {
                    if let Token::Symbol("," | ")") = self.peek() {
                        values.push(String::new());
                    }
                }
                Token::Symbol(")") => {
                    if values.is_empty() {
                        values.push(String::new());
                    }
                    values.dedup();
                    return Ok(values);
                }
                other => {
                    return Err(format!("found '{}', expected: ',', ')' or identifier", other.text()));
                }
            }
        }
    }
}

fn sorted(mut requirements: Vec<Requirement>) -> Vec<Requirement> {
    requirements.sort_by(|one, other| one.key.cmp(&other.key));
    requirements
}
