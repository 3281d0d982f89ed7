//! Translates equality of CEL values into terms, with the semantics of admit-cel.

use admit_policy::schema::Schema;

use super::document::{Form, Node, NodeId, Origin, World};
use super::readings::Address;
use super::term::Term;
use super::value::{Kind, List, Map, NULLS, Value, without_null};
use super::view::{View, is_open};
use super::{Undecided, undecided};

impl World<'_> {
    /// Returns whether two values are equal, and whether comparing them is an error.
    pub(super) fn equal(&mut self, left: &Value, right: &Value) -> Result<(Term, Term), Undecided> {
        self.check_size()?;
        let no = self.terms.bool(false);
        Ok(match (left, right) {
            (Value::Choice(condition, yes, other), _) => {
                let yes = self.equal(yes, right)?;
                let other = self.equal(other, right)?;
                self.either(*condition, yes, other)
            }
            (_, Value::Choice(condition, yes, other)) => {
                let yes = self.equal(left, yes)?;
                let other = self.equal(left, other)?;
                self.either(*condition, yes, other)
            }
            (Value::Null, Value::Null) => (no, self.terms.bool(true)),
            (Value::Null, _) | (_, Value::Null) => (no, no),
            (Value::Unknown(what), _) | (_, Value::Unknown(what)) => return Err(what.undecided()),
            (Value::Bool(a), Value::Bool(b))
            | (Value::Int(a), Value::Int(b))
            | (Value::Instant(a), Value::Instant(b))
            | (Value::Span(a), Value::Span(b))
            | (Value::Text(a), Value::Text(b)) => (no, self.terms.eq(*a, *b)),
            (Value::Unreadable, _) | (_, Value::Unreadable) => {
                return Err(undecided("a comparison of timestamps of which one may be unreadable"));
            }
            // A quantity computed by arithmetic is equal to none.
            (Value::Quantity(_), Value::Quantity(b)) if b.integer.is_none() => (self.terms.bool(true), no),
            (Value::Quantity(a), Value::Quantity(b)) => (no, self.terms.eq(a.value, b.value)),
            (Value::Address(a), Value::Address(b)) => (no, self.equal_addresses(*a, *b)),
            (Value::Network(a), Value::Network(b)) => {
                let addresses = self.equal_addresses(a.address, b.address);
                let prefixes = self.terms.eq(a.prefix, b.prefix);
                (no, self.terms.and(&[addresses, prefixes]))
            }
            (Value::Url(_), Value::Url(_)) => return Err(undecided("URLs, compared")),
            (Value::Type(a), Value::Type(b)) => (no, self.terms.bool(a == b)),
            (Value::Optional(a, x), Value::Optional(b, y)) => {
                let (error, equal) = self.equal(x, y)?;
                let both = self.terms.and(&[*a, *b]);
                let same = self.terms.eq(*a, *b);
                let equal = self.terms.ite(both, equal, same);
                (self.terms.and(&[both, error]), equal)
            }
            (Value::List(a), Value::List(b)) => (no, self.equal_lists(a, b)?),
            (Value::Map(a), Value::Map(b)) => (no, self.equal_maps(a, b)?),
            (Value::Object(a), Value::Object(b)) if a == b => (self.wrong_below(*a)?, self.terms.bool(true)),
            (Value::Object(a), Value::Object(b)) => (no, self.equal_objects(*a, *b)?),
            (Value::Object(_), Value::Map(_)) | (Value::Map(_), Value::Object(_)) => {
                return Err(undecided("an object compared with a map"));
            }
            (Value::Object(_), _) => {
                return Err(undecided("an object compared with a value that is not an object"));
            }
            (left, _) if left.is_strict() => (self.terms.bool(true), no),
            _ => (no, no),
        })
    }

    fn equal_addresses(&mut self, left: Address, right: Address) -> Term {
        let families = self.terms.eq(left.is_v4, right.is_v4);
        let numbers = self.terms.eq(left.number, right.number);
        self.terms.and(&[families, numbers])
    }

    fn either(&mut self, condition: Term, yes: (Term, Term), no: (Term, Term)) -> (Term, Term) {
        (self.terms.ite(condition, yes.0, no.0), self.terms.ite(condition, yes.1, no.1))
    }

    /// Returns whether two values are equal whose comparison cannot fail.
    pub(super) fn surely_equal(&mut self, left: &Value, right: &Value) -> Result<Term, Undecided> {
        let (error, equal) = self.equal(left, right)?;
        if self.terms.known_bool(error) != Some(false) {
            return Err(undecided("a comparison whose parts may fail"));
        }
        Ok(equal)
    }

    /// Returns whether a part of a list or map equals a value. In a declared one, a list or an object does not compare with null.
    pub(super) fn part_equals(
        &mut self,
        is_declared: bool,
        part: &Value,
        other: &Value,
    ) -> Result<Term, Undecided> {
        if is_declared && part.may_be(&Value::is_composed) && other.may_be(&|value| *value == Value::Null) {
            return Err(undecided("a list or an object inside a declared one, compared with null"));
        }
        self.surely_equal(part, other)
    }

    fn equal_lists(&mut self, left: &List, right: &List) -> Result<Term, Undecided> {
        let (left_size, right_size) = (
            self.count(left.items.iter().map(|(there, _)| *there)),
            self.count(right.items.iter().map(|(there, _)| *there)),
        );
        let mut parts = vec![self.terms.eq(left_size, right_size)];
        match &left.kind {
            Kind::Made | Kind::Atomic => {
                let (before_left, before_right) = (self.positions(left), self.positions(right));
                for ((there, item), at) in left.items.iter().zip(&before_left) {
                    for ((other_there, other), other_at) in right.items.iter().zip(&before_right) {
                        let same_place = self.terms.eq(*at, *other_at);
                        let both = self.terms.and(&[*there, *other_there, same_place]);
                        if self.terms.known_bool(both) == Some(false) {
                            continue;
                        }
                        let equal = self.part_equals(left.kind != Kind::Made, item, other)?;
                        parts.push(self.terms.implies(both, equal));
                    }
                }
            }
            Kind::Set => {
                for (there, item) in right.items.iter() {
                    let mut found = Vec::new();
                    for (other_there, other) in left.items.iter() {
                        let equal = self.surely_equal(other, item)?;
                        found.push(self.terms.and(&[*other_there, equal]));
                    }
                    let found = self.terms.or(&found);
                    parts.push(self.terms.implies(*there, found));
                }
            }
            Kind::Keyed(keys) => {
                for (there, item) in right.items.iter() {
                    let mut found = Vec::new();
                    for (other_there, other) in left.items.iter() {
                        let same = self.same_keys(keys, other, item)?;
                        let equal = self.surely_equal(other, item)?;
                        found.push(self.terms.and(&[*other_there, same, equal]));
                    }
                    let found = self.terms.or(&found);
                    parts.push(self.terms.implies(*there, found));
                }
            }
        }
        Ok(self.terms.and(&parts))
    }

    fn same_keys(&mut self, keys: &[Box<str>], left: &Value, right: &Value) -> Result<Term, Undecided> {
        let (Value::Object(left), Value::Object(right)) = (left, right) else {
            return Err(undecided("items of a map list that are not objects"));
        };
        let mut parts = Vec::new();
        for key in keys {
            let (Some(a), Some(b)) = (self.property(*left, key)?, self.property(*right, key)?) else {
                return Err(undecided("a key of a map list that is not declared"));
            };
            for id in [a, b] {
                let (present, null) = (self.node(id)?.present, self.node(id)?.null);
                let is_set = self.terms.known_bool(present) == Some(true);
                if !is_set || self.terms.known_bool(null) != Some(false) {
                    return Err(undecided("a key of a map list that may be absent"));
                }
            }
            let (a, b) = (self.value_of(a)?, self.value_of(b)?);
            parts.push(self.surely_equal(&a, &b)?);
        }
        Ok(self.terms.and(&parts))
    }

    /// Returns, for each item, how many present items precede it.
    pub(super) fn positions(&mut self, list: &List) -> Vec<Term> {
        let (mut before, one) = (self.terms.int(0), self.terms.int(1));
        let mut positions = Vec::new();
        for (there, _) in list.items.iter() {
            positions.push(before);
            let next = self.terms.add(before, one);
            before = self.terms.ite(*there, next, before);
        }
        positions
    }

    fn equal_maps(&mut self, left: &Map, right: &Map) -> Result<Term, Undecided> {
        let (left_size, right_size) = (
            self.count(left.entries.iter().map(|(there, ..)| *there)),
            self.count(right.entries.iter().map(|(there, ..)| *there)),
        );
        let mut parts = vec![self.terms.eq(left_size, right_size)];
        for (there, key, value) in left.entries.iter() {
            let mut found = Vec::new();
            for (other_there, other_key, other) in right.entries.iter() {
                let equal = self.part_equals(left.of_document, value, other)?;
                let same = self.terms.eq(*key, *other_key);
                found.push(self.terms.and(&[*other_there, same, equal]));
            }
            let found = self.terms.or(&found);
            parts.push(self.terms.implies(*there, found));
        }
        Ok(self.terms.and(&parts))
    }

    /// Compares objects of one schema whose fields are all declared.
    fn equal_objects(&mut self, left: NodeId, right: NodeId) -> Result<Term, Undecided> {
        let (a, b) = (self.node(left)?.clone(), self.node(right)?.clone());
        let is_closed = !is_open(a.schema) && !a.is_metadata;
        if !std::ptr::eq(a.schema, b.schema) || !is_closed {
            return Err(undecided("comparison of objects that may have undeclared fields"));
        }
        let typed = self.view == View::Typed;
        let mut parts = Vec::new();
        if typed {
            let uncounted = || undecided("comparison of objects that may have undeclared fields");
            let (x, y) = (self.count_properties(left)?, self.count_properties(right)?);
            parts.push(self.terms.eq(x.ok_or_else(uncounted)?, y.ok_or_else(uncounted)?));
        }
        for name in a.schema.properties.keys() {
            let (Some(x), Some(y)) = (self.property(left, name)?, self.property(right, name)?) else {
                return Err(undecided("comparison of objects with untyped fields"));
            };
            let (child, other) = (self.node(x)?.clone(), self.node(y)?.clone());
            let (x, y) = (self.value_of(x)?, self.value_of(y)?);
            if typed {
                // A null field counts as set, and compares as an absent one.
                let (x, y) = (without_null(x, child.null), without_null(y, other.null));
                let mine = self.is_set(&child);
                let theirs = self.is_set(&other);
                let equal = self.surely_equal(&x, &y)?;
                let equal = self.terms.implies(mine, equal);
                let same = self.terms.eq(mine, theirs);
                let holds = self.terms.and(&[same, equal]);
                parts.push(self.terms.implies(child.present, holds));
            } else {
                let equal = self.surely_equal(&x, &y)?;
                parts.push(self.terms.eq(child.present, other.present));
                parts.push(self.terms.implies(child.present, equal));
            }
        }
        Ok(self.terms.and(&parts))
    }

    /// Returns whether a descendant has another type than declared, which makes the comparison fail.
    fn wrong_below(&mut self, id: NodeId) -> Result<Term, Undecided> {
        self.check_size()?;
        if !self.keeps_wrong_types || self.is_typed_as_it_was(id)? {
            return Ok(self.terms.bool(false));
        }
        let below: Vec<NodeId> = match self.force(id)? {
            Form::Object(_) => {
                let schema = self.node(id)?.schema;
                let names = schema.properties.keys();
                names.filter_map(|name| self.property(id, name).transpose()).collect::<Result<_, _>>()?
            }
            Form::List { items, .. } => items,
            Form::Map { entries, .. } => entries.into_iter().map(|(_, entry)| entry).collect(),
            Form::Bool(_) | Form::Int(_) | Form::Text(_) | Form::IntOrText { .. } | Form::Any => Vec::new(),
        };
        let mut parts = Vec::new();
        for child in below {
            if matches!(self.force(child)?, Form::Text(_)) {
                self.value_of_its_type(child)?.doubt().map_or(Ok(()), |why| Err(why.undecided()))?;
            }
            self.refuse_nulls(id, child)?;
            let (here, wrong) = (self.node(child)?.here, self.wrong_type(child));
            parts.push(self.terms.and(&[here, wrong]));
            parts.push(self.wrong_below(child)?);
        }
        Ok(self.terms.or(&parts))
    }

    /// Leaves open whether an item is null that may be none.
    fn refuse_nulls(&self, above: NodeId, item: NodeId) -> Result<(), Undecided> {
        let node = self.node(item)?;
        let is_item = !matches!(self.node(above)?.form, Some(Form::Object(_)));
        if is_item && !node.schema.nullable && self.terms.known_bool(node.null) != Some(false) {
            return Err(undecided(NULLS));
        }
        Ok(())
    }

    /// Reports whether all descendants have the declared types if the source object's had them.
    fn is_typed_as_it_was(&self, id: NodeId) -> Result<bool, Undecided> {
        let node = self.node(id)?;
        for (_, origin) in node.made_of.iter().flat_map(|sources| sources.iter()) {
            if let Origin::Node(from) = origin
                && !are_typed_alike(self.node(*from)?.schema, node.schema)
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns whether a field is present and not null.
    fn is_set(&mut self, node: &Node<'_>) -> Term {
        let not_null = self.terms.not(node.null);
        self.terms.and(&[node.present, not_null])
    }
}

/// Reports whether all values valid for one schema have the types that another one declares.
fn are_typed_alike(old: &Schema, new: &Schema) -> bool {
    let has_type = new.int_or_string || new.schema_type.is_some();
    let is_read_alike = old.checks.format == new.checks.format && (new.nullable || !old.nullable);
    let is_alike = old.int_or_string == new.int_or_string && old.schema_type == new.schema_type;
    if !has_type || !is_alike || !is_read_alike {
        return !has_type;
    }
    let below = |new: Option<&Schema>, old: Option<&Schema>, is_open: bool| match (new, old) {
        (Some(new), Some(old)) => are_typed_alike(old, new),
        (Some(_), None) => !is_open,
        (None, _) => true,
    };
    let is_open = is_open(old);
    new.properties.iter().all(|(name, new)| below(Some(new), old.child(name), is_open))
        && below(new.items.as_deref(), old.items.as_deref(), true)
        && below(new.additional_schema(), old.additional_schema(), true)
}
