//! Exceptions that a cluster stores: whom they are about, what their definitions take, and what comes of it where they are not known.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use admit_policy::suite::{Suite, run};
use admit_policy::{
    Access, AccessAttributes, Exceptions, GroupVersionKind, GroupVersionResource, Host, HostError,
    LoadOptions, PolicyException, PolicySet, Request, Scope, UserInfo, manifest,
};
use serde_json::{Value, json};

use crate::shipped::root;

const POLICY: &str = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: none}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*']}]
  validations: [{expression: 'false', message: nothing at all}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: none}
spec: {policyName: none, validationActions: [Deny]}
";

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000)
}

fn document(kind: &str, metadata: &Value, more: &Value) -> Value {
    let mut spec = json!({"policies": ["none"], "until": "2999-12-31", "reason": "r"});
    for (field, value) in more.as_object().expect("fields") {
        spec[field] = value.clone();
    }
    json!({"apiVersion": "policies.admit.dev/v1", "kind": kind, "metadata": metadata, "spec": spec})
}

fn in_shop(more: &Value) -> Value {
    document("PolicyException", &json!({"name": "sale", "namespace": "shop"}), more)
}

fn of_cluster(more: &Value) -> Value {
    document("ClusterPolicyException", &json!({"name": "sale"}), more)
}

/// A request of a resource, in or for a namespace, about an object with these metadata.
fn request(resource: (&str, &str, &str), namespace: &str, metadata: &Value) -> Request<'static> {
    let (group, kind, plural) = resource;
    let name = metadata.get("name").cloned().unwrap_or_default();
    let api_version = if group.is_empty() { "v1".to_owned() } else { format!("{group}/v1") };
    let request = json!({
        "kind": {"group": group, "version": "v1", "kind": kind},
        "resource": {"group": group, "version": "v1", "resource": plural},
        "operation": "CREATE", "name": name.as_str().unwrap_or_default(), "namespace": namespace,
        "userInfo": {"username": "ann"},
        "object": {"apiVersion": api_version, "kind": kind, "metadata": metadata},
    });
    Request::from_value(&request).expect("a request")
}

const PODS: (&str, &str, &str) = ("", "Pod", "pods");

/// A cluster with these exceptions, or one of which nothing is known.
#[derive(Debug)]
struct Cluster(Result<Arc<Exceptions>, HostError>);

impl Host for Cluster {
    fn namespace(&self, _: &str) -> Result<Option<Arc<Value>>, HostError> {
        Ok(Some(Arc::new(json!({}))))
    }

    fn param_scope(&self, _: &GroupVersionKind) -> Option<Scope> {
        None
    }

    fn params(&self, _: &GroupVersionKind, _: &str) -> Result<Vec<Arc<Value>>, HostError> {
        Ok(Vec::new())
    }

    fn equivalents(
        &self,
        _: &GroupVersionResource,
        _: &str,
    ) -> Vec<(GroupVersionResource, GroupVersionKind)> {
        Vec::new()
    }

    fn convert(&self, _: &Value, _: &GroupVersionKind) -> Result<Value, HostError> {
        Err(HostError("one version".to_owned()))
    }

    fn authorize(&self, _: &UserInfo, _: &AccessAttributes) -> Result<Access, HostError> {
        Ok(Access { allowed: false, reason: String::new() })
    }

    fn exceptions(&self) -> Result<Option<Arc<Exceptions>>, HostError> {
        self.0.clone().map(Some)
    }

    fn now(&self) -> Option<SystemTime> {
        Some(now())
    }
}

fn cluster(documents: &[Value]) -> Cluster {
    let exceptions = documents.iter().map(|document| PolicyException::compile(document).expect("exceptions"));
    Cluster(Ok(Arc::new(exceptions.collect())))
}

fn set(text: &str) -> PolicySet {
    PolicySet::load(&manifest::read("policy.yaml", text).expect("manifests")).expect("policies")
}

#[test]
fn one_in_a_namespace_is_about_requests_of_it_alone() {
    let (set, shop) = (set(POLICY), cluster(&[in_shop(&json!({}))]));
    let allowed =
        |resource, namespace, metadata| set.decide(&request(resource, namespace, &metadata), &shop).allowed();
    let named = || json!({"name": "web"});
    assert!(allowed(PODS, "shop", named()));
    assert!(!allowed(PODS, "shop-2", named()));
    assert!(!allowed(("", "Node", "nodes"), "", named()));
    // Of a Namespace the request names itself, and who grants exceptions in it has no say in its labels.
    assert!(!allowed(("", "Namespace", "namespaces"), "shop", json!({"name": "shop"})));
    let anywhere = cluster(&[of_cluster(&json!({}))]);
    for (resource, namespace) in [
        (PODS, "shop"),
        (PODS, "shop-2"),
        (("", "Node", "nodes"), ""),
        (("", "Namespace", "namespaces"), "shop"),
    ] {
        assert!(set.decide(&request(resource, namespace, &named()), &anywhere).allowed(), "{resource:?}");
    }
}

#[test]
fn a_name_that_is_still_to_be_made_has_any_end() {
    let set = set(POLICY);
    let allowed = |pattern: &str, metadata: Value| {
        let shop = cluster(&[in_shop(&json!({"names": [pattern]}))]);
        set.decide(&request(PODS, "shop", &metadata), &shop).allowed()
    };
    let made = || json!({"generateName": "web-7f9c-"});
    assert!(allowed("web-*", made()) && allowed("web-7f9c-*", made()) && allowed("*", made()));
    for pattern in ["web-7f9c-", "*-", "web-7f9c-x*", "db-*"] {
        assert!(!allowed(pattern, made()), "{pattern}");
    }
    // The name that there is counts.
    assert!(!allowed("web-*", json!({"name": "db", "generateName": "web-"})));
}

#[test]
fn requests_about_exceptions_have_none() {
    let guard = format!(
        "{}---\napiVersion: policies.admit.dev/v1\nkind: ClusterPolicyException\nmetadata: {{name: all}}\n\
         spec: {{policies: [none], until: '2999-12-31', reason: r}}\n---\napiVersion: admit/v1\n\
         kind: PolicyException\nmetadata: {{name: all}}\nspec: {{policies: [none], until: '2999-12-31', reason: r}}\n",
        POLICY
    );
    let (set, cluster) = (set(&guard), cluster(&[of_cluster(&json!({})), in_shop(&json!({}))]));
    assert_eq!(set.exceptions().count(), 2);
    assert!(set.decide(&request(PODS, "shop", &json!({"name": "a"})), &cluster).allowed());
    for (kind, plural, namespace) in [
        ("PolicyException", "policyexceptions", "shop"),
        ("ClusterPolicyException", "clusterpolicyexceptions", ""),
    ] {
        let about = request(("policies.admit.dev", kind, plural), namespace, &json!({"name": "a"}));
        assert!(!set.decide(&about, &cluster).allowed(), "{kind}");
    }
}

#[test]
fn what_is_not_known_is_told_with_the_denial() {
    let gone = || Cluster(Err(HostError("policyexceptions: nothing was heard".to_owned())));
    let decision = set(POLICY).decide(&request(PODS, "shop", &json!({"name": "a"})), &gone());
    assert!(!decision.allowed());
    assert_eq!(
        decision.warnings,
        [
            "ValidatingAdmissionPolicy 'none' with binding 'none' denies this request: whether an exception lets it \
          through is not known: policyexceptions: nothing was heard"
        ]
    );
    // Files do not depend on it.
    let excepted = format!(
        "{POLICY}---\napiVersion: admit/v1\nkind: PolicyException\nmetadata: {{name: all}}\n\
         spec: {{policies: [none], until: '2999-12-31', reason: r}}\n"
    );
    assert!(set(&excepted).decide(&request(PODS, "shop", &json!({"name": "a"})), &gone()).allowed());
}

/// A policy as the README has it: what may be excepted, and for how long.
#[test]
fn policies_say_what_may_be_excepted() {
    let text = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: exceptions}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [policies.admit.dev], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [policyexceptions]}]
  validations:
  - {expression: \"object.spec.policies.all(policy, policy in ['team-labels'])\", message: not that policy}
  - expression: timestamp(object.spec.until.substring(0, 10) + 'T00:00:00Z') < timestamp(object.metadata.creationTimestamp) + duration('720h')
    message: too long
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: exceptions}
spec: {policyName: exceptions, validationActions: [Deny]}
";
    let definition = std::fs::read_to_string(root().join("../deploy/crds/policyexceptions.yaml")).unwrap();
    let set = set(&format!("{text}---\n{definition}"));
    let case = |policy: &str, until: &str, expect: Value| {
        let object = in_shop(&json!({"policies": [policy], "until": until}));
        json!({"name": format!("{policy} {until}"), "now": "2026-03-01T00:00:00Z", "object": object, "expect": expect})
    };
    let message = |message: &str| json!({"outcome": "deny", "message": message});
    let suite = json!({"apiVersion": "admit/v1", "kind": "Suite", "cases": [
        case("team-labels", "2026-03-30", json!("allow")),
        case("team-labels", "2026-03-30T12:00:00+02:00", json!("allow")),
        case("team-labels", "2026-04-30", message("too long")),
        case("pod-security", "2026-03-02", message("not that policy")),
    ]});
    for case in Suite::decode(&suite).unwrap().cases {
        let result = run(&case, &set);
        assert!(result.passed(), "{}: {:?} {}", case.name, result.mismatches, result.message);
    }
}

/// What the definitions take can be read, and what they refuse cannot: nothing lies in a cluster that is in force nowhere.
#[test]
fn the_definitions_take_what_can_be_read() {
    let long = "x".repeat(1_025);
    let specs = [
        (json!({}), true),
        (json!({"names": ["web-*"], "users": ["*"], "operations": ["CREATE", "DELETE"]}), true),
        (json!({"until": "2027-02-28T23:59:59.5+02:00"}), true),
        (json!({"until": "0001-01-01"}), true),
        (json!({"until": "9999-12-29"}), true),
        (json!({"until": "2027-02-30"}), false),
        (json!({"until": "2027-02-28T25:00:00Z"}), false),
        (json!({"until": "2027-02-28T10:00"}), false),
        (json!({"until": "tomorrow"}), false),
        (json!({"until": ""}), false),
        (json!({"until": null}), false),
        (json!({"reason": " \t"}), false),
        (json!({"reason": long}), false),
        (json!({"reason": null}), false),
        (json!({"policies": []}), false),
        (json!({"names": []}), false),
        (json!({"names": [""]}), false),
        (json!({"users": []}), false),
        (json!({"operations": []}), false),
        (json!({"operations": ["WATCH"]}), false),
        (json!({"policies": "none"}), false),
    ];
    for (plural, whole) in
        [("policyexceptions", in_shop as fn(&Value) -> Value), ("clusterpolicyexceptions", of_cluster)]
    {
        let path = root().join(format!("../deploy/crds/{plural}.yaml"));
        let text = std::fs::read_to_string(path).unwrap();
        let set = PolicySet::load_files([("crd.yaml", text.as_str())], LoadOptions::default()).unwrap();
        for (spec, taken) in &specs {
            let mut object = whole(spec);
            object["spec"].as_object_mut().unwrap().retain(|_, value| !value.is_null());
            assert_eq!(PolicyException::compile(&object).is_ok(), *taken, "{plural} {spec}");
            let expect = if *taken { "allow" } else { "deny" };
            let suite = json!({"apiVersion": "admit/v1", "kind": "Suite", "cases": [
                {"name": "one", "object": object, "expect": expect},
            ]});
            let result = run(&Suite::decode(&suite).unwrap().cases[0], &set);
            assert!(result.passed(), "{plural} {spec}: {:?} {}", result.mismatches, result.message);
        }
    }
}

#[test]
fn slips_of_their_names_are_told() {
    let told = |text: &str| {
        let text = format!("{POLICY}---\n{text}");
        let errors = PolicySet::load_files([("p.yaml", text.as_str())], LoadOptions { ignore_unknown: true });
        let errors = errors.err().unwrap_or_default();
        errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let spec = "spec: {policies: [none], until: '2999-12-31', reason: r}";
    let in_shop = format!("kind: PolicyException\nmetadata: {{name: a, namespace: shop}}\n{spec}\n");
    assert_eq!(told(&format!("apiVersion: policies.admit.dev/v1\n{in_shop}")), "");
    for (text, wanted) in [
        (format!("apiVersion: policies.admit.dev/v2\n{in_shop}"), "this version is not read, only v1"),
        (format!("apiVersion: admit.dev/v1\n{in_shop}"), "there is no such kind; did you mean"),
        (
            format!(
                "apiVersion: policies.admit.dev/v1\n{}",
                in_shop.replace("PolicyException", "PolicyExeption")
            ),
            "did you mean `PolicyException`?",
        ),
        (
            format!(
                "apiVersion: policies.admit.dev/v1\n{}",
                in_shop.replace("policies:", "namespaces: [x], policies:")
            ),
            "spec.namespaces: unknown field",
        ),
        (
            format!("apiVersion: policies.admit.dev/v1\n{}", in_shop.replace(", namespace: shop", "")),
            "metadata.namespace: Required value: it is about requests of its own namespace",
        ),
    ] {
        assert!(told(&text).contains(wanted), "{wanted}: {}", told(&text));
    }
}
