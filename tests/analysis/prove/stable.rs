//! Fields of built-in kinds that stay, at times under a condition: every change that our server takes keeps them, is thought of, and
//! is judged by the terms as by the engine.

use admit_analysis::prove::{Side, Solver as _, Subject, agreement};
use admit_apiserver::BuiltinKinds;
use admit_policy::{Builtins as _, FieldType, ServedKind, StableFields};
use serde_json::{Value, json};

use super::builtin::{catalogue, change, policy};
use super::dice::Dice;
use super::solvers::{Program, tell};

fn kinds() -> impl Iterator<Item = (&'static ServedKind, Subject)> {
    let kinds = catalogue().kinds.iter().filter(|served| !served.stable.is_empty());
    kinds.map(|served| (served, Subject::builtin(&BuiltinKinds, &served.kind).expect("it is built in")))
}

/// Values that conditions ask for and that are seldom thrown: each is put into an old object at times.
const SELDOM: &[(&str, &str, &str)] = &[
    ("ConfigMap", "/immutable", "true"),
    ("Secret", "/immutable", "true"),
    ("Service", "/spec/clusterIP", "\"10.0.0.7\""),
    ("Service", "/spec/type", "\"LoadBalancer\""),
    ("Service", "/spec/type", "\"ExternalName\""),
    (
        "Service",
        "/spec",
        r#"{"type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": 30000, "ports": [{"port": 80}]}"#,
    ),
    ("Job", "/spec/suspend", "true"),
    ("Job", "/spec/completionMode", "\"Indexed\""),
    ("PersistentVolumeClaim", "/spec/volumeName", "\"a\""),
    ("PersistentVolumeClaim", "/spec/storageClassName", "\"a\""),
    (
        "PersistentVolume",
        "/spec",
        r#"{"capacity": {"storage": "1"}, "accessModes": ["ReadWriteOnce"], "csi": {"driver": "a", "volumeHandle": "a",
            "controllerExpandSecretRef": {"name": "a", "namespace": "b"}}}"#,
    ),
    ("Pod", "/spec/schedulingGates", "[{\"name\":\"a\"}]"),
    ("Node", "/spec/podCIDRs", "[\"10.0.0.0/24\"]"),
    ("Node", "/spec/providerID", "\"a\""),
    ("ServiceCIDR", "/spec/cidrs", "[\"10.0.0.0/24\",\"fd00::/108\"]"),
];

fn put(object: &mut Value, pointer: &str, text: &str) {
    let (outer, name) = pointer.rsplit_once('/').expect("a pointer");
    if let Some(map) = object.pointer_mut(outer).and_then(Value::as_object_mut) {
        map.insert(name.to_owned(), serde_json::from_str(text).expect("it is JSON"));
    }
}

/// Changes that our server takes.
fn changes(dice: &mut Dice, served: &ServedKind, tries: usize) -> Vec<(Value, Option<Value>)> {
    let smallest = BuiltinKinds.smallest(&served.kind);
    let seldom: Vec<_> = SELDOM.iter().filter(|(kind, ..)| *kind == served.kind.kind).collect();
    let mut found = Vec::new();
    for _ in 0..tries {
        let mut old = smallest[dice.roll(smallest.len())].clone();
        for _ in 0..dice.roll(3) {
            change(dice, &mut old, served.shape, 8);
        }
        for (_, pointer, text) in &seldom {
            if dice.roll(3) == 0 {
                put(&mut old, pointer, text);
            }
        }
        if served.namespaced && old["metadata"].is_object() {
            old["metadata"]["namespace"] = json!("default");
        }
        let Some(old) = BuiltinKinds.prepare(&old, None, false).filter(|old| old.refusal.is_none()) else {
            continue;
        };
        let mut new = old.object.clone();
        for _ in 0..=dice.roll(2) {
            change(dice, &mut new, served.shape, 8);
        }
        if let Some((_, pointer, text)) = seldom.get(dice.roll(3 * seldom.len().max(1))) {
            put(&mut new, pointer, text);
        }
        if served.namespaced && new["metadata"].is_object() {
            new["metadata"]["namespace"] = json!("default");
        }
        for way in std::iter::once("").chain(served.subresources.iter().map(String::as_str)) {
            let Some(taken) = BuiltinKinds.written(&new, Some(&old.object), way) else { continue };
            if taken.refusal.is_none() && taken.strict.is_empty() && taken.object["kind"] == served.kind.kind
            {
                found.push((taken.object, Some(old.object.clone())));
            }
        }
    }
    found
}

/// Without what is null or empty.
fn bare(value: &Value) -> Value {
    let is_something =
        |value: &Value| !matches!(value, Value::Null) && *value != json!([]) && *value != json!({});
    match value {
        Value::Object(map) => {
            let map = map.iter().map(|(name, value)| (name.clone(), bare(value)));
            Value::Object(map.filter(|(_, value)| is_something(value)).collect())
        }
        Value::Array(items) => items.iter().map(bare).collect(),
        value => value.clone(),
    }
}

fn without(value: &Value, but: &[String]) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .filter(|(name, _)| !but.contains(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
        Value::Array(items) => items.iter().map(|item| without(item, but)).collect(),
        value => value.clone(),
    }
}

fn holds(fields: &StableFields, subject: &Subject, request: &(Value, Option<Value>)) -> bool {
    let Some(when) = &fields.when else { return true };
    let side = Side::policy(&policy(subject, when), subject).expect("a policy");
    !side.said(subject, &request.0, request.1.as_ref()).denied
}

#[test]
fn what_is_stable_stays_in_every_change_that_our_server_takes() {
    let mut dice = Dice::new();
    let (mut taken, mut never) = (0_usize, Vec::new());
    for (served, subject) in kinds() {
        let changes = changes(&mut dice, served, 160);
        taken += changes.iter().filter(|(new, old)| old.as_ref() != Some(new)).count();
        for fields in &served.stable {
            let mut asked = 0_usize;
            for request in changes.iter().filter(|request| holds(fields, &subject, request)) {
                asked += 1;
                let old = request.1.as_ref().expect("an update");
                for path in &fields.paths {
                    let pointer = format!("/{}", path.replace('.', "/"));
                    let (above, _) = pointer.rsplit_once('/').expect("a pointer");
                    let is_there =
                        |object: &Value| object.pointer(above).is_some_and(|outer| !outer.is_null());
                    if !is_there(&request.0) || !is_there(old) {
                        continue;
                    }
                    let part = |object: &Value| {
                        bare(&without(object.pointer(&pointer).unwrap_or(&Value::Null), &fields.but))
                    };
                    assert_eq!(part(&request.0), part(old), "{fields:?} of {old}\n{}", request.0);
                }
            }
            if asked == 0 {
                never.push(format!("{:?} {fields:?}", served.kind.kind));
            }
        }
    }
    tell(&format!("{taken} changes"));
    assert!(never.is_empty(), "{never:#?}");
    assert!(taken > 500, "{taken} changes");
}

/// What an expression reads of an object at a field below this type, absent or not.
fn read(dice: &mut Dice, object: &str, of: &FieldType, depth: usize) -> String {
    match of {
        FieldType::Shape(index) if depth > 0 => {
            let fields = &catalogue().shape(*index).expect("it has fields").fields;
            match fields.len() {
                0 => format!("{object}.hasValue()"),
                count => {
                    let field = &fields[dice.roll(count)];
                    read(dice, &format!("{object}.?{}", field.name), &field.of, depth - 1)
                }
            }
        }
        FieldType::List(item) => {
            let inner = read(dice, &format!("optional.of(x{depth})"), item, depth.saturating_sub(1));
            format!("{object}.orValue([]).map(x{depth}, {inner})")
        }
        FieldType::Map(_) | FieldType::Other | FieldType::Shape(_) | FieldType::Float => {
            format!("{object}.hasValue()")
        }
        _ => object.to_owned(),
    }
}

/// An expression that compares what is somewhere in the fields.
fn compared(dice: &mut Dice, served: &ServedKind, fields: &StableFields) -> String {
    let path = &fields.paths[dice.roll(fields.paths.len())];
    let (mut of, mut object) = (FieldType::Shape(served.shape), String::new());
    for name in path.split('.') {
        let shape = of.shape().expect("it has fields");
        object = format!("{object}.?{name}");
        of = catalogue().field(shape, name).expect("a field").of.clone();
    }
    let whole = read(dice, &format!("object{object}"), &of, 4);
    // The same of the old object.
    let old = whole.replacen("object", "oldObject", 1);
    let keys = |object: &str| format!("{object}.orValue({{}})");
    match &of {
        FieldType::Map(_) if dice.roll(2) == 0 => {
            format!("{} == {}", keys(&format!("object{object}")), keys(&format!("oldObject{object}")))
        }
        _ => format!("{whole} == {old}"),
    }
}

#[test]
fn terms_and_the_engine_agree_on_changes_of_built_in_kinds() {
    let Some(mut solver) = Program::installed().into_iter().next() else { return };
    let (mut dice, mut compared_pairs, mut undecided, mut wrong) =
        (Dice::new(), 0_usize, 0_usize, Vec::new());
    for (served, subject) in kinds() {
        let all = changes(&mut dice, served, 60);
        for fields in &served.stable {
            for _ in 0..2 {
                let rule = format!("oldObject == null || {}", compared(&mut dice, served, fields));
                let side = Side::policy(&policy(&subject, &rule), &subject).expect("a policy");
                let requests: Vec<_> = (0..12).map(|_| all[dice.roll(all.len())].clone()).collect();
                let Ok(script) = agreement(&subject, &side, &requests, 4) else {
                    undecided += 1;
                    continue;
                };
                let printed = solver.ask(&script).expect("an answer");
                let answers: Vec<&str> = printed.lines().collect();
                let answered =
                    answers.iter().take_while(|answer| matches!(**answer, "sat" | "unsat")).count();
                for ((new, old), answers) in requests.iter().zip(answers[..answered].chunks_exact(3)) {
                    compared_pairs += 1;
                    let said = side.said(&subject, new, old.as_ref());
                    let told = |yes: bool| if yes { "sat" } else { "unsat" };
                    if answers != ["sat", told(said.denied), told(said.failed)] {
                        wrong.push(format!("{rule}\n    {new}\n    {old:?}\n    {answers:?} {said:?}"));
                    }
                }
            }
        }
    }
    tell(&format!("{compared_pairs} pairs, {} differ; {undecided} rules undecided", wrong.len()));
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong[..wrong.len().min(6)].join("\n"));
    assert!(compared_pairs > 400, "{compared_pairs} were compared");
}
