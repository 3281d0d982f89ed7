//! Two versions of a definition, whose breaking changes are known by hand.

use admit_analysis::prove::{Report, Step, Upgrade};
use serde_json::{Value, json};

use super::solvers::{Program, tell};

/// A definition with a schema of `spec`, and of a status if there is one.
fn definition(case: &Value, side: &str) -> Value {
    let object = |schema: &Value| {
        let mut schema = schema.clone();
        schema["type"] = "object".into();
        schema
    };
    let mut root = json!({"type": "object", "properties": {"spec": object(&case[side])}});
    let status = &case[format!("{side}Status")];
    if status.is_object() {
        root["properties"]["status"] = object(status);
    }
    for (key, value) in case[format!("{side}Root")].as_object().into_iter().flatten() {
        root[key] = value.clone();
    }
    let mut version =
        json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": root}});
    if status.is_object() {
        version["subresources"] = json!({"status": {}});
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing"}, "versions": [version]},
    })
}

/// The fields and keywords that break a step; those of which it is not known with a question mark.
fn told(report: &Report) -> Vec<String> {
    let keyword = |place: &str| {
        let at =
            place.find("x-kubernetes-validations").unwrap_or_else(|| place.rfind('.').map_or(0, |at| at + 1));
        place[at..].to_owned()
    };
    let mut told: Vec<String> =
        report.breaks.iter().map(|found| format!("{} {}", found.field, keyword(&found.place))).collect();
    told.extend(report.undecided.iter().map(|one| format!("?{}", one.what)));
    told.sort();
    told
}

#[test]
fn breaking_changes_known_by_hand_are_found() {
    let (mut wrong, mut total) = (Vec::new(), 0);
    for line in include_str!("../data/prove/upgrades.jsonl").lines() {
        let case: Value = serde_json::from_str(line).expect("a case");
        let name = case["name"].as_str().expect("a name");
        let upgrade = match Upgrade::new(&definition(&case, "old"), &definition(&case, "new")) {
            Ok(upgrade) => upgrade,
            Err(error) => panic!("{name}: {error}"),
        };
        total += 1;
        for (step, word) in [(Step::Create, "create"), (Step::Update, "update"), (Step::Status, "status")] {
            if !upgrade.steps("v1").contains(&step) {
                assert!(case[word].is_null(), "{name}: there is no {word}");
                continue;
            }
            let expected: Vec<&str> =
                case[word].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            for mut solver in Program::installed() {
                let report = upgrade.decide("v1", step, 3, &mut solver, &|| false);
                for found in &report.breaks {
                    let said = found.found.said[1].messages.join("; ");
                    let shown = found.field.replace("[]", "");
                    let is_rule = found.place.contains("x-kubernetes-validations");
                    assert!(
                        is_rule || said.contains(shown.rsplit('.').next().expect("a name")),
                        "{name}: {found:?}"
                    );
                }
                if told(&report) != expected {
                    wrong.push(format!(
                        "{name}, {word}, {}: {:?}\n    {report:?}",
                        solver.name(),
                        told(&report)
                    ));
                }
            }
        }
    }
    tell(&format!("{total} upgrades"));
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
