//! Looks up named Go types of fields (such as `[]v1.FinalizerName`), which type errors mention; `go_names.txt` lists them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

static NAMES: LazyLock<BTreeMap<(&str, &str), &str>> = LazyLock::new(|| {
    let lines = include_str!("go_names.txt").lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| Some((line.rsplit_once(' ')?.0.split_once(' ')?, line.rsplit_once(' ')?.1)))
        .collect()
});

/// Returns the full name of the type of a field, such as `[]v1.FinalizerName`. Types of the same name in several packages are
/// listed with their package.
pub(super) fn field((package, owner): (&str, &str), name: &str) -> Option<&'static str> {
    let qualified = format!("{package}.{owner}");
    NAMES.get(&(qualified.as_str(), name)).or_else(|| NAMES.get(&(owner, name))).copied()
}

/// Returns the element type in the name of a list or map type.
pub(super) fn element(name: &str) -> &str {
    match name.strip_prefix("map[") {
        Some(rest) => rest.split_once(']').map_or(name, |(_, element)| element),
        None => name.strip_prefix("[]").unwrap_or(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::tables;

    #[test]
    fn every_name_is_of_a_field() {
        let tables = tables();
        for (owner, name) in NAMES.keys() {
            let (package, owner) = owner.split_once('.').unwrap_or(("", owner));
            let known = tables.ids().any(|id| {
                let found = tables.get(id);
                let is_meant = package.is_empty() || found.package.alias == package;
                is_meant && found.name == owner && tables.field(id, name).is_some()
            });
            assert!(known, "{owner}.{name}");
        }
        assert_eq!(element("[]v1.FinalizerName"), "v1.FinalizerName");
        assert_eq!(element("map[v1.ResourceName]v1.ClaimResourceStatus"), "v1.ClaimResourceStatus");
        assert_eq!(element("types.UID"), "types.UID");
    }
}
