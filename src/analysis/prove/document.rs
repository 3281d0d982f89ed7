//! Represents an arbitrary object of a schema as a tree of nodes, each with terms for its presence and its
//! value. Nodes are created when a rule reads them, so a schema with thousands of fields costs little.
//!
//! Constraints of valid objects are assumed; those that cannot be translated are left out and recorded in
//! [`World::relaxed`]. The modelled objects therefore include all valid ones and perhaps others: a claim
//! proved for them holds, and a counterexample is confirmed by the engine first.

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

/// The maximum number of list items that are modelled, whatever the schema allows.
pub(super) const MOST_ITEMS: usize = 64;

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct NodeId(usize);

/// A node of an object: the value at one path.
#[derive(Clone, Debug)]
pub(super) struct Node<'s> {
    pub(super) schema: &'s Schema,
    /// Whether it is present, given that its parent is.
    pub(super) present: Term,
    /// Whether it is null, given that it is present.
    pub(super) null: Term,
    /// Whether it and all its ancestors are present and not null.
    pub(super) here: Term,
    pub(super) form: Option<Form>,
    /// Whether it is the metadata of the object, which the server validates beyond the schema.
    pub(super) is_metadata: bool,
    /// Whether it is known to satisfy its schema; false for raw input and for values under judgement.
    pub(super) is_valid: bool,
    /// The nodes that its value is taken from; `None` if its value is its own.
    pub(super) made_of: Option<Sources<'s>>,
    /// The value before defaulting: whether it was written, and its node.
    pub(super) written: Option<(Term, NodeId)>,
}

/// Where the value of a node comes from. At most one condition is true; if none is, the node is absent.
pub(super) type Sources<'s> = Rc<[(Term, Origin<'s>)]>;

/// A source of a node's value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Origin<'s> {
    Node(NodeId),
    Json(&'s Value),
}

/// The value of a present node.
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
    /// The properties read so far.
    Object(BTreeMap<Box<str>, NodeId>),
    List {
        length: Term,
        items: Vec<NodeId>,
    },
    Map {
        length: Term,
        entries: Vec<(Term, NodeId)>,
    },
    /// A value of unknown type.
    Any,
}

/// The objects of a query and what is assumed of them.
#[derive(Debug)]
pub(super) struct World<'s> {
    pub(super) terms: Terms,
    nodes: Vec<Node<'s>>,
    /// Conditions that hold for all valid objects.
    pub(super) assumed: Vec<Term>,
    /// Schema constraints that are not translated.
    pub(super) relaxed: BTreeSet<String>,
    /// Whether a list or map was limited to [`Self::items`] items.
    pub(super) is_bounded: bool,
    pub(super) view: View,
    /// The maximum number of list items and map entries that are modelled.
    pub(super) items: usize,
    /// Strings constrained only by their own schema: the variable, a valid sample, and the range of
    /// assumptions that the constraint added.
    pub(super) own_texts: Vec<(Term, Box<str>, Range<usize>)>,
    /// Boolean results that are not translated and left open.
    pub(super) guesses: Guesses,
    /// Strings that are parsed: quantities, times, addresses, URLs.
    pub(super) readings: Readings,
    /// For each string of the objects, its presence and its schema; and where strings are that `split` cuts
    /// into a bounded number of parts.
    pub(super) text_places: BTreeMap<Term, (Term, &'s Schema)>,
    pub(super) cut_texts: BTreeSet<Term>,
    /// Whether defaulted values are kept apart from written ones.
    pub(super) tells_defaults: bool,
    /// The condition under which a node taken from others has another type than its schema's.
    pub(super) mismatches: BTreeMap<NodeId, Term>,
    /// Whether stored values of another type are accepted while they are unchanged.
    pub(super) keeps_wrong_types: bool,
    /// Maps that are modelled incompletely: their source objects may have any property.
    pub(super) partial: BTreeSet<NodeId>,
    /// Fields that no type declares: each stands for one of another type than is asked for, and may hold anything.
    pub(super) undeclared: BTreeSet<NodeId>,
    /// Whether map keys are limited to names that most maps allow.
    pub(super) has_usual_keys: bool,
    /// Properties of nodes that are replaced by another object's.
    pub(super) replaced: Vec<(NodeId, &'static str, NodeId)>,
    /// The number of steps spent on the query.
    pub(super) steps: usize,
}

impl<'s> World<'s> {
    /// Reports whether the value may be one that no type declared, of which nothing below is modelled. One that is refused for its type
    /// is none.
    pub(super) fn may_hold_anything(&self, id: NodeId) -> bool {
        let sources = self.node(id).ok().and_then(|node| node.made_of.as_ref());
        sources.filter(|_| self.keeps_wrong_types).is_some_and(|sources| {
            sources.iter().any(|(_, origin)| match origin {
                Origin::Node(source) => self.undeclared.contains(source) || self.may_hold_anything(*source),
                Origin::Json(_) => false,
            })
        })
    }

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
            undeclared: BTreeSet::new(),
            has_usual_keys: false,
            replaced: Vec::new(),
            steps: 0,
        }
    }

    /// Creates the root node of an object.
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
        self.nodes.get(id.0).ok_or_else(|| undecided("a node that does not exist"))
    }

    /// Assumes a condition on a node wherever it is present.
    pub(super) fn assume(&mut self, here: Term, condition: Term) {
        let assumed = self.terms.implies(here, condition);
        if self.terms.known_bool(assumed) != Some(true) {
            self.assumed.push(assumed);
        }
    }

    /// Returns the node of the object whose property takes the place of this one.
    pub(super) fn replacement(&self, id: NodeId, name: &str) -> Option<NodeId> {
        let is_it = |(whose, which, _): &&(NodeId, &str, NodeId)| *whose == id && *which == name;
        self.replaced.iter().find(is_it).map(|(.., other)| *other)
    }

    pub(super) fn relax(&mut self, what: impl Into<String>) {
        self.relaxed.insert(what.into());
    }

    /// Returns the node of a property; `None` if the schema does not declare it.
    pub(super) fn property(&mut self, id: NodeId, name: &str) -> Result<Option<NodeId>, Undecided> {
        self.force(id)?;
        let parent = self.node(id)?.clone();
        let Some(Form::Object(known)) = &parent.form else { return Ok(None) };
        if let Some(child) = known.get(name) {
            return Ok(Some(*child));
        }
        let Some(schema) = parent.schema.properties.get(name) else { return Ok(None) };
        if parent.is_metadata && !matches!(name, "name" | "namespace") {
            self.relax("the validation of metadata");
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

    /// Removes a property: the object does not have it.
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

    /// Records the node that was written before defaulting.
    pub(super) fn note_written(&mut self, id: NodeId, was_written: Term, raw: NodeId) {
        if let Some(node) = self.nodes.get_mut(id.0) {
            node.written = Some((was_written, raw));
        }
    }

    /// Marks a node as the metadata of an object.
    pub(super) fn mark_metadata(&mut self, id: NodeId) {
        if let Some(node) = self.nodes.get_mut(id.0) {
            node.is_metadata = true;
        }
    }

    /// Creates the value of a node, or returns the existing one.
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

    /// Creates a string constant; undecided if it has characters that the solver does not support.
    pub(super) fn constant(&mut self, text: &str) -> Result<Term, Undecided> {
        if !regular::is_expressible(text) {
            return Err(undecided("a string with characters beyond U+2FFFF"));
        }
        Ok(self.terms.text(text))
    }
}
