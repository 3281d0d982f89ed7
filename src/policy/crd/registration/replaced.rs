//! Relaxes the checks on the update of a CRD: those that the stored one already fails are skipped, so that CRDs from before a check
//! existed stay editable (`ValidateCustomResourceDefinitionUpdate`).

use super::demands::Demands;
use super::{conversion, defaults, lists, structural};
use crate::crd::definition::Definition;
use crate::schema::{Schema, SchemaType};

/// Returns the checks for a creation, or for the update of `replaced`.
pub(super) fn demands(definition: &Definition, replaced: Option<&Definition>) -> Demands {
    let Some(old) = replaced else { return Demands::ALL };
    let none_has = |broken: &dyn Fn(&Schema) -> bool| {
        !schemas(old).any(|schema| any_node(schema, &mut |node| broken(node)))
    };
    Demands {
        schemas: old.versions.iter().all(|version| version.schema.is_some()),
        types: none_has(&|node| matches!(node.schema_type, Some(SchemaType::Other(_)))),
        // Pruning, defaults and extensions need a structural schema, whatever was stored.
        structural: !definition.preserve_unknown_fields
            || schemas(old).all(structural::holds)
            || schemas(definition).any(|schema| any_node(schema, &mut has_default_or_extension)),
        pruned_defaults: schemas(old)
            .all(|schema| !structural::holds(schema) || defaults::are_pruned(schema, true)),
        atomic_set_items: none_has(&lists::has_composite_set_items),
        sound_items: none_has(&lists::has_unsound_items),
        review_versions: old
            .conversion
            .as_ref()
            .and_then(|conversion| conversion.webhook.as_ref())
            .is_none_or(|webhook| {
                webhook.review_versions.is_empty()
                    || webhook.review_versions.iter().any(|version| conversion::is_spoken(version))
            }),
        ca_bundle: old.established && old.has_sound_certificates(),
        pruning: !old.preserve_unknown_fields,
    }
}

fn schemas(definition: &Definition) -> impl Iterator<Item = &Schema> {
    definition.versions.iter().filter_map(|version| version.schema.as_deref())
}

fn any_node(schema: &Schema, holds: &mut impl FnMut(&Schema) -> bool) -> bool {
    holds(schema) || schema.children().any(|child| any_node(child, holds))
}

fn has_default_or_extension(node: &Schema) -> bool {
    node.default.is_some()
        || node.embedded_resource
        || node.preserve_unknown_fields.is_some()
        || node.int_or_string
        || !node.list_map_keys.is_empty()
        || node.list_type.is_some()
        || !node.rules.is_empty()
}

/// Whether some node of some schema has a default.
pub(super) fn has_defaults(definition: &Definition) -> bool {
    schemas(definition).any(|schema| any_node(schema, &mut |node| node.default.is_some()))
}
