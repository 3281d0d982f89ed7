//! Claims about rules whose answers are known by hand.

use admit_analysis::prove::{Inquiry, Question, Side, Subject, Verdict};
use serde_json::{Value, json};

use super::solvers::Program;

/// A definition with a field of each kind, and rules of its `spec`.
pub(super) fn definition(rules: &[&str]) -> Value {
    let rules: Vec<Value> = rules.iter().map(|rule| json!({"rule": rule})).collect();
    let text = || json!({"type": "string"});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "required": ["spec"],
                "properties": {"spec": {
                    "type": "object",
                    "required": ["must"],
                    "x-kubernetes-validations": rules,
                    "properties": {
                        "must": {"type": "integer", "minimum": -5, "maximum": 10},
                        "int": {"type": "integer"},
                        "other": {"type": "integer", "format": "int32"},
                        "even": {"type": "integer", "multipleOf": 2},
                        "some": {"type": "integer", "default": 3},
                        "text": {"type": "string", "maxLength": 8},
                        "more": {"type": "string", "maxLength": 4, "pattern": "^[a-c]*$"},
                        "mode": {"type": "string", "enum": ["On", "Off", "Auto"]},
                        "flag": {"type": "boolean"},
                        "port": {"x-kubernetes-int-or-string": true},
                        "null": {"type": "string", "nullable": true, "maxLength": 5},
                        "my-field": {"type": "string", "maxLength": 3},
                        "part": {"type": "object", "properties": {
                            "x": {"type": "integer"}, "t": {"type": "string", "maxLength": 3},
                        }},
                        "list": {"type": "array", "maxItems": 3, "items": {"type": "integer"}},
                        "tags": {"type": "array", "maxItems": 3, "x-kubernetes-list-type": "set",
                            "items": {"type": "string", "maxLength": 3}},
                        "keyed": {"type": "array", "maxItems": 3, "x-kubernetes-list-type": "map",
                            "x-kubernetes-list-map-keys": ["name"],
                            "items": {"type": "object", "required": ["name"], "properties": {
                                "name": {"type": "string", "maxLength": 3}, "size": {"type": "integer"}}}},
                        "map": {"type": "object", "maxProperties": 3, "additionalProperties": {"type": "integer"}},
                        "labels": {"type": "object", "maxProperties": 2, "additionalProperties": text()},
                        "any": {"type": "array", "items": {"type": "string", "maxLength": 5}},
                    },
                }},
            }}}],
        },
    })
}

fn ask(question: Question, left: &[&str], right: Option<&[&str]>, that: Option<&str>) -> Vec<(String, Verdict)> {
    let subject = Subject::new(&definition(&[]), None).expect("a definition");
    let left = Side::definition(&definition(left), &subject).expect("rules");
    let right = right.map(|right| Side::definition(&definition(right), &subject).expect("rules"));
    let inquiry =
        Inquiry { question, subject: &subject, left: &left, right: right.as_ref(), that, items: 3 };
    let decide = |mut solver: Program| {
        let verdict = inquiry.decide(Some(&mut solver), &|| false).expect("confirmed");
        (solver.name().to_owned(), verdict)
    };
    Program::installed().into_iter().map(decide).collect()
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Answer {
    Holds,
    UpTo,
    Refuted,
    Undecided,
}

fn answer(verdict: &Verdict) -> Answer {
    match verdict {
        Verdict::Holds { up_to: None } => Answer::Holds,
        Verdict::Holds { up_to: Some(_) } => Answer::UpTo,
        Verdict::Refuted(_) => Answer::Refuted,
        Verdict::Undecided(_) => Answer::Undecided,
    }
}

/// Every row, by every solver, with its known answer.
#[test]
fn answers_known_by_hand_are_given() {
    let rows = include_str!("../data/prove/pairs.tsv");
    let mut wrong = Vec::new();
    for row in rows.lines().filter(|row| !row.is_empty() && !row.starts_with('#')) {
        let cells: Vec<&str> = row.split('\t').collect();
        let (question, expected, left) = (cells[0], cells[1], cells[2]);
        let right = cells.get(3).copied().filter(|right| !right.is_empty());
        let that = cells.get(4).copied();
        let question = match question {
            "equivalent" => Question::Equivalent,
            "implies" => Question::Implies,
            "never-denies" => Question::NeverDenies,
            "always-denies" => Question::AlwaysDenies,
            "no-errors" => Question::NoErrors,
            other => panic!("{other}"),
        };
        let expected = match expected {
            "holds" => Answer::Holds,
            "up-to" => Answer::UpTo,
            "refuted" => Answer::Refuted,
            "undecided" => Answer::Undecided,
            other => panic!("{other}"),
        };
        for (solver, verdict) in ask(question, &[left], right.as_ref().map(std::slice::from_ref), that) {
            if answer(&verdict) != expected {
                wrong.push(format!("{solver}: {row}\n    {verdict:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
