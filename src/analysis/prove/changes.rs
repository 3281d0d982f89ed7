//! Compares two schemas and derives, for each keyword that differs, the condition under which the new one
//! rejects an object that the old one accepts.
//!
//! Both schemas are walked side by side. Equal parts reject nothing new: stored values were valid before. A new default may be refused by
//! its own schema: registration does not look at defaults in the values of maps, nor at duplicate items in any.

use admit_policy::schema::{self, Checks, Schema};
use serde_json::Value;

use super::Undecided;
use super::document::{Form, NodeId, Origin, World};
use super::pair::{Pair, are_keyed_alike, children, differing, has_defaults, has_embedded};
use super::term::{Sort, Term};
use super::told::Told;
use super::value::NULLS;
use super::view::UNDECLARED;

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

/// Walks an object as the new schema reads it and collects the new rejections.
pub(super) struct Judge<'w, 's> {
    pub(super) world: &'w mut World<'s>,
    pub(super) changes: Vec<Change>,
    /// Whether ratcheting applies: only values not recognised as unchanged are validated.
    pub(super) forgives: bool,
    /// Whether the place is in a value of a map, where registration does not look at defaults.
    pub(super) in_map: bool,
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
        self.default(place, here)?;
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
                let was_in_map = std::mem::replace(&mut self.in_map, true);
                for (_, node) in entries {
                    let schema = format!("{}.additionalProperties", place.schema);
                    self.node(&Place { node, pair, schema, field: format!("{}[]", place.field) })?;
                }
                self.in_map = was_in_map;
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

    /// Judges the default where it is used: with what the schema adds to it, it may be refused by the schema.
    fn default(&mut self, place: &Place<'_>, here: Term) -> Result<(), Undecided> {
        let node = self.world.node(place.node)?.clone();
        let (Some(default), Some(sources)) = (&node.schema.default, &node.made_of) else { return Ok(()) };
        let is_default =
            |origin: &Origin<'_>| matches!(origin, Origin::Json(value) if std::ptr::eq(*value, default));
        let used: Vec<Term> =
            sources.iter().filter(|(_, origin)| is_default(origin)).map(|(when, _)| *when).collect();
        if used.is_empty() {
            return Ok(());
        }
        let used = self.world.terms.or(&used);
        let used = self.world.terms.and(&[here, used]);
        let new = place.pair.new;
        // Ratcheting takes duplicates that were there before.
        if schema::is_default_refused(default, new, !self.forgives) {
            self.refuse(place, "default", place.field.clone(), used);
        } else if has_embedded(new) && (self.in_map || children(new).any(has_defaults)) {
            self.guess(place, "default", used, "the metadata of an embedded object in a default".to_owned());
        }
        Ok(())
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
