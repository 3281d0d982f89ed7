//! Assumes for updates that immutable fields of built-in kinds are unchanged, some of them conditionally, if expressions read them in
//! both objects.
//!
//! INVARIANT: the assumptions hold for every update that a server admits. Nothing is assumed of values that have several spellings, nor
//! of fields that no expression reads in both objects.

use admit_cel::{Checked, Env, Mode, Type, Version};
use admit_policy::StableFields;

use super::Undecided;
use super::builtin::is_quantity;
use super::document::{Form, Node, NodeId, World};
use super::eval::{Evaluator, Scope};
use super::placed::Objects;
use super::term::Term;

/// Immutable fields, with the condition under which they are.
#[derive(Debug)]
pub(super) struct Stable {
    fields: StableFields,
    when: Option<Checked>,
}

/// Returns the CEL environment for expressions of policies.
pub(super) fn env_of_policies() -> Env {
    let names = ["object", "oldObject", "request", "params", "namespaceObject", "authorizer", "variables"];
    let env = Env::kubernetes(Version(1, 36), Mode::Stored).with_declared_scalars();
    env.with_variables(names.map(|name| (name, Type::Dyn)))
}

/// Compiles the immutable fields of a kind; those whose condition does not compile are left out.
pub(super) fn of_kind(stable: &[StableFields]) -> Vec<Stable> {
    let env = env_of_policies();
    let one = |fields: &StableFields| {
        let when = fields.when.as_ref().map(|when| env.compile(when)).transpose().ok()?;
        Some(Stable { fields: fields.clone(), when })
    };
    stable.iter().filter_map(one).collect()
}

impl World<'_> {
    /// Assumes what a kind's immutability implies for fields that were read in both objects.
    pub(super) fn assume_stable(&mut self, stable: &[Stable], objects: Objects) -> Result<(), Undecided> {
        let Some(old) = objects.old else { return Ok(()) };
        for Stable { fields, when } in stable {
            let mut found = Vec::new();
            for path in &fields.paths {
                found.extend(self.both(objects.new, old, path)?);
            }
            if found.is_empty() {
                continue;
            }
            let asked = match when {
                None => self.terms.bool(true),
                Some(when) => match self.condition(when, objects) {
                    Ok(asked) => asked,
                    // A condition that cannot be translated implies nothing.
                    Err(_) => continue,
                },
            };
            for (above, new, old) in found {
                let alike = self.alike_field(new, old, &fields.but)?;
                let here = self.terms.and(&[asked, above]);
                self.assume(here, alike);
            }
        }
        Ok(())
    }

    /// Finds a field that was read in both objects, and the condition that its parents are present.
    fn both(
        &mut self,
        new: NodeId,
        old: NodeId,
        path: &str,
    ) -> Result<Option<(Term, NodeId, NodeId)>, Undecided> {
        let (mut new, mut old, mut above) = (new, old, self.terms.bool(true));
        for name in path.split('.') {
            let (one, other) = (self.node(new)?.clone(), self.node(old)?.clone());
            above = self.terms.and(&[above, one.here, other.here]);
            let (Some(Form::Object(one)), Some(Form::Object(other))) = (&one.form, &other.form) else {
                return Ok(None);
            };
            let (Some(one), Some(other)) = (one.get(name), other.get(name)) else { return Ok(None) };
            (new, old) = (*one, *other);
        }
        Ok(Some((above, new, old)))
    }

    fn condition(&mut self, when: &Checked, objects: Objects) -> Result<Term, Undecided> {
        let mut scope = Scope::default();
        for (name, node) in [("object", Some(objects.new)), ("oldObject", objects.old)] {
            let Some(node) = node else { continue };
            let value = self.value_of(node)?;
            let value = self.good(value);
            scope.globals.insert(name, value);
        }
        let (error, holds) = Evaluator::new(self, &scope, when.ast()).run()?;
        let works = self.terms.not(error);
        Ok(self.terms.and(&[works, holds]))
    }

    /// Returns whether two fields have the same meaning, given that their parents are present.
    fn alike_field(&mut self, new: NodeId, old: NodeId, but: &[String]) -> Result<Term, Undecided> {
        let (one, other) = (self.node(new)?.clone(), self.node(old)?.clone());
        let present = self.terms.eq(one.present, other.present);
        let alike = self.alike_where_set(new, old, but)?;
        Ok(self.terms.and(&[present, alike]))
    }

    /// Returns whether two fields have the same meaning where both are present and not null; null versus empty is not compared.
    fn alike_where_set(&mut self, new: NodeId, old: NodeId, but: &[String]) -> Result<Term, Undecided> {
        let (one, other) = (self.node(new)?.clone(), self.node(old)?.clone());
        let mut set = Vec::new();
        for node in [&one, &other] {
            set.push(node.present);
            set.push(self.terms.not(node.null));
        }
        let set = self.terms.and(&set);
        let alike = self.alike(&one, &other, new == old, but)?;
        Ok(self.terms.implies(set, alike))
    }

    fn alike(
        &mut self,
        one: &Node<'_>,
        other: &Node<'_>,
        are_one: bool,
        but: &[String],
    ) -> Result<Term, Undecided> {
        self.check_size()?;
        let (Some(new), Some(old)) = (&one.form, &other.form) else { return Ok(self.terms.bool(true)) };
        if are_one || is_quantity(one.schema) {
            return Ok(self.terms.bool(true));
        }
        Ok(match (new, old) {
            (Form::Bool(a), Form::Bool(b))
            | (Form::Int(a), Form::Int(b))
            | (Form::Text(a), Form::Text(b)) => self.terms.eq(*a, *b),
            (
                Form::IntOrText { is_int, int, text },
                Form::IntOrText { is_int: was_int, int: old_int, text: old_text },
            ) => {
                let kinds = self.terms.eq(*is_int, *was_int);
                let (ints, texts) = (self.terms.eq(*int, *old_int), self.terms.eq(*text, *old_text));
                let values = self.terms.ite(*is_int, ints, texts);
                self.terms.and(&[kinds, values])
            }
            (Form::Object(new), Form::Object(old)) => {
                let mut parts = Vec::new();
                for (name, child) in new {
                    let is_stable = !but.iter().any(|but| **but == **name);
                    if let Some(before) = old.get(name).filter(|_| is_stable) {
                        parts.push(self.alike_field(*child, *before, &[])?);
                    }
                }
                self.terms.and(&parts)
            }
            (Form::List { length, items }, Form::List { length: old_length, items: old_items }) => {
                let mut parts = vec![self.terms.eq(*length, *old_length)];
                for (item, before) in items.iter().zip(old_items) {
                    parts.push(self.alike_where_set(*item, *before, but)?);
                }
                self.terms.and(&parts)
            }
            (Form::Map { length, entries }, Form::Map { length: old_length, entries: old_entries }) => {
                let mut parts = vec![self.terms.eq(*length, *old_length)];
                for (key, entry) in entries {
                    let present = self.node(*entry)?.present;
                    let mut found = Vec::new();
                    for (old_key, before) in old_entries {
                        let was_present = self.node(*before)?.present;
                        let same = self.terms.eq(*key, *old_key);
                        let alike = self.alike_where_set(*entry, *before, &[])?;
                        found.push(self.terms.and(&[was_present, same, alike]));
                    }
                    let found = self.terms.or(&found);
                    parts.push(self.terms.implies(present, found));
                }
                self.terms.and(&parts)
            }
            _ => self.terms.bool(true),
        })
    }
}
