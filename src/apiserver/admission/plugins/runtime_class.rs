//! Implements `RuntimeClass`: sets a pod's overhead, node selector and tolerations from its RuntimeClass.

use std::sync::Arc;

use admit_apimachinery::go;
use admit_apimachinery::quantity::Quantity;
use serde_json::{Map, Value};

use super::alone::{Alone, Turn};
use super::pods::text;
use super::{Plugin, Request};
use crate::object;
use crate::status::Refusal;

pub(super) const PLUGIN: Plugin =
    Plugin { name: "RuntimeClass", mutate: Some(admit), validate: Some(validate), alone: Alone::By(alone) };

const MISMATCH: &str = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

fn class(request: &Request<'_>) -> Result<Option<Arc<Value>>, Refusal> {
    let Some(name) = request.object().pointer("/spec/runtimeClassName").and_then(Value::as_str) else {
        return Ok(None);
    };
    let class = request.stored("runtimeclasses", "", name);
    let missing = || request.forbidden(&format!("pod rejected: RuntimeClass {} not found", go::quote(name)));
    class.map(Some).ok_or_else(missing)
}

fn admit(request: &mut Request<'_>) -> Result<(), Refusal> {
    if !request.creates("", "pods") {
        return Ok(());
    }
    let Some(class) = class(request)? else { return Ok(()) };
    if let Some(overhead) = overhead(&class) {
        match own_overhead(request) {
            Some(own) if !is_same(&own, overhead) => return Err(request.forbidden(MISMATCH)),
            Some(_) => {}
            None => {
                spec_mut(request).insert("overhead".to_owned(), overhead.clone());
            }
        }
    }
    if let Some(scheduling) = class.get("scheduling").filter(|scheduling| scheduling.is_object()) {
        schedule(request, scheduling)?;
    }
    Ok(())
}

fn spec_mut<'o>(request: &'o mut Request<'_>) -> &'o mut Map<String, Value> {
    object::member_mut(object::map_of(request.object_mut()), "spec")
}

/// Returns the pod's own overhead, which may be empty; None if it is unset.
fn own_overhead(request: &Request<'_>) -> Option<Value> {
    if request.review.call.emptied.has(&["spec", "overhead"]) {
        return Some(Value::Object(Map::new()));
    }
    request.object().pointer("/spec/overhead").filter(|own| !own.is_null()).cloned()
}

fn overhead(class: &Value) -> Option<&Value> {
    class.pointer("/overhead/podFixed").filter(|fixed| fixed.is_object())
}

/// Returns whether both hold the same amounts, compared by value.
fn is_same(one: &Value, other: &Value) -> bool {
    let (Some(one), Some(other)) = (one.as_object(), other.as_object()) else { return one == other };
    let amount = |value: &Value| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    one.len() == other.len()
        && one.iter().all(|(name, own)| {
            other.get(name).is_some_and(|theirs| {
                let (own, theirs) = (amount(own), amount(theirs));
                own == theirs
                    || matches!((Quantity::parse(&own), Quantity::parse(&theirs)), (Ok(a), Ok(b)) if a == b)
            })
        })
}

fn schedule(request: &mut Request<'_>, scheduling: &Value) -> Result<(), Refusal> {
    let selector = scheduling.get("nodeSelector").and_then(Value::as_object);
    for (key, value) in selector.into_iter().flatten() {
        let own = request.object().pointer("/spec/nodeSelector").and_then(|own| own.get(key));
        if let Some(own) = own.filter(|own| *own != value) {
            let shown = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            return Err(request.forbidden(&format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {}; pod.spec.nodeSelector[{key}] = {}",
                shown(value),
                shown(own)
            )));
        }
    }
    if let Some(selector) = selector.filter(|selector| !selector.is_empty()) {
        let own = object::member_mut(spec_mut(request), "nodeSelector");
        own.extend(selector.clone());
    }
    let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    let added = list(scheduling.get("tolerations"));
    if !added.is_empty() {
        let all: Vec<Value> =
            list(request.object().pointer("/spec/tolerations")).into_iter().chain(added).collect();
        spec_mut(request).insert("tolerations".to_owned(), merged(&all).into());
    }
    Ok(())
}

/// Removes tolerations that others cover; of equal ones the first stays.
fn merged(all: &[Value]) -> Vec<Value> {
    let mut merged: Vec<Value> = Vec::new();
    for (at, toleration) in all.iter().enumerate() {
        let later = all.iter().skip(at.saturating_add(1));
        let is_covered = merged.iter().any(|other| covers(other, toleration))
            || later.filter(|other| *other != toleration).any(|other| covers(other, toleration));
        if !is_covered {
            merged.push(toleration.clone());
        }
    }
    merged
}

/// Returns whether `greater` tolerates every taint that `one` tolerates.
fn covers(greater: &Value, one: &Value) -> bool {
    if greater == one {
        return true;
    }
    let of = |toleration: &'_ Value, field: &str| text(toleration, field).to_owned();
    let (key, operator, effect) = (of(greater, "/key"), of(greater, "/operator"), of(greater, "/effect"));
    if of(one, "/key") != key && !(key.is_empty() && operator == "Exists") {
        return false;
    }
    if of(one, "/effect") != effect && !effect.is_empty() {
        return false;
    }
    let seconds = |toleration: &Value| toleration.get("tolerationSeconds").and_then(Value::as_i64);
    if effect == "NoExecute"
        && let Some(most) = seconds(greater)
        && seconds(one).is_none_or(|asked| asked > most)
    {
        return false;
    }
    match operator.as_str() {
        "Exists" => true,
        "" | "Equal" => of(one, "/operator") == "Equal" && one.get("value") == greater.get("value"),
        _ => false,
    }
}

fn validate(request: &Request<'_>) -> Result<(), Refusal> {
    if !request.creates("", "pods") {
        return Ok(());
    }
    let class = class(request)?;
    match (class.as_deref().and_then(overhead), own_overhead(request)) {
        (None, None) => Ok(()),
        (Some(overhead), Some(own)) if is_same(&own, overhead) => Ok(()),
        (Some(_), _) => Err(request.forbidden(MISMATCH)),
        (None, Some(_)) => {
            let why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
            Err(request.forbidden(why))
        }
    }
}

fn alone(request: &Request<'_>) -> Turn {
    if !request.creates("", "pods") {
        return Turn::Acts;
    }
    Turn::named(request, "runtimeclasses", "", text(request.object(), "/spec/runtimeClassName"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::admission::plugins::tests::{Placed, mutated, mutated_beside, pod, refused, refused_beside};

    fn class() -> Placed {
        (
            "runtimeclasses",
            json!({"metadata": {"name": "rc"}, "overhead": {"podFixed": {"cpu": "10m"}},
            "scheduling": {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "k", "operator": "Exists"}]}}),
        )
    }

    #[test]
    fn pods_get_what_their_class_says() {
        let mut sent = pod();
        assert_eq!(mutated(&PLUGIN, "pods", &sent), Ok(None));
        sent["spec"]["runtimeClassName"] = "rc".into();
        sent["spec"]["tolerations"] = json!([{"key": "k", "operator": "Equal", "value": "v"}]);
        let spec = mutated_beside(&PLUGIN, "pods", &sent, &[class()]).unwrap().unwrap()["spec"].take();
        assert_eq!(spec["overhead"], json!({"cpu": "10m"}));
        assert_eq!(spec["nodeSelector"], json!({"a": "b"}));
        assert_eq!(spec["tolerations"], json!([{"key": "k", "operator": "Exists"}]));
    }

    #[test]
    fn pods_do_not_contradict_their_class() {
        let mut sent = pod();
        sent["spec"]["overhead"] = json!({"cpu": "1"});
        let forbidden = "pods \"a\" is forbidden: ";
        let without = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
        assert_eq!(refused(&PLUGIN, "pods", &sent), format!("{forbidden}{without}"));
        sent["spec"]["runtimeClassName"] = "rc".into();
        let missing = "pod rejected: RuntimeClass \"rc\" not found";
        assert_eq!(refused(&PLUGIN, "pods", &sent), format!("{forbidden}{missing}"));
        assert_eq!(refused_beside(&PLUGIN, "pods", &sent, &[class()]), format!("{forbidden}{MISMATCH}"));
        sent["spec"]["overhead"] = json!({"cpu": "0.01"});
        sent["spec"]["nodeSelector"] = json!({"a": "c"});
        assert_eq!(
            refused_beside(&PLUGIN, "pods", &sent, &[class()]),
            format!(
                "{forbidden}conflict: runtimeClass.scheduling.nodeSelector[a] = b; pod.spec.nodeSelector[a] = c"
            )
        );
    }
}
