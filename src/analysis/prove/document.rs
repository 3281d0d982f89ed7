//! An object that may be any that a schema allows: a tree of nodes, each with the terms of its presence and its value.
//! Nodes are made where something asks for them, so that of a schema with thousands of fields a few matter.
//!
//! What is known of valid objects is assumed; what a schema demands and this cannot say is left out and noted in
//! [`World::relaxed`]. So the objects that are thought of are all valid ones, and perhaps others: what holds for them holds,
//! and one that breaks a claim is shown to the engine first.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

use admit_policy::schema::{Schema, SchemaType};
use serde_json::Value;

use super::guesses::Guesses;
use super::readings::Readings;
use super::regular;
use super::sample;
use super::term::{Sort, Term, Terms};
use super::view::View;
use super::{Undecided, undecided};

/// Most items that are written out, whatever is declared.
pub(super) const MOST_ITEMS: usize = 64;

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
    /// Whether it is as its schema demands: not so what is only written, and what is judged.
    pub(super) is_valid: bool,
    /// What it is made of, where it is not a thing of its own.
    pub(super) made_of: Option<Sources<'s>>,
    /// What was written in its place, and whether anything was: then defaults are no part of what was written.
    pub(super) written: Option<(Term, NodeId)>,
}

/// Where the value of a node comes from: at most one of the conditions is true, and if none is, there is none.
pub(super) type Sources<'s> = Rc<[(Term, Origin<'s>)]>;

/// A place that a value comes from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Origin<'s> {
    Node(NodeId),
    Json(&'s Value),
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
    /// Texts of which nothing is known but what their own schema demands: the variable, a text that satisfies that, and how many
    /// assumptions were there before and after it was said.
    pub(super) own_texts: Vec<(Term, Box<str>, Range<usize>)>,
    /// Truth values that are not followed.
    pub(super) guesses: Guesses,
    /// Texts that are read as something else.
    pub(super) readings: Readings,
    /// Where each text of the objects is there, and its schema; and where those are that are thought of in few parts alone.
    pub(super) text_places: BTreeMap<Term, (Term, &'s Schema)>,
    pub(super) cut_texts: BTreeSet<Term>,
    /// Whether defaults are told from what is written.
    pub(super) tells_defaults: bool,
    /// Under which condition a node that is made of others is of another type than its schema's.
    pub(super) mismatches: BTreeMap<NodeId, Term>,
    /// Whether nodes of another type are let through, where they are as they were.
    pub(super) keeps_wrong_types: bool,
    /// Maps of which not all entries are thought of: they are made of objects that may have anything.
    pub(super) partial: BTreeSet<NodeId>,
    /// Whether entries of maps are thought of with names alone that most maps allow.
    pub(super) has_usual_keys: bool,
    /// A property of a node that is that of another object.
    pub(super) replaced: Option<(NodeId, &'static str, NodeId)>,
    /// What was done for the question.
    pub(super) steps: usize,
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
            own_texts: Vec::new(),
            guesses: Guesses::default(),
            readings: Readings::default(),
            text_places: BTreeMap::new(),
            cut_texts: BTreeSet::new(),
            tells_defaults: false,
            mismatches: BTreeMap::new(),
            keeps_wrong_types: false,
            partial: BTreeSet::new(),
            has_usual_keys: false,
            replaced: None,
            steps: 0,
        }
    }

    /// A whole object.
    pub(super) fn root(&mut self, schema: &'s Schema) -> NodeId {
        let (yes, no) = (self.terms.bool(true), self.terms.bool(false));
        self.add(Node {
            schema,
            present: yes,
            null: no,
            here: yes,
            form: None,
            is_metadata: false,
            is_valid: true,
            made_of: None,
            written: None,
        })
    }

    pub(super) fn add(&mut self, node: Node<'s>) -> NodeId {
        self.nodes.push(node);
        NodeId(self.nodes.len().saturating_sub(1))
    }

    pub(super) const fn count_nodes(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn node(&self, id: NodeId) -> Result<&Node<'s>, Undecided> {
        self.nodes.get(id.0).ok_or_else(|| undecided("a node that is not there"))
    }

    /// A condition on a node, wherever it is there.
    pub(super) fn assume(&mut self, here: Term, condition: Term) {
        let assumed = self.terms.implies(here, condition);
        if self.terms.known_bool(assumed) != Some(true) {
            self.assumed.push(assumed);
        }
    }

    pub(super) fn relax(&mut self, what: impl Into<String>) {
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
        if parent.is_metadata && !matches!(name, "name" | "namespace") {
            self.relax("what metadata may be");
        }
        let is_demanded = parent.schema.checks.required.iter().any(|required| **required == *name);
        let child = if let Some(sources) = &parent.made_of {
            let child = self.made_property(id, name, schema, sources)?;
            if parent.is_valid && is_demanded {
                let present = self.node(child)?.present;
                self.assume(parent.here, present);
            }
            child
        } else if parent.is_valid && self.tells_defaults && schema.default.is_some() {
            self.written_property(schema, parent.here)?
        } else {
            let present = if parent.is_valid && (is_demanded || schema.default.is_some()) {
                self.terms.bool(true)
            } else {
                self.terms.variable(Sort::Bool)
            };
            self.below(schema, parent.here, present, parent.is_valid)
        };
        self.insert(id, name, child);
        Ok(Some(child))
    }

    pub(super) fn insert(&mut self, id: NodeId, name: &str, child: NodeId) {
        if let Some(Node { form: Some(Form::Object(known)), .. }) = self.nodes.get_mut(id.0) {
            known.insert(name.into(), child);
        }
    }

    pub(super) fn below(&mut self, schema: &'s Schema, above: Term, present: Term, is_valid: bool) -> NodeId {
        let members = &schema.checks.enumeration;
        let may_be_null =
            schema.nullable && (members.iter().next().is_none() || members.iter().any(Value::is_null));
        let null = if may_be_null { self.terms.variable(Sort::Bool) } else { self.terms.bool(false) };
        let not_null = self.terms.not(null);
        let here = self.terms.and(&[above, present, not_null]);
        self.add(Node {
            schema,
            present,
            null,
            here,
            form: None,
            is_metadata: false,
            is_valid,
            made_of: None,
            written: None,
        })
    }

    /// Takes away a property: the object has none.
    pub(super) fn forget(&mut self, id: NodeId, name: &str) -> Result<(), Undecided> {
        self.force(id)?;
        let node = self.node(id)?.clone();
        let Some(schema) = node.schema.properties.get(name) else { return Ok(()) };
        let absent = self.terms.bool(false);
        let child = self.below(schema, node.here, absent, true);
        self.insert(id, name, child);
        if node.is_valid && node.schema.checks.required.iter().any(|required| **required == *name) {
            self.assume(node.here, absent);
        }
        Ok(())
    }

    /// Says what was written in a node's place.
    pub(super) fn note_written(&mut self, id: NodeId, was_written: Term, raw: NodeId) {
        if let Some(node) = self.nodes.get_mut(id.0) {
            node.written = Some((was_written, raw));
        }
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
        let (schema, here, is_valid) = (node.schema, node.here, node.is_valid);
        let form = match node.made_of.clone() {
            Some(sources) => self.made_form(id, schema, here, &sources)?,
            None => self.form(schema, here, is_valid)?,
        };
        if let Some(node) = self.nodes.get_mut(id.0) {
            node.form = Some(form.clone());
        }
        if is_valid {
            match &form {
                Form::Text(text) => drop(self.text_places.insert(*text, (here, schema))),
                Form::IntOrText { is_int, text, .. } => {
                    let is_text = self.terms.not(*is_int);
                    let here = self.terms.and(&[here, is_text]);
                    self.text_places.insert(*text, (here, schema));
                }
                _ => {}
            }
            let before = self.assumed.len();
            self.checks(id, schema, here)?;
            if let Form::Text(text) = form
                && self.terms.is_variable(text)
                && let Some(sample) = sample::text(schema)
            {
                self.own_texts.push((text, sample.into(), before..self.assumed.len()));
            }
        }
        Ok(form)
    }

    fn form(&mut self, schema: &'s Schema, here: Term, is_valid: bool) -> Result<Form, Undecided> {
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
                Some(entry) if schema.properties.is_empty() => self.map(schema, entry, here, is_valid)?,
                Some(_) => Form::Any,
                None => Form::Object(BTreeMap::new()),
            },
            Some(SchemaType::Array) => match schema.items.as_deref() {
                Some(item) => self.list(schema, item, here, is_valid)?,
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

    pub(super) fn between(&mut self, here: Term, value: Term, least: Option<i128>, most: Option<i128>) {
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

    /// Whether the solver's texts have these characters.
    pub(super) fn constant(&mut self, text: &str) -> Result<Term, Undecided> {
        if !regular::is_expressible(text) {
            return Err(undecided("a text with characters beyond U+2FFFF"));
        }
        Ok(self.terms.text(text))
    }
}
