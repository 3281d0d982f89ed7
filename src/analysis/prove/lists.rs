//! Models lists and maps of arbitrary objects up to a bounded number of items, and which items differ.

use admit_policy::schema::{ListType, Schema};

use super::demands::Demand;
use super::document::{Form, MOST_ITEMS, NodeId, World};
use super::regular;
use super::term::{Sort, Term};
use super::{Undecided, undecided};

/// Matches names that labels, data and resources may have as keys.
const USUAL_KEY: &str = "^[a-zA-Z0-9]([-._a-zA-Z0-9]*[a-zA-Z0-9])?$";

impl<'s> World<'s> {
    /// Returns how many items are modelled: as many as the schema allows, up to the bound.
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

    pub(super) fn list(
        &mut self,
        schema: &'s Schema,
        item: &'s Schema,
        here: Term,
        is_valid: bool,
    ) -> Result<Form, Undecided> {
        let checks = &schema.checks;
        let room = self.room(checks.min_items, checks.max_items)?;
        let length = self.length(here, room, checks.min_items.filter(|_| is_valid));
        let mut items = Vec::new();
        for at in 0..room {
            let at = self.terms.int(i128::try_from(at).unwrap_or(i128::MAX));
            let is_there = self.terms.lt(at, length);
            items.push(self.below(item, here, is_there, is_valid));
        }
        if is_valid && let Some(distinct) = self.distinct(schema, &items)? {
            match distinct {
                Ok(condition) => self.assume(here, condition),
                Err(what) => self.relax(what),
            }
        }
        Ok(Form::List { length, items })
    }

    pub(super) fn map(
        &mut self,
        schema: &'s Schema,
        entry: &'s Schema,
        here: Term,
        is_valid: bool,
    ) -> Result<Form, Undecided> {
        let checks = &schema.checks;
        let room = self.room(checks.min_properties, checks.max_properties)?;
        let length = self.length(here, room, checks.min_properties.filter(|_| is_valid));
        let mut entries: Vec<(Term, NodeId)> = Vec::new();
        for at in 0..room {
            let at = self.terms.int(i128::try_from(at).unwrap_or(i128::MAX));
            let is_there = self.terms.lt(at, length);
            let key = self.terms.variable(Sort::Text);
            let above = self.terms.and(&[here, is_there]);
            if self.has_usual_keys
                && let Ok(usual) = regular::language(USUAL_KEY)
            {
                let is_usual = self.terms.in_language(key, &usual);
                self.assume(above, is_usual);
            }
            for (other, _) in &entries {
                let same = self.terms.eq(*other, key);
                let different = self.terms.not(same);
                self.assume(above, different);
            }
            let node = self.below(entry, here, is_there, is_valid);
            entries.push((key, node));
        }
        Ok(Form::Map { length, entries })
    }

    /// Requires distinct items of a set, or distinct keys of a map list; no condition for other lists.
    pub(super) fn distinct(
        &mut self,
        schema: &Schema,
        items: &[NodeId],
    ) -> Result<Option<Demand>, Undecided> {
        let keys: &[Box<str>] = match &schema.list_type {
            Some(ListType::Set) => &[],
            Some(ListType::Map) => &schema.list_map_keys,
            Some(ListType::Atomic | ListType::Other(_)) | None => return Ok(None),
        };
        let whole: [Option<&str>; 1] = [None];
        let named: Vec<Option<&str>> = keys.iter().map(|key| Some(&**key)).collect();
        let parts: &[Option<&str>] = if keys.is_empty() { &whole } else { &named };
        let mut all = Vec::new();
        for (at, item) in items.iter().enumerate() {
            for other in items.iter().take(at) {
                let mut same = vec![self.node(*item)?.present, self.node(*other)?.present];
                for part in parts {
                    match self.same_scalar(*other, *item, *part)? {
                        Some(equal) => same.push(equal),
                        None => {
                            let what = "list items with keys other than strings, numbers and booleans";
                            return Ok(Some(Err(what.to_owned())));
                        }
                    }
                }
                let same = self.terms.and(&same);
                all.push(self.terms.not(same));
            }
        }
        Ok(Some(Ok(self.terms.and(&all))))
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
        let terms = &mut self.terms;
        // A missing key property is not compared.
        let (both_there, both_null) = (terms.eq(a.present, b.present), terms.eq(a.null, b.null));
        let equal = terms.or(&[a.null, equal]);
        let equal = terms.and(&[both_null, equal]);
        let equal = if part.is_none() { equal } else { terms.implies(a.present, equal) };
        Ok(Some(if part.is_none() { equal } else { terms.and(&[both_there, equal]) }))
    }

    /// Returns whether an unchanged item is correlated with another item by its keys, or with none.
    pub(super) fn lost(
        &mut self,
        keys: &[Box<str>],
        earlier: Option<&[NodeId]>,
        item: NodeId,
    ) -> Result<Term, Undecided> {
        let mut reasons = Vec::new();
        for key in keys {
            let Some(child) = self.property(item, key)? else { return Ok(self.terms.bool(true)) };
            let (present, null) = (self.node(child)?.present, self.node(child)?.null);
            let absent = self.terms.not(present);
            reasons.extend([absent, null]);
        }
        for other in earlier.into_iter().flatten() {
            match self.same_keys_of(keys, *other, item)? {
                Some(same) => reasons.push(same),
                None => return Ok(self.terms.bool(true)),
            }
        }
        Ok(self.terms.or(&reasons))
    }

    /// Returns whether two present items agree in all keys; `None` if that is not translated.
    pub(super) fn same_keys_of(
        &mut self,
        keys: &[Box<str>],
        left: NodeId,
        right: NodeId,
    ) -> Result<Option<Term>, Undecided> {
        let mut parts = vec![self.node(left)?.present, self.node(right)?.present];
        for key in keys {
            let Some(same) = self.same_scalar(left, right, Some(key))? else { return Ok(None) };
            parts.push(same);
            for item in [left, right] {
                if let Some(child) = self.property(item, key)? {
                    let (present, null) = (self.node(child)?.present, self.node(child)?.null);
                    let not_null = self.terms.not(null);
                    parts.extend([present, not_null]);
                }
            }
        }
        Ok(Some(self.terms.and(&parts)))
    }
}
