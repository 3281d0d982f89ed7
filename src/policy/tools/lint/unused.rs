//! Finds variables of policies that no expression uses.

use std::collections::HashSet;

use admit_apimachinery::pointer::items;
use serde_json::Value;

use super::{Finding, warning};
use crate::read::manifest::Document;

/// Returns variables that no expression uses. As a check, the policy must still compile without all of them, since a name may be used
/// in ways that are not searched; otherwise none is returned.
pub(super) fn unused_variables<'t>(
    document: &Document,
    texts: impl Iterator<Item = &'t str>,
    compiles: impl FnOnce(&Value) -> bool,
) -> Vec<Finding> {
    let named: HashSet<&str> = texts.flat_map(names_behind_variables).collect();
    let names =
        |variable: &Value| variable.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let variables = items(&document.value, "/spec/variables");
    let unused: Vec<(usize, String)> =
        variables.iter().map(names).enumerate().filter(|(_, name)| !named.contains(name.as_str())).collect();
    if unused.is_empty() {
        return Vec::new();
    }
    let mut without = document.value.clone();
    if let Some(variables) = without.pointer_mut("/spec/variables").and_then(Value::as_array_mut) {
        variables.retain(|variable| named.contains(names(variable).as_str()));
    }
    if !compiles(&without) {
        return Vec::new();
    }
    let finding = |(index, name): (usize, String)| {
        let problem = format!("no expression uses `variables.{name}`");
        let help = "take it out: it is never evaluated";
        warning(document, "unused-variable", &format!("spec.variables[{index}]"), problem, help)
    };
    unused.into_iter().map(finding).collect()
}

/// The names in `variables.NAME`, in which there may be spaces.
fn names_behind_variables(text: &str) -> impl Iterator<Item = &str> {
    let behind = text.split("variables").skip(1);
    behind.filter_map(|rest| {
        let name = rest.trim_start().strip_prefix('.')?.trim_start();
        let end = name.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(name.len());
        name.get(..end)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_behind_spaces_and_not_beside_variables() {
        let named = |text| names_behind_variables(text).collect::<Vec<_>>();
        assert_eq!(named("variables.a + variables . b_2.c"), ["a", "b_2"]);
        assert_eq!(named("object.a + has(variables.c) + other.variables"), ["c"]);
    }
}
