//! Generates variations of test cases: another operation, a field removed, a number incremented, a string that the rule mentions.

use admit_cel::syntax::{Ast, Expr, ExprId, Literal};
use admit_cel::{Env, Mode};
use admit_policy::release;
use serde_json::{Map, Value, json};

/// The maximum number of variations per case.
const MOST: usize = 4_000;
/// The maximum number of values per field.
const MOST_VALUES: usize = 32;

/// Values and fields to use in variations.
#[derive(Clone, Debug, Default)]
pub(super) struct Hints {
    texts: Vec<String>,
    numbers: Vec<i64>,
    /// Paths of fields, from the root of the object.
    fields: Vec<Vec<String>>,
}

impl Hints {
    /// Collects constants and fields from an expression or selector; `own` is the path of `self` in the object.
    pub(super) fn of(&mut self, text: &str, own: Option<&[String]>) {
        let env = Env::of_release(release::followed(), Mode::Stored);
        let Ok(parsed) = env.compile_unchecked(text) else {
            self.text(text);
            return;
        };
        let ast = parsed.ast();
        let mut open: Vec<ExprId> = vec![ast.root()];
        while let Some(id) = open.pop() {
            match &*ast.written(id) {
                Expr::Literal(Literal::Int(value)) => self.number(*value),
                Expr::Literal(Literal::String(text)) => self.text(text),
                Expr::Literal(_) | Expr::Ident(_) | Expr::Comprehension(_) => {}
                Expr::Select { operand, .. } => {
                    self.fields.extend(field(ast, id, own));
                    open.push(*operand);
                }
                Expr::Call { target, args, .. } => open.extend(target.iter().chain(args.iter())),
                Expr::List { elements, .. } => open.extend(elements.iter()),
                Expr::Map(entries) | Expr::Struct { entries, .. } => {
                    open.extend(entries.iter().flat_map(|entry| [entry.key, entry.value]));
                }
            }
        }
    }

    /// Collects the values of an object, since rules compare fields with one another.
    pub(super) fn within(&mut self, value: &Value) {
        let mut open = vec![value];
        while let Some(value) = open.pop() {
            match value {
                Value::String(text) => self.text(text),
                Value::Number(number) => number.as_i64().into_iter().for_each(|number| self.number(number)),
                Value::Array(items) => open.extend(items),
                Value::Object(map) => {
                    map.keys().for_each(|key| self.text(key));
                    open.extend(map.values());
                }
                Value::Null | Value::Bool(_) => {}
            }
        }
    }

    fn text(&mut self, text: &str) {
        if self.texts.len() < MOST_VALUES && !self.texts.iter().any(|known| known == text) {
            self.texts.push(text.to_owned());
        }
    }

    fn number(&mut self, value: i64) {
        let near = [Some(value), value.checked_add(1), value.checked_sub(1)];
        for value in near.into_iter().flatten() {
            if self.numbers.len() < MOST_VALUES && !self.numbers.contains(&value) {
                self.numbers.push(value);
            }
        }
    }
}

/// Returns the path of a field selection in the object.
fn field(ast: &Ast, mut id: ExprId, own: Option<&[String]>) -> Option<Vec<String>> {
    let mut below = Vec::new();
    loop {
        match &*ast.written(id) {
            Expr::Select { operand, field, .. } => {
                below.push(field.to_string());
                id = *operand;
            }
            Expr::Ident(name) => {
                let root = match &**name {
                    "object" | "oldObject" => &[],
                    "self" | "oldSelf" => own?,
                    _ => return None,
                };
                below.extend(root.iter().rev().cloned());
                below.reverse();
                return Some(below);
            }
            _ => return None,
        }
    }
}

/// A JSON pointer into the case, and its new value; `None` removes it.
type Edit = (String, Option<Value>);

/// Generates variations of `written`, the simplest first.
pub(super) fn variations(written: &Value, hints: &Hints) -> impl Iterator<Item = Value> + use<> {
    let requests = requests(written);
    let mut edits = Vec::new();
    for root in ["object", "oldObject", "user", "groups", "params", "namespaces"] {
        if let Some(value) = written.get(root) {
            edits_of(root, value, written, hints, &mut edits);
        }
    }
    let (mut names, filled) = (renamed(written, hints), filled(written, hints));
    names.extend(hints.texts.iter().take(8).map(|user| {
        let mut case = written.clone();
        if let Some(map) = case.as_object_mut() {
            map.insert("user".to_owned(), json!(user));
        }
        case
    }));
    let written = written.clone();
    let edited = edits.into_iter().take(MOST).map(move |(pointer, value)| {
        let mut case = written.clone();
        put(&mut case, &pointer, value);
        case
    });
    requests.into_iter().chain(filled).chain(edited).chain(names)
}

/// Returns the same objects in requests of other operations.
fn requests(written: &Value) -> Vec<Value> {
    let with = |changes: &[(&str, Option<Value>)]| {
        let mut map: Map<String, Value> = written.as_object().cloned().unwrap_or_default();
        for (key, value) in changes {
            match value {
                Some(value) => map.insert((*key).to_owned(), value.clone()),
                None => map.shift_remove(*key),
            };
        }
        Value::Object(map)
    };
    let (new, old) = (written.get("object").cloned(), written.get("oldObject").cloned());
    let either = new.clone().or_else(|| old.clone());
    let mut made = Vec::new();
    made.push(with(&[
        ("operation", Some(json!("CREATE"))),
        ("object", either.clone()),
        ("oldObject", None),
        ("subresource", None),
    ]));
    let before = old.or_else(|| new.clone());
    for subresource in [None, Some(json!("status"))] {
        made.push(with(&[
            ("operation", Some(json!("UPDATE"))),
            ("object", either.clone()),
            ("oldObject", before.clone()),
            ("subresource", subresource),
        ]));
    }
    made.push(with(&[("operation", Some(json!("DELETE"))), ("object", None), ("oldObject", either)]));
    made.retain(|case| case != written);
    made
}

/// Returns the objects with one more field that the rule mentions.
fn filled(written: &Value, hints: &Hints) -> Vec<Value> {
    let numbers = hints.numbers.iter().map(|number| json!(number));
    let texts = hints.texts.iter().take(8).map(|text| json!(text));
    let others = [json!(true), json!(false), json!([]), json!({})].into_iter();
    let values: Vec<Value> = numbers.chain(texts).chain(others).collect();
    let mut made = Vec::new();
    for field in &hints.fields {
        for root in ["object", "oldObject"] {
            for value in &values {
                let mut case = written.clone();
                if case.get_mut(root).is_some_and(|object| fill(object, field, value)) {
                    made.push(case);
                }
            }
        }
    }
    made
}

/// Sets a missing field; false if it was present.
fn fill(object: &mut Value, field: &[String], value: &Value) -> bool {
    let Some((last, above)) = field.split_last() else { return false };
    let mut place = object;
    for name in above {
        let Some(map) = place.as_object_mut() else { return false };
        place = map.entry(name.clone()).or_insert_with(|| json!({}));
    }
    let Some(map) = place.as_object_mut() else { return false };
    if map.contains_key(last) {
        return false;
    }
    map.insert(last.clone(), value.clone());
    true
}

/// Returns the objects with other names, for the old object too.
fn renamed(written: &Value, hints: &Hints) -> Vec<Value> {
    let mut made = Vec::new();
    for name in &hints.texts {
        for key in ["name", "namespace"] {
            let mut case = written.clone();
            for root in ["object", "oldObject"] {
                let pointer = format!("/{root}/metadata/{key}");
                if let Some(place) = case.pointer_mut(&pointer) {
                    *place = json!(name);
                }
            }
            if case != *written {
                made.push(case);
            }
        }
    }
    made
}

fn edits_of(root: &str, value: &Value, written: &Value, hints: &Hints, edits: &mut Vec<Edit>) {
    // Fields that identify an object are not varied here.
    let kept = [
        format!("/{root}/apiVersion"),
        format!("/{root}/kind"),
        format!("/{root}/metadata/name"),
        format!("/{root}/metadata/namespace"),
    ];
    let other = if root == "object" { "oldObject" } else { "object" };
    let mut open = vec![(format!("/{root}"), value)];
    while let Some((pointer, value)) = open.pop() {
        if edits.len() >= MOST || kept.contains(&pointer) {
            continue;
        }
        if pointer.matches('/').count() > 1 {
            edits.push((pointer.clone(), None));
        }
        let twin = pointer.strip_prefix(&format!("/{root}")).map(|below| format!("/{other}{below}"));
        let twin = twin.and_then(|twin| written.pointer(&twin)).filter(|twin| *twin != value);
        let values = twin.cloned().into_iter().chain(values_for(value, &pointer, hints));
        edits.extend(values.map(|value| (pointer.clone(), Some(value))));
        match value {
            Value::Object(map) => open.extend(map.iter().rev().map(|(key, value)| {
                (format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1")), value)
            })),
            Value::Array(items) => open
                .extend(items.iter().enumerate().rev().map(|(at, item)| (format!("{pointer}/{at}"), item))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// Returns values to try in place of another.
fn values_for(value: &Value, pointer: &str, hints: &Hints) -> Vec<Value> {
    match value {
        Value::Null => Vec::new(),
        Value::Bool(value) => vec![json!(!value)],
        Value::Number(number) => {
            let own = number.as_i64().unwrap_or_default();
            let near = [own.checked_add(1), own.checked_sub(1), Some(0)].into_iter().flatten();
            near.chain(hints.numbers.iter().copied()).map(|number| json!(number)).collect()
        }
        Value::String(text) => {
            let near = [String::new(), format!("{text}x")].into_iter();
            near.chain(hints.texts.iter().filter(|hint| *hint != text).cloned())
                .map(|text| json!(text))
                .collect()
        }
        Value::Array(items) => {
            let mut made = vec![json!([])];
            if let [first, rest @ ..] = items.as_slice() {
                made.push(json!(rest));
                made.push(std::iter::once(first).chain(items).cloned().collect());
            }
            made
        }
        Value::Object(map) => {
            let mut made = vec![json!({})];
            if pointer.ends_with("/labels") || pointer.ends_with("/annotations") {
                for key in hints.texts.iter().take(8) {
                    for text in hints.texts.iter().take(8) {
                        let mut map = map.clone();
                        map.insert(key.clone(), json!(text));
                        made.push(Value::Object(map));
                    }
                }
            }
            made
        }
    }
}

fn put(case: &mut Value, pointer: &str, value: Option<Value>) {
    if let Some(value) = value {
        if let Some(place) = case.pointer_mut(pointer) {
            *place = value;
        }
        return;
    }
    super::mutant::remove(case, pointer);
}
