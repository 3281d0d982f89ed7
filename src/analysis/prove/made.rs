//! Models nodes derived from other nodes: an object read with another schema (pruned, defaulted, reinterpreted), and an item that is
//! one of several.
//!
//! Each such node records its possible sources ([`Origin`]) and their conditions. [`World::mismatches`] says when the source has
//! another type than the schema's.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use admit_policy::schema::{Schema, SchemaType};
use serde_json::Value as Json;

use super::Undecided;
use super::document::{Form, Node, NodeId, Origin, Sources, World};
use super::term::{Sort, Term};
use super::view::is_open;

/// The schema for an undeclared field whose value has another type than is declared later.
static A_FLAG: LazyLock<Schema> = LazyLock::new(|| of_type(SchemaType::Boolean));
static A_TEXT: LazyLock<Schema> = LazyLock::new(|| of_type(SchemaType::String));

fn of_type(schema_type: SchemaType) -> Schema {
    Schema { schema_type: Some(schema_type), ..Schema::default() }
}

/// An undeclared property name, for objects that allow any property.
const ANY_NAME: &str = "undeclared";

/// A source node and the condition under which it is the one.
struct Piece<'s> {
    when: Term,
    from: From<'s>,
}

enum From<'s> {
    Form(Form, &'s Schema, NodeId),
    Json(&'s Json),
}

/// The schema and position of a node to derive.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Wanted {
    Bool,
    Int,
    Text,
    IntOrText,
    Object,
    Map,
    List,
    Number,
    Any,
}

impl Wanted {
    fn of(schema: &Schema) -> Self {
        match &schema.schema_type {
            _ if schema.int_or_string => Self::IntOrText,
            Some(SchemaType::Boolean) => Self::Bool,
            Some(SchemaType::Integer) => Self::Int,
            Some(SchemaType::String) => Self::Text,
            Some(SchemaType::Number) => Self::Number,
            Some(SchemaType::Object) => match schema.additional_schema() {
                Some(_) if schema.properties.is_empty() => Self::Map,
                Some(_) => Self::Any,
                None => Self::Object,
            },
            Some(SchemaType::Array) if schema.items.is_some() => Self::List,
            Some(SchemaType::Array | SchemaType::Other(_)) | None => Self::Any,
        }
    }
}

impl<'s> World<'s> {
    /// Derives a property: that of the sources, or its default.
    pub(super) fn made_property(
        &mut self,
        id: NodeId,
        name: &str,
        schema: &'s Schema,
        sources: &Sources<'s>,
    ) -> Result<NodeId, Undecided> {
        let here = self.node(id)?.here;
        let mut found = Vec::new();
        // A single source needs no condition but the node's presence.
        let alone = (sources.len() == 1).then(|| self.terms.bool(true));
        let replaced = self.replacement(id, name);
        for (when, origin) in sources.iter() {
            let when = alone.unwrap_or(*when);
            let origin = replaced.map_or(*origin, Origin::Node);
            match origin {
                Origin::Node(node) => self.found_in(node, when, name, schema, &mut found)?,
                Origin::Json(json) => {
                    let value = json.get(name).filter(|value| schema.nullable || !value.is_null());
                    found.extend(value.map(|value| (when, Origin::Json(value))));
                }
            }
        }
        if let Some(default) = &schema.default {
            let any: Vec<Term> = found.iter().map(|(when, _)| *when).collect();
            let any = self.terms.or(&any);
            found.push((self.terms.not(any), Origin::Json(default)));
        }
        let is_valid = self.node(id)?.is_valid;
        let was_written = found.iter().find_map(|(when, origin)| match origin {
            Origin::Node(node) => Some((*when, *node)),
            Origin::Json(_) => None,
        });
        let child = self.made(schema, here, found.into(), is_valid)?;
        if is_valid && self.tells_defaults {
            let never = self.terms.bool(false);
            let (was_written, raw) = was_written.unwrap_or((never, child));
            self.note_written(child, was_written, raw);
        }
        Ok(child)
    }

    /// Collects the sources' values of a property; nulls only where the schema allows them.
    fn found_in(
        &mut self,
        node: NodeId,
        when: Term,
        name: &str,
        schema: &'s Schema,
        found: &mut Vec<(Term, Origin<'s>)>,
    ) -> Result<(), Undecided> {
        match self.force(node)? {
            Form::Object(_) => {
                let child = match self.property(node, name)? {
                    Some(child) => Some(child),
                    None if is_open(self.node(node)?.schema) => Some(self.undeclared(node, name, schema)?),
                    None => None,
                };
                if let Some(child) = child {
                    let child_node = self.node(child)?.clone();
                    let present =
                        child_node.written.map_or(child_node.present, |(was_written, _)| was_written);
                    let there = self.there(when, present, child_node.null, schema);
                    found.push((there, Origin::Node(child)));
                }
            }
            Form::Map { entries, .. } => {
                for (key, entry) in entries {
                    let (present, null) = (self.node(entry)?.present, self.node(entry)?.null);
                    let name = self.constant(name)?;
                    let same = self.terms.eq(key, name);
                    let there = self.there(when, present, null, schema);
                    found.push((self.terms.and(&[there, same]), Origin::Node(entry)));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn there(&mut self, when: Term, present: Term, null: Term, schema: &Schema) -> Term {
        let counts = if schema.nullable { self.terms.bool(true) } else { self.terms.not(null) };
        self.terms.and(&[when, present, counts])
    }

    /// Models a field that the schema of an open object does not declare, with another type than `declared`.
    fn undeclared(&mut self, node: NodeId, name: &str, declared: &Schema) -> Result<NodeId, Undecided> {
        let schema: &'static Schema = match &declared.schema_type {
            Some(SchemaType::Boolean) => &A_TEXT,
            _ => &A_FLAG,
        };
        let (here, present) = (self.node(node)?.here, self.terms.variable(Sort::Bool));
        let child = self.below(schema, here, present, false);
        self.undeclared.insert(child);
        self.insert(node, name, child);
        Ok(child)
    }

    /// Creates a property with a default, apart from the value written in its place.
    pub(super) fn written_property(&mut self, schema: &'s Schema, above: Term) -> Result<NodeId, Undecided> {
        let was_written = self.terms.variable(Sort::Bool);
        let raw = self.below(schema, above, was_written, false);
        let null = self.node(raw)?.null;
        let there = self.there(was_written, was_written, null, schema);
        let absent = self.terms.not(there);
        let mut found = vec![(there, Origin::Node(raw))];
        found.extend(schema.default.as_ref().map(|default| (absent, Origin::Json(default))));
        let made = self.made(schema, above, found.into(), true)?;
        self.note_written(made, was_written, raw);
        Ok(made)
    }

    /// Creates a node whose value is that of one of several sources.
    pub(super) fn made(
        &mut self,
        schema: &'s Schema,
        above: Term,
        sources: Sources<'s>,
        is_valid: bool,
    ) -> Result<NodeId, Undecided> {
        let (mut present, mut nulls) = (Vec::new(), Vec::new());
        for (when, origin) in sources.iter() {
            present.push(*when);
            let null = match origin {
                Origin::Node(node) => self.node(*node)?.null,
                Origin::Json(json) => self.terms.bool(json.is_null()),
            };
            nulls.push(self.terms.and(&[*when, null]));
        }
        let (present, null) = (self.terms.or(&present), self.terms.or(&nulls));
        let not_null = self.terms.not(null);
        let here = self.terms.and(&[above, present, not_null]);
        let (form, made_of) = (None, Some(sources));
        Ok(self.add(Node {
            schema,
            present,
            null,
            here,
            form,
            is_metadata: false,
            is_valid,
            made_of,
            written: None,
        }))
    }

    /// Creates the value of a derived node.
    pub(super) fn made_form(
        &mut self,
        id: NodeId,
        schema: &'s Schema,
        here: Term,
        sources: &Sources<'s>,
    ) -> Result<Form, Undecided> {
        let mut pieces = Vec::new();
        for (when, origin) in sources.iter() {
            let from = match origin {
                Origin::Node(node) => From::Form(self.force(*node)?, self.node(*node)?.schema, *node),
                Origin::Json(json) => From::Json(json),
            };
            pieces.push(Piece { when: *when, from });
        }
        let wanted = Wanted::of(schema);
        let mut wrong = Vec::new();
        for piece in &pieces {
            let is_wrong = self.is_other(wanted, piece)?;
            wrong.push(self.terms.and(&[piece.when, is_wrong]));
        }
        let wrong = self.terms.or(&wrong);
        self.mismatches.insert(id, wrong);
        Ok(match wanted {
            Wanted::Bool | Wanted::Int | Wanted::Text | Wanted::IntOrText => {
                self.made_scalar(wanted, &pieces)
            }
            Wanted::Object => Form::Object(BTreeMap::new()),
            Wanted::List => self.made_list(schema, here, &pieces, id)?,
            Wanted::Map => self.made_map(schema, here, &pieces, id)?,
            Wanted::Number | Wanted::Any => Form::Any,
        })
    }

    /// Returns whether a source has another type than wanted.
    fn is_other(&mut self, wanted: Wanted, piece: &Piece<'s>) -> Result<Term, Undecided> {
        let fits = match (&piece.from, wanted) {
            (From::Json(Json::Null), _) | (_, Wanted::Any) => true,
            (From::Json(json), wanted) => match wanted {
                Wanted::Bool => json.is_boolean(),
                Wanted::Int => json.is_i64(),
                Wanted::Text => json.is_string(),
                Wanted::IntOrText => json.is_i64() || json.is_string(),
                Wanted::Object | Wanted::Map => json.is_object(),
                Wanted::List => json.is_array(),
                Wanted::Number => json.is_number(),
                Wanted::Any => true,
            },
            (From::Form(form, schema, _), wanted) => match (form, wanted) {
                (Form::IntOrText { is_int, .. }, Wanted::Int | Wanted::Number) => {
                    return Ok(self.terms.not(*is_int));
                }
                (Form::IntOrText { is_int, .. }, Wanted::Text) => return Ok(*is_int),
                (Form::Any, wanted) => return Ok(self.is_other_unseen(wanted, schema)),
                (Form::Bool(_), Wanted::Bool)
                | (Form::Int(_), Wanted::Int | Wanted::IntOrText | Wanted::Number)
                | (Form::Text(_), Wanted::Text | Wanted::IntOrText)
                | (Form::IntOrText { .. }, Wanted::IntOrText)
                | (Form::Object(_) | Form::Map { .. }, Wanted::Object | Wanted::Map)
                | (Form::List { .. }, Wanted::List) => true,
                _ => false,
            },
        };
        Ok(self.terms.bool(!fits))
    }

    /// Guesses whether a source of unknown type mismatches; it surely does if the sample reported for it has another type.
    fn is_other_unseen(&mut self, wanted: Wanted, schema: &Schema) -> Term {
        let told = super::model::anything(schema);
        let is_number = schema.is_type(&SchemaType::Number);
        let fits = match wanted {
            Wanted::Number if is_number => return self.terms.bool(false),
            Wanted::Int | Wanted::Number => told.is_number(),
            Wanted::Object | Wanted::Map => told.is_object(),
            Wanted::List => told.is_array(),
            Wanted::IntOrText => told.is_number() || told.is_string(),
            Wanted::Bool => told.is_boolean(),
            Wanted::Text => told.is_string(),
            Wanted::Any => true,
        };
        if !fits {
            return self.terms.bool(true);
        }
        self.relax("values of unsupported types");
        self.terms.variable(Sort::Bool)
    }

    fn made_scalar(&mut self, wanted: Wanted, pieces: &[Piece<'s>]) -> Form {
        let (mut flag, mut int) = (self.terms.bool(false), self.terms.int(0));
        let (mut is_int, mut text) = (self.terms.bool(true), self.terms.text(""));
        for (nth, piece) in pieces.iter().rev().enumerate() {
            // The last source is the only one left, so it needs no condition.
            let when = if nth == 0 { self.terms.bool(true) } else { piece.when };
            let (new_flag, new_int, new_text, new_is_int) = match &piece.from {
                From::Form(Form::Bool(value), ..) => (Some(*value), None, None, None),
                From::Form(Form::Int(value), ..) => (None, Some(*value), None, Some(self.terms.bool(true))),
                From::Form(Form::Text(value), ..) => (None, None, Some(*value), Some(self.terms.bool(false))),
                From::Form(Form::IntOrText { is_int, int, text }, ..) => {
                    (None, Some(*int), Some(*text), Some(*is_int))
                }
                From::Form(..) => continue,
                From::Json(json) => {
                    let new_flag = json.as_bool().map(|value| self.terms.bool(value));
                    let new_int = json.as_i64().map(|value| self.terms.int(value));
                    let new_text = json.as_str().map(|value| self.terms.text(value));
                    let is_int = self.terms.bool(json.is_i64());
                    (new_flag, new_int, new_text, Some(is_int))
                }
            };
            flag = new_flag.map_or(flag, |value| self.terms.ite(when, value, flag));
            int = new_int.map_or(int, |value| self.terms.ite(when, value, int));
            text = new_text.map_or(text, |value| self.terms.ite(when, value, text));
            is_int = new_is_int.map_or(is_int, |value| self.terms.ite(when, value, is_int));
        }
        match wanted {
            Wanted::Bool => Form::Bool(flag),
            Wanted::Int => Form::Int(int),
            Wanted::Text => Form::Text(text),
            _ => Form::IntOrText { is_int, int, text },
        }
    }

    fn made_list(
        &mut self,
        schema: &'s Schema,
        here: Term,
        pieces: &[Piece<'s>],
        id: NodeId,
    ) -> Result<Form, Undecided> {
        let is_valid = self.node(id)?.is_valid;
        let Some(item_schema) = schema.items.as_deref() else { return Ok(Form::Any) };
        let alone = pieces.len() == 1;
        let mut columns: Vec<Vec<(Term, Origin<'s>)>> = Vec::new();
        for piece in pieces {
            let when = if alone { self.terms.bool(true) } else { piece.when };
            let origins: Vec<(Term, Origin<'s>)> = match &piece.from {
                From::Form(Form::List { items, .. }, ..) => {
                    let mut found = Vec::new();
                    for item in items {
                        let present = self.node(*item)?.present;
                        found.push((self.terms.and(&[when, present]), Origin::Node(*item)));
                    }
                    found
                }
                From::Json(Json::Array(items)) => {
                    items.iter().map(|item| (when, Origin::Json(item))).collect()
                }
                _ => Vec::new(),
            };
            for (at, origin) in origins.into_iter().enumerate() {
                match columns.get_mut(at) {
                    Some(column) => column.push(origin),
                    None => columns.push(vec![origin]),
                }
            }
        }
        let mut items = Vec::new();
        for column in columns {
            items.push(self.made(item_schema, here, column.into(), is_valid)?);
        }
        let present =
            items.iter().map(|item| Ok(self.node(*item)?.present)).collect::<Result<Vec<_>, _>>()?;
        let length = self.count(present);
        if is_valid && let Some(Ok(distinct)) = self.distinct(schema, &items)? {
            self.assume(here, distinct);
        }
        Ok(Form::List { length, items })
    }

    fn made_map(
        &mut self,
        schema: &'s Schema,
        here: Term,
        pieces: &[Piece<'s>],
        id: NodeId,
    ) -> Result<Form, Undecided> {
        let is_valid = self.node(id)?.is_valid;
        let Some(entry_schema) = schema.additional_schema() else { return Ok(Form::Any) };
        let alone = pieces.len() == 1;
        let mut found: Vec<(Term, Term, Origin<'s>)> = Vec::new();
        for piece in pieces {
            let when = if alone { self.terms.bool(true) } else { piece.when };
            match &piece.from {
                From::Form(Form::Map { entries, .. }, ..) => {
                    for (key, entry) in entries {
                        let (present, null) = (self.node(*entry)?.present, self.node(*entry)?.null);
                        found.push((
                            self.there(when, present, null, entry_schema),
                            *key,
                            Origin::Node(*entry),
                        ));
                    }
                }
                From::Form(Form::Object(_), object_schema, node) => {
                    if is_open(object_schema) {
                        self.relax("undeclared properties");
                        self.partial.insert(id);
                        self.undeclared(*node, ANY_NAME, entry_schema)?;
                    }
                    let names = object_schema.properties.keys().map(|name| &**name);
                    for name in names.chain(is_open(object_schema).then_some(ANY_NAME)) {
                        let Some(child) = self.property(*node, name)? else { continue };
                        let child_node = self.node(child)?.clone();
                        let present = child_node.written.map_or(child_node.present, |(written, _)| written);
                        let there = self.there(when, present, child_node.null, entry_schema);
                        found.push((there, self.constant(name)?, Origin::Node(child)));
                    }
                }
                From::Json(Json::Object(map)) => {
                    for (name, value) in
                        map.iter().filter(|(_, value)| entry_schema.nullable || !value.is_null())
                    {
                        found.push((when, self.constant(name)?, Origin::Json(value)));
                    }
                }
                _ => {}
            }
        }
        let mut entries = Vec::new();
        let mut present = Vec::new();
        for (there, key, origin) in found {
            let node = self.made(entry_schema, here, vec![(there, origin)].into(), is_valid)?;
            present.push(there);
            entries.push((key, node));
        }
        let length = self.count(present);
        Ok(Form::Map { length, entries })
    }
}
