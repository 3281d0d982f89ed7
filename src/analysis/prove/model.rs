//! Parses answers of solvers, and builds the objects that their models describe.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};

use super::Undecided;
use super::document::{Form, NodeId, World};
pub(super) use super::literal::Given;
use super::term::Term;

/// Values of variables, by name.
pub(super) type Model = BTreeMap<String, Given>;

/// The answer to one `check-sat`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Sat {
    Yes(Model),
    No,
    Unknown,
}

/// Parses every answer that a solver printed for a script, in order. If it stopped before printing the values of a `sat` answer, that
/// answer counts as unknown.
pub(super) fn answers(script: &str, text: &str) -> Vec<Sat> {
    let mut found = Vec::new();
    let mut is_told = !script.contains("(get-value");
    let mut parts = Parts { rest: text };
    while let Some(part) = parts.next_part(0) {
        match &part {
            Part::Word(word) if word == "sat" => found.push(Sat::Yes(Model::new())),
            Part::Word(word) if word == "unsat" => found.push(Sat::No),
            Part::Word(word) if word == "unknown" || word == "timeout" => found.push(Sat::Unknown),
            Part::List(pairs) => {
                is_told = true;
                if let Some(Sat::Yes(model)) = found.last_mut() {
                    model.extend(pairs.iter().filter_map(pair));
                }
            }
            Part::Word(_) | Part::Text(_) => {}
        }
    }
    if let (Some(first @ Sat::Yes(_)), false) = (found.first_mut(), is_told) {
        *first = Sat::Unknown;
    }
    found
}

fn pair(part: &Part) -> Option<(String, Given)> {
    let Part::List(parts) = part else { return None };
    let [Part::Word(name), value] = parts.as_slice() else { return None };
    let given = match value {
        Part::Word(word) => match word.as_str() {
            "true" => Given::Bool(true),
            "false" => Given::Bool(false),
            number => Given::Int(number.parse().ok()?),
        },
        Part::Text(text) => Given::Text(text.clone()),
        Part::List(parts) => match parts.as_slice() {
            [Part::Word(minus), Part::Word(number)] if minus == "-" => {
                Given::Int(format!("-{number}").parse().ok()?)
            }
            _ => return None,
        },
    };
    Some((name.clone(), given))
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Part {
    Word(String),
    Text(String),
    List(Vec<Self>),
}

/// The maximum nesting of printed values.
const MOST_DEPTH: usize = 16;

struct Parts<'t> {
    rest: &'t str,
}

impl Parts<'_> {
    fn next_part(&mut self, depth: usize) -> Option<Part> {
        self.rest = self.rest.trim_start();
        let first = self.rest.chars().next()?;
        if first == '(' && depth < MOST_DEPTH {
            self.rest = self.rest.get(1..)?;
            let mut parts = Vec::new();
            loop {
                self.rest = self.rest.trim_start();
                if let Some(rest) = self.rest.strip_prefix(')') {
                    self.rest = rest;
                    return Some(Part::List(parts));
                }
                parts.push(self.next_part(depth.saturating_add(1))?);
            }
        }
        if first == '"' {
            return self.text();
        }
        let end =
            self.rest.find(|c: char| c.is_whitespace() || c == '(' || c == ')').unwrap_or(self.rest.len());
        let end = end.max(first.len_utf8());
        let (word, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest;
        Some(Part::Word(word.to_owned()))
    }

    fn text(&mut self) -> Option<Part> {
        let mut text = String::new();
        let mut rest = self.rest.get(1..)?;
        loop {
            let (before, after) = rest.split_once('"')?;
            text.push_str(before);
            match after.strip_prefix('"') {
                Some(more) => {
                    text.push('"');
                    rest = more;
                }
                None => {
                    self.rest = after;
                    return Some(Part::Text(unescaped(&text)));
                }
            }
        }
    }
}

/// Resolves escapes such as `\u{e9}` and `\u00e9`; invalid code points are replaced.
fn unescaped(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\\u") {
        plain.push_str(before);
        let (digits, next) = match after.strip_prefix('{').and_then(|after| after.split_once('}')) {
            Some(found) => found,
            None => after.split_at_checked(4).unwrap_or(("", after)),
        };
        match u32::from_str_radix(digits, 16) {
            Ok(code) => plain.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)),
            Err(_) => plain.push_str("\\u"),
        }
        rest = if digits.is_empty() { after } else { next };
    }
    plain.push_str(rest);
    plain
}

impl World<'_> {
    /// Builds the object that a model describes.
    pub(super) fn object(&self, id: NodeId, model: &Model) -> Result<Json, Undecided> {
        let node = self.node(id)?;
        if self.is_true(node.null, model) {
            return Ok(Json::Null);
        }
        Ok(match &node.form {
            // Nothing but its presence matters.
            None | Some(Form::Any) => anything(node.schema),
            Some(Form::Bool(value)) => Json::Bool(self.is_true(*value, model)),
            Some(Form::Int(value)) => self.whole(*value, model).into(),
            Some(Form::Text(value)) => Json::String(self.text_of(*value, model)),
            Some(Form::IntOrText { is_int, int, text }) => {
                if self.is_true(*is_int, model) {
                    self.whole(*int, model).into()
                } else {
                    Json::String(self.text_of(*text, model))
                }
            }
            Some(Form::Object(known)) => {
                let mut map = Map::new();
                for name in ["apiVersion", "kind"] {
                    if let Some(child) = known.get(name) {
                        map.insert(name.to_owned(), self.object(*child, model)?);
                    }
                }
                for (name, child) in known {
                    let node = self.node(*child)?;
                    // The value as written, not the default.
                    let (present, shown) = node.written.unwrap_or((node.present, *child));
                    if self.is_true(present, model) && !map.contains_key(&**name) {
                        map.insert(name.to_string(), self.object(shown, model)?);
                    }
                }
                Json::Object(map)
            }
            Some(Form::List { length, items }) => {
                let count = usize::try_from(self.whole(*length, model)).unwrap_or(0);
                let items = items.iter().take(count).map(|item| self.object(*item, model));
                Json::Array(items.collect::<Result<_, _>>()?)
            }
            Some(Form::Map { length, entries }) => {
                let count = usize::try_from(self.whole(*length, model)).unwrap_or(0);
                let entries = entries.iter().take(count);
                let entries =
                    entries.map(|(key, entry)| Ok((self.text_of(*key, model), self.object(*entry, model)?)));
                Json::Object(entries.collect::<Result<_, Undecided>>()?)
            }
        })
    }

    fn is_true(&self, term: Term, model: &Model) -> bool {
        self.terms
            .known_bool(term)
            .unwrap_or_else(|| matches!(model.get(&self.terms.name(term)), Some(Given::Bool(true))))
    }

    fn whole(&self, term: Term, model: &Model) -> i64 {
        match model.get(&self.terms.name(term)) {
            Some(Given::Int(value)) => i64::try_from(*value).unwrap_or(0),
            _ => self.terms.known_int(term).and_then(|value| i64::try_from(value).ok()).unwrap_or(0),
        }
    }

    fn text_of(&self, term: Term, model: &Model) -> String {
        match model.get(&self.terms.name(term)) {
            Some(Given::Text(text)) => text.clone(),
            _ => self.terms.known_text(term).unwrap_or_default().to_owned(),
        }
    }
}

/// Returns some value of a schema's type, ignoring its other constraints.
pub(super) fn anything(schema: &admit_policy::schema::Schema) -> Json {
    use admit_policy::schema::SchemaType;
    if let Some(value) = schema.default.as_ref().or_else(|| schema.checks.enumeration.iter().next()) {
        return value.clone();
    }
    match &schema.schema_type {
        _ if schema.int_or_string => 0.into(),
        Some(SchemaType::Object) | None => Json::Object(Map::new()),
        Some(SchemaType::Array) => Json::Array(Vec::new()),
        Some(SchemaType::String | SchemaType::Other(_)) => "".into(),
        Some(SchemaType::Integer | SchemaType::Number) => 0.into(),
        Some(SchemaType::Boolean) => false.into(),
    }
}
