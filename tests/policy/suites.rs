//! What a declared case means.

use admit_policy::suite::{self, Outcome, Suite};

use crate::support::{set, yaml};

const POLICY: &str = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}]
  validations: [{expression: object.data.v != 'bad', message: v is bad}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: b}
spec: {policyName: p, validationActions: [Deny]}
";

/// The outcome of one case, and what differs.
fn run(case: &str) -> (Outcome, Vec<&'static str>) {
    let text = format!(
        "
apiVersion: admit/v1
kind: Suite
defaults:
  object: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: x, namespace: team}}, data: {{v: good}}}}
cases:
- {{name: it, {case}}}"
    );
    let suite = Suite::decode(&yaml(&text)[0]).expect("the suite is right");
    let result = suite::run(&suite.cases[0], &set(POLICY));
    (result.outcome, result.mismatches.iter().map(|mismatch| mismatch.what).collect())
}

#[test]
fn outcomes() {
    let none: Vec<&str> = Vec::new();
    assert_eq!(run("expect: allow"), (Outcome::Allow, none.clone()));
    assert_eq!(
        run("object: {data: {v: bad}}, expect: {outcome: deny, message: v is bad}"),
        (Outcome::Deny, none.clone())
    );
    assert_eq!(run("object: {data: {v: bad}}, expect: allow"), (Outcome::Deny, vec!["outcome"]));
    assert_eq!(run("object: {data: null}, expect: error"), (Outcome::Error, none.clone()));
    assert_eq!(run("object: {data: null}, expect: deny"), (Outcome::Error, vec!["outcome"]));
    assert_eq!(run("resource: secrets, expect: unmatched"), (Outcome::Unmatched, none));
}

#[test]
fn a_case_that_reached_no_rule_does_not_pass() {
    assert_eq!(run("resource: confgmaps, expect: allow"), (Outcome::Unmatched, vec!["outcome"]));
    assert_eq!(run("policies: [q], expect: allow"), (Outcome::Unmatched, vec!["outcome"]));
    assert_eq!(run("operation: DELETE, expect: allow"), (Outcome::Unmatched, vec!["outcome"]));
}

#[test]
fn texts_are_compared_as_asked() {
    let bad = "object: {data: {v: bad}}, expect: {outcome: deny, ";
    for (message, differs) in [
        ("message: {contains: is}}", false),
        ("message: {regex: '^v .* bad$'}}", false),
        ("message: {regex: '^bad'}}", true),
        ("message: v is}", true),
        ("reason: Forbidden}", true),
        ("reason: Invalid}", false),
        ("field: 'spec.validations[0]'}", false),
    ] {
        let (outcome, mismatches) = run(&format!("{bad}{message}"));
        assert_eq!((outcome, !mismatches.is_empty()), (Outcome::Deny, differs), "{message}");
    }
}

#[test]
fn mistakes_in_suites_are_named() {
    for (text, expected) in [
        ("{apiVersion: admit/v2, kind: Suite}", "apiVersion: must be `admit/v1`, not `admit/v2`"),
        ("{apiVersion: admit/v1, kind: Suite}", "cases: must have at least one case"),
        (
            "{apiVersion: admit/v1, kind: Suite, cases: [{name: a, expect: allow}]}",
            "cases[0]: must have `object`, `oldObject` or both",
        ),
        (
            "{apiVersion: admit/v1, kind: Suite, cases: [{name: a, object: {}, expect: pass}]}",
            "cases[0].expect: `pass` is not one of allow, deny, warn, audit, unmatched, error",
        ),
        (
            "{apiVersion: admit/v1, kind: Suite, cases: [{name: a, object: {}, expects: allow}]}",
            "cases[0].expects: is not a field here; these are: name, policies, operation, resource, subresource, \
             namespace, object, oldObject, options, dryRun, user, params, namespaces, expect",
        ),
    ] {
        let error = Suite::decode(&yaml(text)[0]).expect_err(expected);
        assert_eq!(error.to_string(), expected);
    }
}
