//! Reads JSON of a built-in kind in which members of objects repeat, as Go's decoder does: a later value is read into what the earlier
//! ones have left, so that messages and maps are joined, items of lists are joined one by one, and only scalars are replaced. What strict
//! decoding reports comes in the order of the text.
//!
//! Not done here: checks of types and the canonical form, which [`super`] does with the result. A value that it refuses stays, whatever
//! comes after it, since Go reports it as well.

use std::collections::{HashMap, HashSet};

use admit_apimachinery::bounded::{Paths, push_step};
use admit_apimachinery::go;
use admit_apimachinery::weight::{self, Budget, TooHeavy};
use admit_policy::json;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::super::model::{Tables, TypeId, TypeRef};
use super::parts::Parts;
use super::{Decoder, HEAD};
use crate::interrupt;

/// The nesting up to which values are joined, since each level is read once more; below it the last value counts.
const DEEPEST: usize = 100;

/// The lists of which it is known what was cut off, and the items of each: every replaced value looks through the lists, and every
/// shorter list moves the items.
const MOST_CUT: usize = 100;

/// A text whose repeated members are joined.
pub(crate) struct Joined {
    pub value: Value,
    /// Errors of strict decoding in the order of the text, each once, up to a limit.
    pub strict: Vec<String>,
}

/// Reads the text of an object of the kind `id`, which was parsed before.
///
/// # Errors
/// When the joined values take more memory than is allowed for a text of this length.
pub(crate) fn joined(tables: &Tables, id: TypeId, text: &[u8]) -> Result<Joined, TooHeavy> {
    let mut reader = Reader {
        tables,
        budget: Budget::of_text(text.len()),
        strict: Paths::new(),
        path: String::new(),
        depth: 0,
        cut: HashMap::new(),
        is_mistaken: false,
        checks: Budget::of_text(text.len()),
    };
    let mut value = Value::Null;
    reader.read(&TypeRef::Message(id), String::from_utf8_lossy(text).trim(), &mut value)?;
    Ok(Joined { value, strict: reader.strict.into_told() })
}

struct Reader<'t> {
    tables: &'t Tables,
    budget: Budget,
    /// Whole texts: they are bounded as paths are.
    strict: Paths,
    path: String,
    depth: usize,
    /// What a shorter list has cut off, by the list's path: Go reads a longer one after it into the same memory.
    cut: HashMap<String, Vec<Value>>,
    is_mistaken: bool,
    /// What may still be looked at for mistakes: a list can lose the same items many times.
    checks: Budget,
}

impl Reader<'_> {
    /// Reads a value into what is there already; null stands for nothing.
    fn read(&mut self, kind: &TypeRef, text: &str, into: &mut Value) -> Result<(), TooHeavy> {
        interrupt::checkpoint();
        if text == "null" {
            if !is_left_by_null(kind) && !self.is_refused(kind, into) {
                *into = Value::Null;
                self.forget_cut();
            }
            return Ok(());
        }
        let parts = Parts::of(text).filter(|_| self.depth < DEEPEST);
        let is_joined = match (kind.pointee(), &parts) {
            (TypeRef::Message(_) | TypeRef::Map(_), Some(Parts::Members(_))) => into.is_object(),
            (TypeRef::List(_), Some(Parts::Items(_))) => into.is_array(),
            _ => false,
        };
        if !is_joined && self.is_refused(kind, into) {
            return Ok(());
        }
        self.depth = self.depth.saturating_add(1);
        match (kind.pointee(), parts) {
            (TypeRef::Message(id), Some(Parts::Members(members))) => self.message(*id, members, into)?,
            (TypeRef::Map(inner), Some(Parts::Members(members))) => self.map(inner, members, into)?,
            (TypeRef::List(inner), Some(Parts::Items(items))) => self.list(inner, &items, into)?,
            // The text was parsed before as a part of the whole.
            _ => *into = json::parse(text.as_bytes()).map_or(Value::Null, |document| document.value),
        }
        self.depth = self.depth.saturating_sub(1);
        Ok(())
    }

    fn message(
        &mut self,
        id: TypeId,
        members: Vec<(String, &RawValue)>,
        into: &mut Value,
    ) -> Result<(), TooHeavy> {
        let tables = self.tables;
        let is_object = tables.get(id).object;
        let Some(into) = object(into) else { return Ok(()) };
        let mut seen = HashSet::new();
        for (name, text) in members {
            let field = match HEAD.contains(&name.as_str()) && is_object {
                true => Some(&TypeRef::String),
                false => tables.field(id, &name).map(|field| &field.kind),
            };
            let length = self.enter(&name);
            match field {
                None => self.note("unknown"),
                Some(kind) => {
                    if !seen.insert(name.clone()) {
                        self.note("duplicate");
                    }
                    self.budget.take(weight::of_member(&name))?;
                    self.read(kind, text.get(), into.entry(name).or_insert(Value::Null))?;
                }
            }
            self.path.truncate(length);
        }
        Ok(())
    }

    /// Entries replace entries of the same key.
    fn map(
        &mut self,
        inner: &TypeRef,
        members: Vec<(String, &RawValue)>,
        into: &mut Value,
    ) -> Result<(), TooHeavy> {
        let Some(into) = object(into) else { return Ok(()) };
        let mut seen = HashSet::new();
        for (name, text) in members {
            let length = self.enter(&name);
            if !seen.insert(name.clone()) {
                self.note("duplicate");
            }
            self.budget.take(weight::of_member(&name))?;
            if into.get(&name).is_none_or(|before| !self.is_refused(inner, before)) {
                let mut entry = Value::Null;
                self.forget_cut();
                self.read(inner, text.get(), &mut entry)?;
                into.insert(name, entry);
            }
            self.path.truncate(length);
        }
        Ok(())
    }

    fn list(&mut self, inner: &TypeRef, items: &[&RawValue], into: &mut Value) -> Result<(), TooHeavy> {
        if !into.is_array() {
            *into = Value::Array(Vec::new());
        }
        let Some(into) = into.as_array_mut() else { return Ok(()) };
        self.cut_off(inner, items.len(), into);
        let mut cut = match items.len() > into.len() {
            true => self.cut.remove(&self.path).unwrap_or_default().into_iter(),
            false => Vec::new().into_iter(),
        };
        for (index, text) in items.iter().enumerate() {
            if index >= into.len() {
                self.budget.take(weight::of_item())?;
                into.push(cut.next().unwrap_or_default());
            }
            let length = self.path.len();
            push_step_of_list(&mut self.path, index);
            if let Some(item) = into.get_mut(index) {
                self.read(inner, text.get(), item)?;
            }
            self.path.truncate(length);
        }
        if cut.len() > 0 {
            self.cut.insert(self.path.clone(), cut.collect());
        }
        Ok(())
    }

    /// Shortens a list to that many items, which keeps their memory, unless none remain.
    fn cut_off(&mut self, inner: &TypeRef, count: usize, list: &mut Vec<Value>) {
        let rest = list.get(count..).unwrap_or_default();
        if rest.iter().any(|item| self.is_refused(inner, item)) {
            return;
        }
        if count == 0 {
            list.clear();
            self.forget_cut();
        } else if count < list.len() {
            let before = self.cut.remove(&self.path).unwrap_or_default();
            // In the order of their places: what was cut off before lies behind.
            let rest = list.split_off(count).into_iter().chain(before).take(MOST_CUT).collect();
            if self.cut.len() < MOST_CUT {
                self.cut.insert(self.path.clone(), rest);
            }
        }
    }

    /// Whether a value that is about to be lost has a mistake in it. After the first one nothing is lost any more: the whole is refused
    /// for it.
    fn is_refused(&mut self, kind: &TypeRef, value: &Value) -> bool {
        if !self.is_mistaken && !value.is_null() && self.checks.take(weight::of(value)).is_ok() {
            let mut decoder = Decoder::new(self.tables, Budget::UNLIMITED);
            let read = decoder.value(kind, value.clone());
            self.is_mistaken = read.is_err() || decoder.mismatch.is_some();
        }
        self.is_mistaken && !value.is_null()
    }

    /// Appends a member to the path; returns the former length.
    fn enter(&mut self, name: &str) -> usize {
        let length = self.path.len();
        if length > 0 {
            self.path.push('.');
        }
        push_step(&mut self.path, name);
        length
    }

    /// What is made anew has nothing behind its lists.
    fn forget_cut(&mut self) {
        let path = &self.path;
        self.cut.retain(|list, _| !list.starts_with(path));
    }

    fn note(&mut self, what: &str) {
        let path = &self.path;
        self.strict.note(|| format!("{what} field {}", go::quote(path)));
    }
}

fn push_step_of_list(path: &mut String, index: usize) {
    path.push_str(&format!("[{index}]"));
}

/// Whether null changes nothing: it empties pointers, maps and lists, and what reads its JSON by itself, but for raw JSON.
fn is_left_by_null(kind: &TypeRef) -> bool {
    matches!(
        kind,
        TypeRef::Message(_)
            | TypeRef::Raw(_)
            | TypeRef::String
            | TypeRef::Enum(_)
            | TypeRef::Int32
            | TypeRef::Int64
            | TypeRef::Float64
            | TypeRef::Bool
    )
}

/// Makes an object of what is none.
fn object(value: &mut Value) -> Option<&mut Map<String, Value>> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::builtin::tables;

    fn read(kind: &str, text: &str) -> Joined {
        joined(tables(), tables().kind("", "v1", kind).expect("a kind"), text.as_bytes()).expect("fits")
    }

    #[test]
    fn messages_maps_and_items_are_joined_and_scalars_replaced() {
        let read = read(
            "Service",
            r#"{"metadata": {"name": "a", "labels": {"a": "1"}}, "metadata": {"name": null, "labels": {"b": "2"}},
                "spec": {"type": "NodePort", "ports": [{"name": "a", "port": 1}, {"name": "b"}], "ports": [{"port": 2}],
                "ports": [{}, {"port": 3}, {"port": 4}], "clusterIPs": ["a", "b"], "clusterIPs": null}}"#,
        );
        let expected = json!({
            "metadata": {"name": "a", "labels": {"a": "1", "b": "2"}},
            "spec": {"type": "NodePort", "clusterIPs": null,
                "ports": [{"name": "a", "port": 2}, {"name": "b", "port": 3}, {"port": 4}]},
        });
        assert_eq!(read.value, expected);
    }

    #[test]
    fn what_is_reported_comes_in_the_order_of_the_text() {
        let read = read(
            "ConfigMap",
            r#"{"foo": 1, "foo": 2, "data": {"a": "1", "a": "2"}, "bar": {"x": 1, "x": 2}, "data": {"q\\": "3", "q\\": "4"}}"#,
        );
        assert_eq!(
            read.strict,
            [
                r#"unknown field "foo""#,
                r#"duplicate field "data.a""#,
                r#"unknown field "bar""#,
                r#"duplicate field "data""#,
                r#"duplicate field "data.q\\""#,
            ]
        );
    }

    #[test]
    fn a_wrong_value_stays() {
        for (kind, text) in [
            ("ConfigMap", r#"{"metadata": {"name": 5}, "metadata": {"name": "a"}}"#),
            ("ConfigMap", r#"{"data": {"a": 1, "a": "b"}}"#),
            ("ConfigMap", r#"{"data": 1, "data": null}"#),
            ("ConfigMap", r#"{"immutable": "x", "immutable": true}"#),
            ("Pod", r#"{"spec": {"securityContext": {"runAsUser": "x"}, "securityContext": null}}"#),
            ("Pod", r#"{"spec": {"containers": [{}, {"name": 1}], "containers": [{}]}}"#),
            ("Pod", r#"{"spec": {"containers": [{"name": 1}], "containers": []}}"#),
        ] {
            let id = tables().kind("", "v1", kind).expect("a kind");
            assert!(super::super::decode(tables(), id, read(kind, text).value).is_err(), "{text}");
        }
    }

    #[test]
    fn many_repetitions_take_time_in_proportion_to_the_text() {
        let item = r#"{"image": "a", "args": ["a", "b"], "args": ["c"], "env": [{}, {}], "env": []}"#;
        let turns = r#""tolerations": [{}], "tolerations": [{}, {}], "#.repeat(20_000);
        let many = vec!["{}"; 100_000].join(",");
        let text = format!(r#"{{"spec": {{"tolerations": [{many}], {turns} "nodeName": "a"}}}}"#);
        assert_eq!(read("Pod", &text).value["spec"]["tolerations"], json!([{}, {}]));
        let items = vec![item; 20_000].join(",");
        let text = format!(
            r#"{{"spec": {{"nodeSelector": {{"a": "b"}}, "containers": [{items}], "containers": [{items}]}}}}"#
        );
        let read = read("Pod", &text);
        assert_eq!(read.value["spec"]["containers"][19_999], json!({"image": "a", "args": ["c"], "env": []}));
        assert_eq!(read.strict.len(), 100);
    }
}
