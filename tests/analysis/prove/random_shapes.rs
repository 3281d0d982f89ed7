//! Random versions of a definition of any shape: nothing that the engine refuses anew of random objects is among what is said to hold.

use admit_analysis::prove::{Report, Step, Upgrade};
use admit_policy::crd::CompiledCrd;
use serde_json::{Value, json};

use super::dice::Dice;
use super::random_upgrades::refused;
use super::shapes::{changed, object, value};
use super::solvers::{Both, Program, tell};

const DEPTH: usize = 2;

fn definition(root: &Value, has_status: bool) -> Value {
    let mut version =
        json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": root}});
    if has_status {
        version["subresources"] = json!({"status": {}});
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing"}, "versions": [version]},
    })
}

/// A schema of whole objects.
fn root(dice: &mut Dice) -> Value {
    let mut root = json!({"type": "object", "properties": {"spec": object(dice, DEPTH)}});
    if dice.roll(2) == 0 {
        root["properties"]["status"] = object(dice, 1);
    }
    if dice.roll(8) == 0 {
        root["required"] = json!([dice.pick(&["spec", "status"])]);
    }
    root
}

fn changed_root(dice: &mut Dice, old: &Value) -> Value {
    let mut new = old.clone();
    for name in ["spec", "status"] {
        if new["properties"][name].is_object() {
            let child = changed(dice, &new["properties"][name], DEPTH);
            let is_whole = child["type"] == "object";
            if is_whole {
                new["properties"][name] = child;
            }
        }
    }
    if new["properties"]["status"].is_null() {
        new["properties"].as_object_mut().expect("properties").shift_remove("status");
    }
    match dice.roll(12) {
        0 => new["required"] = json!([dice.pick(&["spec", "status"])]),
        1 => {
            new["x-kubernetes-validations"] = json!([{"rule": dice.pick(&[
                "has(self.spec)",
                "self.metadata.name == 'x'",
                "!has(self.metadata.generateName)",
                "has(self.spec) == has(oldSelf.spec)",
                "self.apiVersion == 'example.com/v1' && self.kind == 'Thing'",
            ])}]);
        }
        _ => {}
    }
    new
}

fn thrown(dice: &mut Dice, root: &Value) -> Value {
    let mut object = json!({"apiVersion": "example.com/v1", "kind": "Thing",
        "metadata": {"name": "x", "namespace": "y", "labels": {"a": "a"}}});
    for name in ["spec", "status"] {
        if root["properties"][name].is_object() && dice.roll(8) > 0 {
            object[name] = value(dice, &root["properties"][name]);
        }
    }
    object
}

/// Whether a list stands where a string of a format is declared: servers let that pass, and claims leave it out.
fn has_list_for_text(schema: &Value, value: &Value) -> bool {
    match value {
        Value::Array(_) if schema["type"] == "string" && schema["format"].is_string() => true,
        Value::Array(items) => items.iter().any(|item| has_list_for_text(&schema["items"], item)),
        Value::Object(fields) => fields.iter().any(|(name, value)| {
            let declared = schema["properties"].get(name);
            has_list_for_text(declared.unwrap_or(&schema["additionalProperties"]), value)
        }),
        _ => false,
    }
}

/// A path without indices and keys.
fn plain(path: &str) -> String {
    let mut plain = String::new();
    let mut depth = 0_usize;
    for c in path.chars() {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            c if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    plain
}

/// Whether a path is that of a field or of one below it. Between the parts of the field is an index or a key, which may hold any character:
/// keys of maps stand in brackets, or behind a dot.
fn is_below(path: &str, field: &str) -> bool {
    let Some((first, others)) = field.split_once("[]") else {
        return path.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
    };
    let Some(rest) = path.strip_prefix(first) else { return false };
    let ends = rest.char_indices().skip(1).map(|(at, _)| &rest[at..]).chain([""]);
    match rest.chars().next() {
        Some('.') => ends.into_iter().any(|rest| is_below(rest, others)),
        Some('[') => ends.filter_map(|rest| rest.strip_prefix(']')).any(|rest| is_below(rest, others)),
        _ => false,
    }
}

/// Whether a path is below the values of a junctor that is said to break, which fails for this object: what fails in one of its branches is
/// told beside it.
fn is_in_branch(path: &str, place: &str, refusals: &[(String, String)]) -> bool {
    let Some((value, keyword)) =
        place.split_once("openAPIV3Schema").and_then(|(_, place)| place.rsplit_once('.'))
    else {
        return false;
    };
    let value = value.replace(".properties[", ".").replace(']', "").replace(".additionalProperties", "");
    let value = value.replace(".items", "");
    let failed = format!("({keyword})");
    ["allOf", "anyOf", "oneOf", "not"].contains(&keyword)
        && path.starts_with(&format!("{}.", value.trim_start_matches('.')))
        && refusals.iter().any(|(_, text)| text.contains(&failed))
}

/// Whether what is refused is among what is said to break, or not to be known.
fn is_told(report: &Report, refusals: &[(String, String)]) -> bool {
    if !report.undecided.is_empty() {
        return true;
    }
    refusals.iter().all(|(path, text)| {
        text.contains("some validation rules were not checked")
            || report.breaks.iter().any(|known| {
                let is_below = is_below(path, &known.field);
                let (path, field) = (plain(path), plain(&known.field));
                // What is wrong in a status is said of it as a whole, by name; an item's has an index.
                let named = field.strip_prefix("status.").map(|name| format!("\"{name}\""));
                let is_named = path == "status" && named.is_some_and(|name| plain(text).contains(&name));
                path == "<nil>"
                    || is_below
                    || field.is_empty()
                    || path == field
                    || is_named
                    || path.starts_with(&format!("{field}."))
                    || is_in_branch(&path, &known.place, refusals)
            })
    })
}

#[derive(Debug, Default)]
struct Tally {
    versions: usize,
    hold: usize,
    broken: usize,
    open: usize,
    compared: usize,
    refused: usize,
    wrong: Vec<String>,
    why: std::collections::BTreeMap<String, usize>,
}

fn judge(dice: &mut Dice, objects: usize, tally: &mut Tally) {
    let old_root = root(dice);
    let new_root = changed_root(dice, &old_root);
    let has_status = dice.roll(2) == 0;
    let (old, new) = (
        definition(&old_root, has_status),
        definition(&new_root, if dice.roll(8) == 0 { !has_status } else { has_status }),
    );
    let Ok(upgrade) = Upgrade::new(&old, &new) else { return };
    let (old_crd, new_crd) =
        (CompiledCrd::compile(&old).expect("old"), CompiledCrd::compile(&new).expect("new"));
    tally.versions += 1;
    for step in upgrade.steps("v1") {
        let report = upgrade.decide("v1", step, 3, &mut Both::default(), &|| false);
        let holds = report.breaks.is_empty() && report.undecided.is_empty();
        tally.hold += usize::from(holds);
        tally.broken += report.breaks.len();
        tally.open += usize::from(!report.undecided.is_empty());
        for one in &report.undecided {
            *tally.why.entry(one.what.clone()).or_default() += 1;
        }
        for found in report.breaks.iter().filter(|_| step == Step::Create) {
            let said = refused(&old_crd, &new_crd, step, &found.found.object, None);
            if said.is_none_or(|said| said.is_empty()) {
                tally.wrong.push(format!("{old}\n    {new}\n    {step:?} {found:?} is no break"));
            }
        }
        for _ in 0..objects {
            let object = thrown(dice, &old_root);
            let body = (step == Step::Status).then(|| thrown(dice, &old_root));
            if [Some(&object), body.as_ref()]
                .into_iter()
                .flatten()
                .any(|one| has_list_for_text(&old_root, one))
            {
                continue;
            }
            let Some(said) = refused(&old_crd, &new_crd, step, &object, body.as_ref()) else { continue };
            tally.compared += 1;
            tally.refused += usize::from(!said.is_empty());
            if !is_told(&report, &said) {
                tally.wrong.push(format!(
                    "{old}\n    {new}\n    {step:?}: {:?}\n    {object} {body:?}: {said:?}",
                    report.breaks.iter().map(|known| &known.place).collect::<Vec<_>>()
                ));
                break;
            }
        }
    }
}

fn agree(versions: usize, objects: usize) {
    if Program::installed().len() < 2 {
        return;
    }
    let (mut dice, mut tally) = (Dice::new(), Tally::default());
    while tally.versions < versions {
        judge(&mut dice, objects, &mut tally);
    }
    let Tally { versions, hold, broken, open, compared, refused, wrong, why } = tally;
    tell(&format!(
        "{versions} pairs of versions: {hold} steps hold, {broken} breaks, {open} steps undecided; {compared} objects compared, \
         {refused} of them refused, {} differ",
        wrong.len()
    ));
    let mut why: Vec<(usize, String)> = why.into_iter().map(|(what, count)| (count, what)).collect();
    why.sort();
    if std::env::var_os("ADMIT_SHOW").is_some() {
        why.iter().rev().take(25).for_each(|(count, what)| tell(&format!("{count:5} {what}")));
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
    assert!(compared > versions && hold > 0 && broken > 0, "{compared} of {versions} were compared");
}

#[test]
fn versions_of_any_shape_and_the_engine_agree() {
    agree(120, 30);
}

/// `ADMIT_PAIRS=5000 ADMIT_SEED=2 cargo test -p admit-analysis --test analysis many_shapes -- --ignored --nocapture`.
#[test]
#[ignore = "takes many minutes"]
fn many_shapes_agree() {
    let pairs = std::env::var("ADMIT_PAIRS").ok().and_then(|pairs| pairs.parse().ok()).unwrap_or(2_000);
    agree(pairs, 80);
}
