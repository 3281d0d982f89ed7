//! Which requests policies are asked about, and what of an object each of them writes.

use admit_analysis::prove::{Counterexample, Inquiry, Question, Side, Subject, Verdict};
use admit_apiserver::BuiltinKinds;
use admit_policy::GroupVersionKind;
use serde_json::json;

use super::builtin::policy;
use super::solvers::Program;

fn pods() -> Subject {
    Subject::builtin(&BuiltinKinds, &GroupVersionKind::new("", "v1", "Pod")).expect("built in")
}

/// A kind whose status is written by requests of its own.
fn things() -> Subject {
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
        "status": {"type": "object", "properties": {"size": {"type": "integer"}}},
    }});
    let mut definition = testing::definition("things.example.com", "Thing", "Namespaced", &schema);
    definition["spec"]["versions"][0]["subresources"] = json!({"status": {}});
    Subject::new(&definition, None).expect("a definition")
}

/// What a policy says of objects, asked of the requests that it matches.
fn never_denies(
    subject: &Subject,
    operations: &[&str],
    resources: &[&str],
    expression: &str,
) -> Vec<Verdict> {
    let mut policy = policy(subject, expression);
    let rule = &mut policy["spec"]["matchConstraints"]["resourceRules"][0];
    (rule["operations"], rule["resources"]) = (json!(operations), json!(resources));
    let left = Side::policy(&policy, subject).expect("a policy");
    let inquiry =
        Inquiry { question: Question::NeverDenies, subject, left: &left, right: None, that: None, items: 3 };
    let ask = |mut solver: Program| inquiry.decide(Some(&mut solver), &|| false).expect("confirmed");
    Program::installed().into_iter().map(ask).collect()
}

fn holds(subject: &Subject, operations: &[&str], resources: &[&str], expression: &str) {
    for verdict in never_denies(subject, operations, resources, expression) {
        assert!(matches!(verdict, Verdict::Holds { .. }), "{verdict:?}");
    }
}

fn refuted(
    subject: &Subject,
    operations: &[&str],
    resources: &[&str],
    expression: &str,
) -> Vec<Counterexample> {
    let verdicts = never_denies(subject, operations, resources, expression).into_iter();
    let found = verdicts.map(|verdict| match verdict {
        Verdict::Refuted(found) => *found,
        other => panic!("{other:?}"),
    });
    found.collect()
}

#[test]
fn nobody_creates_a_status() {
    holds(&things(), &["CREATE"], &["things"], "!has(object.status)");
    // Nor that of a pod, but for what the server sets.
    holds(&pods(), &["CREATE"], &["pods"], "!has(object.status.podIP)");
    for verdict in never_denies(&pods(), &["CREATE"], &["pods"], "!has(object.status.phase)") {
        assert!(matches!(verdict, Verdict::Refuted(_)), "{verdict:?}");
    }
}

#[test]
fn a_status_is_written_by_requests_of_its_own() {
    const STATUS: &str = "!has(object.status) || !has(oldObject.status) || object.status == oldObject.status";
    const SPEC: &str = "!has(object.spec) || !has(oldObject.spec) || object.spec == oldObject.spec";
    let things = things();
    holds(&things, &["UPDATE"], &["things"], STATUS);
    holds(&things, &["UPDATE"], &["things/status"], SPEC);
    for (resources, expression, way) in [
        (&["things/status"][..], STATUS, "status"),
        (&["things"], SPEC, ""),
        (&["things", "things/status"], STATUS, "status"),
        (&["things", "things/status"], SPEC, ""),
    ] {
        for found in refuted(&things, &["UPDATE"], resources, expression) {
            assert_eq!(found.subresource, way, "{found:?}");
            let old = found.old_object.expect("there is one");
            let stays = if way == "status" { "spec" } else { "status" };
            assert_eq!(found.object.get(stays), old.get(stays), "{stays}");
        }
    }
}

#[test]
fn objects_are_written_through_subresources_of_their_kind() {
    let debugs = "!has(object.spec.ephemeralContainers)";
    for verdict in never_denies(&pods(), &["UPDATE"], &["pods/ephemeralcontainers"], debugs) {
        let Verdict::Refuted(found) = verdict else { panic!("{verdict:?}") };
        assert_eq!(found.subresource, "ephemeralcontainers");
        assert!(found.object["spec"]["ephemeralContainers"][0]["name"].is_string(), "{found:?}");
        assert!(found.old_object.expect("there is one")["spec"].get("ephemeralContainers").is_none());
    }
    // Nobody may say so on creation, and nothing here knows.
    for verdict in never_denies(&pods(), &["CREATE"], &["pods", "pods/ephemeralcontainers"], debugs) {
        assert!(matches!(verdict, Verdict::Undecided(_)), "{verdict:?}");
    }
    // What is sent there is no Pod.
    for verdict in never_denies(&pods(), &["CREATE"], &["pods/eviction"], debugs) {
        let Verdict::Undecided(why) = verdict else { panic!("{verdict:?}") };
        assert_eq!(why[0].what, "requests to pods/eviction");
    }
    // A rule about other kinds says nothing of pods.
    for verdict in never_denies(&pods(), &["DELETE"], &["secrets"], "false") {
        assert!(matches!(verdict, Verdict::Holds { up_to: None }), "{verdict:?}");
    }
}
