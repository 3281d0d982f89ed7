//! Finds requests that a policy denies when none is given: starts from minimal objects of the matched kinds and changes the fields that
//! the rules read.

use std::collections::BTreeSet;

use admit_policy::matching::Rule;
use admit_policy::{Connection, FieldType, GroupVersionResource, Operation, ServedKind, init};
use serde_json::{Value, json};

use super::ask::Ask;
use super::judge::{Judge, Judged};
use super::path::{Path, Step};
use super::rules::Rules;
use super::types::Types;
use super::values::{Values, complete, instances, sample};

/// The maximum number of requests to try.
const MOST_TRIED: usize = 2_500;
/// The maximum number of further requests to try after one is found.
const MOST_MORE: usize = 300;
/// The number of changes from which pairs are made.
const MOST_PAIRED: usize = 40;
/// The maximum number of changes to try to satisfy one refusal.
const MOST_REPAIRS: usize = 8;
/// From this many fields of one object on, rules count as a list of allowed fields.
const FEW: usize = 3;
/// The maximum number of kinds to start from.
const MOST_KINDS: usize = 8;
/// The maximum number of names to try, and of namespaces.
const MOST_NAMES: usize = 12;
const NAMESPACE: &str = "default";

/// Searches for denied requests.
#[derive(Debug)]
pub(super) struct Finder<'a> {
    pub(super) judge: &'a Judge<'a>,
    pub(super) types: &'a Types<'a>,
    pub(super) rules: &'a Rules,
    pub(super) values: &'a Values<'a>,
}

/// A change of one field of an object; `None` removes it.
type Change = (Path, Option<Value>);

impl Finder<'_> {
    /// Returns one denied request for each of the first kinds, as far as found in time.
    pub(super) fn find(&self, over: &dyn Fn() -> bool) -> Vec<Ask> {
        let mut found = Vec::new();
        let mut tried = 0_usize;
        for start in self.starts() {
            if over() {
                break;
            }
            if !found.is_empty() {
                // One is enough to start from; further ones get a small budget.
                tried = tried.max(MOST_TRIED.saturating_sub(MOST_MORE));
            }
            found.extend(self.from(&start, &mut tried, over));
            if found.len() > 1 {
                break;
            }
        }
        found
    }

    /// Builds requests with minimal objects of the kinds that the policy matches.
    fn starts(&self) -> Vec<Ask> {
        let everything = [Rule::default()];
        let own = &self.judge.policy.constraints.rules;
        let rules = if own.is_empty() { everything.as_slice() } else { own.as_slice() };
        let mut starts: Vec<Ask> = Vec::new();
        for rule in rules {
            for resource in &rule.resources {
                let (plural, subresource) = resource.split_once('/').unwrap_or((resource, ""));
                let plurals: &[&str] = if plural == "*" { &["pods", "configmaps"] } else { &[plural] };
                for served in plurals.iter().flat_map(|plural| self.types.of_plural(plural)) {
                    let has = |list: &[String], name: &str| list.iter().any(|one| one == "*" || one == name);
                    if !has(&rule.groups, &served.kind.group)
                        || !has(&rule.versions, &served.kind.version)
                        || starts.len() >= MOST_KINDS
                    {
                        continue;
                    }
                    if matches!(subresource, "" | "*" | "status") {
                        starts.extend(self.start(rule, served, subresource));
                    }
                    starts.extend(self.connected(rule, served, subresource));
                }
            }
        }
        starts
    }

    fn start(&self, rule: &Rule, served: &ServedKind, subresource: &str) -> Vec<Ask> {
        let object = self.least(served);
        let resource = GroupVersionResource::new(
            served.kind.group.as_str(),
            served.kind.version.as_str(),
            served.plural.as_str(),
        );
        let mut ask = Ask::creation(object, resource);
        ask.authorizer = self.rules.asks_authorizer.then(|| json!([{"allowed": false}]));
        let may = |operation| rule.operations.as_ref().is_none_or(|all| all.contains(&operation));
        let update = |ask: &Ask| {
            let object = ask.object.clone().unwrap_or_default();
            ask.update(object.clone(), object, if subresource == "status" { "status" } else { "" })
        };
        let mut asks = Vec::new();
        if may(Operation::Create) && subresource != "status" {
            asks.push(ask.clone());
        }
        if may(Operation::Update) && (asks.is_empty() || self.rules.reads_old()) {
            asks.push(update(&ask));
        }
        if may(Operation::Delete) && asks.is_empty() {
            asks.push(Ask { operation: Operation::Delete, old_object: ask.object.take(), ..ask });
        }
        asks
    }

    /// Builds connect requests with all their options set.
    fn connected(&self, rule: &Rule, served: &ServedKind, subresource: &str) -> Vec<Ask> {
        if rule.operations.as_ref().is_some_and(|all| !all.contains(&Operation::Connect)) {
            return Vec::new();
        }
        let is_meant = |one: &&Connection| subresource == "*" || subresource == one.subresource;
        let ask = |one: &Connection| {
            let mut object = json!({"kind": one.kind.kind, "apiVersion": one.kind.api_version()});
            if let Some(there) = object.as_object_mut() {
                let fields = self.types.fields(one.shape).iter();
                there.extend(fields.map(|field| (field.name.clone(), sample(&field.of))));
            }
            let resource = GroupVersionResource::new(
                served.kind.group.as_str(),
                served.kind.version.as_str(),
                served.plural.as_str(),
            );
            Ask {
                operation: Operation::Connect,
                subresource: one.subresource.clone(),
                namespace: if served.namespaced { NAMESPACE.to_owned() } else { String::new() },
                name: "sample".to_owned(),
                authorizer: self.rules.asks_authorizer.then(|| json!([{"allowed": false}])),
                ..Ask::creation(object, resource)
            }
        };
        served.connections.iter().filter(is_meant).map(ask).collect()
    }

    /// Returns the request with other names and namespaces, taken from constants of the rules.
    fn elsewhere(&self, start: &Ask) -> Vec<Ask> {
        if !self.rules.reads_request() {
            return Vec::new();
        }
        let texts: Vec<&str> = self.rules.literals.iter().filter_map(Value::as_str).collect();
        let names = |texts: Vec<String>| texts.into_iter().filter(|text| is_name(text)).take(MOST_NAMES);
        let mut namespaces = vec![start.namespace.clone()];
        if !start.namespace.is_empty() {
            namespaces.extend(names(texts.iter().map(|text| (*text).to_owned()).collect()));
        }
        let around =
            texts.iter().flat_map(|text| [(*text).to_owned(), format!("{text}x"), format!("x{text}")]);
        let of_names: Vec<String> =
            std::iter::once(start.name().to_owned()).chain(names(around.collect())).collect();
        let all = namespaces.iter().flat_map(|namespace| {
            let placed = start.placed(namespace);
            of_names.iter().map(move |name| placed.named(name))
        });
        all.filter(|ask| ask != start).collect()
    }

    fn least(&self, served: &ServedKind) -> Value {
        let crd = self.judge.documents().crd_of(&served.kind);
        let Some(version) = crd.and_then(|crd| crd.version(&served.kind.version)) else {
            return init::least(&served.kind, served.namespaced);
        };
        let mut object = init::sample(version.schema());
        let mut metadata = json!({"name": "sample"});
        if let (Some(fields), true) = (metadata.as_object_mut(), served.namespaced) {
            fields.insert("namespace".to_owned(), json!(NAMESPACE));
        }
        if let Some(fields) = object.as_object_mut() {
            fields.insert("apiVersion".to_owned(), json!(served.kind.api_version()));
            fields.insert("kind".to_owned(), json!(served.kind.kind));
            fields.insert("metadata".to_owned(), metadata);
            if let Some(spec) = version.schema().properties.get("spec") {
                fields.entry("spec").or_insert_with(|| init::sample(spec));
            }
        }
        object
    }

    fn from(&self, start: &Ask, tried: &mut usize, over: &dyn Fn() -> bool) -> Option<Ask> {
        let mut judged = |ask: &Ask| {
            *tried = tried.saturating_add(1);
            if *tried > MOST_TRIED || over() { None } else { Some(self.judge.ask(ask)) }
        };
        let is_denied = |judged: &Judged| judged.denies && judged.refused.is_none();
        if is_denied(&judged(start)?) {
            return Some(start.clone());
        }
        for ask in self.elsewhere(start) {
            if is_denied(&judged(&ask)?) {
                return Some(ask);
            }
        }
        let object = start.object.as_ref()?;
        let changes = self.changes(start, object);
        for change in &changes {
            let Some(ask) = self.changed(start, [change]) else { continue };
            let came = judged(&ask)?;
            if is_denied(&came) {
                return Some(ask);
            }
            for repaired in came.refused.iter().flat_map(|refusal| self.repaired(&ask, &change.0, refusal)) {
                if is_denied(&judged(&repaired)?) {
                    return Some(repaired);
                }
            }
        }
        let few: Vec<&Change> = spread(&changes, MOST_PAIRED);
        for (at, one) in few.iter().enumerate() {
            for other in few.iter().skip(at.saturating_add(1)).filter(|other| other.0 != one.0) {
                let Some(ask) = self.changed(start, [*one, *other]) else { continue };
                if is_denied(&judged(&ask)?) {
                    return Some(ask);
                }
            }
        }
        None
    }

    /// Returns requests in which the field named by a refusal is set otherwise, as for `hostUsers must be false`.
    fn repaired(&self, ask: &Ask, path: &Path, refusal: &str) -> Vec<Ask> {
        let (Some(kind), Some(object)) = (self.types.kind(&ask.kind()), &ask.object) else {
            return Vec::new();
        };
        let is_named =
            |name: &str| refusal.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == name);
        let mut asks = Vec::new();
        for length in 0..path.0.len() {
            let around = path.prefix(length);
            let Some(shape) = kind.shape_at(&around.pattern()) else { continue };
            let named = kind
                .fields(shape)
                .iter()
                .filter(|field| field.of == FieldType::Bool && is_named(&field.name));
            for (field, value) in named.flat_map(|field| [(field, true), (field, false)]) {
                let mut object = object.clone();
                let own = around.child(Step::Name(field.name.clone()));
                if asks.len() < MOST_REPAIRS && own.set(&mut object, json!(value)) {
                    asks.push(ask.with(object));
                }
            }
        }
        asks
    }

    fn changes(&self, start: &Ask, object: &Value) -> Vec<Change> {
        let mut changes = Vec::new();
        for pattern in self.rules.patterns(&[]) {
            for path in instances(&pattern, object).into_iter().filter(|path| !path.0.is_empty()) {
                let now = path.get(object);
                if now.is_some() {
                    changes.push((path.clone(), None));
                }
                let values = self.values.at(&start.kind(), &path, now);
                changes.extend(values.into_iter().map(|value| (path.clone(), Some(value))));
            }
        }
        changes.extend(self.unread(start, object));
        changes
    }

    /// Sets fields next to those that rules read: where rules list allowed fields, any other one is denied.
    fn unread(&self, start: &Ask, object: &Value) -> Vec<Change> {
        let Some(kind) = self.types.kind(&start.kind()) else { return Vec::new() };
        let patterns = self.rules.patterns(&[]);
        let around: BTreeSet<&[String]> =
            patterns.iter().filter_map(|pattern| pattern.split_last().map(|(_, around)| around)).collect();
        let mut changes = Vec::new();
        for around in around {
            let read = |name: &str| {
                patterns.iter().any(|pattern| {
                    pattern.split_last().is_some_and(|(last, own)| own == around && last == name)
                })
            };
            let fields = kind.shape_at(around).map(|shape| kind.fields(shape)).unwrap_or_default();
            if fields.iter().filter(|field| read(&field.name)).count() < FEW {
                continue;
            }
            let others =
                fields.iter().filter(|field| matches!(field.of, FieldType::Shape(_)) && !read(&field.name));
            for (field, path) in
                others.flat_map(|field| instances(around, object).into_iter().map(move |path| (field, path)))
            {
                changes.push((path.child(Step::Name(field.name.clone())), Some(json!({}))));
            }
        }
        changes
    }

    fn changed<'c>(&self, start: &Ask, changes: impl IntoIterator<Item = &'c Change>) -> Option<Ask> {
        let mut object = start.object.clone()?;
        for (path, value) in changes {
            match value {
                Some(value) => {
                    if !path.set(&mut object, value.clone()) {
                        return None;
                    }
                    if let Some(kind) = self.types.kind(&start.kind()) {
                        // The new value may have required fields.
                        complete(kind, &path.child(Step::Name(String::new())), &mut object);
                    }
                }
                None => {
                    path.remove(&mut object);
                }
            }
        }
        Some(start.with(object))
    }
}

/// Reports whether objects may have that name.
fn is_name(text: &str) -> bool {
    const LONGEST: usize = 63;
    let is_outer = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.len() <= LONGEST
        && text.starts_with(is_outer)
        && text.ends_with(is_outer)
        && text.chars().all(|c| is_outer(c) || c == '-')
}

/// Picks a few changes of each field rather than all of the first fields.
fn spread(changes: &[Change], most: usize) -> Vec<&Change> {
    let mut picked: Vec<&Change> = Vec::new();
    for round in 0..4 {
        let mut seen: Vec<(&Path, usize)> = Vec::new();
        for change in changes {
            let count = match seen.iter_mut().find(|(path, _)| *path == &change.0) {
                Some((_, count)) => {
                    *count = count.saturating_add(1);
                    *count
                }
                None => {
                    seen.push((&change.0, 0));
                    0
                }
            };
            if count == round && picked.len() < most {
                picked.push(change);
            }
        }
    }
    picked
}
