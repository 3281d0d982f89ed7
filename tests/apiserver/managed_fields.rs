//! Field ownership: recorded-style cases as data, and properties that hold for any object.
//!
//! `managed_fields/cases.jsonl` holds one sequence a line: a schema (the OpenAPI schema of a custom resource), and steps,
//! each an apply or an update by a manager with the object, the owners and the conflicts that it ends with.

use std::borrow::Cow;
use std::path::Path;
use std::sync::LazyLock;

use admit_apiserver::internals::managed_fields::path::{Element, FieldSet, Scalar, from_json, to_json};
use admit_apiserver::internals::managed_fields::schema::{Schema, TypeId};
use admit_apiserver::internals::managed_fields::typed::Typing;
use admit_apiserver::internals::managed_fields::{ApplyError, Versions, Writer, managers};
use serde_json::{Map, Value, json};

use crate::corpus;

const API_VERSION: &str = "example.dev/v1";
const KIND: &str = "Thing";
static NOTHING: LazyLock<FieldSet> = LazyLock::new(FieldSet::default);

/// One version, as most kinds have.
#[derive(Debug)]
struct OneVersion {
    schema: Schema,
    root: TypeId,
}

impl OneVersion {
    fn new(schema: &Value) -> Self {
        let (schema, root) = Schema::of_definition(schema);
        Self { schema, root }
    }
}

impl Versions for OneVersion {
    fn typing(&self, api_version: &str) -> Option<Typing<'_>> {
        (api_version == API_VERSION).then_some(Typing { schema: &self.schema, root: self.root })
    }

    fn forgets(&self, _: &str) -> bool {
        true
    }

    fn convert<'v>(&self, object: &'v Value, _: &str) -> Cow<'v, Value> {
        Cow::Borrowed(object)
    }

    fn empty(&self, api_version: &str) -> Value {
        json!({"apiVersion": api_version, "kind": KIND})
    }
}

fn writer<'w>(versions: &'w OneVersion, manager: &'w str, ignored: &'w FieldSet) -> Writer<'w> {
    Writer {
        versions,
        api_version: API_VERSION,
        kind: KIND,
        subresource: "",
        ignored,
        rewritten: &NOTHING,
        manager,
        now: "2024-01-02T03:04:05Z",
    }
}

/// The object of a step, with what makes it one.
fn object(content: &Value) -> Value {
    let mut object = json!({"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "a"}});
    object["spec"] = content.clone();
    object
}

/// `{"alice Apply": {fieldsV1}}`
fn owners(object: &Value) -> Value {
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    let name = |entry: &Value| {
        format!("{} {}", entry["manager"].as_str().unwrap(), entry["operation"].as_str().unwrap())
    };
    let owned = |entry: &Value| entry["fieldsV1"]["f:spec"].clone();
    Value::Object(entries.into_iter().flatten().map(|entry| (name(entry), owned(entry))).collect())
}

#[test]
fn sequences_end_as_recorded() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/apiserver/managed_fields/cases.jsonl");
    for case in corpus::lines(&path) {
        let name = case["name"].as_str().unwrap();
        let schema = json!({"type": "object", "properties": {"spec": case["schema"]}});
        let versions = OneVersion::new(&schema);
        let ignored = FieldSet::default();
        let mut live = versions.empty(API_VERSION);
        for (index, step) in case["steps"].as_array().unwrap().iter().enumerate() {
            let at = format!("{name}, step {index}");
            let (verb, manager) = step["by"].as_str().unwrap().split_once(' ').unwrap();
            let writer = writer(&versions, manager, &ignored);
            let sent = object(&step["spec"]);
            let outcome = match verb {
                "update" => {
                    let mut new = sent;
                    new["metadata"]["uid"] = "u".into();
                    writer.updated(&live, &mut new).unwrap();
                    Ok(new)
                }
                verb => writer.applied(&mut live, &sent, verb == "force"),
            };
            match outcome {
                Ok(mut new) => {
                    assert_eq!(step.get("conflicts"), None, "{at}: no conflicts");
                    assert_eq!(owners(&new), step["owners"], "{at}: owners");
                    if let Some(result) = step.get("result") {
                        assert_eq!(&new["spec"], result, "{at}: result");
                    }
                    new["metadata"]["uid"] = "u".into();
                    live = new;
                }
                Err(ApplyError::Conflicts(conflicts)) => {
                    let found: Vec<String> = conflicts
                        .told()
                        .0
                        .iter()
                        .map(|conflict| format!("{}: {}", conflict.manager.name, conflict.field()))
                        .collect();
                    assert_eq!(Some(&json!(found)), step.get("conflicts"), "{at}: conflicts");
                }
                Err(other) => {
                    assert_eq!(Some(&json!(other.to_string())), step.get("refused"), "{at}: refused")
                }
            }
        }
    }
}

/// A generator that gives the same numbers on every run.
struct Numbers(u64);

impl Numbers {
    /// Below `limit`.
    fn next(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    fn word(&mut self) -> String {
        ["a", "b", "c", "<&>", "with \"quotes\"", "", "é", "a:b", "."][self.next(9)].to_owned()
    }

    fn scalar(&mut self) -> Value {
        match self.next(4) {
            0 => json!(self.next(5)),
            1 => json!(true),
            2 => json!(1.5),
            _ => self.word().into(),
        }
    }

    fn element(&mut self) -> Element {
        match self.next(4) {
            0 => Element::Index(self.next(3)),
            1 => Element::Item(Scalar::of(&self.scalar())),
            2 => Element::Key(vec![("name".to_owned(), Scalar::of(&self.scalar()))]),
            _ => Element::Field(self.word()),
        }
    }

    fn set(&mut self) -> FieldSet {
        let paths: Vec<Vec<Element>> =
            (0..self.next(12)).map(|_| (0..=self.next(4)).map(|_| self.element()).collect()).collect();
        paths.into_iter().collect()
    }

    /// A `spec` of the schema below.
    fn spec(&mut self) -> Value {
        let mut spec = Map::new();
        if self.next(2) == 0 {
            spec.insert("size".to_owned(), json!(self.next(3)));
        }
        // Lists have an item at least: nobody owns an empty one, so that it comes and goes, upstream as well.
        let tags: Vec<Value> =
            ["a", "b", "c"].into_iter().filter(|_| self.next(3) == 0).map(Value::from).collect();
        if !tags.is_empty() {
            spec.insert("tags".to_owned(), tags.into());
        }
        let mut items = Vec::new();
        for name in ["x", "y", "z"] {
            if self.next(3) == 0 {
                items.push(json!({"name": name, "value": self.next(3)}));
            }
        }
        if !items.is_empty() {
            spec.insert("items".to_owned(), items.into());
        }
        if self.next(2) == 0 {
            let labels: Map<String, Value> =
                ["k", "l"].map(|key| (key.to_owned(), self.word().into())).into_iter().collect();
            spec.insert("labels".to_owned(), labels.into());
        }
        if self.next(3) == 0 {
            spec.insert("whole".to_owned(), json!({"a": self.next(2), "b": self.next(2)}));
        }
        Value::Object(spec)
    }
}

fn schema() -> Value {
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "size": {"type": "integer"},
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "items": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "properties": {"name": {"type": "string"}, "value": {"type": "integer"}}}
        },
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {
            "a": {"type": "integer"}, "b": {"type": "integer"}
        }}
    }}}})
}

#[test]
fn sets_survive_being_written_and_read() {
    let mut numbers = Numbers(1);
    for _ in 0..2_000 {
        let set = numbers.set();
        let written = to_json(set.clone()).to_string();
        let read: Value = serde_json::from_str(&written).unwrap();
        assert_eq!(from_json(&read), Ok(set), "{written}");
    }
}

#[test]
fn sets_obey_the_laws_of_sets() {
    let mut numbers = Numbers(2);
    for _ in 0..1_000 {
        let (one, two) = (numbers.set(), numbers.set());
        let all = one.clone().union(two.clone());
        assert_eq!(all, two.clone().union(one.clone()));
        assert!(one.is_within(&all) && two.is_within(&all) && one.is_within(&one));
        assert_eq!(one.is_within(&two), one.clone().difference(&two).is_empty());
        assert_eq!(one.intersection(&two), two.intersection(&one));
        assert_eq!(one.clone().union(one.clone()), one);
        assert!(one.clone().difference(&one).is_empty());
        assert_eq!(one.clone().difference(&two).union(one.intersection(&two)), one);
        let paths = one.paths();
        assert_eq!(paths.len(), one.len());
        assert_eq!(paths.iter().collect::<FieldSet>(), one);
        assert!(paths.iter().all(|path| one.has(path)));
    }
}

#[test]
fn applying_twice_is_applying_once() {
    let versions = OneVersion::new(&schema());
    let ignored = FieldSet::default();
    let mut numbers = Numbers(3);
    for _ in 0..100 {
        let mut live = versions.empty(API_VERSION);
        for _ in 0..6 {
            let manager = ["one", "two", "three"][numbers.next(3)];
            let config = object(&numbers.spec());
            let writer = writer(&versions, manager, &ignored);
            let before = live.clone();
            let mut once = writer.applied(&mut live, &config, true).unwrap();
            assert_eq!(live, before, "the live object stays as it was");
            let twice = writer.applied(&mut once, &config, false).unwrap();
            assert_eq!(twice, once, "{manager} applies {config} to {live}");
            // What is applied is there, and whoever applied it owns it.
            let typing = versions.typing(API_VERSION).unwrap();
            let owned = typing.owned(&config);
            assert_eq!(typing.merge(&once, &config)["spec"], once["spec"]);
            let managers = managers::decode(&once).unwrap();
            let mine = managers.iter().find(|(known, _)| known.name == manager).map(|(_, owned)| &owned.set);
            let spec = [Element::Field("spec".to_owned())];
            let under_spec = owned.below(&spec[0]).cloned().unwrap_or_default();
            let mine = mine.and_then(|mine| mine.below(&spec[0])).cloned().unwrap_or_default();
            assert_eq!(mine, under_spec, "{manager} owns what it applied");
            live = once;
            live["metadata"]["uid"] = "u".into();
        }
    }
}
