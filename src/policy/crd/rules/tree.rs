//! Holds the rules of a schema as a tree of the same shape. A node is in the tree only if it or a descendant has rules.

use std::collections::HashMap;

use admit_cel::Program;

use super::compile::{CompiledRule, Modes, RuleEnv};
use super::decl;
use crate::read::path::Path;
use crate::schema::{Rule, Schema};

/// The compiled rules of a schema.
///
/// [The module](super) has an example.
#[derive(Clone, Debug)]
pub struct RuleTree {
    pub(super) root: Option<RuleNode>,
}

/// The rules of a node and of its descendants.
#[derive(Clone, Debug, Default)]
pub(super) struct RuleNode {
    pub(super) rules: Vec<PlacedRule>,
    /// Why no rule of the node can run.
    pub(super) error: Option<&'static str>,
    /// The type through which rules see the node's data.
    pub(super) decl: Option<std::sync::Arc<admit_cel::DeclType>>,
    pub(super) items: Option<Box<Self>>,
    pub(super) additional: Option<Box<Self>>,
    pub(super) properties: HashMap<Box<str>, Self>,
    pub(super) all_of: Vec<Self>,
}

/// A rule and its place in the schema.
#[derive(Clone, Debug)]
pub(super) struct PlacedRule {
    pub(super) rule: Rule,
    pub(super) compiled: CompiledRule,
    /// Below the schema that was compiled: `properties[spec].x-kubernetes-validations[0]`.
    pub(super) path: Box<str>,
}

impl PlacedRule {
    /// The place of the rule's own expression, and of the one that makes its message.
    pub(super) fn paths(&self) -> [String; 2] {
        ["rule", "messageExpression"].map(|field| format!("{}.{field}", self.path))
    }
}

impl RuleTree {
    /// Compiles the rules of a stored schema that an API server runs: it looks for rules in the structural part
    /// alone, so that none below `allOf` is run.
    #[must_use]
    pub fn compile(schema: &Schema, resource_root: bool) -> Self {
        if schema.has_rules() {
            Self::compile_every_level(schema, resource_root)
        } else {
            Self { root: None }
        }
    }

    /// Compiles all rules of a schema, including those below `allOf`.
    #[must_use]
    pub fn compile_every_level(schema: &Schema, resource_root: bool) -> Self {
        let place = Place { checks: schema, schema, path: &Path::Nil };
        Self { root: compile(place, resource_root, decl::is_exposed(schema)) }
    }

    /// Every expression that can be run, with its place below the schema, in no particular order.
    #[must_use]
    pub fn expressions(&self) -> Vec<(String, &str, &Program)> {
        let mut expressions = Vec::new();
        if let Some(root) = &self.root {
            root.expressions(&mut expressions);
        }
        expressions
    }

    /// Whether there is nothing to evaluate.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.root.is_none()
    }
}

/// What is compiled: `checks` has the rules, `schema` the types. Under `allOf` the two are not the same node.
#[derive(Clone, Copy)]
struct Place<'s> {
    checks: &'s Schema,
    schema: &'s Schema,
    /// Of `checks`.
    path: &'s Path<'s>,
}

fn compile(place: Place<'_>, resource_root: bool, exposed: bool) -> Option<RuleNode> {
    let Place { checks, schema, path } = place;
    let mut node = RuleNode::default();
    own_rules(&mut node, place, resource_root, exposed);
    if let (Some(items), Some(types)) = (&checks.items, &schema.items) {
        let exposed = exposed && decl::is_exposed(types);
        let place = Place { checks: items, schema: types, path: &path.child("items") };
        node.items = compile(place, types.embedded_resource, exposed).map(Box::new);
    }
    for (name, property) in &checks.properties {
        // Rules are only on the structural part of the schema; nodes that expressions cannot see are left out.
        let Some(types) = schema.properties.get(name).filter(|types| exposed && decl::is_exposed(types))
        else {
            continue;
        };
        let properties = path.child("properties");
        let place = Place { checks: property, schema: types, path: &properties.key(name) };
        if let Some(child) = compile(place, types.embedded_resource, true) {
            node.properties.insert(name.clone(), child);
        }
    }
    if let (Some(entry), Some(types)) = (checks.additional_schema(), schema.additional_schema()) {
        let exposed = exposed && decl::is_exposed(types);
        let place = Place { checks: entry, schema: types, path: &path.child("additionalProperties") };
        node.additional = compile(place, types.embedded_resource, exposed).map(Box::new);
    }
    let all_of = path.child("allOf");
    let parts = checks.checks.all_of.iter().enumerate().filter_map(|(at, part)| {
        compile(Place { checks: part, schema, path: &all_of.index(at) }, resource_root, exposed)
    });
    node.all_of = parts.collect();
    let empty = node.rules.is_empty()
        && node.error.is_none()
        && node.items.is_none()
        && node.additional.is_none()
        && node.properties.is_empty()
        && node.all_of.is_empty();
    (!empty).then_some(node)
}

fn own_rules(node: &mut RuleNode, place: Place<'_>, resource_root: bool, exposed: bool) {
    let Place { checks, schema, path } = place;
    if checks.rules.is_empty() {
        return;
    }
    let Some(decl) = decl::decl_type(schema, resource_root).filter(|_| exposed) else {
        node.error = Some(decl::NOT_CONVERTED);
        return;
    };
    let env = RuleEnv::new(&decl);
    let list = path.child("x-kubernetes-validations");
    let rules = checks.rules.iter().enumerate().map(|(at, rule)| PlacedRule {
        rule: rule.clone(),
        compiled: env.compile(rule, schema, Modes::STORED),
        path: list.index(at).to_string().into(),
    });
    node.rules = rules.collect();
    node.decl = Some(decl);
}

impl RuleNode {
    fn expressions<'t>(&'t self, into: &mut Vec<(String, &'t str, &'t Program)>) {
        for placed in &self.rules {
            let texts = [&placed.rule.rule, &placed.rule.message_expression];
            let programs = [&placed.compiled.program, &placed.compiled.message];
            for ((path, text), program) in placed.paths().into_iter().zip(texts).zip(programs) {
                into.extend(
                    program.iter().flatten().map(|compiled| (path.clone(), &**text, &compiled.program)),
                );
            }
        }
        let below = self.items.iter().chain(&self.additional).map(|node| &**node);
        below.chain(self.properties.values()).chain(&self.all_of).for_each(|node| node.expressions(into));
    }
}
