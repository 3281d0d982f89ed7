//! An object that may be any that a schema allows: a tree of nodes, each with the terms of its presence and its value.
//! Nodes are made where something asks for them, so that of a schema with thousands of fields a few matter.
//!
//! What is known of valid objects is assumed; what a schema demands and this cannot say is left out and noted in
//! [`World::relaxed`]. So the objects that are thought of are all valid ones, and perhaps others: what holds for them holds,
//! and one that breaks a claim is shown to the engine first.

use std::collections::{BTreeMap, BTreeSet};

use admit_policy::schema::{ListType, Schema, SchemaType};
use serde_json::Value;

use super::regular;
use super::term::{Sort, Term, Terms};
use super::view::{View, is_open};
use super::{Undecided, undecided};

/// Most items that are written out, whatever is declared.
const MOST_ITEMS: usize = 64;
/// Terms of one question.
const MOST_TERMS: usize = 300_000;

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct NodeId(usize);

/// One node.
#[derive(Clone, Debug)]
pub(super) struct Node<'s> {
    pub(super) schema: &'s Schema,
    /// Whether it is there, if what it is in is.
    pub(super) present: Term,
    /// Whether it is null, if it is there.
    pub(super) null: Term,
    /// Whether it and all that it is in are there and not null.
    pub(super) here: Term,
    pub(super) form: Option<Form>,
    /// The metadata of the object, of which the schema says less than the server.
    pub(super) is_metadata: bool,
}

/// The value of a node that is there.
#[derive(Clone, Debug)]
pub(super) enum Form {
    Bool(Term),
    Int(Term),
    Text(Term),
    IntOrText {
        is_int: Term,
        int: Term,
        text: Term,
    },
    /// Its properties, as far as somebody asked.
    Object(BTreeMap<Box<str>, NodeId>),
    List {
        length: Term,
        items: Vec<NodeId>,
    },
    Map {
        length: Term,
        entries: Vec<(Term, NodeId)>,
    },
    /// Nothing is known of it.
    Any,
}

/// All objects of a question, and what is known of them.
#[derive(Debug)]
pub(super) struct World<'s> {
    pub(super) terms: Terms,
    nodes: Vec<Node<'s>>,
    /// What holds for all valid objects.
    pub(super) assumed: Vec<Term>,
    /// What schemas demand and is left out.
    pub(super) relaxed: BTreeSet<String>,
    /// Whether a list or map was cut at [`Self::items`].
    pub(super) is_bounded: bool,
    pub(super) view: View,
    /// Items of lists and entries of maps that are thought of.
    pub(super) items: usize,
}

impl<'s> World<'s> {
    pub(super) fn new(items: usize, view: View) -> Self {
        Self {
            terms: Terms::default(),
            nodes: Vec::new(),
            assumed: Vec::new(),
            relaxed: BTreeSet::new(),
            is_bounded: false,
            view,
            items: items.clamp(1, MOST_ITEMS),
        }
    }

    /// Fails when there are too many terms.
    pub(super) fn check_size(&self) -> Result<(), Undecided> {
        if self.terms.len() > MOST_TERMS {
            return Err(undecided("more combinations than can be written out; fewer --items may help"));
        }
        Ok(())
    }

    /// A whole object.
    pub(super) fn root(&mut self, schema: &'s Schema) -> NodeId {
        let (yes, no) = (self.terms.bool(true), self.terms.bool(false));
        self.add(Node { schema, present: yes, null: no, here: yes, form: None, is_metadata: false })
    }

    fn add(&mut self, node: Node<'s>) -> NodeId {
        self.nodes.push(node);
        NodeId(self.nodes.len().saturating_sub(1))
    }

    pub(super) fn node(&self, id: NodeId) -> Result<&Node<'s>, Undecided> {
        self.nodes.get(id.0).ok_or_else(|| undecided("a node that is not there"))
    }

    /// A condition on a node, wherever it is there.
    fn assume(&mut self, here: Term, condition: Term) {
        let assumed = self.terms.implies(here, condition);
        if self.terms.known_bool(assumed) != Some(true) {
            self.assumed.push(assumed);
        }
    }

    fn relax(&mut self, what: impl Into<String>) {
        self.relaxed.insert(what.into());
    }

    /// The property of an object; none where the schema has no such property.
    pub(super) fn property(&mut self, id: NodeId, name: &str) -> Result<Option<NodeId>, Undecided> {
        self.force(id)?;
        let parent = self.node(id)?.clone();
        let Some(Form::Object(known)) = &parent.form else { return Ok(None) };
        if let Some(child) = known.get(name) {
            return Ok(Some(*child));
        }
        let Some(schema) = parent.schema.properties.get(name) else { return Ok(None) };
        let is_demanded = parent.schema.checks.required.iter().any(|required| **required == *name);
        let present = if is_demanded || schema.default.is_some() {
            self.terms.bool(true)
        } else {
            self.terms.variable(Sort::Bool)
        };
        if parent.is_metadata && matches!(name, "labels" | "annotations" | "finalizers") {
            self.relax("what labels, annotations and finalizers may be");
        }
        let child = self.below(schema, parent.here, present);
        self.insert(id, name, child);
        Ok(Some(child))
    }

    fn insert(&mut self, id: NodeId, name: &str, child: NodeId) {
        if let Some(Node { form: Some(Form::Object(known)), .. }) = self.nodes.get_mut(id.0) {
            known.insert(name.into(), child);
        }
    }

    fn below(&mut self, schema: &'s Schema, above: Term, present: Term) -> NodeId {
        let members = &schema.checks.enumeration;
        let may_be_null =
            schema.nullable && (members.iter().next().is_none() || members.iter().any(Value::is_null));
        let null = if may_be_null { self.terms.variable(Sort::Bool) } else { self.terms.bool(false) };
        let not_null = self.terms.not(null);
        let here = self.terms.and(&[above, present, not_null]);
        self.add(Node { schema, present, null, here, form: None, is_metadata: false })
    }

    /// Says that a node is the metadata of an object.
    pub(super) fn mark_metadata(&mut self, id: NodeId) {
        if let Some(node) = self.nodes.get_mut(id.0) {
            node.is_metadata = true;
        }
    }

    /// Makes the value of a node.
    pub(super) fn force(&mut self, id: NodeId) -> Result<Form, Undecided> {
        self.check_size()?;
        let node = self.node(id)?;
        if let Some(form) = &node.form {
            return Ok(form.clone());
        }
        let (schema, here) = (node.schema, node.here);
        let form = self.form(schema, here)?;
        if let Some(node) = self.nodes.get_mut(id.0) {
            node.form = Some(form.clone());
        }
        self.checks(id, schema, here)?;
        Ok(form)
    }

    fn form(&mut self, schema: &'s Schema, here: Term) -> Result<Form, Undecided> {
        if schema.int_or_string {
            let is_int = self.terms.variable(Sort::Bool);
            let (int, text) = (self.whole_number(here, false), self.terms.variable(Sort::Text));
            return Ok(Form::IntOrText { is_int, int, text });
        }
        Ok(match &schema.schema_type {
            Some(SchemaType::Boolean) => Form::Bool(self.terms.variable(Sort::Bool)),
            Some(SchemaType::Integer) => {
                let is_short = schema.checks.format.as_deref() == Some("int32");
                Form::Int(self.whole_number(here, is_short))
            }
            Some(SchemaType::String) => Form::Text(self.terms.variable(Sort::Text)),
            Some(SchemaType::Object) => match schema.additional_schema() {
                Some(entry) if schema.properties.is_empty() => self.map(schema, entry, here)?,
                Some(_) => Form::Any,
                None => Form::Object(BTreeMap::new()),
            },
            Some(SchemaType::Array) => match schema.items.as_deref() {
                Some(item) => self.list(schema, item, here)?,
                None => Form::Any,
            },
            Some(SchemaType::Number | SchemaType::Other(_)) | None => Form::Any,
        })
    }

    fn whole_number(&mut self, here: Term, is_short: bool) -> Term {
        let int = self.terms.variable(Sort::Int);
        let (least, most) = if is_short {
            (i128::from(i32::MIN), i128::from(i32::MAX))
        } else {
            (i128::from(i64::MIN), i128::from(i64::MAX))
        };
        self.between(here, int, Some(least), Some(most));
        int
    }

    fn between(&mut self, here: Term, value: Term, least: Option<i128>, most: Option<i128>) {
        if let Some(least) = least {
            let least = self.terms.int(least);
            let holds = self.terms.le(least, value);
            self.assume(here, holds);
        }
        if let Some(most) = most {
            let most = self.terms.int(most);
            let holds = self.terms.le(value, most);
            self.assume(here, holds);
        }
    }

    /// How many items are written out: as many as may be there, but for a bound that is asked for.
    fn room(&mut self, least: Option<i64>, most: Option<i64>) -> Result<usize, Undecided> {
        let count = |bound: i64| usize::try_from(bound.max(0)).unwrap_or(usize::MAX);
        let least = least.map_or(0, count);
        if least > MOST_ITEMS {
            return Err(undecided(format!("a list or map of no fewer than {least} items")));
        }
        let bound = self.items.max(least);
        Ok(match most.map(count) {
            Some(most) if most <= bound => most,
            _ => {
                self.is_bounded = true;
                bound
            }
        })
    }

    fn length(&mut self, here: Term, room: usize, least: Option<i64>) -> Term {
        let length = self.terms.variable(Sort::Int);
        let most = i128::try_from(room).unwrap_or(i128::MAX);
        self.between(here, length, Some(i128::from(least.unwrap_or(0).max(0))), Some(most));
        length
    }

    fn list(&mut self, schema: &'s Schema, item: &'s Schema, here: Term) -> Result<Form, Undecided> {
        let checks = &schema.checks;
        let room = self.room(checks.min_items, checks.max_items)?;
        let length = self.length(here, room, checks.min_items);
        let mut items = Vec::new();
        for at in 0..room {
            let at = self.terms.int(i128::try_from(at).unwrap_or(i128::MAX));
            let is_there = self.terms.lt(at, length);
            items.push(self.below(item, here, is_there));
        }
        match &schema.list_type {
            Some(ListType::Set) => self.distinct(here, &items, &[])?,
            Some(ListType::Map) => self.distinct(here, &items, &schema.list_map_keys)?,
            Some(ListType::Atomic | ListType::Other(_)) | None => {}
        }
        Ok(Form::List { length, items })
    }

    fn map(&mut self, schema: &'s Schema, entry: &'s Schema, here: Term) -> Result<Form, Undecided> {
        let checks = &schema.checks;
        let room = self.room(checks.min_properties, checks.max_properties)?;
        let length = self.length(here, room, checks.min_properties);
        let mut entries: Vec<(Term, NodeId)> = Vec::new();
        for at in 0..room {
            let at = self.terms.int(i128::try_from(at).unwrap_or(i128::MAX));
            let is_there = self.terms.lt(at, length);
            let key = self.terms.variable(Sort::Text);
            let above = self.terms.and(&[here, is_there]);
            for (other, _) in &entries {
                let same = self.terms.eq(*other, key);
                let different = self.terms.not(same);
                self.assume(above, different);
            }
            let node = self.below(entry, here, is_there);
            entries.push((key, node));
        }
        Ok(Form::Map { length, entries })
    }

    /// Items of a set, or those of a map list by their keys, are not there twice.
    fn distinct(&mut self, here: Term, items: &[NodeId], keys: &[Box<str>]) -> Result<(), Undecided> {
        let whole: [Option<&str>; 1] = [None];
        let named: Vec<Option<&str>> = keys.iter().map(|key| Some(&**key)).collect();
        let parts: &[Option<&str>] = if keys.is_empty() { &whole } else { &named };
        for (at, item) in items.iter().enumerate() {
            for other in items.iter().take(at) {
                let mut same = Vec::new();
                for part in parts {
                    match self.same_scalar(*other, *item, *part)? {
                        Some(equal) => same.push(equal),
                        None => {
                            self.relax("items that are told apart by other than texts, numbers and booleans");
                            return Ok(());
                        }
                    }
                }
                let same = self.terms.and(&same);
                let different = self.terms.not(same);
                let there = self.node(*item)?.present;
                let above = self.terms.and(&[here, there]);
                self.assume(above, different);
            }
        }
        Ok(())
    }

    fn same_scalar(
        &mut self,
        left: NodeId,
        right: NodeId,
        part: Option<&str>,
    ) -> Result<Option<Term>, Undecided> {
        let (left, right) = match part {
            None => (left, right),
            Some(name) => match (self.property(left, name)?, self.property(right, name)?) {
                (Some(left), Some(right)) => (left, right),
                _ => return Ok(None),
            },
        };
        let (left_form, right_form) = (self.force(left)?, self.force(right)?);
        let equal = match (left_form, right_form) {
            (Form::Text(a), Form::Text(b))
            | (Form::Int(a), Form::Int(b))
            | (Form::Bool(a), Form::Bool(b)) => self.terms.eq(a, b),
            _ => return Ok(None),
        };
        let (a, b) = (self.node(left)?.clone(), self.node(right)?.clone());
        let no_nulls = [a.null, b.null].iter().all(|null| self.terms.known_bool(*null) == Some(false));
        if part.is_none() {
            return Ok(no_nulls.then_some(equal));
        }
        let is_there = [a.present, b.present].iter().all(|there| self.terms.known_bool(*there) == Some(true));
        Ok((no_nulls && is_there).then_some(equal))
    }

    /// What the schema demands of a node of its own.
    fn checks(&mut self, id: NodeId, schema: &'s Schema, here: Term) -> Result<(), Undecided> {
        let demands = self.demands(id, schema)?;
        for demand in demands {
            match demand {
                Ok(condition) => self.assume(here, condition),
                Err(what) => self.relax(what),
            }
        }
        if matches!(self.node(id)?.form, Some(Form::Any)) {
            self.relax("values of types that are not followed");
        }
        let mut required = schema.checks.required.iter();
        let has_undeclared = required.any(|name| !schema.properties.contains_key(name));
        if schema.is_type(&SchemaType::Object) && has_undeclared {
            self.relax("required fields that are not declared");
        }
        // Required properties are there; that the others of a minimal number are, is left out.
        if schema.is_type(&SchemaType::Object) && schema.additional_schema().is_none() {
            let checks = &schema.checks;
            if checks.min_properties.is_some_and(|least| least > 0) || checks.max_properties.is_some() {
                let count = self.count_properties(id)?;
                match count {
                    Some(count) => {
                        let (least, most) = (checks.min_properties, checks.max_properties);
                        self.between(here, count, least.map(i128::from), most.map(i128::from));
                    }
                    None => self.relax("a number of properties"),
                }
            }
        }
        Ok(())
    }

    /// How many properties an object has; none where there may be undeclared ones.
    pub(super) fn count_properties(&mut self, id: NodeId) -> Result<Option<Term>, Undecided> {
        let node = self.node(id)?;
        let (schema, is_metadata) = (node.schema, node.is_metadata);
        if is_open(schema) || is_metadata {
            return Ok(None);
        }
        let mut parts = Vec::new();
        for name in schema.properties.keys() {
            let Some(child) = self.property(id, name)? else { return Ok(None) };
            let present = self.node(child)?.present;
            let (one, zero) = (self.terms.int(1), self.terms.int(0));
            parts.push(self.terms.ite(present, one, zero));
        }
        Ok(Some(self.terms.sum(&parts)))
    }

    /// Properties that an object must have are made, so that a model says what they are; as deep as `depth`.
    pub(super) fn complete(&mut self, id: NodeId, depth: usize) -> Result<(), Undecided> {
        let Some(depth) = depth.checked_sub(1) else { return Ok(()) };
        match self.force(id)? {
            Form::Object(_) => {
                let schema = self.node(id)?.schema;
                for name in &schema.checks.required {
                    self.property(id, name)?;
                }
                let Form::Object(known) = self.force(id)? else { return Ok(()) };
                for child in known.values() {
                    self.complete(*child, depth)?;
                }
            }
            Form::List { items, .. } => {
                for item in items {
                    self.complete(item, depth)?;
                }
            }
            Form::Map { entries, .. } => {
                for (_, entry) in entries {
                    self.complete(entry, depth)?;
                }
            }
            Form::Bool(_) | Form::Int(_) | Form::Text(_) | Form::IntOrText { .. } | Form::Any => {}
        }
        Ok(())
    }

    /// Whether the solver's texts have these characters.
    pub(super) fn constant(&mut self, text: &str) -> Result<Term, Undecided> {
        if !regular::is_expressible(text) {
            return Err(undecided("a text with characters beyond U+2FFFF"));
        }
        Ok(self.terms.text(text))
    }
}
