//! Implements `AlwaysPullImages`: sets `imagePullPolicy: Always`, so that only users with registry access run an image. Off by default.

use std::collections::BTreeSet;

use serde_json::Value;

use super::alone::Alone;
use super::pods::{CONTAINERS, items, text};
use super::{Plugin, Request};
use crate::status::Refusal;

pub(super) const PLUGIN: Plugin =
    Plugin { name: "AlwaysPullImages", mutate: Some(admit), validate: Some(validate), alone: Alone::Acts };

const ALWAYS: &str = "Always";

fn admit(request: &mut Request<'_>) -> Result<(), Refusal> {
    if !has_new_images(request) {
        return Ok(());
    }
    let pod = request.object_mut();
    for list in CONTAINERS {
        set(pod, list, "imagePullPolicy", |_| true);
    }
    set(pod, "/spec/volumes", "pullPolicy", |volume| volume.get("image").is_some_and(Value::is_object));
    Ok(())
}

/// Sets the pull policy of each meant item of the list; for volumes, that of their image source.
fn set(pod: &mut Value, list: &str, field: &str, is_meant: fn(&Value) -> bool) {
    let items = pod.pointer_mut(list).and_then(Value::as_array_mut);
    for item in items.into_iter().flatten().filter(|item| is_meant(item)) {
        let owner = if field == "pullPolicy" { item.get_mut("image") } else { Some(item) };
        if let Some(owner) = owner.and_then(Value::as_object_mut) {
            owner.insert(field.to_owned(), ALWAYS.into());
        }
    }
}

/// Checks the policies again, as later plugins and webhooks may have changed them.
fn validate(request: &Request<'_>) -> Result<(), Refusal> {
    if !has_new_images(request) {
        return Ok(());
    }
    for list in CONTAINERS {
        for (index, container) in items(request.object(), list).enumerate() {
            let policy = text(container, "/imagePullPolicy");
            if policy != ALWAYS {
                let list = list.trim_start_matches('/').replace('/', ".");
                let field = format!("{list}[{index}].imagePullPolicy");
                let why = format!("{field}: Unsupported value: \"{policy}\": supported values: \"{ALWAYS}\"");
                return Err(request.forbidden(&why));
            }
        }
    }
    Ok(())
}

/// Returns true for a new pod, and for an update that adds an image no container of the pod had.
fn has_new_images(request: &Request<'_>) -> bool {
    if request.creates("", "pods") {
        return true;
    }
    let images = |pod| -> BTreeSet<&str> {
        CONTAINERS.into_iter().flat_map(|list| items(pod, list)).map(|one| text(one, "/image")).collect()
    };
    request.updates("", "pods") && !images(request.object()).is_subset(&images(request.old()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::admission::plugins::tests::{Asked, mutated, pod};

    #[test]
    fn every_image_of_a_new_pod_is_pulled() {
        let mut given = pod();
        given["spec"]["initContainers"] = json!([{"name": "i", "image": "j", "imagePullPolicy": "Never"}]);
        given["spec"]["volumes"] = json!([{"name": "v", "image": {"reference": "r", "pullPolicy": "Never"}}, {"name": "e", "emptyDir": {}}]);
        let made = mutated(&PLUGIN, "pods", &given).unwrap().unwrap();
        let spec = &made["spec"];
        assert_eq!(spec["containers"][0]["imagePullPolicy"], "Always");
        assert_eq!(spec["initContainers"][0]["imagePullPolicy"], "Always");
        assert_eq!(spec["volumes"][0]["image"]["pullPolicy"], "Always");
        assert_eq!(spec["volumes"][1], json!({"name": "e", "emptyDir": {}}));
    }

    #[test]
    fn a_change_without_a_new_image_is_left_alone() {
        let old = pod();
        let mut new = pod();
        new["metadata"]["labels"] = json!({"a": "b"});
        let updated = |new: &Value| {
            let asked = Asked { old: Some(&old), ..Asked::create("pods", new, &[]) };
            asked.of(&PLUGIN).unwrap().0
        };
        assert_eq!(updated(&new), None);
        new["spec"]["containers"][0]["image"] = json!("other");
        assert_eq!(updated(&new).unwrap()["spec"]["containers"][0]["imagePullPolicy"], "Always");
    }
}
