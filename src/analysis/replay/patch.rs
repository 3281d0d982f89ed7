//! Applies the patch of a denied request, whose response does not contain the result. An audit event does not record the patch type; if
//! that matters and cannot be inferred from the patch, there is no result.

use admit_policy::Builtins;
use admit_policy::patch::{Replacing, merged, patched as applied};
use serde_json::Value;

/// Returns what the server made of `old` by `patch`, if that is certain. `named`: whether the request names a field manager, as every
/// apply does; `is_custom`: whether objects of the kind take no strategic merge patches.
pub(super) fn patched(
    old: &Value,
    patch: &Value,
    named: bool,
    is_custom: bool,
    builtins: Option<&dyn Builtins>,
) -> Option<Value> {
    if patch.is_array() {
        let operations: Vec<_> = serde_json::from_value(patch.clone()).ok()?;
        return applied(old.clone(), &operations, Replacing::OrAdding).ok();
    }
    let fields = patch.as_object()?;
    // Probably an apply configuration, which would need the ownership of fields.
    if named && fields.contains_key("apiVersion") && fields.contains_key("kind") {
        return None;
    }
    let merge = merged(old.clone(), patch);
    if is_custom {
        return Some(merge);
    }
    let strategic = builtins?.patched(old, patch)?.ok()?;
    (strategic == merge).then_some(merge)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_kind_of_patch_it_is_has_to_be_certain() {
        let old = json!({"apiVersion": "example.com/v1", "kind": "Cat", "metadata": {"name": "a"}, "spec": {"a": 1, "b": 2}});
        let made = |patch: Value, named, custom| {
            patched(&old, &patch, named, custom, None).map(|made| made["spec"].clone())
        };
        let list = json!([{"op": "replace", "path": "/spec/a", "value": 5}]);
        assert_eq!(made(list, false, false), Some(json!({"a": 5, "b": 2})));
        let merge = json!({"spec": {"a": null, "c": 3}});
        assert_eq!(made(merge.clone(), true, true), Some(json!({"b": 2, "c": 3})));
        assert_eq!(made(merge, true, false), None, "it may be a strategic one");
        let configuration = json!({"apiVersion": "example.com/v1", "kind": "Cat", "spec": {"a": 7}});
        assert_eq!(made(configuration.clone(), true, true), None);
        assert!(made(configuration, false, true).is_some(), "an apply names its manager");
        assert_eq!(made(json!([{"op": "test", "path": "/spec/a", "value": 2}]), false, true), None);
        assert_eq!(made(json!(7), false, true), None);
    }
}
