//! Replaces one rule in a tree of compiled rules, and compiles only that one.

use admit_cel::PatternSum;

use super::compile::{CompiledRule, Modes, RuleEnv};
use super::tree::{RuleNode, RuleTree};
use crate::schema::{AdditionalProperties, Rule, Schema, SchemaType};

/// A rule of a schema, by the way to it.
#[derive(Debug)]
pub(crate) struct RulePlace<'p> {
    steps: Vec<Step<'p>>,
    at: usize,
}

#[derive(Clone, Copy, Debug)]
enum Step<'p> {
    Property(&'p str),
    Items,
    Additional,
}

/// A tree with another rule in it.
#[derive(Debug)]
pub(crate) struct Replaced {
    pub(crate) tree: RuleTree,
    /// The rule as one that is being written.
    pub(crate) written: CompiledRule,
    /// Whether it has constant patterns, which count with those of all others.
    pub(crate) has_patterns: bool,
}

impl<'p> RulePlace<'p> {
    /// Parses `properties[spec].items.x-kubernetes-validations[0].rule`; None for any other form.
    pub(crate) fn read(mut path: &'p str) -> Option<Self> {
        let mut steps = Vec::new();
        loop {
            if let Some(rest) = path.strip_prefix("x-kubernetes-validations[") {
                return Some(Self { steps, at: rest.strip_suffix("].rule")?.parse().ok()? });
            }
            let (step, rest) = if let Some(rest) = path.strip_prefix("properties[") {
                let (name, rest) = rest.split_once("].")?;
                (Step::Property(name), rest)
            } else if let Some(rest) = path.strip_prefix("items.") {
                (Step::Items, rest)
            } else {
                (Step::Additional, path.strip_prefix("additionalProperties.")?)
            };
            steps.push(step);
            path = rest;
        }
    }

    /// Returns the node of the rule, if the types of all its ancestors are those of their schemas.
    fn node<'s>(&self, schema: &'s Schema) -> Option<&'s Schema> {
        self.steps.iter().try_fold(schema, |schema, step| match step {
            Step::Property(name) => schema.properties.get(*name),
            Step::Items if schema.is_type(&SchemaType::Array) => schema.items.as_deref(),
            Step::Additional if schema.is_type(&SchemaType::Object) => schema.additional_schema(),
            Step::Items | Step::Additional => None,
        })
    }

    /// Sets the rule in the schema to `text`.
    pub(crate) fn write(&self, schema: &mut Schema, text: &str) -> Option<()> {
        let node = self.steps.iter().try_fold(schema, |schema, step| match step {
            Step::Property(name) => schema.properties.get_mut(*name),
            Step::Items => schema.items.as_deref_mut(),
            Step::Additional => match &mut schema.additional_properties {
                Some(AdditionalProperties::Schema(schema)) => Some(&mut **schema),
                Some(AdditionalProperties::Allowed(_)) | None => None,
            },
        })?;
        text.clone_into(&mut node.rules.get_mut(self.at)?.rule);
        Some(())
    }
}

impl RuleTree {
    /// Returns the tree with `text` as the rule at `place` of `schema`, whose tree this is. None if there is no such rule, or if its
    /// validity depends on fields beside it.
    pub(crate) fn with_rule(&self, schema: &Schema, place: &RulePlace<'_>, text: &str) -> Option<Replaced> {
        let own = place.node(schema)?;
        let mut tree = self.clone();
        let node = place.steps.iter().try_fold(tree.root.as_mut()?, RuleNode::below)?;
        let env = RuleEnv::new(node.decl.as_ref()?);
        let placed = node.rules.get_mut(place.at)?;
        let rule = Rule { rule: text.to_owned(), ..placed.rule.clone() };
        if text.trim().is_empty() || text.contains(['\n', '\r']) {
            return None;
        }
        let mut patterns = PatternSum::default();
        let written = env.compile_among(&rule, own, Modes::NEW, &mut patterns);
        let (uses_old_self, did) = (written.uses_old_self, placed.compiled.uses_old_self);
        // Old values do not exist everywhere, and `optionalOldSelf` requires that `oldSelf` is used.
        if (uses_old_self && !did) || (!uses_old_self && rule.optional_old_self.is_some()) {
            return None;
        }
        placed.compiled = env.compile(&rule, own, Modes::STORED);
        placed.rule = rule;
        Some(Replaced { tree, written, has_patterns: patterns.count() > 0 })
    }

    /// Returns the estimated cost of the rules of `schema`, whose tree this is: the maximum of one, and the total. `occurrences`
    /// returns how many values the children of a node can have for each of its own; None if unlimited.
    pub(crate) fn max_costs(&self, schema: &Schema, occurrences: fn(&Schema) -> Option<u64>) -> (u64, u64) {
        let mut sum = Sum { greatest: 0, total: 0, occurrences };
        if let Some(root) = &self.root {
            sum.node(root, schema, Some(1));
        }
        (sum.greatest, sum.total)
    }
}

impl RuleNode {
    fn below(&mut self, step: &Step<'_>) -> Option<&mut Self> {
        match step {
            Step::Property(name) => self.properties.get_mut(*name),
            Step::Items => self.items.as_deref_mut(),
            Step::Additional => self.additional.as_deref_mut(),
        }
    }
}

struct Sum {
    greatest: u64,
    total: u64,
    occurrences: fn(&Schema) -> Option<u64>,
}

impl Sum {
    fn node(&mut self, node: &RuleNode, schema: &Schema, cardinality: Option<u64>) {
        if let Some(decl) = node.decl.as_ref().filter(|_| !node.rules.is_empty()) {
            let repeated = cardinality.unwrap_or_else(|| RuleEnv::new(decl).max_cardinality());
            for placed in &node.rules {
                // The cost of a message does not depend on how often the rule runs.
                for (compiled, times) in [(&placed.compiled.program, repeated), (&placed.compiled.message, 1)]
                {
                    let Some(Ok(compiled)) = compiled else { continue };
                    let cost = compiled.max_cost.saturating_mul(times);
                    self.greatest = self.greatest.max(cost);
                    self.total = self.total.saturating_add(cost);
                }
            }
        }
        let factor = (self.occurrences)(schema);
        let below = cardinality.zip(factor).map(|(count, factor)| count.saturating_mul(factor));
        let elements = [
            (node.items.as_deref(), schema.items.as_deref()),
            (node.additional.as_deref(), schema.additional_schema()),
        ];
        let elements = elements.into_iter().filter_map(|(node, schema)| node.zip(schema));
        let properties =
            node.properties.iter().filter_map(|(name, node)| Some((node, schema.properties.get(name)?)));
        for (node, schema) in elements.chain(properties) {
            self.node(node, schema, below);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::RulePlace;

    #[test]
    fn places_are_read_as_messages_write_them() {
        let rule = "x-kubernetes-validations[2].rule";
        for (path, steps) in [
            (rule.to_owned(), Some(0)),
            (format!("properties[spec].items.{rule}"), Some(2)),
            (format!("additionalProperties.properties[a.b].{rule}"), Some(2)),
            (format!("allOf[0].{rule}"), None),
            ("x-kubernetes-validations[2].messageExpression".to_owned(), None),
            ("properties[spec]".to_owned(), None),
        ] {
            assert_eq!(RulePlace::read(&path).map(|place| place.steps.len()), steps, "{path}");
        }
    }
}
