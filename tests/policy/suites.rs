//! What a declared case means.

use admit_policy::suite::{self, CaseResult, Outcome, Suite};

use crate::support::{denying, set, widgets, widgets_of, yaml};

const SPEC: &str = "  matchConstraints:
    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}]
  validations: [{expression: object.data.v != 'bad', message: v is bad}]";

/// What comes of one case, YAML in flow style, under the policy of a spec.
fn result_of(case: &str, spec: &str) -> CaseResult {
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
    suite::run(&suite.cases[0], &set(&denying(spec)))
}

/// The outcome of one case, and what differs.
fn run(case: &str) -> (Outcome, Vec<&'static str>) {
    let result = result_of(case, SPEC);
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
             namespace, requestName, object, oldObject, patch, patchType, options, dryRun, user, groups, params, namespaces, \
             authorizer, now, expect",
        ),
        (
            "{apiVersion: admit/v1, kind: Suite, cases: [{name: a, oldObject: {}, patch: {a: 1}, patchType: json}]}",
            "cases[0].patch: must be a list of operations, each with `op` and `path`",
        ),
        (
            "{apiVersion: admit/v1, kind: Suite, cases: [{name: a, oldObject: {}, patch: [], patchType: merge}]}",
            "cases[0].patch: must be a map of what changes",
        ),
        (
            "{apiVersion: admit/v1, kind: Suite, cases: [{name: a, oldObject: {}, patch: 1}]}",
            "cases[0].patch: must be a map of what changes, or a list of operations",
        ),
        (
            "{apiVersion: admit/v1, kind: Suite, cases: [{name: a, oldObject: {}, patch: {}, patchType: apply}]}",
            "cases[0].patch: patchType `apply` is not one of json, merge, strategic",
        ),
        (
            "{apiVersion: admit/v1, kind: Suite, cases: [{name: a, oldObject: {apiVersion: a.b/v1, kind: C}, \
             patch: {}, patchType: strategic}]}",
            "cases[0].patch: a.b/v1 C is no built-in kind: only those have strategic merge patches",
        ),
        (
            "{apiVersion: admit/v1, kind: Suite, cases: [{name: a, oldObject: {}, \
             patch: [{op: add, path: /a, value: 1}, {op: remove, path: /b}]}]}",
            "cases[0].patch: operation 1 at /b: path is invalid",
        ),
    ] {
        let error = Suite::decode(&yaml(text)[0]).expect_err(expected);
        assert_eq!(error.to_string(), expected);
    }
}

/// A policy that tells by its message what it saw.
const TELLING: &str = "  matchConstraints:
    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [configmaps]}]
  validations: [{expression: 'false', messageExpression: EXPRESSION}]";

/// What `case` makes of a policy whose message is `expression`.
fn seen(case: &str, expression: &str) -> String {
    let spec = TELLING.replace("EXPRESSION", &format!("\"string({expression})\""));
    result_of(&format!("expect: deny, {case}"), &spec).message
}

#[test]
fn requests_are_made_of_what_cases_say() {
    let old = "oldObject: {apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {v: old, w: kept}}";
    for (case, expression, expected) in [
        (format!("{old}, patch: {{data: {{v: new}}}}"), "object.data.v + object.data.w", "newkept"),
        (format!("{old}, patch: {{data: {{v: new}}}}, patchType: merge"), "object.data.v", "new"),
        (format!("{old}, patch: [{{op: replace, path: /data/n, value: new}}]"), "object.data.n", "new"),
        (format!("{old}, patch: {{data: {{v: null}}}}"), "has(object.data.v)", "false"),
        (
            format!("{old}, patch: [{{op: replace, path: /data/v, value: new}}]"),
            "oldObject.data.v + object.data.v",
            "oldnew",
        ),
        (
            "patch: [{op: add, path: /data/x, value: more}]".to_owned(),
            "request.operation + object.data.x",
            "CREATEmore",
        ),
        ("user: eve, groups: [a, b]".to_owned(), "request.userInfo.groups.join(',')", "a,b"),
        ("user: {groups: [a]}, groups: [b]".to_owned(), "request.userInfo.groups.join(',')", "a,b"),
    ] {
        assert_eq!(seen(&case, expression), expected, "{case}");
    }
}

#[test]
fn the_authorizer_answers_as_written() {
    let answers = "authorizer: [{verb: get, resource: pods, namespace: a, allowed: true}, {path: /healthz, user: eve, \
                   allowed: true}]";
    let of_pods = |namespace: &str| {
        format!("authorizer.group('').resource('pods').namespace('{namespace}').check('get').allowed()")
    };
    let of_path = "authorizer.path('/healthz').check('get').allowed()".to_owned();
    for (case, expression, expected) in [
        (answers.to_owned(), of_pods("a"), Outcome::Allow),
        (answers.to_owned(), of_pods("b"), Outcome::Deny),
        (answers.to_owned(), of_path.clone(), Outcome::Deny),
        (format!("user: eve, {answers}"), of_path.clone(), Outcome::Allow),
        ("user: eve".to_owned(), of_path, Outcome::Deny),
    ] {
        let spec = TELLING.replace(
            "expression: 'false', messageExpression: EXPRESSION",
            &format!("expression: \"{expression}\""),
        );
        let object = "object: {apiVersion: v1, kind: ConfigMap, metadata: {name: x}}";
        let text = format!(
            "apiVersion: admit/v1\nkind: Suite\ncases: [{{name: it, expect: allow, {object}, {case}}}]"
        );
        let suite = Suite::decode(&yaml(&text)[0]).expect("the suite is right");
        let result = suite::run(&suite.cases[0], &set(&denying(&spec)));
        assert_eq!(result.outcome, expected, "{case}: {expression}: {}", result.message);
    }
}

/// A definition that complains of three things: what a case expects of field, message and cause is one of them.
#[test]
fn one_complaint_has_all_that_is_expected() {
    let properties = "          a: {type: integer, x-kubernetes-validations: [{rule: self > 9, message: too small, reason: FieldValueForbidden}]}
          b: {type: integer, x-kubernetes-validations: [{rule: self > 9, message: too low}]}
          c: {type: string, x-kubernetes-validations: [{rule: self == 'c', message: too odd}]}
";
    let set = set(&widgets_of(properties));
    for (expected, differs) in [
        ("field: a, message: 'Forbidden: too small', reason: FieldValueForbidden", vec![]),
        ("field: b, message: {contains: too low}, reason: FieldValueInvalid", vec![]),
        ("message: {contains: too low}, reason: Invalid", vec![]),
        ("field: a, message: {contains: too low}", vec!["message"]),
        ("field: b, reason: FieldValueForbidden", vec!["reason"]),
        ("field: d, message: {contains: too odd}", vec!["field"]),
        ("message: {contains: too odd}, reason: FieldValueForbidden", vec!["reason"]),
        ("reason: Forbidden", vec!["reason"]),
    ] {
        let text = format!(
            "apiVersion: admit/v1\nkind: Suite\ncases:\n- name: it\n  object: {{apiVersion: example.com/v1, kind: \
             Widget, metadata: {{name: x, namespace: team}}, a: 1, b: 2, c: d}}\n  expect: {{outcome: deny, {expected}}}"
        );
        let suite = Suite::decode(&yaml(&text)[0]).expect("the suite is right");
        let result = suite::run(&suite.cases[0], &set);
        let (found, told) = (result.mismatches, result.message);
        let found: Vec<&str> = found.iter().map(|mismatch| mismatch.what).collect();
        assert_eq!(found, differs, "{expected}: {told}");
    }
}

#[test]
fn objects_of_subresources_imply_where_they_go() {
    for (case, expected) in [
        ("object: {apiVersion: policy/v1, kind: Eviction}", "CREATE /v1/pods/eviction"),
        ("object: {apiVersion: v1, kind: Binding}", "CREATE /v1/pods/binding"),
        ("object: {apiVersion: v1, kind: PodExecOptions, stdin: true}", "CONNECT /v1/pods/exec"),
        (
            "object: {apiVersion: authentication.k8s.io/v1, kind: TokenRequest}",
            "CREATE /v1/serviceaccounts/token",
        ),
        (
            "object: {apiVersion: autoscaling/v1, kind: Scale}, resource: deployments.apps, subresource: scale, \
             operation: UPDATE, oldObject: {apiVersion: autoscaling/v1, kind: Scale}",
            "UPDATE apps/v1/deployments/scale",
        ),
        (
            "object: {apiVersion: example.com/v1alpha1, kind: X}, resource: gadgets.example.com, subresource: parts",
            "CREATE example.com/v1alpha1/gadgets/parts",
        ),
        (
            "object: {apiVersion: autoscaling/v1, kind: Scale}, resource: widgets.example.com, subresource: scale",
            "CREATE example.com/v1beta3/widgets/scale",
        ),
        (
            "object: {apiVersion: v1, kind: X}, resource: gadgets.v1beta1.example.com, subresource: parts",
            "CREATE example.com/v1beta1/gadgets/parts",
        ),
    ] {
        let text = format!("apiVersion: admit/v1\nkind: Suite\ncases:\n- {{name: it, expect: deny, {case}}}");
        let suite = Suite::decode(&yaml(&text)[0]).expect("the suite is right");
        let all = "request.operation + ' ' + request.resource.group + '/' + request.resource.version + '/' + \
                   request.resource.resource + '/' + request.subResource";
        let anything =
            "resourceRules: [{apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*/*']}]";
        let spec = format!(
            "  matchConstraints: {{{anything}}}\n  validations: [{{expression: 'false', messageExpression: \"{all}\"}}]"
        );
        let schema = "{schema: {openAPIV3Schema: {type: object}}, served: true";
        let versions = format!(
            "  versions: [{schema}, name: v1beta4, storage: false}}, {schema}, name: v1beta3, storage: true}}]"
        );
        let set = set(&format!("{}---{}", denying(&spec), widgets(&versions)));
        assert_eq!(suite::run(&suite.cases[0], &set).message, expected, "{case}");
    }
}
