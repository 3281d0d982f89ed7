//! Built-in kinds: what claims are about lets in every object that a server lets through, and claims known by hand.

use std::collections::{BTreeMap, BTreeSet};

use admit_analysis::prove::{Inquiry, Side, Solver as _, Subject, agreement};
use admit_apiserver::BuiltinKinds;
use admit_policy::{Builtins as _, Catalogue, FieldType, GroupVersionKind};
use serde_json::{Map, Value, json};

use super::dice::Dice;
use super::solvers::{Program, tell};
use super::table::{Answer, answer, definition, gave_up, named};

pub(super) fn catalogue() -> &'static Catalogue {
    BuiltinKinds.catalogue().expect("a server knows its kinds")
}

fn subjects() -> BTreeMap<(String, String), Subject> {
    let kinds = catalogue().kinds.iter();
    kinds
        .map(|served| {
            let subject = Subject::builtin(&BuiltinKinds, &served.kind).expect("it is built in");
            ((served.kind.api_version(), served.kind.kind.clone()), subject)
        })
        .collect()
}

fn of<'s>(subjects: &'s BTreeMap<(String, String), Subject>, object: &Value) -> Option<&'s Subject> {
    let text = |name: &str| object[name].as_str().unwrap_or_default().to_owned();
    subjects.get(&(text("apiVersion"), text("kind")))
}

/// Recordings have these in place of what differs in every run.
fn without_placeholders(value: &mut Value) {
    match value {
        Value::String(text) if text.starts_with("<uid:") => *text = "a".to_owned(),
        Value::String(text) if text == "<time>" => *text = "2000-01-01T00:00:00Z".to_owned(),
        Value::String(text) if text == "<port>" => *value = json!(30_000),
        Value::Array(items) => items.iter_mut().for_each(without_placeholders),
        Value::Object(map) => map.values_mut().for_each(without_placeholders),
        _ => {}
    }
}

#[test]
fn every_object_that_the_reference_answered_with_is_thought_of() {
    let Some(folder) = testing::corpus("fresh").expect("it can be read") else { return };
    let subjects = subjects();
    let (mut asked, mut kinds, mut strays) = (0_usize, BTreeSet::new(), BTreeMap::new());
    for file in ["builtin-create", "builtin-update", "builtin-status"] {
        let text = testing::recorded_text(&folder.join(format!("{file}.jsonl.gz"))).expect("it is there");
        for line in text.lines() {
            let row: Value = serde_json::from_str(line).expect("it is JSON");
            let mut object = row["response"]["body"].clone();
            let Some(subject) = of(&subjects, &object) else { continue };
            without_placeholders(&mut object);
            asked += 1;
            kinds.insert(subject.kind().kind.clone());
            for stray in subject.strays(&object) {
                strays.entry(stray).or_insert_with(|| row["id"].to_string());
            }
            let fresh = catalogue().kind(subject.kind()).and_then(|served| served.fresh_status.as_ref());
            if let (Some(fresh), Some(status), "builtin-create") = (fresh, object["status"].as_object(), file)
            {
                for name in status.keys().filter(|name| !fresh.contains(name)) {
                    strays.entry(format!("status.{name}")).or_insert_with(|| row["id"].to_string());
                }
            }
        }
    }
    assert!(strays.is_empty(), "{strays:#?}");
    assert!(asked > 1_000 && kinds.len() > 40, "{asked} objects of {kinds:?}");
}

/// Values of a type, zero ones among them.
fn value(dice: &mut Dice, of: &FieldType, depth: usize) -> Value {
    if dice.roll(12) == 0 {
        return Value::Null;
    }
    match of {
        FieldType::Text => json!(dice.pick(&["", "a", "b", "A", "a/b", "10.0.0.1", "a.b", "Always"])),
        FieldType::OneOf(members) => match dice.roll(4) {
            0 => json!(dice.pick(&["", "None", "Unknown"])),
            _ => json!(members[dice.roll(members.len())]),
        },
        FieldType::Int | FieldType::Int32 => json!([0, 1, 2, 80, 443, 100, -1, 70_000][dice.roll(8)]),
        FieldType::Float => json!(0.5),
        FieldType::Bool => json!(dice.roll(2) == 0),
        FieldType::Quantity => json!(dice.pick(&["0", "1", "100m", "1Gi", "1e3", "0.5", "1000"])),
        FieldType::IntOrText => {
            [json!(0), json!(80), json!("a"), json!("25%"), json!("")][dice.roll(5)].clone()
        }
        FieldType::Time => json!("2000-01-01T00:00:00Z"),
        FieldType::Bytes => json!(dice.pick(&["", "YQ=="])),
        FieldType::Other => [json!({}), json!("a"), json!({"a": "a"})][dice.roll(3)].clone(),
        FieldType::Shape(_) | FieldType::List(_) | FieldType::Map(_) if depth == 0 => json!(null),
        FieldType::Shape(index) => {
            let fields = &catalogue().shape(*index).expect("it has fields").fields;
            let mut made = Map::new();
            for field in fields {
                if field.required || (!fields.is_empty() && dice.roll(fields.len() + 2) == 0) {
                    made.insert(field.name.clone(), value(dice, &field.of, depth - 1));
                }
            }
            Value::Object(made)
        }
        FieldType::List(item) => (0..dice.roll(3)).map(|_| value(dice, item, depth - 1)).collect(),
        FieldType::Map(entry) => {
            let keys = ["a", "cpu", "memory"].into_iter().take(dice.roll(3));
            Value::Object(keys.map(|key| (key.to_owned(), value(dice, entry, depth - 1))).collect())
        }
    }
}

/// Changes one field somewhere in an object.
pub(super) fn change(dice: &mut Dice, object: &mut Value, shape: usize, depth: usize) {
    let fields = &catalogue().shape(shape).expect("it has fields").fields;
    let own: Vec<_> = fields.iter().filter(|field| !matches!(&*field.name, "apiVersion" | "kind")).collect();
    if own.is_empty() {
        return;
    }
    let field = own[dice.roll(own.len())];
    let Some(map) = object.as_object_mut() else { return };
    if let (Some(index), true) = (field.of.shape(), depth > 0 && dice.roll(5) > 0)
        && let Some(below) = map.get_mut(&field.name)
    {
        return match below {
            Value::Object(_) if matches!(field.of, FieldType::Shape(_)) => {
                change(dice, below, index, depth - 1)
            }
            Value::Array(items) if !items.is_empty() => {
                let at = dice.roll(items.len());
                change(dice, &mut items[at], index, depth - 1);
            }
            _ => {}
        };
    }
    if dice.roll(5) == 0 {
        map.shift_remove(&field.name);
    } else {
        map.insert(field.name.clone(), value(dice, &field.of, 3));
    }
}

#[test]
fn every_object_that_our_server_takes_is_thought_of() {
    let mut dice = Dice::new();
    let mut taken = 0_usize;
    for served in &catalogue().kinds {
        let subject = Subject::builtin(&BuiltinKinds, &served.kind).expect("it is built in");
        let smallest = BuiltinKinds.smallest(&served.kind);
        let mut of_kind = 0_usize;
        for _ in 0..300 {
            let mut object = smallest[dice.roll(smallest.len())].clone();
            for _ in 0..=dice.roll(4) {
                change(&mut dice, &mut object, served.shape, 8);
            }
            object["apiVersion"] = json!(served.kind.api_version());
            object["kind"] = json!(served.kind.kind);
            if served.namespaced && object["metadata"].is_object() {
                object["metadata"]["namespace"] = json!("default");
            }
            let Some(prepared) = BuiltinKinds.prepare(&object, None, false) else { continue };
            if prepared.refusal.is_some() || !prepared.strict.is_empty() {
                continue;
            }
            of_kind += 1;
            let strays = subject.strays(&prepared.object);
            assert!(strays.is_empty(), "{strays:#?}\n{object}\n{}", prepared.object);
            let status = prepared.object["status"].as_object().into_iter().flatten();
            for (name, _) in status.filter(|_| served.fresh_status.is_some()) {
                let fresh = served.fresh_status.iter().flatten();
                assert!(fresh.clone().any(|fresh| fresh == name), "status.{name} of {}", prepared.object);
            }
        }
        assert!(of_kind > 0, "none of {:?} is taken", served.kind);
        taken += of_kind;
    }
    assert!(taken > 3_000, "{taken} were taken");
}

#[test]
fn what_is_fixed_stays_in_every_change_that_our_server_takes() {
    let mut dice = Dice::new();
    let mut changed = 0_usize;
    for served in catalogue().kinds.iter().filter(|served| !served.fixed.is_empty()) {
        let smallest = BuiltinKinds.smallest(&served.kind);
        let mut of_kind = 0_usize;
        for _ in 0..600 {
            let mut old = smallest[dice.roll(smallest.len())].clone();
            for _ in 0..dice.roll(4) {
                change(&mut dice, &mut old, served.shape, 8);
            }
            let Some(old) = BuiltinKinds.prepare(&old, None, false).filter(|old| old.refusal.is_none())
            else {
                continue;
            };
            let mut new = old.object.clone();
            for _ in 0..=dice.roll(2) {
                change(&mut dice, &mut new, served.shape, 8);
            }
            for way in std::iter::once("").chain(served.subresources.iter().map(String::as_str)) {
                let Some(taken) = BuiltinKinds.written(&new, Some(&old.object), way) else { continue };
                let is_scale = taken.object["kind"] != old.object["kind"];
                if taken.refusal.is_some() || !taken.strict.is_empty() || is_scale {
                    continue;
                }
                of_kind += usize::from(taken.object != old.object);
                for path in &served.fixed {
                    let pointer = format!("/{}", path.replace('.', "/"));
                    let (is, was) = (taken.object.pointer(&pointer), old.object.pointer(&pointer));
                    assert_eq!(is, was, "{path} of {}\n{}", old.object, taken.object);
                }
            }
        }
        assert!(of_kind > 0, "no change of {:?} is taken", served.kind);
        changed += of_kind;
    }
    assert!(changed > 1_000, "{changed} changes");
}

#[test]
fn a_kind_that_is_not_built_in_is_none() {
    assert!(Subject::builtin(&BuiltinKinds, &GroupVersionKind::new("example.com", "v1", "Cat")).is_none());
}

pub(super) fn policy(subject: &Subject, expression: &str) -> Value {
    let kind = subject.kind();
    let plural = catalogue().kind(kind).map_or("things", |served| &served.plural);
    let operations = if expression.contains("oldObject") { vec!["CREATE", "UPDATE"] } else { vec!["CREATE"] };
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "p"},
        "spec": {
            "matchConstraints": {"resourceRules": [{"apiGroups": [kind.group.as_str()], "operations": operations,
                "apiVersions": [kind.version.as_str()], "resources": [plural]}]},
            "validations": [{"expression": expression}],
        },
    })
}

#[test]
fn answers_about_built_in_kinds_known_by_hand_are_given() {
    let (mut wrong, mut total) = (Vec::new(), 0);
    let rows = include_str!("../data/prove/builtin.tsv").lines();
    for row in rows.filter(|row| !row.is_empty() && !row.starts_with('#')) {
        let cells: Vec<&str> = row.split('\t').collect();
        let mut names = cells[0].splitn(3, '.');
        let mut next = || names.next().unwrap_or_default();
        let (kind, version, group) = (next(), next(), next());
        let kind = GroupVersionKind::new(group, version, kind);
        let declared = || Subject::new(&definition(&[]), None).expect("a definition");
        let subject = Subject::builtin(&BuiltinKinds, &kind).unwrap_or_else(declared);
        let side =
            |expression: &&str| Side::policy(&policy(&subject, expression), &subject).expect("a policy");
        let (left, right) = (side(&cells[3]), cells.get(4).map(side));
        let (question, expected) = named(cells[1], cells[2]);
        let inquiry =
            Inquiry { question, subject: &subject, left: &left, right: right.as_ref(), that: None, items: 3 };
        total += 1;
        let ask = |mut solver: Program| inquiry.decide(Some(&mut solver), &|| false).expect("confirmed");
        let said: Vec<_> = Program::installed().into_iter().map(ask).collect();
        if !said.is_empty() && said.iter().all(|verdict| expected != Answer::Undecided && gave_up(verdict)) {
            wrong.push(format!("{row}\n    no solver answers"));
        }
        for verdict in said.iter().filter(|verdict| !gave_up(verdict) && answer(verdict) != expected) {
            wrong.push(format!("{row}\n    {verdict:?}"));
        }
    }
    tell(&format!("{total} rows"));
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Parts of random policies for pods.
const PARTS: &[&str] = &[
    "has(object.spec.hostNetwork)",
    "object.spec.hostNetwork == true",
    "object.spec.restartPolicy == 'Always'",
    "object.spec.containers.all(c, c.image.startsWith('a'))",
    "object.spec.containers.exists(c, c.name == 'a')",
    "object.spec.containers.exists_one(c, has(c.ports))",
    "object.spec.containers[0].imagePullPolicy != 'Always'",
    "object.spec.containers.all(c, !has(c.securityContext) || !c.securityContext.privileged)",
    "object.spec.containers.all(c, c.?securityContext.runAsUser.orValue(1) > 0)",
    "object.spec.containers.all(c, 'cpu' in c.resources.limits)",
    "object.spec.containers.all(c, c.?resources.limits.cpu.orValue('1') == '1')",
    "object.spec.containers.all(c, has(c.env) && c.env.all(e, e.name != 'a'))",
    "object.spec.containers.map(c, c.name) == ['a']",
    "size(object.spec.?volumes.orValue([])) < 2",
    "object.spec.volumes.all(v, !has(v.hostPath))",
    "object.spec.?initContainers.orValue([]).all(c, has(c.command))",
    "has(object.spec.securityContext.runAsNonRoot)",
    "object.spec.securityContext.?seccompProfile.?type.orValue('') == 'RuntimeDefault'",
    "object.spec.terminationGracePeriodSeconds < 30",
    "object.spec.?priority.orValue(0) == 0",
    "object.spec.?nodeSelector.orValue({}).size() == 0",
    "object.spec.?tolerations.orValue([]).all(t, t.operator == 'Exists')",
    "has(object.metadata.labels) && 'a' in object.metadata.labels",
    "object.metadata.labels['a'] == 'b'",
    "object.metadata.?annotations.orValue({}).all(k, k != 'a')",
    "object.metadata.name == 'a'",
    "object.spec.?affinity.?nodeAffinity.hasValue()",
    "object.spec.?dnsConfig.?options.orValue([]).exists(o, o.?value.orValue('a') == 'a')",
    "oldObject == null",
];

fn rule(dice: &mut Dice, depth: usize) -> String {
    match dice.roll(if depth == 0 { 1 } else { 5 }) {
        1 => format!("({} && {})", rule(dice, depth - 1), rule(dice, depth - 1)),
        2 => format!("({} || {})", rule(dice, depth - 1), rule(dice, depth - 1)),
        3 => format!("!({})", rule(dice, depth - 1)),
        4 => {
            let (when, yes) = (rule(dice, depth - 1), rule(dice, depth - 1));
            format!("({when} ? {yes} : {})", rule(dice, depth - 1))
        }
        _ => dice.pick(PARTS).to_owned(),
    }
}

/// Pods that our server takes.
fn pods(dice: &mut Dice, count: usize) -> Vec<(Value, Option<Value>)> {
    let kind = GroupVersionKind::new("", "v1", "Pod");
    let shape = catalogue().kind(&kind).expect("it is built in").shape;
    let smallest = BuiltinKinds.smallest(&kind);
    let mut made = Vec::new();
    while made.len() < count {
        let mut pod = smallest[0].clone();
        for _ in 0..=dice.roll(8) {
            change(dice, &mut pod, shape, 8);
        }
        let prepared = BuiltinKinds.prepare(&pod, None, false).expect("it is built in");
        if prepared.refusal.is_none() && prepared.strict.is_empty() {
            made.push((prepared.object, None));
        }
    }
    made
}

/// `ADMIT_PAIRS` says how many pairs of a rule and an object are compared.
#[test]
fn terms_and_the_engine_agree_on_pods() {
    let pairs = std::env::var("ADMIT_PAIRS").ok().and_then(|pairs| pairs.parse().ok()).unwrap_or(400);
    let subject = Subject::builtin(&BuiltinKinds, &GroupVersionKind::new("", "v1", "Pod")).expect("built in");
    let Some(mut solver) = Program::installed().into_iter().next() else { return };
    let (mut dice, mut compared, mut wrong) = (Dice::new(), 0_usize, Vec::new());
    for _ in 0..pairs / 20 {
        let rule = rule(&mut dice, 3);
        let side = Side::policy(&policy(&subject, &rule), &subject).expect("a policy");
        let requests = pods(&mut dice, 20);
        let Ok(script) = agreement(&subject, &side, &requests, 4) else { continue };
        let printed = solver.ask(&script).expect("an answer");
        let answers: Vec<&str> = printed.lines().collect();
        let answered = answers.iter().take_while(|answer| matches!(**answer, "sat" | "unsat")).count();
        for ((pod, _), answers) in requests.iter().zip(answers[..answered].chunks_exact(3)) {
            compared += 1;
            let said = side.said(&subject, pod, None);
            let told = |yes: bool| if yes { "sat" } else { "unsat" };
            if answers != ["sat", told(said.denied), told(said.failed)] {
                wrong.push(format!("{rule}\n    {pod}\n    {answers:?} {said:?}"));
            }
        }
    }
    tell(&format!("{compared} pairs, {} differ", wrong.len()));
    assert!(wrong.is_empty(), "{}", wrong[..wrong.len().min(8)].join("\n"));
    assert!(compared > pairs / 2, "{compared} were compared");
}
