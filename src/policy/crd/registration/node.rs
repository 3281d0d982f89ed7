//! Describes each node of a schema with what its ancestors imply: how often its rules can run, and where the type of its values is
//! declared.

use std::cell::RefCell;
use std::collections::HashSet;

use admit_cel::{Mode, PatternSum};

use super::costs::TotalCost;
use super::demands::Demands;
use crate::crd::rules::compile::Modes;
use crate::crd::rules::decl;
use crate::read::path::Path;
use crate::schema::{Rule, Schema, SchemaType};

/// A node of the schema, with what its ancestors imply for it.
#[derive(Clone, Copy)]
pub(super) struct Node<'a> {
    pub(super) schema: &'a Schema,
    pub(super) path: &'a Path<'a>,
    pub(super) root: bool,
    /// Why a default is not allowed; None where it is.
    pub(super) no_default: Option<&'a str>,
    /// Within the metadata of a resource.
    pub(super) inside_metadata: bool,
    /// The highest ancestor whose old values cannot be correlated.
    pub(super) uncorrelatable: Option<&'a Path<'a>>,
    /// Where the type of its values is declared.
    pub(super) typing: Typing<'a>,
    /// How often rules here can run; None where their cost is not limited.
    pub(super) scope: Option<Scope>,
}

/// What the nodes of one schema share.
pub(super) struct Context<'c> {
    pub(super) demands: &'c Demands,
    pub(super) stored: &'c StoredExpressions,
    /// Whether the schema equals the stored one, so that no rule is rejected for its cost.
    pub(super) unchanged: bool,
    pub(super) costs: TotalCost,
    /// The patterns of the whole definition so far.
    pub(super) patterns: &'c RefCell<PatternSum>,
}

impl<'a> Node<'a> {
    pub(super) const fn root(schema: &'a Schema, path: &'a Path<'a>, scope: Option<Scope>) -> Self {
        Self {
            schema,
            path,
            root: true,
            no_default: None,
            inside_metadata: false,
            uncorrelatable: None,
            typing: Typing::Own,
            scope,
        }
    }

    /// Whether the node is the root of a resource, of the definition's own or an embedded one.
    pub(super) const fn is_resource_root(&self) -> bool {
        self.root || self.schema.embedded_resource
    }

    pub(super) fn below<'b>(&self, schema: &'b Schema, path: &'b Path<'b>) -> Node<'b>
    where
        'a: 'b,
    {
        let scope = self.scope.map(|scope| scope.below(self.schema));
        Node { schema, path, root: false, scope, typing: self.typing.of_property(self, schema), ..*self }
    }
}

/// How often a rule of a node can run on one object; unlimited if no bound is declared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope {
    pub(super) cardinality: Option<u64>,
}

impl Scope {
    /// The root: its rules run once.
    pub(super) const ROOT: Self = Self { cardinality: Some(1) };

    /// The scope of the nodes below a node of this one.
    pub(super) fn below(self, schema: &Schema) -> Self {
        let factor = occurrences(schema);
        Self { cardinality: self.cardinality.zip(factor).map(|(count, factor)| count.saturating_mul(factor)) }
    }
}

/// Where the type of a node's values is declared: below a node with rules, by the type of that node.
#[derive(Clone, Copy, Debug)]
pub(super) enum Typing<'a> {
    /// No node above has rules: its own schema.
    Own,
    /// This schema, its own in definitions that make sense.
    From(&'a Schema),
    /// The type of the node above has no elements.
    Missing,
    /// The node above cannot be typed.
    Unknown,
}

impl<'a> Typing<'a> {
    /// Returns the typing of a property, and of every other child that is no element.
    pub(super) fn of_property(self, node: &Node<'a>, property: &'a Schema) -> Self {
        self.below(node, |_| Some(property))
    }

    /// Returns the typing of items or additional properties, whichever are the elements of the type.
    pub(super) fn of_element(self, node: &Node<'a>) -> Self {
        self.below(node, decl::element)
    }

    fn below(self, node: &Node<'a>, child: impl FnOnce(&'a Schema) -> Option<&'a Schema>) -> Self {
        let above = match self {
            Self::Own if node.schema.rules.is_empty() => return Self::Own,
            Self::Own => node.schema,
            Self::From(schema) => schema,
            Self::Missing | Self::Unknown => return self,
        };
        if decl::is_exposed(above) { child(above).map_or(Self::Missing, Self::From) } else { Self::Unknown }
    }
}

/// Returns how many values the children of a node can have for each of its own; None if unlimited.
pub(crate) fn occurrences(schema: &Schema) -> Option<u64> {
    let factor = match &schema.schema_type {
        Some(SchemaType::Object) if schema.additional_properties.is_some() => schema.checks.max_properties,
        Some(SchemaType::Array) => schema.checks.max_items,
        _ => Some(1),
    };
    factor.map(|factor| u64::try_from(factor).unwrap_or(0))
}

/// The expressions that an update found in place, which are compiled as stored ones.
#[derive(Debug, Default)]
pub(super) struct StoredExpressions {
    rules: HashSet<String>,
    messages: HashSet<String>,
}

impl StoredExpressions {
    pub(super) fn modes(&self, rule: &Rule) -> Modes {
        let mode = |known: bool| if known { Mode::Stored } else { Mode::New };
        Modes {
            rule: mode(self.rules.contains(&rule.rule)),
            message: mode(self.messages.contains(&rule.message_expression)),
        }
    }

    /// Adds the expressions of a stored schema.
    pub(super) fn collect(&mut self, schema: &Schema) {
        for rule in &schema.rules {
            self.rules.insert(rule.rule.clone());
            self.messages.insert(rule.message_expression.clone());
        }
        for child in schema.children() {
            self.collect(child);
        }
    }
}
