//! What comes of a policy that matches: actions, failure policy, params, budgets.

use admit_policy::{Decision, Documents, Verdict};
use serde_json::json;

use crate::support::{request, set};

fn policy(spec: &str, binding: &str, beside: &str) -> String {
    format!(
        "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: p}}
spec:
  matchConstraints:
    resourceRules: [{{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [configmaps]}}]
  {spec}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: b}}
spec: {{policyName: p, {binding}}}
{beside}"
    )
}

fn decide(text: &str, name: &str) -> Decision {
    let set = set(text);
    let mut host: Documents = set.documents().clone();
    host.ensure_namespace("team");
    set.decide(&request(name, &json!({})), &host)
}

fn message(decision: &Decision) -> Option<&str> {
    decision.denial.as_ref().map(|denial| denial.message.as_str())
}

#[test]
fn a_denial_is_worded_as_kube_apiserver_words_it() {
    let text = policy(
        "validations: [{expression: object.metadata.name != 'bad', reason: Forbidden, message: refused}]",
        "validationActions: [Deny]",
        "",
    );
    let decision = decide(&text, "bad");
    let denial = decision.denial.expect("the name is bad");
    assert_eq!(denial.message, "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: refused");
    assert_eq!(denial.status.message, format!("configmaps \"bad\" is forbidden: {}", denial.message));
    assert_eq!((denial.status.code, &*denial.status.reason), (403, "Forbidden"));
    assert!(decide(&text, "good").allowed());
}

#[test]
fn a_binding_may_warn_and_audit_instead() {
    let text = policy(
        "validations: [{expression: 'false', message: refused}]",
        "validationActions: [Warn, Audit]",
        "",
    );
    let decision = decide(&text, "x");
    assert!(decision.allowed());
    assert_eq!(
        decision.warnings,
        ["Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': refused"]
    );
    assert_eq!(
        decision
            .audit_annotations
            .get("validation.policy.admission.k8s.io/validation_failure")
            .map(String::as_str),
        Some(
            r#"[{"message":"refused","policy":"p","binding":"b","expressionIndex":0,"validationActions":["Warn","Audit"]}]"#
        )
    );
}

#[test]
fn failure_policy_decides_about_errors_only() {
    for (failure_policy, allowed) in [("Fail", false), ("Ignore", true)] {
        let spec = format!(
            "failurePolicy: {failure_policy}\n  validations: [{{expression: object.data.missing == 'x', message: refused}}]"
        );
        let text = policy(&spec, "validationActions: [Deny]", "");
        assert_eq!(decide(&text, "x").allowed(), allowed, "{failure_policy}");
    }
}

#[test]
fn conditions_come_first_and_do_not_see_variables() {
    let conditional = |condition: &str| {
        policy(
            &format!(
                "matchConditions: [{{name: c, expression: {condition}}}]\n  validations: [{{expression: 'false'}}]"
            ),
            "validationActions: [Deny]",
            "",
        )
    };
    assert!(decide(&conditional("request.userInfo.username != 'alice'"), "x").allowed());
    assert!(!decide(&conditional("request.userInfo.username == 'alice'"), "x").allowed());
}

#[test]
fn a_namespace_shows_what_kubernetes_declares_of_it() {
    let beside = "---
apiVersion: v1
kind: Namespace
metadata: {name: team, labels: {tier: a}, managedFields: [{manager: m}], ownerReferences: []}
";
    let holds = |expression: &str| {
        let text = policy(
            &format!("validations: [{{expression: \"{expression}\", message: refused}}]"),
            "validationActions: [Deny]",
            beside,
        );
        decide(&text, "x").allowed()
    };
    assert!(holds("namespaceObject.metadata.labels.tier == 'a'"));
    assert!(holds("dyn(namespaceObject).all(k, k in ['metadata', 'spec', 'status'])"), "no kind among them");
    assert!(holds("dyn(namespaceObject).metadata.all(k, k in ['labels', 'name'])"));
    assert!(holds("size(dyn(namespaceObject).spec) == 0 && !has(namespaceObject.status.phase)"));
}

#[test]
fn variables_are_evaluated_when_used() {
    let text = policy(
        "variables:
  - {name: broken, expression: object.data.missing}
  - {name: upper, expression: object.metadata.name.upperAscii()}
  validations:
  - {expression: variables.upper != 'BAD' || variables.broken == 'x', message: refused}",
        "validationActions: [Deny]",
        "",
    );
    assert!(decide(&text, "good").allowed());
    assert_eq!(
        message(&decide(&text, "bad")),
        Some(
            "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: expression 'variables.upper != 'BAD' || \
             variables.broken == 'x'' resulted in error: composited variable \"broken\" fails to evaluate: no such \
             key: data"
        )
    );
}

#[test]
fn a_variable_that_refers_to_itself_is_an_error() {
    let text = policy(
        "variables: [{name: a, expression: '1'}, {name: a, expression: variables.a + 1}]
  validations: [{expression: variables.a == 2, message: refused}]",
        "validationActions: [Deny]",
        "",
    );
    let decision = decide(&text, "x");
    let message = message(&decision).expect("it cannot be decided");
    assert!(message.ends_with("composited variable \"a\" refers to itself"), "{message}");
}

#[test]
fn params_are_looked_up_where_the_binding_says() {
    let spec = "paramKind: {apiVersion: v1, kind: ConfigMap}
  validations: [{expression: object.metadata.name != params.data.reserved, message: reserved}]";
    let param = "---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: system}
data: {reserved: bad}";
    let named = |name: &str, action: &str| {
        let reference =
            format!("paramRef: {{name: {name}, namespace: system, parameterNotFoundAction: {action}}}");
        policy(spec, &format!("validationActions: [Deny], {reference}"), param)
    };
    assert!(!decide(&named("settings", "Deny"), "bad").allowed());
    assert!(decide(&named("settings", "Deny"), "good").allowed());
    assert!(decide(&named("absent", "Allow"), "bad").allowed());
    assert_eq!(
        message(&decide(&named("absent", "Deny"), "good")),
        Some(
            "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: failed to configure binding: no params \
             found for policy binding with `Deny` parameterNotFoundAction"
        )
    );
}

#[test]
fn a_message_that_cannot_be_used_gives_way() {
    for (expression, expected) in [
        ("\"'computed'\"", "computed"),
        ("\"'two\\\\nlines'\"", "plain"),
        ("\"'  '\"", "plain"),
        ("\"string(object.data.missing)\"", "plain"),
    ] {
        let spec = format!(
            "validations: [{{expression: 'false', message: plain, messageExpression: {expression}}}]"
        );
        let decision = decide(&policy(&spec, "validationActions: [Deny]", ""), "x");
        let message = message(&decision).expect("it is denied");
        assert!(message.ends_with(&format!("denied request: {expected}")), "{expression}: {message}");
    }
}

#[test]
fn configuration_of_admission_is_exempt() {
    let text = policy("validations: [{expression: 'false'}]", "validationActions: [Deny]", "")
        .replace("apiGroups: ['']", "apiGroups: ['*']")
        .replace("resources: [configmaps]", "resources: ['*']");
    let set = set(&text);
    let kind = "ValidatingAdmissionPolicy";
    let exempt = json!({
        "kind": {"group": "admissionregistration.k8s.io", "version": "v1", "kind": kind},
        "resource": {
            "group": "admissionregistration.k8s.io", "version": "v1", "resource": "validatingadmissionpolicies"
        },
        "namespace": "",
    });
    let decision = set.decide(&request("p", &exempt), set.documents());
    assert!(decision.allowed());
}

/// The messages of all validations have what the validations left of the budget; where that is not enough, none is told.
#[test]
fn messages_beyond_the_budget_are_errors_of_all_validations() {
    const COSTLY: usize = 30;
    let numbers: Vec<String> = (0..40).map(|number| number.to_string()).collect();
    let list = format!("[{}]", numbers.join(", "));
    // Each alone is within the limit of one expression.
    let costly = format!("{list}.all(a, {list}.all(b, {list}.all(c, a + b + c >= 0))) ? 'm' : 'n'");
    let refused = format!("\n  - {{expression: 'false', messageExpression: \"{costly}\"}}");
    let policy = |failure_policy: &str, count: usize| {
        let validations = format!("\n  - {{expression: 'true'}}{}", refused.repeat(count));
        let last = "\n  - {expression: 'object.absent == 1', message: own}";
        policy(
            &format!("failurePolicy: {failure_policy}\n  validations:{validations}{last}"),
            "validationActions: [Deny]",
            "",
        )
    };
    let beyond = "failed messageExpression: validation failed due to running out of cost budget, no further validation \
                  rules will be run";
    for (failure_policy, denies) in [("Fail", true), ("Ignore", false)] {
        let decision = decide(&policy(failure_policy, COSTLY), "x");
        assert_eq!(decision.allowed(), !denies);
        let rules = &decision.outcomes[0].rules;
        let (last, others) = rules.split_last().unwrap();
        let errored = Verdict::Errored { message: beyond.to_owned(), denies };
        assert_eq!(others.len(), COSTLY + 1);
        assert!(others.iter().all(|rule| rule.verdict == errored), "{others:?}");
        assert!(
            matches!(&last.verdict, Verdict::Errored { message, .. } if message.contains("no such key: absent"))
        );
    }
    let within = decide(&policy("Fail", 1), "x");
    let told = &within.outcomes[0].rules[1].verdict;
    assert!(matches!(told, Verdict::Failed { message, .. } if message == "m"), "{told:?}");
}

#[test]
fn failures_quote_expressions_as_they_are_written() {
    for spec in [
        "matchConditions: [{name: c, expression: TEXT}]\n  validations: [{expression: 'true'}]",
        "auditAnnotations: [{key: k, valueExpression: TEXT}]",
    ] {
        let written = if spec.starts_with('m') { "bool(object.data.a)" } else { "string(object.data.a)" };
        let spec = spec.replace("TEXT", &format!("\"\\n {written}\\n\""));
        let expected = format!(
            "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: expression '\n {written}\n' resulted in error: \
             no such key: data"
        );
        let decision = decide(&policy(&spec, "validationActions: [Deny]", ""), "x");
        assert_eq!(message(&decision), Some(expected.as_str()));
    }
}

#[test]
fn a_variable_that_holds_all_variables_is_equal_to_itself() {
    let said = |expression: &str| {
        let spec = format!(
            "variables: [{{name: v, expression: variables}}]\n  validations: [{{expression: \"{expression}\", message: refused}}]"
        );
        decide(&policy(&spec, "validationActions: [Deny]", ""), "x").allowed()
    };
    assert!(said("variables.v == variables.v && variables.v.v == variables"));
    assert!(!said("variables.v != variables"));
}

/// Each variable needs the one before it while it is evaluated: the stack grows with the chain, and the process lives.
#[test]
fn a_chain_of_variables_is_as_long_as_a_policy_can_be() {
    let mut variables = String::from("variables:\n  - {name: v0, expression: object.metadata.name}\n");
    for nth in 1..2_000 {
        let before = nth - 1;
        variables.push_str(&format!("  - {{name: v{nth}, expression: variables.v{before}}}\n"));
    }
    let rule = "  validations: [{expression: variables.v1999 == 'good'}]";
    let text = policy(&format!("{variables}{rule}"), "validationActions: [Deny]", "");
    assert!(decide(&text, "good").allowed());
    assert!(!decide(&text, "bad").allowed());
}
