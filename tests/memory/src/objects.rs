//! Generates objects of very many small parts, which a server stores and small patches then change.

use serde_json::{Value, json};

use crate::cluster::{CONFIG_MAPS, PODS, ROLES, THINGS};

/// A generator of objects with many parts of one sort.
#[derive(Debug)]
pub struct Large {
    pub name: &'static str,
    pub path: &'static str,
    pub of: fn(usize) -> Value,
    pub count: usize,
}

fn many(count: usize, part: impl Fn(usize) -> Value) -> Vec<Value> {
    (0..count).map(part).collect()
}

fn of(api_version: &str, kind: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "large"}})
}

/// Returns a ConfigMap with `count` owners.
#[must_use]
pub fn owned(count: usize) -> Value {
    let owner = |n| json!({"apiVersion": "v1", "kind": "Pod", "name": "n", "uid": format!("{n:06}")});
    let mut object = of("v1", "ConfigMap");
    object["metadata"]["ownerReferences"] = many(count, owner).into();
    object
}

/// Returns a Role of `count` rules.
#[must_use]
pub fn role(count: usize) -> Value {
    let rule = |n| json!({"verbs": ["get"], "apiGroups": [""], "resources": [format!("r{n}")]});
    let mut object = of("rbac.authorization.k8s.io/v1", "Role");
    object["rules"] = many(count, rule).into();
    object
}

/// Returns a Pod of one container with `count` environment variables.
#[must_use]
pub fn variables(count: usize) -> Value {
    let env = many(count, |n| json!({"name": format!("E{n}"), "value": "v"}));
    let mut object = of("v1", "Pod");
    // With the default account and without a token volume, the object can be sent again unchanged.
    object["spec"] = json!({
        "serviceAccountName": "default", "automountServiceAccountToken": false,
        "containers": [{"name": "c", "image": "i:1", "env": env}],
    });
    object
}

/// Returns a ConfigMap with `count` finalizers.
#[must_use]
pub fn finalizers(count: usize) -> Value {
    let mut object = of("v1", "ConfigMap");
    object["metadata"]["finalizers"] = many(count, |n| json!(format!("e.x/{n}"))).into();
    object
}

/// Returns a custom object of `count` small items.
#[must_use]
pub fn items(count: usize) -> Value {
    let item = |n| json!({"name": format!("item-{n}"), "address": "10.20.30.40/32", "ports": [8080], "note": "of a fleet"});
    let mut object = of("example.com/v1", "Thing");
    object["spec"] = json!({"items": many(count, item)});
    object
}

/// Returns a custom object with `count` members, each owned by a field manager.
#[must_use]
pub fn members(count: usize) -> Value {
    let mut object = of("example.com/v1", "Thing");
    object["spec"] =
        (0..count).map(|n| (format!("m{n}"), json!(1))).collect::<serde_json::Map<_, _>>().into();
    object
}

/// Returns a custom object of `count` small maps, each with one member more than a hash table of half its size has room for.
#[must_use]
pub fn maps(count: usize) -> Value {
    let item =
        |_| ('a'..='o').map(|name| (name.to_string(), json!(1))).collect::<serde_json::Map<_, _>>().into();
    let mut object = of("example.com/v1", "Thing");
    object["spec"] = json!({"items": many(count, item)});
    object
}

/// Returns objects with almost as many parts as are accepted, which is limited by their weight instead of their bytes: a
/// tenth more is refused.
#[must_use]
pub fn all() -> Vec<Large> {
    vec![
        Large { name: "owners", path: CONFIG_MAPS, of: owned, count: 24_500 },
        Large { name: "rules", path: ROLES, of: role, count: 26_000 },
        Large { name: "variables", path: PODS, of: variables, count: 21_000 },
        Large { name: "finalizers", path: CONFIG_MAPS, of: finalizers, count: 92_000 },
        Large { name: "items", path: THINGS, of: items, count: 26_500 },
        Large { name: "maps", path: THINGS, of: maps, count: 10_500 },
        Large { name: "members", path: THINGS, of: members, count: 80_000 },
    ]
}
