//! Random pairs of versions of a definition: of random objects the engine says what the claims about upgrades say.

use admit_analysis::prove::{Report, Step, Upgrade};
use admit_policy::EvalOptions;
use admit_policy::crd::{CompiledCrd, ValidateOptions, Write, Written};
use admit_policy::schema::Malformed;
use serde_json::{Map, Value, json};

use super::dice::Dice;
use super::solvers::{Program, tell};

/// The fields of `spec`, with keywords that each may have.
fn keywords(name: &str) -> (Value, Vec<Value>) {
    match name {
        "a" => (
            json!({"type": "integer"}),
            vec![
                json!({"minimum": 1}),
                json!({"minimum": 2, "exclusiveMinimum": true}),
                json!({"maximum": 3}),
                json!({"multipleOf": 2}),
                json!({"default": 2}),
                json!({"enum": [1, 2, 4]}),
                json!({"nullable": true}),
                json!({"anyOf": [{"maximum": 0}, {"minimum": 3}]}),
                json!({"not": {"enum": [2]}}),
            ],
        ),
        "b" => (
            json!({"type": "string"}),
            vec![
                json!({"maxLength": 2}),
                json!({"minLength": 1}),
                json!({"pattern": "^[ab]*$"}),
                json!({"pattern": "b$"}),
                json!({"enum": ["a", "bb"]}),
                json!({"default": "ab"}),
                json!({"nullable": true}),
            ],
        ),
        "c" => (json!({"type": "boolean"}), vec![json!({"enum": [true]}), json!({"default": true})]),
        "d" => (
            json!({"type": "array", "items": {"type": "integer"}, "maxItems": 3}),
            vec![
                json!({"maxItems": 2}),
                json!({"minItems": 1}),
                json!({"x-kubernetes-list-type": "set"}),
                json!({"items": {"type": "integer", "minimum": 1}}),
                json!({"items": {"type": "integer", "default": 1, "nullable": false}}),
            ],
        ),
        "e" => (
            json!({"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "string"}}}),
            vec![
                json!({"required": ["x"]}),
                json!({"required": ["y"]}),
                json!({"minProperties": 1}),
                json!({"maxProperties": 1}),
                json!({"properties": {"x": {"type": "integer", "maximum": 2}, "y": {"type": "string"}}}),
                json!({"properties": {"x": {"type": "integer"}}}),
                json!({"default": {"x": 1}}),
            ],
        ),
        _ => (
            json!({"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 3}),
            vec![
                json!({"maxProperties": 1}),
                json!({"minProperties": 1}),
                json!({"additionalProperties": {"type": "integer", "maximum": 2}}),
            ],
        ),
    }
}

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

const RULES: [&str; 9] = [
    "!has(self.a) || self.a < 3",
    "has(self.a) == has(self.b)",
    "!has(self.b) || self.b.size() > 1",
    "!has(self.d) || self.d.all(i, i > 0)",
    "!has(self.d) || self.d.all(i, self.d.exists_one(j, i == j))",
    "!has(oldSelf.a) || (has(self.a) && self.a >= oldSelf.a)",
    "has(self.b) == has(oldSelf.b)",
    "!has(self.e) || !has(self.e.x) || !has(self.a) || self.a > self.e.x",
    "!has(self.f) || self.f.all(k, k != 'z')",
];

fn field(dice: &mut Dice, name: &str) -> Value {
    let (mut field, keywords) = keywords(name);
    for keyword in &keywords {
        if dice.roll(5) == 0 {
            for (key, value) in keyword.as_object().expect("keywords") {
                field[key] = value.clone();
            }
        }
    }
    field
}

/// A schema of `spec`.
fn spec(dice: &mut Dice) -> Value {
    let mut properties = Map::new();
    for name in NAMES {
        if dice.roll(4) > 0 {
            properties.insert(name.to_owned(), field(dice, name));
        }
    }
    let mut spec = json!({"type": "object", "properties": properties});
    let required: Vec<&str> =
        NAMES.into_iter().filter(|name| spec["properties"][*name].is_object() && dice.roll(6) == 0).collect();
    let rules: Vec<Value> =
        RULES.into_iter().filter(|_| dice.roll(8) == 0).map(|rule| json!({"rule": rule})).collect();
    if !required.is_empty() {
        spec["required"] = json!(required);
    }
    if !rules.is_empty() {
        spec["x-kubernetes-validations"] = rules.into();
    }
    spec
}

/// Another schema, most of which is as it was.
fn changed(dice: &mut Dice, old: &Value) -> Value {
    let (mut new, other) = (old.clone(), spec(dice));
    for name in NAMES {
        if dice.roll(4) == 0 {
            let fields = new["properties"].as_object_mut().expect("properties");
            match other["properties"].get(name) {
                Some(field) => drop(fields.insert(name.to_owned(), field.clone())),
                None => drop(fields.shift_remove(name)),
            }
        }
    }
    for keyword in ["required", "x-kubernetes-validations"] {
        if dice.roll(3) == 0 {
            let fields = new.as_object_mut().expect("a schema");
            match other.get(keyword) {
                Some(value) => drop(fields.insert(keyword.to_owned(), value.clone())),
                None => drop(fields.shift_remove(keyword)),
            }
        }
    }
    new
}

fn definition(spec: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}]},
    })
}

fn object(dice: &mut Dice) -> Value {
    let mut spec = Map::new();
    let pools: [(&str, Vec<Value>); 6] = [
        ("a", vec![json!(0), json!(1), json!(2), json!(3), json!(4), Value::Null]),
        ("b", vec![json!(""), json!("a"), json!("bb"), json!("ab"), json!("cab"), Value::Null]),
        ("c", vec![json!(true), json!(false)]),
        ("d", vec![json!([]), json!([1]), json!([0]), json!([1, 1]), json!([1, 2]), json!([2, 0, 3])]),
        ("e", vec![json!({}), json!({"x": 1}), json!({"x": 3}), json!({"y": "a"}), json!({"x": 0, "y": ""})]),
        ("f", vec![json!({}), json!({"z": 1}), json!({"a": 3}), json!({"a": 1, "b": 2})]),
    ];
    for (name, values) in pools {
        if dice.roll(2) == 0 {
            spec.insert(name.to_owned(), values[dice.roll(values.len())].clone());
        }
    }
    let mut object = json!({"apiVersion": "example.com/v1", "kind": "Thing",
        "metadata": {"name": "x", "namespace": "y", "labels": {"a": "a"}}});
    if dice.roll(12) > 0 {
        object["spec"] = spec.into();
    }
    object
}

fn is_within(written: &Value, read: &Value) -> bool {
    match (written, read) {
        (Value::Object(written), Value::Object(read)) => {
            written.iter().all(|(key, value)| read.get(key).is_some_and(|read| is_within(value, read)))
        }
        (Value::Array(written), Value::Array(read)) => {
            written.len() == read.len() && written.iter().zip(read).all(|(a, b)| is_within(a, b))
        }
        (written, read) => written == read,
    }
}

/// What comes of a write.
fn written(crd: &CompiledCrd, old: Option<&Value>, body: &Value, status: bool) -> Written {
    let version = crd.version("v1").expect("a version");
    Write { crd, version, old, status, eval: EvalOptions::default() }.decide(body)
}

/// Fields that are refused, and the words.
type Refusals = Vec<(String, String)>;

fn refusals(written: &Written) -> Refusals {
    written.errors.iter().map(|error| (error.field.clone(), error.to_string())).collect()
}

/// What is stored, if the old definition drops nothing of it.
fn stored(old: &CompiledCrd, object: &Value) -> Option<Value> {
    let version = old.version("v1").expect("a version");
    let mut stored = object.clone();
    let unknown = version.read(&mut stored, Malformed::Refuse, None).ok()?;
    let found = version.validate(&stored, None, &ValidateOptions::default());
    let is_sound = unknown.is_empty() && found.errors.is_empty() && is_within(object, &stored);
    is_sound.then_some(stored)
}

/// What the new definition refuses of a step that the old one lets through; none where that does not. A status is that of `body`.
pub(super) fn refused(
    old: &CompiledCrd,
    new: &CompiledCrd,
    step: Step,
    object: &Value,
    body: Option<&Value>,
) -> Option<Refusals> {
    if step == Step::Create {
        let taken = written(old, None, object, false);
        let is_taken =
            taken.errors.is_empty() && taken.warnings.is_empty() && is_within(object, &taken.object);
        return is_taken.then(|| refusals(&written(new, None, object, false)));
    }
    let stored = stored(old, object)?;
    let read = new.version("v1").expect("a version").stored(&stored);
    if let Some(body) = body {
        let with_status = |object: &Value| {
            let mut object = object.clone();
            match body.get("status") {
                Some(status) => object["status"] = status.clone(),
                None => drop(object.as_object_mut().expect("an object").shift_remove("status")),
            }
            object
        };
        let body = with_status(&stored);
        let taken = written(old, Some(&stored), &body, true);
        let is_taken =
            taken.errors.is_empty() && taken.warnings.is_empty() && is_within(&body, &taken.object);
        return is_taken.then(|| refusals(&written(new, Some(&read), &with_status(&read), true)));
    }
    let labelled = |object: &Value| {
        let mut object = object.clone();
        object["metadata"]["labels"]["a"] = "b".into();
        object
    };
    let taken = written(old, Some(&stored), &labelled(&stored), false);
    taken.errors.is_empty().then(|| refusals(&written(new, Some(&read), &labelled(&read), false)))
}

fn holds(report: &Report) -> bool {
    report.breaks.is_empty() && report.undecided.is_empty()
}

/// Compares so many pairs of versions, each with so many objects.
fn agree(pairs: usize, objects: usize) {
    for mut solver in Program::installed().into_iter().take(1) {
        let mut dice = Dice::new();
        let (mut asked, mut held, mut broken, mut open, mut compared, mut wrong) =
            (0, 0, 0, 0, 0, Vec::new());
        while asked < pairs {
            let old_spec = spec(&mut dice);
            let new_spec = changed(&mut dice, &old_spec);
            let (old, new) = (definition(&old_spec), definition(&new_spec));
            let Ok(upgrade) = Upgrade::new(&old, &new) else { continue };
            let (old_crd, new_crd) =
                (CompiledCrd::compile(&old).expect("old"), CompiledCrd::compile(&new).expect("new"));
            asked += 1;
            for step in [Step::Create, Step::Update] {
                let report = upgrade.decide("v1", step, 3, &mut solver, &|| false);
                held += usize::from(holds(&report));
                broken += report.breaks.len();
                open += usize::from(!report.undecided.is_empty());
                for found in report.breaks.iter().filter(|_| step == Step::Create) {
                    let said = refused(&old_crd, &new_crd, step, &found.found.object, None);
                    if said.is_none_or(|said| said.is_empty()) {
                        wrong.push(format!("{old_spec}\n    {new_spec}\n    {step:?} {found:?} is no break"));
                    }
                }
                for _ in 0..objects {
                    let object = object(&mut dice);
                    let Some(said) = refused(&old_crd, &new_crd, step, &object, None) else { continue };
                    compared += 1;
                    if holds(&report) && !said.is_empty() {
                        wrong.push(format!(
                            "{old_spec}\n    {new_spec}\n    {step:?} holds and {object}: {said:?}"
                        ));
                    }
                }
            }
        }
        tell(&format!(
            "{asked} pairs of versions: {held} steps hold, {broken} breaks, {open} steps undecided; {compared} objects compared, {} differ",
            wrong.len()
        ));
        assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong[..wrong.len().min(5)].join("\n"));
        assert!(compared > asked && held > 0 && broken > 0, "{compared} of {asked} were compared");
    }
}

#[test]
fn upgrades_and_the_engine_agree() {
    agree(200, 30);
}

/// `ADMIT_PAIRS=5000 ADMIT_SEED=2 cargo test -p admit-analysis --test analysis many_upgrades -- --ignored --nocapture`.
#[test]
#[ignore = "takes many minutes"]
fn many_upgrades_agree() {
    let pairs = std::env::var("ADMIT_PAIRS").ok().and_then(|pairs| pairs.parse().ok()).unwrap_or(5_000);
    agree(pairs, 60);
}
