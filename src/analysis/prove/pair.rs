//! Two schemas of one field side by side: the old and the new one, and what of their keywords differs. It knows no terms and no
//! objects; [`changes`](super::changes) judges what is found here.

use admit_policy::schema::{AdditionalProperties, Annotations, Checks, ListType, Schema};

use super::view::is_open;

/// The old and the new schema of one node.
#[derive(Clone, Copy)]
pub(super) struct Pair<'p> {
    pub(super) new: &'p Schema,
    pub(super) old: Option<&'p Schema>,
}

impl<'p> Pair<'p> {
    pub(super) fn property(self, name: &str) -> Option<Self> {
        let old = self.old.and_then(|old| old.child(name));
        self.new.properties.get(name).map(|new| Self { new, old })
    }

    pub(super) fn item(self) -> Option<Self> {
        let old = self.old.and_then(|old| old.items.as_deref());
        self.new.items.as_deref().map(|new| Self { new, old })
    }

    pub(super) fn entry(self) -> Option<Self> {
        let old = self.old.and_then(|old| old.additional_schema());
        self.new.additional_schema().map(|new| Self { new, old })
    }

    /// Reports whether both schemas are equal.
    pub(super) fn is_same(self) -> bool {
        self.old == Some(self.new)
    }

    /// Reports whether the schema or one below it is that of an embedded object now and was not before.
    pub(super) fn embeds_anew(self) -> bool {
        let was_embedded = self.old.is_some_and(|old| old.embedded_resource);
        let mut below = self.new.properties.keys().filter_map(|name| self.property(name));
        (self.new.embedded_resource && !was_embedded)
            || below.any(Self::embeds_anew)
            || self.item().is_some_and(Self::embeds_anew)
            || self.entry().is_some_and(Self::embeds_anew)
    }

    /// Reports whether list items are correlated by keys now and were not before.
    pub(super) fn is_keyed_anew(self) -> bool {
        let Self { new, old } = self;
        new.list_type == Some(ListType::Map) && !old.is_some_and(|old| are_keyed_alike(old, new))
    }

    /// Reports whether validation ratcheting surely recognises an unchanged value: it correlates neither
    /// undeclared fields nor items of map lists with duplicate keys.
    pub(super) fn is_seen_unchanged(self) -> bool {
        let new = self.new;
        if is_open(new) || (new.schema_type.is_none() && !new.int_or_string) {
            return false;
        }
        let was_embedded = self.old.is_some_and(|old| old.embedded_resource);
        if self.is_keyed_anew() || (new.embedded_resource && !was_embedded) {
            return false;
        }
        let mut below = new.properties.keys().filter_map(|name| self.property(name));
        below.all(Self::is_seen_unchanged)
            && self.item().is_none_or(Self::is_seen_unchanged)
            && self.entry().is_none_or(Self::is_seen_unchanged)
    }
}

/// Reports whether two list schemas correlate old and new items in the same way.
pub(super) fn are_keyed_alike(old: &Schema, new: &Schema) -> bool {
    old.list_type == new.list_type && old.list_map_keys == new.list_map_keys
}

/// Returns the schema without rules, descriptions and other annotations.
pub(super) fn stripped(schema: &Schema) -> Schema {
    let mut schema = schema.clone();
    strip(&mut schema);
    schema
}

fn strip(schema: &mut Schema) {
    schema.rules.clear();
    schema.annotations = Annotations::default();
    schema.properties.values_mut().for_each(strip);
    schema.items.as_deref_mut().into_iter().for_each(strip);
    if let Some(AdditionalProperties::Schema(entry)) = &mut schema.additional_properties {
        strip(entry);
    }
}

/// Splits the checks into one per keyword that differs. For scalars, logical keywords that are equal in
/// both are left out.
pub(super) fn differing(new: &Checks, old: &Checks, is_scalar: bool) -> Vec<(&'static str, Checks)> {
    let mut found: Vec<(&'static str, Checks)> = Vec::new();
    let mut add = |keyword, differs: bool, alone: Checks| {
        if differs && alone != Checks::default() {
            found.push((keyword, alone));
        }
    };
    let none = Checks::default;
    let same_least = (new.minimum, new.exclusive_minimum) == (old.minimum, old.exclusive_minimum);
    let least = Checks { minimum: new.minimum, exclusive_minimum: new.exclusive_minimum, ..none() };
    add("minimum", !same_least, least);
    let same_most = (new.maximum, new.exclusive_maximum) == (old.maximum, old.exclusive_maximum);
    let most = Checks { maximum: new.maximum, exclusive_maximum: new.exclusive_maximum, ..none() };
    add("maximum", !same_most, most);
    add("format", new.format != old.format, Checks { format: new.format.clone(), ..none() });
    add("multipleOf", new.multiple_of != old.multiple_of, Checks { multiple_of: new.multiple_of, ..none() });
    add("minLength", new.min_length != old.min_length, Checks { min_length: new.min_length, ..none() });
    add("maxLength", new.max_length != old.max_length, Checks { max_length: new.max_length, ..none() });
    add("pattern", new.pattern != old.pattern, Checks { pattern: new.pattern.clone(), ..none() });
    add("minItems", new.min_items != old.min_items, Checks { min_items: new.min_items, ..none() });
    add("maxItems", new.max_items != old.max_items, Checks { max_items: new.max_items, ..none() });
    let few = Checks { min_properties: new.min_properties, ..none() };
    add("minProperties", true, few);
    let many = Checks { max_properties: new.max_properties, ..none() };
    add("maxProperties", true, many);
    let members = Checks { enumeration: new.enumeration.clone(), ..none() };
    add("enum", !is_scalar || new.enumeration != old.enumeration, members);
    let differs = |same: bool| !(is_scalar && same);
    add("allOf", differs(new.all_of == old.all_of), Checks { all_of: new.all_of.clone(), ..none() });
    add("anyOf", differs(new.any_of == old.any_of), Checks { any_of: new.any_of.clone(), ..none() });
    add("oneOf", differs(new.one_of == old.one_of), Checks { one_of: new.one_of.clone(), ..none() });
    add("not", differs(new.not == old.not), Checks { not: new.not.clone(), ..none() });
    found
}

/// Reports whether a schema or one below it is that of an embedded object.
pub(super) fn has_embedded(schema: &Schema) -> bool {
    schema.embedded_resource || children(schema).any(has_embedded)
}

/// Reports whether a schema or one below it has a default.
pub(super) fn has_defaults(schema: &Schema) -> bool {
    schema.default.is_some() || children(schema).any(has_defaults)
}

/// The schemas of properties, items and values of a map.
pub(super) fn children(schema: &Schema) -> impl Iterator<Item = &Schema> {
    schema.properties.values().chain(schema.items.as_deref()).chain(schema.additional_schema())
}
