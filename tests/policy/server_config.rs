//! The configuration of an API server, valid in all but one place, and what kube-apiserver says of that place.

use admit_policy::{LoadOptions, PolicySet};
use serde_json::{Value, json};

/// What is wrong with a document; the place of each mistake is part of it.
fn problems(document: &Value) -> Vec<String> {
    let text = document.to_string();
    match PolicySet::load_files([("config.yaml", text.as_str())], LoadOptions::default()) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.iter().map(|error| error.message.clone()).collect(),
    }
}

fn authentication() -> Value {
    json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
        "jwt": [{
            "issuer": {"url": "https://issuer.example.com", "audiences": ["shop"]},
            "claimValidationRules": [{"expression": "claims.hd == 'example.com'", "message": "not of ours"}],
            "claimMappings": {
                "username": {"expression": "claims.sub + '@' + claims.iss"},
                "groups": {"claim": "roles", "prefix": "oidc:"},
                "uid": {"claim": "sub"},
                "extra": [{"key": "example.com/tenant", "valueExpression": "claims.?tenant.orValue('none')"}],
            },
            "userValidationRules": [{"expression": "!user.username.startsWith('system:')", "message": "reserved"}],
        }],
    })
}

fn authorization() -> Value {
    json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthorizationConfiguration",
        "authorizers": [
            {"type": "Webhook", "name": "ours", "webhook": {
                "timeout": "3s", "subjectAccessReviewVersion": "v1", "matchConditionSubjectAccessReviewVersion": "v1",
                "failurePolicy": "Deny", "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": "/etc/authz.kubeconfig"},
                "matchConditions": [{"expression": "has(request.resourceAttributes)"},
                    {"expression": "request.resourceAttributes.namespace in ['shop', 'shop-eu'] && !('admins' in request.groups)"},
                    {"expression": "!has(request.resourceAttributes.labelSelector) || \
                        request.resourceAttributes.labelSelector.requirements.exists(r, r.key == 'tier' && 'web' in r.values)"}],
            }},
            {"type": "Node", "name": "node"},
            {"type": "RBAC", "name": "rbac"},
        ],
    })
}

/// Puts `value` at the pointer, whose last part may be new.
fn with(mut document: Value, pointer: &str, value: Value) -> Value {
    let (owner, name) = pointer.rsplit_once('/').expect("a pointer");
    let owner = document.pointer_mut(owner).expect("is there");
    match owner {
        Value::Array(items) => items.push(value),
        owner => owner[name] = value,
    }
    document
}

#[test]
fn what_is_valid_is_taken() {
    assert_eq!(problems(&authentication()), [""; 0]);
    assert_eq!(problems(&authorization()), [""; 0]);
    for version in ["v1beta1", "v1alpha1"] {
        let api_version = json!(format!("apiserver.config.k8s.io/{version}"));
        assert_eq!(problems(&with(authentication(), "/apiVersion", api_version)), [""; 0]);
    }
    let other = with(authentication(), "/apiVersion", json!("apiserver.config.k8s.io/v2"));
    assert!(problems(&other)[0].ends_with("this version is not read, only v1, v1beta1 and v1alpha1"));
}

#[test]
fn authenticators_are_checked_in_the_words_of_the_server() {
    let jwt = |path: &str, value: Value, expected: &str| {
        let told = problems(&with(authentication(), &format!("/jwt/0/{path}"), value.clone()));
        assert_eq!(told, [format!("jwt[0].{expected}")], "{path} {value}");
    };
    for (url, why) in [
        ("http://a", "URL scheme must be https"),
        ("https://u:p@a", "URL must not contain a username or password"),
        ("https://a?q", "URL must not contain a query"),
        ("https://a#f", "URL must not contain a fragment"),
        ("https://a:b", "parse \"https://a:b\": invalid port \":b\" after host"),
    ] {
        jwt("issuer/url", json!(url), &format!("issuer.url: Invalid value: \"{url}\": {why}"));
        jwt(
            "issuer/discoveryURL",
            json!(url),
            &format!("issuer.discoveryURL: Invalid value: \"{url}\": {why}"),
        );
    }
    let same = "https://issuer.example.com//";
    jwt("issuer/url", json!(""), "issuer.url: Required value");
    jwt(
        "issuer/discoveryURL",
        json!(same),
        &format!("issuer.discoveryURL: Invalid value: \"{same}\": discoveryURL must be different from URL"),
    );
    jwt(
        "issuer/audiences",
        json!([]),
        "issuer.audiences: Required value: at least one jwt[0].issuer.audiences is required",
    );
    jwt(
        "issuer/audiences",
        json!(["a", "b"]),
        "issuer.audienceMatchPolicy: Invalid value: \"\": audienceMatchPolicy must be MatchAny for multiple audiences",
    );
    jwt(
        "issuer/audienceMatchPolicy",
        json!("MatchAll"),
        "issuer.audienceMatchPolicy: Invalid value: \"MatchAll\": audienceMatchPolicy must be empty or MatchAny for single audience",
    );
    jwt(
        "issuer/certificateAuthority",
        json!("none"),
        "issuer.certificateAuthority: Invalid value: \"<omitted>\": data does not contain any valid RSA or ECDSA certificates",
    );
    jwt(
        "issuer/egressSelectorType",
        json!("etcd"),
        "issuer.egressSelectorType: Invalid value: \"etcd\": egress selector must be either controlplane or cluster",
    );
    jwt(
        "claimValidationRules/1",
        json!({}),
        "claimValidationRules[1]: Required value: claim or expression is required",
    );
    jwt(
        "claimValidationRules/1",
        json!({"claim": "a", "expression": "true"}),
        "claimValidationRules[1]: Invalid value: \"a\": claim and expression can't both be set",
    );
    jwt(
        "claimValidationRules/1",
        json!({"expression": "claims.hd == 'example.com'"}),
        "claimValidationRules[1].expression: Duplicate value: \"claims.hd == 'example.com'\"",
    );
    jwt(
        "claimValidationRules/1",
        json!({"expression": "claims.hd"}),
        "claimValidationRules[1].expression: Invalid value: \"claims.hd\": must evaluate to bool",
    );
    jwt(
        "claimValidationRules/1",
        json!({"claim": "a", "message": "m"}),
        "claimValidationRules[1].message: Invalid value: \"m\": may not be specified when claim is set",
    );
    jwt(
        "userValidationRules/1",
        json!({"expression": "user.uid"}),
        "userValidationRules[1].expression: Invalid value: \"user.uid\": must evaluate to bool",
    );
    jwt(
        "claimMappings/username",
        json!({}),
        "claimMappings.username: Required value: claim or expression is required",
    );
    jwt(
        "claimMappings/username",
        json!({"claim": "sub"}),
        "claimMappings.username.prefix: Required value: prefix is required when claim is set. It can be set to an empty string to disable prefixing",
    );
    jwt(
        "claimMappings/groups",
        json!({"expression": "claims.groups", "prefix": "a"}),
        "claimMappings.groups.prefix: Invalid value: \"a\": may not be specified when expression is set",
    );
    jwt(
        "claimMappings/uid",
        json!({"claim": "a", "expression": "'a'"}),
        "claimMappings.uid: Invalid value: \"\": claim and expression can't both be set",
    );
    for (key, why) in [
        ("tenant", "must be a domain-prefixed path (such as \"acme.io/foo\")"),
        ("example.com/Tenant", "must be lowercase"),
        ("k8s.io/tenant", "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use"),
        (
            "authn.kubernetes.io/tenant",
            "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use",
        ),
    ] {
        let extra = json!({"key": key, "valueExpression": "'a'"});
        jwt(
            "claimMappings/extra/1",
            extra,
            &format!("claimMappings.extra[1].key: Invalid value: \"{key}\": {why}"),
        );
    }
    jwt(
        "claimMappings/extra/1",
        json!({"key": "my-k8s.io/a", "valueExpression": ""}),
        "claimMappings.extra[1].valueExpression: Required value",
    );
    let twice = authentication()["jwt"][0].clone();
    assert_eq!(
        problems(&with(authentication(), "/jwt/1", twice)),
        ["jwt[1].issuer.url: Duplicate value: \"https://issuer.example.com\""]
    );
    let anonymous = json!({"enabled": false, "conditions": [{"path": "/livez"}]});
    assert_eq!(
        problems(&with(authentication(), "/anonymous", anonymous)),
        [
            "anonymous.conditions: Invalid value: [{\"path\":\"/livez\"}]: enabled should be set to true when conditions are defined"
        ]
    );
    let unknown = problems(&with(authentication(), "/jwt/0/claimMapping", json!({})));
    assert_eq!(unknown, ["jwt[0].claimMapping: unknown field; did you mean `claimMappings`?"]);
    let unknown_name =
        problems(&with(authentication(), "/jwt/0/claimMappings/uid", json!({"expression": "token.sub"})));
    assert!(
        unknown_name[0].starts_with(
            "jwt[0].claimMappings.uid.expression: Invalid value: \"token.sub\": compilation failed: \
        ERROR: <input>:1:1: undeclared reference to 'token'"
        ),
        "{unknown_name:?}"
    );
}

/// An address that nobody has verified names whoever asked for it.
#[test]
fn mail_addresses_are_names_where_they_are_verified() {
    let told = |username: &str, rule: Option<&str>| {
        let mut document =
            with(authentication(), "/jwt/0/claimMappings/username", json!({"expression": username}));
        if let Some(rule) = rule {
            document = with(document, "/jwt/0/claimValidationRules/1", json!({"expression": rule}));
        }
        problems(&document)
    };
    for username in [
        "claims.email",
        "claims.?email.orValue('')",
        "[claims.email].map(a, a)[0]",
        "has(claims.email) ? claims.email : claims.sub",
    ] {
        let unverified = told(username, None);
        assert!(
            unverified.len() == 1
                && unverified[0]
                    .contains("claims.email_verified must be used in claimMappings.username.expression or"),
            "{unverified:?}"
        );
        assert_eq!(
            told(username, Some("claims.?email_verified.orValue(true) == true")),
            [""; 0],
            "{username}"
        );
    }
    assert_eq!(told("claims.email_verified ? claims.email : claims.sub", None), [""; 0]);
    assert_eq!(told("claims['email']", None), [""; 0], "no field is selected, and upstream sees none either");
    assert_eq!(told("claims.other.email", None), [""; 0]);
}

#[test]
fn authorizers_are_checked_in_the_words_of_the_server() {
    let of = |path: &str, value: Value, expected: &[&str]| {
        let told = problems(&with(authorization(), &format!("/authorizers/{path}"), value.clone()));
        assert_eq!(told, expected, "{path} {value}");
    };
    assert_eq!(
        problems(&with(authorization(), "/authorizers", json!([]))),
        ["authorizers: Required value: at least one authorization mode must be defined"]
    );
    of("3", json!({"name": "a"}), &["authorizers[3].type: Required value"]);
    of(
        "3",
        json!({"type": "OPA", "name": "a"}),
        &[
            "authorizers[3].type: Unsupported value: \"OPA\": supported values: \"ABAC\", \"AlwaysAllow\", \"AlwaysDeny\", \"Node\", \"RBAC\", \"Webhook\"",
        ],
    );
    of("3", json!({"type": "RBAC", "name": "a"}), &["authorizers[3].type: Duplicate value: \"RBAC\""]);
    of("3", json!({"type": "ABAC", "name": "rbac"}), &["authorizers[3].name: Duplicate value: \"rbac\""]);
    of("3", json!({"type": "ABAC"}), &["authorizers[3].name: Required value"]);
    of(
        "3",
        json!({"type": "Webhook", "name": "a"}),
        &["authorizers[3].webhook: Required value: required when type=Webhook"],
    );
    of(
        "1/webhook",
        json!({}),
        &["authorizers[1].webhook: Invalid value: \"non-null\": may only be specified when type=Webhook"],
    );
    of("0/webhook/timeout", json!("0s"), &["authorizers[0].timeout: Required value"]);
    of(
        "0/webhook/timeout",
        json!("1m"),
        &["authorizers[0].timeout: Invalid value: \"1m0s\": must be > 0s and <= 30s"],
    );
    of(
        "0/webhook/authorizedTTL",
        json!("-1s"),
        &["authorizers[0].authorizedTTL: Invalid value: \"-1s\": must be > 0s"],
    );
    of(
        "0/webhook/subjectAccessReviewVersion",
        json!("v2"),
        &[
            "authorizers[0].subjectAccessReviewVersion: Unsupported value: \"v2\": supported values: \"v1\", \"v1beta1\"",
        ],
    );
    of(
        "0/webhook/matchConditionSubjectAccessReviewVersion",
        json!(""),
        &[
            "authorizers[0].matchConditionSubjectAccessReviewVersion: Required value: required if match conditions are specified",
        ],
    );
    of(
        "0/webhook/failurePolicy",
        json!("Allow"),
        &[
            "authorizers[0].failurePolicy: Unsupported value: \"Allow\": supported values: \"NoOpinion\", \"Deny\"",
        ],
    );
    of(
        "0/webhook/connectionInfo",
        json!({"type": "KubeConfigFile", "kubeConfigFile": "a"}),
        &["authorizers[0].connectionInfo.kubeConfigFile: Invalid value: \"a\": must be an absolute path"],
    );
    of("0/webhook/connectionInfo", json!({}), &["authorizers[0].connectionInfo.type: Required value"]);
    let conditions = "0/webhook/matchConditions/3";
    of(
        conditions,
        json!({"expression": " "}),
        &["authorizers[0].matchConditions[3].expression: Required value"],
    );
    of(
        conditions,
        json!({"expression": "has(request.resourceAttributes)"}),
        &[
            "authorizers[0].matchConditions[3].expression: Duplicate value: \"has(request.resourceAttributes)\"",
        ],
    );
    of(
        conditions,
        json!({"expression": "request.user"}),
        &[
            "authorizers[0].matchConditions[3].expression: Invalid value: \"request.user\": must evaluate to bool but got string",
        ],
    );
    let unknown = problems(&with(
        authorization(),
        &format!("/authorizers/{conditions}"),
        json!({"expression": "request.resourceAttributes.resourc == 'a'"}),
    ));
    assert!(
        unknown[0].contains("compilation failed: ERROR: <input>:1:27: undefined field 'resourc'"),
        "{unknown:?}"
    );
    let many: Vec<Value> = (0..65).map(|at| json!({"expression": format!("{at} == {at}")})).collect();
    of(
        "0/webhook/matchConditions",
        json!(many),
        &["authorizers[0].matchConditions: Too many: 65: must have at most 64 items"],
    );
}
