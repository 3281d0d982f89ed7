//! Constrains nodes as a whole: their schema's checks, the number of their properties, and the required
//! ones.

use admit_policy::schema::{Schema, SchemaType};

use super::Undecided;
use super::document::{Form, NodeId, World};
use super::term::Term;
use super::view::is_open;

impl<'s> World<'s> {
    /// Assumes the schema's checks on one node.
    pub(super) fn checks(&mut self, id: NodeId, schema: &'s Schema, here: Term) -> Result<(), Undecided> {
        let demands = self.demands(id, schema)?;
        for demand in demands {
            match demand {
                Ok(condition) => self.assume(here, condition),
                Err(what) => self.relax(what),
            }
        }
        if matches!(self.node(id)?.form, Some(Form::Any)) {
            self.relax("values of unsupported types");
        }
        let mut required = schema.checks.required.iter();
        let has_undeclared = required.any(|name| !schema.properties.contains_key(name));
        if schema.is_type(&SchemaType::Object) && has_undeclared {
            self.relax("required fields that are not declared");
        }
        // Required properties are present; that `minProperties` needs more of them is left out.
        if schema.is_type(&SchemaType::Object) && schema.additional_schema().is_none() {
            let checks = &schema.checks;
            if checks.min_properties.is_some_and(|least| least > 0) || checks.max_properties.is_some() {
                let count = self.count_properties(id)?;
                match count {
                    Some(count) => {
                        let (least, most) = (checks.min_properties, checks.max_properties);
                        self.between(here, count, least.map(i128::from), most.map(i128::from));
                    }
                    None => self.relax("bounds of the number of properties"),
                }
            }
        }
        Ok(())
    }

    /// Counts the properties of an object; `None` if it may have undeclared ones.
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

    /// Creates the nodes of required properties down to `depth` levels, so that a model has values for
    /// them.
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
}
