//! Exceptions from policies: what they let through, what is told, and what is refused when they are loaded.

use std::time::{Duration, SystemTime};

use admit_policy::suite::{Suite, run};
use admit_policy::{Enforcement, LoadOptions, PolicySet, Request, manifest};
use serde_json::{Value, json};

const POLICY: &str = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: few}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}]
  validations:
  - {expression: object.spec.replicas <= 5, message: too many}
  - {expression: object.spec.paused == true, message: not paused}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: few}
spec: {policyName: few, validationActions: [Deny, Audit]}
";

fn exception(name: &str, spec: &str) -> String {
    format!("---\napiVersion: admit/v1\nkind: PolicyException\nmetadata: {{name: {name}}}\nspec: {spec}\n")
}

fn loaded(exceptions: &[String]) -> PolicySet {
    let text = format!("{POLICY}{}", exceptions.concat());
    let documents = manifest::read("policy.yaml", &text).expect("manifests");
    PolicySet::load(&documents).expect("policies").at(at(1_000_000))
}

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

fn request(change: impl Fn(&mut Value)) -> Request<'static> {
    let mut request = json!({
        "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
        "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
        "operation": "CREATE", "name": "web-1", "namespace": "shop",
        "userInfo": {"username": "system:serviceaccount:shop:importer"},
        "object": {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web-1"}, "spec": {"replicas": 9}},
    });
    change(&mut request);
    Request::from_value(&request).expect("a request")
}

const SPEC: &str = "{policies: [few], namespaces: [shop], names: ['web-*'], users: ['*:importer'], operations: [CREATE], \
                    until: '1970-01-20', reason: the sale}";

#[test]
fn only_what_is_named_is_let_through() {
    let set = loaded(&[exception("sale", SPEC)]);
    let allowed = |request: &Request<'_>| set.decide(request, set.documents()).allowed();
    assert!(allowed(&request(|_| ())));
    for (pointer, other) in
        [("/operation", "UPDATE"), ("/name", "db-1"), ("/namespace", "shop-2"), ("/userInfo/username", "ann")]
    {
        assert!(
            !allowed(&request(|request| *request.pointer_mut(pointer).unwrap() = other.into())),
            "{pointer}"
        );
    }
}

#[test]
fn what_is_let_through_is_told() {
    let set = loaded(&[exception("sale", SPEC)]);
    let decision = set.decide(&request(|_| ()), set.documents());
    let outcome = &decision.outcomes[0];
    // The denial is gone, and nothing else.
    assert_eq!(outcome.rules[0].enforced, [Enforcement::Audit]);
    assert_eq!(
        outcome.excepted.as_ref().unwrap().to_string(),
        "exception 'sale' lets it through until 1970-01-21T00:00:00Z: the sale"
    );
    assert_eq!(
        decision.warnings[0],
        "ValidatingAdmissionPolicy 'few' with binding 'few' would deny this request: too many; \
         exception 'sale' lets it through until 1970-01-21T00:00:00Z: the sale"
    );
    assert!(decision.audit_annotations.contains_key("exception.admit.dev/few"));
    // What is admitted anyway is no matter of exceptions.
    let fine = request(|request| request["object"]["spec"] = json!({"replicas": 1, "paused": true}));
    let decision = set.decide(&fine, set.documents());
    assert!(decision.allowed() && decision.warnings.is_empty() && decision.outcomes[0].excepted.is_none());
}

#[test]
fn an_exception_that_has_ended_is_told_with_the_denial() {
    let ended = "{policies: [few], until: '1970-01-02', reason: long ago}";
    let set = loaded(&[exception("old", ended)]);
    let decision = set.decide(&request(|_| ()), set.documents());
    assert_eq!(
        decision.denial.unwrap().message,
        "ValidatingAdmissionPolicy 'few' with binding 'few' denied request: too many"
    );
    assert_eq!(decision.outcomes[0].rules[0].enforced, [Enforcement::Deny, Enforcement::Audit]);
    assert_eq!(
        decision.warnings,
        ["ValidatingAdmissionPolicy 'few' with binding 'few' denies this request: its exception has ended; \
          exception 'old' let it through until 1970-01-03T00:00:00Z: long ago"]
    );
    // One in force wins, whatever its name.
    let set = loaded(&[exception("old", ended), exception("young", SPEC)]);
    assert!(set.decide(&request(|_| ()), set.documents()).allowed());
}

#[test]
fn suites_say_when_it_is() {
    let set = loaded(&[exception("sale", SPEC)]);
    let case = |now: &str, expect: Value| {
        json!({
            "name": now, "now": now, "namespace": "shop", "user": "a:importer", "expect": expect,
            "object": {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web-1"}, "spec": {"replicas": 9}},
        })
    };
    let suite = json!({"apiVersion": "admit/v1", "kind": "Suite", "cases": [
        case("1970-01-20T23:59:59Z", json!({"outcome": "warn", "message": "too many; exception 'sale' lets it through until 1970-01-21T00:00:00Z: the sale"})),
        case("1970-01-21T00:00:00Z", json!({"outcome": "deny", "message": "too many"})),
    ]});
    for case in Suite::decode(&suite).unwrap().cases {
        let result = run(&case, &set);
        assert!(result.passed(), "{}: {:?}", case.name, result.mismatches);
    }
    let wrong = json!({"apiVersion": "admit/v1", "kind": "Suite", "cases": [case("today", json!("deny"))]});
    assert!(
        Suite::decode(&wrong).unwrap_err().to_string().starts_with("cases[0].now: `today` must be a time")
    );
}

const LABELLED: &str = r#"
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: labelled}
spec:
  reinvocationPolicy: IfNeeded
  matchConstraints:
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}]
  matchConditions: [{name: not-small, expression: object.spec.replicas > 1}]
  mutations:
  - patchType: JSONPatch
    jsonPatch: {expression: '[JSONPatch{op: "add", path: "/spec/paused", value: object.spec.missing}]'}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: labelled}
spec: {policyName: labelled}
"#;

/// Nothing is changed, and nothing is denied: the policy fails on every object that it sees.
#[test]
fn policies_that_change_objects_are_passed_by() {
    let spec = SPEC.replace("few", "labelled");
    let text = format!("{LABELLED}{}", exception("sale", &spec));
    let set = PolicySet::load(&manifest::read("policy.yaml", &text).expect("manifests")).expect("policies");
    let case = |name: &str, now: &str, replicas: u64, expect: Value| {
        json!({
            "name": format!("{name} {now} {replicas}"), "now": now, "namespace": "shop", "user": "a:importer", "expect": expect,
            "object": {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {"replicas": replicas}},
        })
    };
    let told = "exception 'sale' lets it through until 1970-01-21T00:00:00Z: the sale";
    let suite = json!({"apiVersion": "admit/v1", "kind": "Suite", "cases": [
        case("web-1", "1970-01-20T00:00:00Z", 9, json!({"outcome": "warn", "message": told, "object": {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web-1"}, "spec": {"replicas": 9}}})),
        case("web-1", "1970-01-21T00:00:00Z", 9, json!("error")),
        case("db-1", "1970-01-20T00:00:00Z", 9, json!("error")),
        // A condition that does not hold is why it is not asked.
        case("web-1", "1970-01-20T00:00:00Z", 1, json!("unmatched")),
    ]});
    for case in Suite::decode(&suite).unwrap().cases {
        let result = run(&case, &set);
        assert!(result.passed(), "{}: {:?} {}", case.name, result.mismatches, result.message);
    }
}

#[test]
fn mistakes_are_told_at_their_lines() {
    let told = |exceptions: &str| {
        let text = format!("{POLICY}{exceptions}");
        let errors = PolicySet::load_files([("p.yaml", text.as_str())], LoadOptions::default())
            .err()
            .unwrap_or_default();
        errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(told(&exception("a", SPEC)), "");
    let named = told(&exception("a", "{policies: [fewer], until: '2026-12-31', reason: r}"));
    assert!(
        named.contains("spec.policies[0]")
            && named
                .contains("there is no ValidatingAdmissionPolicy or MutatingAdmissionPolicy of this name"),
        "{named}"
    );
    let slip = told(&exception("a", "{policies: [few], untill: '2026-12-31', reason: r}"));
    assert!(slip.contains("spec.untill: unknown field; did you mean `until`?"), "{slip}");
    let kind = told(&exception("a", SPEC).replace("PolicyException", "PolicyExcepton"));
    assert!(kind.contains("did you mean `PolicyException`?"), "{kind}");
    let version = told(&exception("a", SPEC).replace("admit/v1", "admit/v2"));
    assert!(version.contains("this version is not read"), "{version}");
}
