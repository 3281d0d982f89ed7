//! Selects the checks that apply to a CRD. On an update, checks that the stored CRD would already fail are skipped:
//! CRDs from before a check existed stay editable (`ValidateCustomResourceDefinitionUpdate`).

use super::{lists, structural};
use crate::crd::definition::Definition;
use crate::schema::{Schema, SchemaType};

/// Rules that are waived where the stored definition breaks them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demands {
    /// Every version has a schema; else served ones alone need one.
    pub(super) schemas: bool,
    /// Types are OpenAPI's.
    pub(super) types: bool,
    pub(super) structural: bool,
    /// Defaults have no unknown fields.
    pub(super) pruned_defaults: bool,
    /// Items of sets are scalars or atomic.
    pub(super) atomic_set_items: bool,
    /// Items of sets and map lists are never null, keys of map lists always there.
    pub(super) sound_items: bool,
    /// A conversion webhook speaks a version that the server does.
    pub(super) review_versions: bool,
    /// The certificates of a conversion webhook can be read. Nobody asks before objects exist.
    pub(super) ca_bundle: bool,
    /// `preserveUnknownFields` may not be true.
    pub(super) pruning: bool,
}

impl Demands {
    /// Those of a creation, or of the update of `replaced`.
    pub(super) fn of(definition: &Definition, replaced: Option<&Definition>) -> Self {
        let Some(old) = replaced else { return Self::ALL };
        let none_has = |broken: &dyn Fn(&Schema) -> bool| {
            !schemas(old).any(|schema| any_node(schema, &mut |node| broken(node)))
        };
        Self {
            schemas: old.versions.iter().all(|version| version.schema.is_some()),
            types: none_has(&|node| matches!(node.schema_type, Some(SchemaType::Other(_)))),
            // Pruning, defaults and extensions need a structural schema, whatever was stored.
            structural: !definition.preserve_unknown_fields
                || schemas(old).all(structural::holds)
                || schemas(definition).any(|schema| any_node(schema, &mut has_default_or_extension)),
            pruned_defaults: schemas(old)
                .all(|schema| !structural::holds(schema) || super::defaults::are_pruned(schema, true)),
            atomic_set_items: none_has(&lists::has_composite_set_items),
            sound_items: none_has(&lists::has_unsound_items),
            review_versions: old
                .conversion
                .as_ref()
                .and_then(|conversion| conversion.webhook.as_ref())
                .is_none_or(|webhook| {
                    webhook.review_versions.is_empty()
                        || webhook.review_versions.iter().any(|version| super::conversion::is_spoken(version))
                }),
            ca_bundle: old.established && old.has_sound_certificates(),
            pruning: !old.preserve_unknown_fields,
        }
    }

    const ALL: Self = Self {
        schemas: true,
        types: true,
        structural: true,
        pruned_defaults: true,
        atomic_set_items: true,
        sound_items: true,
        review_versions: true,
        ca_bundle: false,
        pruning: true,
    };
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
