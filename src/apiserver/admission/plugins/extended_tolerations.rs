//! Implements `ExtendedResourceToleration`: a pod that requests an extended resource tolerates the taint of that name. Off by default.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::alone::Alone;
use super::pods::{STARTED, items};
use super::{Plugin, Request};
use crate::kinds::shared::resource_names::is_extended;
use crate::object;
use crate::status::Refusal;

pub(super) const PLUGIN: Plugin =
    Plugin { name: "ExtendedResourceToleration", mutate: Some(admit), validate: None, alone: Alone::Acts };

fn admit(request: &mut Request<'_>) -> Result<(), Refusal> {
    if !request.creates("", "pods") && !request.updates("", "pods") {
        return Ok(());
    }
    let containers = STARTED.into_iter().flat_map(|list| items(request.object(), list));
    let requests = containers.filter_map(|one| one.pointer("/resources/requests")?.as_object());
    let names = requests.flat_map(|requests| requests.keys());
    let wanted: BTreeSet<String> = names.filter(|name| is_extended(name)).cloned().collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let spec = object::member_mut(object::map_of(request.object_mut()), "spec");
    let tolerations = spec.entry("tolerations").or_insert(Value::Null);
    if tolerations.is_null() {
        *tolerations = json!([]);
    }
    for name in wanted {
        let toleration = json!({"key": name, "operator": "Exists", "effect": "NoSchedule"});
        let Some(tolerations) = tolerations.as_array_mut() else { return Ok(()) };
        match tolerations.iter_mut().find(|known| is_same(known, &toleration)) {
            Some(known) => *known = toleration,
            None => tolerations.push(toleration),
        }
    }
    Ok(())
}

/// Returns whether both tolerate the same taint, ignoring `tolerationSeconds`.
fn is_same(one: &Value, other: &Value) -> bool {
    ["key", "effect", "operator", "value"].into_iter().all(|field| {
        let text =
            |toleration: &Value| toleration.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        text(one) == text(other)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::plugins::tests::{mutated, pod};

    #[test]
    fn what_is_asked_for_is_tolerated_once() {
        let mut given = pod();
        given["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1", "example.com/b": "1", "example.com/a": "1", "hugepages-2Mi": "2Mi"}});
        given["spec"]["tolerations"] = json!([{"key": "example.com/b", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 5}]);
        let made = mutated(&PLUGIN, "pods", &given).unwrap().unwrap();
        let tolerated = |key| json!({"key": key, "operator": "Exists", "effect": "NoSchedule"});
        assert_eq!(
            made["spec"]["tolerations"],
            json!([tolerated("example.com/b"), tolerated("example.com/a")])
        );
        assert_eq!(mutated(&PLUGIN, "pods", &pod()).unwrap(), None);
    }
}
