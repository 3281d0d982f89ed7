//! The configuration of an API server, valid in all but one place, and what kube-apiserver says of that place.

use admit_policy::{LoadOptions, PolicySet, manifest};
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

/// What is said of one value in the place of another.
fn told(part: &str, valid: fn() -> Value) {
    let documents =
        manifest::read("server_config.yaml", include_str!("data/server_config.yaml")).expect("rows");
    let rows = documents[0].value[part].as_array().expect("a list");
    assert!(rows.len() > 15, "{part}");
    for row in rows {
        let at = row[0].as_str().expect("a pointer");
        assert_eq!(json!(problems(&with(valid(), at, row[1].clone()))), json!([row[2]]), "{row}");
    }
}

#[test]
fn authenticators_are_checked_in_the_words_of_the_server() {
    told("authentication", authentication);
    let twice = authentication()["jwt"][0].clone();
    assert_eq!(
        problems(&with(authentication(), "/jwt/1", twice)),
        ["jwt[1].issuer.url: Duplicate value: \"https://issuer.example.com\""]
    );
    let unknown = json!({"expression": "token.sub"});
    let unknown = problems(&with(authentication(), "/jwt/0/claimMappings/uid", unknown));
    let says = "jwt[0].claimMappings.uid.expression: Invalid value: \"token.sub\": compilation failed: ERROR: <input>:1:1: \
                undeclared reference to 'token'";
    assert!(unknown[0].starts_with(says), "{unknown:?}");
}

/// An address that nobody has verified names whoever asked for it.
#[test]
fn mail_addresses_are_names_where_they_are_verified() {
    let said = |username: &str, rule: Option<&str>| {
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
        let unverified = said(username, None);
        assert!(
            unverified.len() == 1
                && unverified[0]
                    .contains("claims.email_verified must be used in claimMappings.username.expression or"),
            "{unverified:?}"
        );
        assert_eq!(
            said(username, Some("claims.?email_verified.orValue(true) == true")),
            [""; 0],
            "{username}"
        );
    }
    assert_eq!(said("claims.email_verified ? claims.email : claims.sub", None), [""; 0]);
    assert_eq!(said("claims['email']", None), [""; 0], "no field is selected, and upstream sees none either");
    assert_eq!(said("claims.other.email", None), [""; 0]);
}

#[test]
fn authorizers_are_checked_in_the_words_of_the_server() {
    told("authorization", authorization);
    let conditions = "/authorizers/0/webhook/matchConditions";
    let unknown = json!({"expression": "request.resourceAttributes.resourc == 'a'"});
    let unknown = problems(&with(authorization(), &format!("{conditions}/3"), unknown));
    let says = "compilation failed: ERROR: <input>:1:27: undefined field 'resourc'";
    assert!(unknown[0].contains(says), "{unknown:?}");
    let many: Vec<Value> = (0..65).map(|at| json!({"expression": format!("{at} == {at}")})).collect();
    assert_eq!(
        problems(&with(authorization(), conditions, json!(many))),
        ["authorizers[0].matchConditions: Too many: 65: must have at most 64 items"]
    );
}
