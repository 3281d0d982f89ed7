//! Compares two schemas and derives, for each keyword that differs, the condition under which the new one
//! rejects an object that the old one accepts.
//!
//! Both schemas are walked side by side. Equal parts reject nothing new: stored values were valid before,
//! and a default is validated against its schema when the CustomResourceDefinition is registered.

use admit_policy::schema::{AdditionalProperties, Annotations, Checks, ListType, Schema};
use serde_json::Value;

use super::Undecided;
use super::document::{Form, NodeId, World};
use super::term::{Sort, Term};
use super::told::Told;
use super::value::NULLS;
use super::view::{UNDECLARED, is_open};

/// A keyword or rule of the new definition that may newly reject objects.
#[derive(Clone, Debug)]
pub(super) struct Change {
    /// Path of the keyword or rule in the new definition.
    pub(super) place: String,
    /// Path of the field in objects, without indices and keys.
    pub(super) field: String,
    /// How the server reports the rule; `None` for a keyword.
    pub(super) rule: Option<Told>,
    /// The condition of the rejection; an overapproximation where `guessed` gives a reason.
    pub(super) refused: Term,
    pub(super) guessed: Option<String>,
}

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

/// Reports whether a value has something else where a number or a string is declared.
fn has_odd_value(schema: &Schema, value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Object(fields) if !schema.int_or_string => fields.iter().any(|(name, value)| {
            let declared = schema.child(name).or_else(|| schema.additional_schema());
            declared.is_some_and(|declared| has_odd_value(declared, value))
        }),
        Value::Array(items) if !schema.int_or_string => {
            let declared = schema.items.as_deref();
            declared.is_some_and(|declared| items.iter().any(|item| has_odd_value(declared, item)))
        }
        value => schema.int_or_string && !value.is_string() && !value.is_i64(),
    }
}

/// Walks an object as the new schema reads it and collects the new rejections.
pub(super) struct Judge<'w, 's> {
    pub(super) world: &'w mut World<'s>,
    pub(super) changes: Vec<Change>,
    /// Whether ratcheting applies: only values not recognised as unchanged are validated.
    pub(super) forgives: bool,
}

/// A node with its paths and its two schemas.
struct Place<'p> {
    node: NodeId,
    pair: Pair<'p>,
    schema: String,
    field: String,
}

impl Judge<'_, '_> {
    pub(super) fn whole(&mut self, node: NodeId, pair: Pair<'_>, schema: &str) -> Result<(), Undecided> {
        self.below(&Place { node, pair, schema: schema.to_owned(), field: String::new() })
    }

    /// Judges a part of an object that may have changed.
    pub(super) fn part(
        &mut self,
        node: NodeId,
        pair: Pair<'_>,
        schema: String,
        field: &str,
    ) -> Result<(), Undecided> {
        self.node(&Place { node, pair, schema, field: field.to_owned() })
    }

    /// Judges an item that is not found by its keys as a new one.
    fn lost_item(&mut self, item: &Place<'_>, lost: Term) -> Result<(), Undecided> {
        let before = self.changes.len();
        self.forgives = false;
        let judged = self.node(item);
        self.forgives = true;
        for change in self.changes.iter_mut().skip(before) {
            change.refused = self.world.terms.and(&[lost, change.refused]);
        }
        judged
    }

    fn refuse(&mut self, place: &Place<'_>, keyword: &str, field: String, refused: Term) {
        if self.world.terms.known_bool(refused) == Some(false) {
            return;
        }
        let place = format!("{}.{keyword}", place.schema);
        self.changes.push(Change { place, field, rule: None, refused, guessed: None });
    }

    fn guess(&mut self, place: &Place<'_>, keyword: &str, when: Term, why: String) {
        let unknown = self.world.terms.variable(Sort::Bool);
        let refused = self.world.terms.and(&[when, unknown]);
        if self.world.terms.known_bool(refused) == Some(false) {
            return;
        }
        let (field, place) = (place.field.clone(), format!("{}.{keyword}", place.schema));
        self.changes.push(Change { place, field, rule: None, refused, guessed: Some(why) });
    }

    fn node(&mut self, place: &Place<'_>) -> Result<(), Undecided> {
        if place.pair.is_same() || (self.forgives && place.pair.is_seen_unchanged()) {
            return Ok(());
        }
        self.below(place)
    }

    fn below(&mut self, place: &Place<'_>) -> Result<(), Undecided> {
        self.world.check_size()?;
        if place.pair.is_same() {
            return Ok(());
        }
        let form = self.world.force(place.node)?;
        let here = self.world.node(place.node)?.here;
        if let Some(wrong) = self.world.mismatches.get(&place.node).copied() {
            let wrong = self.world.terms.and(&[here, wrong]);
            self.refuse(place, "type", place.field.clone(), wrong);
        }
        self.null(place)?;
        self.embedded(place, here);
        self.odd_default(place, here);
        self.keywords(place, &form, here)?;
        self.required(place, here)?;
        match form {
            Form::Object(_) => {
                for name in place.pair.new.properties.keys() {
                    let (Some(pair), Some(node)) =
                        (place.pair.property(name), self.world.property(place.node, name)?)
                    else {
                        continue;
                    };
                    let schema = format!("{}.properties[{name}]", place.schema);
                    let below = Place { node, pair, schema, field: joined(&place.field, name) };
                    // Ratcheting never applies to `apiVersion` and `kind` of the object.
                    let is_kind = place.field.is_empty() && matches!(&**name, "apiVersion" | "kind");
                    let forgives = self.forgives;
                    self.forgives = forgives && !is_kind;
                    let judged = self.node(&below);
                    self.forgives = forgives;
                    judged?;
                }
            }
            Form::List { items, .. } => {
                let Some(pair) = place.pair.item() else { return Ok(()) };
                for (at, node) in items.iter().enumerate() {
                    let schema = format!("{}.items", place.schema);
                    let below = Place { node: *node, pair, schema, field: format!("{}[]", place.field) };
                    self.node(&below)?;
                    if self.forgives && place.pair.is_keyed_anew() {
                        let lost = self.world.lost(&place.pair.new.list_map_keys, items.get(..at), *node)?;
                        self.lost_item(&below, lost)?;
                    }
                }
            }
            Form::Map { entries, .. } => {
                let Some(pair) = place.pair.entry() else { return Ok(()) };
                for (_, node) in entries {
                    let schema = format!("{}.additionalProperties", place.schema);
                    self.node(&Place { node, pair, schema, field: format!("{}[]", place.field) })?;
                }
            }
            Form::Bool(_) | Form::Int(_) | Form::Text(_) | Form::IntOrText { .. } | Form::Any => {}
        }
        Ok(())
    }

    /// Judges nulls that are kept: those of items and map values, and those that an enumeration excludes.
    fn null(&mut self, place: &Place<'_>) -> Result<(), Undecided> {
        let node = self.world.node(place.node)?.clone();
        if self.world.terms.known_bool(node.null) == Some(false) {
            return Ok(());
        }
        let is_null = self.world.terms.and(&[node.present, node.null]);
        if !place.pair.new.nullable {
            self.guess(place, "nullable", is_null, NULLS.to_owned());
        }
        let members = &place.pair.new.checks.enumeration;
        if members.iter().next().is_some() && !members.iter().any(Value::is_null) {
            self.guess(place, "enum", is_null, "nulls in an enumeration".to_owned());
        }
        Ok(())
    }

    /// Requires that an embedded object has `apiVersion`, `kind` and valid metadata, from which ratcheting exempts nothing. In a status,
    /// it is the metadata alone.
    fn embedded(&mut self, place: &Place<'_>, here: Term) {
        let was_embedded = place.pair.old.is_some_and(|old| old.embedded_resource);
        if place.pair.new.embedded_resource && !was_embedded {
            let why = "what embedded objects must have".to_owned();
            self.guess(place, "x-kubernetes-embedded-resource", here, why);
        }
    }

    /// A server takes any default for a field that may be a number or a string.
    fn odd_default(&mut self, place: &Place<'_>, here: Term) {
        let (new, old) = (place.pair.new, place.pair.old);
        let Some(default) = new.default.as_ref().filter(|value| value.is_object() || value.is_array()) else {
            return;
        };
        if old.is_none_or(|old| old.default != new.default) && has_odd_value(new, default) {
            let why = "a default that is neither a number nor a string".to_owned();
            self.guess(place, "default", here, why);
        }
    }

    fn required(&mut self, place: &Place<'_>, here: Term) -> Result<(), Undecided> {
        for name in &place.pair.new.checks.required {
            let field = joined(&place.field, name);
            match self.world.property(place.node, name)? {
                Some(child) => {
                    let present = self.world.node(child)?.present;
                    let absent = self.world.terms.not(present);
                    let refused = self.world.terms.and(&[here, absent]);
                    self.refuse(place, "required", field, refused);
                }
                None => self.guess(place, "required", here, format!("`{name}`, which is not declared")),
            }
        }
        Ok(())
    }

    fn keywords(&mut self, place: &Place<'_>, form: &Form, here: Term) -> Result<(), Undecided> {
        let new = place.pair.new;
        let none = Checks::default();
        let old = place.pair.old.map_or(&none, |old| &*old.checks);
        let is_scalar =
            matches!(form, Form::Bool(_) | Form::Int(_) | Form::Text(_) | Form::IntOrText { .. } | Form::Any);
        let is_partial = self.world.partial.contains(&place.node);
        if is_partial {
            self.guess(place, "additionalProperties", here, UNDECLARED.to_owned());
        }
        for (keyword, checks) in differing(&new.checks, old, is_scalar) {
            let alone =
                Schema { schema_type: new.schema_type.clone(), checks: checks.into(), ..Schema::default() };
            if is_partial || matches!(form, Form::Any) {
                self.guess(place, keyword, here, "bounds of unsupported values".to_owned());
                continue;
            }
            if matches!((form, keyword), (Form::Object(_), "minProperties" | "maxProperties")) {
                self.properties(place, keyword, &alone.checks, here)?;
                continue;
            }
            if let (Form::Int(int), "format") = (form, keyword) {
                self.short(place, *int, &alone, here);
                continue;
            }
            for demand in self.world.demands(place.node, &alone)? {
                match demand {
                    Ok(holds) => {
                        let broken = self.world.terms.not(holds);
                        let refused = self.world.terms.and(&[here, broken]);
                        self.refuse(place, keyword, place.field.clone(), refused);
                    }
                    Err(why) => self.guess(place, keyword, here, why),
                }
            }
        }
        self.duplicates(place, form, here)
    }

    fn properties(
        &mut self,
        place: &Place<'_>,
        keyword: &str,
        checks: &Checks,
        here: Term,
    ) -> Result<(), Undecided> {
        let Some(count) = self.world.count_properties(place.node)? else {
            self.guess(place, keyword, here, "bounds of the number of properties".to_owned());
            return Ok(());
        };
        let terms = &mut self.world.terms;
        let broken = match (checks.min_properties, checks.max_properties) {
            (Some(least), _) => {
                let least = terms.int(least);
                terms.lt(count, least)
            }
            (None, Some(most)) => {
                let most = terms.int(most);
                terms.lt(most, count)
            }
            (None, None) => return Ok(()),
        };
        let refused = terms.and(&[here, broken]);
        self.refuse(place, keyword, place.field.clone(), refused);
        Ok(())
    }

    /// Judges the range of the format `int32`.
    fn short(&mut self, place: &Place<'_>, int: Term, schema: &Schema, here: Term) {
        if schema.checks.format.as_deref() != Some("int32") {
            return;
        }
        let terms = &mut self.world.terms;
        let (least, most) = (terms.int(i64::from(i32::MIN)), terms.int(i64::from(i32::MAX)));
        let (low, high) = (terms.lt(int, least), terms.lt(most, int));
        let beyond = terms.or(&[low, high]);
        let refused = terms.and(&[here, beyond]);
        self.refuse(place, "format", place.field.clone(), refused);
    }

    /// Judges duplicate items of sets and map lists.
    fn duplicates(&mut self, place: &Place<'_>, form: &Form, here: Term) -> Result<(), Undecided> {
        let (Form::List { items, .. }, new) = (form, place.pair.new) else { return Ok(()) };
        let is_as_it_was = place.pair.old.is_some_and(|old| {
            let item = place.pair.item();
            are_keyed_alike(old, new) && item.is_some_and(Pair::is_same)
        });
        if is_as_it_was || self.forgives {
            return Ok(());
        }
        match self.world.distinct(new, items)? {
            None => {}
            Some(Ok(distinct)) => {
                let broken = self.world.terms.not(distinct);
                let refused = self.world.terms.and(&[here, broken]);
                self.refuse(place, "x-kubernetes-list-type", format!("{}[]", place.field), refused);
            }
            Some(Err(why)) => self.guess(place, "x-kubernetes-list-type", here, why),
        }
        Ok(())
    }
}

pub(super) fn joined(field: &str, name: &str) -> String {
    if field.is_empty() { name.to_owned() } else { format!("{field}.{name}") }
}

/// Splits the checks into one per keyword that differs. For scalars, logical keywords that are equal in
/// both are left out.
fn differing(new: &Checks, old: &Checks, is_scalar: bool) -> Vec<(&'static str, Checks)> {
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
