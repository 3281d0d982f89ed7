//! Two versions of a definition, whose breaking changes are known by hand.

use admit_analysis::prove::{Report, Solver, SolverError, Step, Upgrade};
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

/// What is asked of a solver, counted; answered by one, or else all refuted.
#[derive(Default)]
struct Counted {
    asks: Option<Program>,
    terms: usize,
    values: usize,
    bytes: usize,
}

impl Solver for Counted {
    fn ask(&mut self, script: &str) -> Result<String, SolverError> {
        self.terms += script.matches("(define-fun ").count();
        let values = script.split("(get-value (").skip(1).map(|names| names.split("))").next().unwrap_or(""));
        self.values += values.map(|names| names.split_whitespace().count()).sum::<usize>();
        self.bytes += script.len();
        match &mut self.asks {
            Some(solver) => solver.ask(script),
            None => Ok("unsat\n".repeat(script.matches("(check-sat)").count())),
        }
    }
}

/// A definition with so many fields, each of them bound.
fn bound(fields: usize, most: usize) -> Value {
    let properties: serde_json::Map<String, Value> =
        (0..fields).map(|at| (format!("f{at}"), json!({"type": "integer", "maximum": most}))).collect();
    definition(&json!({"spec": {"properties": properties}}), "spec")
}

#[test]
fn what_is_asked_of_many_changes_grows_with_their_number() {
    let counted = |fields: usize| {
        let upgrade = Upgrade::new(&bound(fields, 9), &bound(fields, 8)).expect("an upgrade");
        let mut solver = Counted::default();
        let report = upgrade.decide("v1", Step::Create, 3, &mut solver, &|| false);
        assert_eq!(report, Report::default(), "all is refuted");
        solver
    };
    let (few, many) = (counted(400), counted(800));
    tell(&format!("{} and {} terms, {} and {} values", few.terms, many.terms, few.values, many.values));
    // Of each field: that it is there, and its bounds.
    assert_eq!((few.terms, few.values), (400 * TERMS, 400 * 4 + 2));
    assert_eq!((many.terms, many.values), (800 * TERMS, 800 * 4 + 2));
    assert!(many.bytes < few.bytes * 21 / 10, "{} and {} bytes", few.bytes, many.bytes);
}

/// Terms of a field with two bounds.
const TERMS: usize = 11;

/// `ADMIT_FIELDS=2000` asks about more.
#[test]
fn each_of_many_changes_is_shown_alone() {
    let fields = std::env::var("ADMIT_FIELDS").ok().and_then(|fields| fields.parse().ok()).unwrap_or(180);
    for solver in Program::installed().into_iter().take(1) {
        let upgrade = Upgrade::new(&bound(fields, 9), &bound(fields, 8)).expect("an upgrade");
        let mut solver = Counted { asks: Some(solver), ..Counted::default() };
        let report = upgrade.decide("v1", Step::Create, 3, &mut solver, &|| false);
        assert_eq!((report.breaks.len(), report.undecided), (fields, vec![]));
        for found in &report.breaks {
            let name = found.field.strip_prefix("spec.").expect("a field");
            assert_eq!(found.found.object["spec"], json!({name: 9}), "{}", found.place);
        }
        assert!(solver.values < fields * 20, "{} values were asked for", solver.values);
    }
}

/// `ADMIT_CORPORA=… cargo test -p admit-analysis --test analysis recorded_upgrades -- --ignored`: schemas that were changed under
/// stored objects, as an API server was recorded; the first update of each changes a label alone.
#[test]
#[ignore = "reads a corpus"]
fn recorded_upgrades_are_judged_as_the_server_did() {
    let corpora = std::env::var("ADMIT_CORPORA").expect("ADMIT_CORPORA names a folder");
    let lines = |name: &str| -> Vec<Value> {
        let path = std::path::Path::new(&corpora).join("ratcheting").join(name);
        let text = std::fs::read_to_string(path).expect("a file");
        text.lines().map(|line| serde_json::from_str(line).expect("a record")).collect()
    };
    let old = lines("schema-changes-crds.jsonl");
    let (mut wrong, mut held, mut total) = (Vec::new(), 0, 0);
    for record in lines("schema-changes.jsonl") {
        let steps = record["steps"].as_array().expect("steps");
        let of = |op: &str| steps.iter().find(|step| step["op"] == op);
        let (Some(change), Some(update)) = (of("crdUpdate"), of("update")) else { continue };
        let old = old.iter().find(|old| old["crd"] == record["crd"]).expect("a definition");
        let upgrade = Upgrade::new(&old["manifest"], &change["body"]).expect("an upgrade");
        let version = upgrade.versions().remove(0);
        for mut solver in Program::installed() {
            let report = upgrade.decide(&version, Step::Update, 3, &mut solver, &|| false);
            let holds = report.breaks.is_empty() && report.undecided.is_empty();
            total += 1;
            held += usize::from(holds);
            // Where the one object that was recorded passes, another may not.
            if holds && update["outcome"] != 200 {
                wrong.push(format!("{}: {} but {report:?}", record["crd"], update["outcome"]));
            }
        }
    }
    tell(&format!("{total} recorded upgrades, {held} of them hold"));
    assert!(held > 0 && wrong.is_empty(), "{} of {total} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
