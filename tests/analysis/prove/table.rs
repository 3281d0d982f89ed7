//! Claims about rules whose answers are known by hand.

use std::collections::BTreeMap;

use admit_analysis::prove::{Inquiry, Question, Side, Solver, SolverError, Subject, Unconfirmed, Verdict};
use serde_json::{Value, json};

use super::solvers::{Program, tell};

/// A definition with a field of each kind, and rules of its `spec`.
pub(super) fn definition(rules: &[&str]) -> Value {
    let mut definition: Value =
        serde_json::from_str(include_str!("../data/prove/things.json")).expect("a definition");
    let spec = definition.pointer_mut("/spec/versions/0/schema/openAPIV3Schema/properties/spec");
    let rules: Vec<Value> = rules.iter().map(|rule| json!({"rule": rule})).collect();
    spec.expect("a spec")["x-kubernetes-validations"] = rules.into();
    definition
}

fn ask(
    question: Question,
    left: &[&str],
    right: Option<&[&str]>,
    that: Option<&str>,
) -> Vec<(String, Verdict)> {
    let subject = Subject::new(&definition(&[]), None).expect("a definition");
    let left = Side::definition(&definition(left), &subject).expect("rules");
    let right = right.map(|right| Side::definition(&definition(right), &subject).expect("rules"));
    let inquiry = Inquiry { question, subject: &subject, left: &left, right: right.as_ref(), that, items: 3 };
    let decide = |mut solver: Program| {
        let verdict = inquiry.decide(Some(&mut solver), &|| false).expect("confirmed");
        (solver.name(), verdict)
    };
    Program::installed().into_iter().map(decide).collect()
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Answer {
    Holds,
    UpTo,
    Refuted,
    Undecided,
}

pub(super) fn answer(verdict: &Verdict) -> Answer {
    match verdict {
        Verdict::Holds { up_to: None } => Answer::Holds,
        Verdict::Holds { up_to: Some(_) } => Answer::UpTo,
        Verdict::Refuted(_) => Answer::Refuted,
        Verdict::Undecided(_) => Answer::Undecided,
    }
}

/// A claim and its answer by their names in the data.
pub(super) fn named(question: &str, answer: &str) -> (Question, Answer) {
    let question = match question {
        "equivalent" => Question::Equivalent,
        "implies" => Question::Implies,
        "never-denies" => Question::NeverDenies,
        "always-denies" => Question::AlwaysDenies,
        "no-errors" => Question::NoErrors,
        other => panic!("{other}"),
    };
    let answer = match answer {
        "holds" => Answer::Holds,
        "up-to" => Answer::UpTo,
        "refuted" => Answer::Refuted,
        "undecided" => Answer::Undecided,
        other => panic!("{other}"),
    };
    (question, answer)
}

/// Whether a solver did not answer.
pub(super) fn gave_up(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Undecided(why) if why.iter().any(|one| one.what.contains("the solver")))
}

/// Every row, by every solver, with its known answer; of `ADMIT_FIRST` the ones before are left out.
#[test]
fn answers_known_by_hand_are_given() {
    let rows = include_str!("../data/prove/pairs.tsv");
    let (mut wrong, mut silent, mut total) = (Vec::new(), BTreeMap::<String, usize>::new(), 0);
    let first = std::env::var("ADMIT_FIRST").ok().and_then(|first| first.parse().ok()).unwrap_or(0);
    for row in rows.lines().filter(|row| !row.is_empty() && !row.starts_with('#')).skip(first) {
        let cells: Vec<&str> = row.split('\t').collect();
        let (question, expected, left) = (cells[0], cells[1], cells[2]);
        let right = cells.get(3).copied().filter(|right| !right.is_empty());
        let that = cells.get(4).copied();
        let (question, expected) = named(question, expected);
        total += 1;
        let asked = ask(question, &[left], right.as_ref().map(std::slice::from_ref), that);
        // What one solver is silent about, the other one answers.
        if !asked.is_empty() && asked.iter().all(|(_, verdict)| gave_up(verdict)) {
            wrong.push(format!("{row}\n    no solver answers"));
        }
        for (solver, verdict) in asked {
            if gave_up(&verdict) {
                tell(&format!("{solver} is silent: {row}"));
                *silent.entry(solver).or_default() += 1;
            } else if answer(&verdict) != expected {
                wrong.push(format!("{solver}: {row}\n    {verdict:?}"));
            }
        }
    }
    tell(&format!("{total} rows; not answered: {silent:?}"));
    let most = total / 20;
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(silent.values().all(|silent| *silent <= most), "{silent:?} of {total} are not answered");
}

/// A solver that finds whatever it is asked for.
struct Liar;

impl Solver for Liar {
    fn ask(&mut self, _: &str) -> Result<String, SolverError> {
        Ok("sat\n(error \"no values\")\nsat\n".to_owned())
    }
}

fn decided(question: Question, rule: &str, solver: Option<&mut dyn Solver>) -> Result<Verdict, Unconfirmed> {
    decided_within(question, rule, solver, &|| false)
}

fn decided_within(
    question: Question,
    rule: &str,
    solver: Option<&mut dyn Solver>,
    over: &dyn Fn() -> bool,
) -> Result<Verdict, Unconfirmed> {
    let subject = Subject::new(&definition(&[]), None).expect("a definition");
    let left = Side::definition(&definition(&[rule]), &subject).expect("rules");
    let inquiry = Inquiry { question, subject: &subject, left: &left, right: None, that: None, items: 3 };
    inquiry.decide(solver, over)
}

/// What it printed may be half of a model, which is no fault of the encoding.
#[test]
fn a_model_that_is_cut_off_by_time_is_undecided() {
    let verdict = decided_within(Question::NeverDenies, "self.must < 100", Some(&mut Liar), &|| true);
    let Ok(Verdict::Undecided(why)) = verdict else { panic!("{verdict:?}") };
    assert_eq!(why[0].what, "the solver did not answer in time");
}

#[test]
fn what_the_engine_does_not_confirm_is_no_counterexample() {
    let verdict = decided(Question::NeverDenies, "self.must < 100", Some(&mut Liar));
    assert!(verdict.is_err(), "{verdict:?}");
}

#[test]
fn a_counterexample_is_small() {
    for mut solver in Program::installed() {
        let rule = "!has(self.list) || self.list.exists(x, x > 1000) || size(self.list) < 2";
        let verdict = decided(Question::NeverDenies, rule, Some(&mut solver)).expect("confirmed");
        let Verdict::Refuted(found) = verdict else { panic!("{verdict:?}") };
        let expected = json!({"must": 0, "some": 0, "list": [0, 0]});
        assert_eq!(found.object["spec"], expected, "{}", solver.name());
    }
}

/// Three items are modelled, and these rules name more.
#[test]
fn longer_lists_than_are_modelled_are_tried() {
    let with_list = |rules: &[&str]| {
        let mut definition = definition(rules);
        let spec =
            definition.pointer_mut("/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties");
        spec.expect("a spec")["many"] =
            json!({"type": "array", "maxItems": 50, "items": {"type": "string", "maxLength": 8}});
        definition
    };
    let subject = Subject::new(&with_list(&[]), None).expect("a definition");
    let differ =
        "!has(self.many) || !self.many.all(x, self.many.exists_one(y, x == y)) || self.many.size() != 12";
    for (rule, length) in [
        ("!has(self.many) || size(self.many) < 20", Some(20)),
        ("!has(self.many) || self.many.size() <= 30", Some(31)),
        (differ, Some(12)),
        ("!has(self.many) || size(self.many) <= 50", None),
    ] {
        let left = Side::definition(&with_list(&[rule]), &subject).expect("rules");
        let question = Question::NeverDenies;
        let inquiry = Inquiry { question, subject: &subject, left: &left, right: None, that: None, items: 3 };
        for mut solver in Program::installed() {
            match inquiry.decide(Some(&mut solver), &|| false).expect("confirmed") {
                Verdict::Refuted(found) => {
                    let many = found.object["spec"]["many"].as_array().map(Vec::len);
                    assert_eq!(many, length, "{}: {rule}", solver.name());
                }
                verdict => assert!(
                    length.is_none() && verdict == Verdict::Holds { up_to: Some(3) },
                    "{}: {rule}: {verdict:?}",
                    solver.name()
                ),
            }
        }
    }
}

#[test]
fn without_a_solver_a_claim_may_be_refuted_and_is_never_proved() {
    let refuted = decided(Question::NeverDenies, "self.must < 10", None).expect("confirmed");
    assert!(matches!(&refuted, Verdict::Refuted(found) if found.object["spec"]["must"] == 10), "{refuted:?}");
    let open = decided(Question::NeverDenies, "self.must < 11", None).expect("nothing to confirm");
    let Verdict::Undecided(why) = open else { panic!("{open:?}") };
    assert!(why[0].what.starts_with("no solver; none of "), "{why:?}");
}

/// No rule looks at the list that every object has: fewer items would do. Alternatives may ask for more of them where something
/// else is so, and then it is not known.
#[test]
fn lists_that_only_complete_an_object_bound_nothing() {
    let answers = |alternatives: Option<Value>| {
        let definition = |rule: &str| {
            let mut definition = definition(&[]);
            let spec = definition.pointer_mut("/spec/versions/0/schema/openAPIV3Schema/properties/spec");
            let spec = spec.expect("a spec");
            *spec = json!({
                "type": "object",
                "required": ["names", "size"],
                "properties": {
                    "names": {"type": "array", "items": {"type": "string"}},
                    "size": {"type": "integer", "minimum": 0},
                },
                "x-kubernetes-validations": [{"rule": rule}],
            });
            if let Some(alternatives) = &alternatives {
                spec["anyOf"] = alternatives.clone();
            }
            definition
        };
        let subject = Subject::new(&definition("true"), None).expect("a definition");
        let side = |rule: &str| Side::definition(&definition(rule), &subject).expect("rules");
        let (left, right) = (side("self.size >= 0"), side("true"));
        let question = Question::Equivalent;
        let inquiry =
            Inquiry { question, subject: &subject, left: &left, right: Some(&right), that: None, items: 3 };
        let decide =
            |mut solver: Program| answer(&inquiry.decide(Some(&mut solver), &|| false).expect("confirmed"));
        Program::installed().into_iter().map(decide).collect::<Vec<Answer>>()
    };
    assert!(answers(None).iter().all(|answer| *answer == Answer::Holds), "{:?}", answers(None));
    let many = json!([{"properties": {"names": {"minItems": 5}}}, {"properties": {"size": {"maximum": 0}}}]);
    let found = answers(Some(many));
    assert!(found.iter().all(|answer| *answer == Answer::UpTo), "{found:?}");
}
