//! DaemonSets: the template generation, which `apps/v1` shows as an annotation.

use serde_json::Value;

use crate::object;

const GENERATION: &str = "deprecated.daemonset.template.generation";

/// Shows that there is a generation: whoever sends a DaemonSet owns the annotation.
pub(super) fn fill(set: &mut Value) {
    if generation(set).is_none() {
        show(set, 0);
    }
}

pub(super) fn prepare_create(set: &mut Value) {
    let given = generation(set).unwrap_or_default();
    show(set, given.max(1));
}

/// Counts changes of the template, whatever the client says.
pub(super) fn prepare_update(set: &mut Value, old: &Value) {
    let template = |set: &Value| set.pointer("/spec/template").cloned();
    let before = generation(old).unwrap_or(1);
    let changed = template(set) != template(old);
    show(set, if changed { before.saturating_add(1) } else { before });
}

fn generation(set: &Value) -> Option<i64> {
    set.pointer("/metadata/annotations")?.get(GENERATION)?.as_str()?.parse().ok()
}

fn show(set: &mut Value, generation: i64) {
    let annotations = object::member_mut(object::map_of(&mut set["metadata"]), "annotations");
    annotations.insert(GENERATION.to_owned(), generation.to_string().into());
    annotations.sort_keys();
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_generation_counts_changes_of_the_template() {
        let mut set = json!({"metadata": {}, "spec": {"template": {"a": 1}}});
        fill(&mut set);
        assert_eq!(generation(&set), Some(0));
        prepare_create(&mut set);
        assert_eq!(generation(&set), Some(1));
        let mut same = set.clone();
        same["metadata"]["annotations"][GENERATION] = json!("7");
        prepare_update(&mut same, &set);
        assert_eq!(generation(&same), Some(1));
        let mut changed = json!({"metadata": {}, "spec": {"template": {"a": 2}}});
        prepare_update(&mut changed, &set);
        assert_eq!(generation(&changed), Some(2));
    }
}
