//! The rules of a schema, in its shape. A node stands in the tree only if it or something below it has rules.

use std::collections::HashMap;

use super::compile::{CompiledRule, Modes, RuleEnv};
use super::decl;
use crate::schema::{Rule, Schema};

/// The compiled rules of a schema.
#[derive(Debug)]
pub struct RuleTree {
    pub(super) root: Option<RuleNode>,
}

/// Rules of one node and of what is below it.
#[derive(Debug, Default)]
pub(super) struct RuleNode {
    pub(super) rules: Vec<(Rule, CompiledRule)>,
    /// Why no rule of the node can be run.
    pub(super) error: Option<&'static str>,
    /// The type through which rules see the node's data.
    pub(super) decl: Option<std::sync::Arc<admit_cel::DeclType>>,
    pub(super) items: Option<Box<Self>>,
    pub(super) additional: Option<Box<Self>>,
    pub(super) properties: HashMap<Box<str>, Self>,
    pub(super) all_of: Vec<Self>,
}

impl RuleTree {
    /// Compiles the rules of a stored schema that an API server runs: it looks for rules on the spine alone, so that
    /// where all stand under `allOf`, none is run.
    #[must_use]
    pub fn compile(schema: &Schema, resource_root: bool) -> Self {
        if schema.has_rules() {
            Self::compile_every_level(schema, resource_root)
        } else {
            Self { root: None }
        }
    }

    /// Compiles all rules of a schema, also where every one stands under `allOf`.
    #[must_use]
    pub fn compile_every_level(schema: &Schema, resource_root: bool) -> Self {
        Self { root: compile(schema, schema, resource_root, decl::is_exposed(schema)) }
    }

    /// Whether there is nothing to evaluate.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.root.is_none()
    }
}

/// `checks` has the rules, `schema` the types: under `allOf` the two are not the same node.
fn compile(checks: &Schema, schema: &Schema, resource_root: bool, exposed: bool) -> Option<RuleNode> {
    let mut node = RuleNode::default();
    own_rules(&mut node, checks, schema, resource_root, exposed);
    if let (Some(items), Some(types)) = (&checks.items, &schema.items) {
        let exposed = exposed && decl::is_exposed(types);
        node.items = compile(items, types, types.embedded_resource, exposed).map(Box::new);
    }
    for (name, property) in &checks.properties {
        // Rules stand on the schema's spine; what expressions cannot see is left out.
        let Some(types) = schema.properties.get(name).filter(|types| exposed && decl::is_exposed(types))
        else {
            continue;
        };
        if let Some(child) = compile(property, types, types.embedded_resource, true) {
            node.properties.insert(name.clone(), child);
        }
    }
    if let (Some(entry), Some(types)) = (checks.additional_schema(), schema.additional_schema()) {
        let exposed = exposed && decl::is_exposed(types);
        node.additional = compile(entry, types, types.embedded_resource, exposed).map(Box::new);
    }
    let all_of = checks.checks.all_of.iter();
    node.all_of = all_of.filter_map(|part| compile(part, schema, resource_root, exposed)).collect();
    let empty = node.rules.is_empty()
        && node.error.is_none()
        && node.items.is_none()
        && node.additional.is_none()
        && node.properties.is_empty()
        && node.all_of.is_empty();
    (!empty).then_some(node)
}

fn own_rules(node: &mut RuleNode, checks: &Schema, schema: &Schema, resource_root: bool, exposed: bool) {
    if checks.rules.is_empty() {
        return;
    }
    let Some(decl) = decl::decl_type(schema, resource_root).filter(|_| exposed) else {
        node.error = Some("failed to convert to declType for CEL validation rules");
        return;
    };
    let env = RuleEnv::new(&decl);
    let rules = checks.rules.iter().map(|rule| (rule.clone(), env.compile(rule, schema, Modes::STORED)));
    node.rules = rules.collect();
    node.decl = Some(decl);
}
