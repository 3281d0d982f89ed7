//! Decides whether a rule depends only on a few atoms of an object: then its verdict is the same for every object with equal atoms,
//! whatever else it contains.
//!
//! The analysis compares an object with its reduced form, from which everything but the atoms is removed; in a list with a key, the
//! entries that contain atoms stay. A refusal of the reduced object is shown to imply a refusal of the whole one:
//!
//! - values of atoms, and what is computed from them, are equal in both;
//! - `all` over a list fails with more elements if it fails with fewer, and `exists` holds with more if it holds with fewer;
//! - if conditions restrict elements to entries that stay (`c.type == 'Ready'`), the others do not matter.
//!
//! Free string fields are distinguished only by the constants that they are compared with, and by whether old and new are equal; a rule
//! that does more with them is not decided here.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use admit_cel::syntax::{Ast, Expr, ExprId};
use admit_policy::schema::Schema;
use serde_json::{Value, json};

use super::atoms::{Atom, AtomKind};
use super::field::{FieldPath, Step};
use super::scalar::{Condition, Part, Scalar, Scope, Spot, Truth};
use super::values;
use crate::reads::constant;

/// The maximum number of steps per expression; variables and macros can make it larger than its text.
const MOST_STEPS: usize = 20_000;
/// The maximum nesting of subexpressions.
const DEPTH: usize = 64;

/// A path that an expression reads, which is to become an atom.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Wanted {
    pub(super) path: FieldPath,
    pub(super) what: What,
}

#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum What {
    Presence,
    Value,
    Member(String),
}

/// What the expression may read.
pub(super) enum Ground<'a> {
    /// Only these atoms.
    Atoms(&'a [Atom]),
    /// Anything; it is recorded.
    Anything(RefCell<BTreeSet<Wanted>>),
}

/// The names that an expression may use.
pub(super) struct Around<'a> {
    /// The path of `self`.
    pub(super) node: Vec<Step>,
    pub(super) variables: &'a BTreeMap<String, Ast>,
    pub(super) schema: Option<&'a Schema>,
    /// Lists whose entries have unique keys, by path and key.
    pub(super) unique: &'a [(Vec<Step>, String)],
}

pub(super) struct Local<'a> {
    pub(super) around: Around<'a>,
    pub(super) ground: Ground<'a>,
    steps: Cell<usize>,
    depth: Cell<usize>,
}

impl<'a> Local<'a> {
    pub(super) const fn new(around: Around<'a>, ground: Ground<'a>) -> Self {
        Self { around, ground, steps: Cell::new(0), depth: Cell::new(0) }
    }

    /// Returns how a condition's value carries over to the whole object.
    pub(super) fn truth(&self, ast: &'a Ast, id: ExprId) -> Truth {
        let part = self.part(ast, id, &Vec::new());
        self.truth_of(&part)
    }

    /// Reports whether the expression has the same value for both.
    pub(super) fn is_exact(&self, ast: &'a Ast) -> bool {
        let part = self.part(ast, ast.root(), &Vec::new());
        matches!(part, Part::Condition(Truth { exact: true, .. })) || self.scalar(&part).is_some()
    }

    pub(super) fn truth_of(&self, part: &Part<'a>) -> Truth {
        match part {
            Part::Condition(truth) => *truth,
            Part::OneOf(parts) => parts.iter().map(|part| self.truth_of(part)).fold(Truth::EXACT, Truth::and),
            part => Truth::exact_if(self.scalar(part).is_some()),
        }
    }

    /// Returns the value, if it is the same for both.
    pub(super) fn scalar(&self, part: &Part<'a>) -> Option<Scalar> {
        match part {
            Part::Constant(value) => Some(Scalar::of_constant(value)),
            Part::Scalar(scalar) => Some(scalar.clone()),
            Part::Condition(truth) => truth.exact.then(Scalar::default),
            Part::Spot(spot) => self.value_at(spot),
            Part::OneOf(parts) => parts
                .iter()
                .map(|part| self.scalar(part))
                .try_fold(Scalar::default(), |all, one| Some(all.or(one?))),
            Part::Optional(_) | Part::Filtered(..) | Part::Emptiness | Part::Variables | Part::Unknown => {
                None
            }
        }
    }

    fn value_at(&self, spot: &Spot) -> Option<Scalar> {
        if let [.., Step::Entry { key, value }, Step::Name(name)] = spot.path.as_slice()
            && key == name
        {
            return Some(Scalar::of_constant(&json!(value)));
        }
        let path = FieldPath(spot.path.clone());
        match &self.ground {
            Ground::Atoms(atoms) => match &atoms.iter().find(|atom| atom.path == path)?.kind {
                AtomKind::Values(values) => Some(Scalar::of_constant(&Value::Array(values.clone()))),
                AtomKind::Text { .. } => Some(Scalar { open: BTreeSet::from([path]), ..Scalar::default() }),
                AtomKind::Presence(_) | AtomKind::Member(_) => None,
            },
            Ground::Anything(wanted) => {
                wanted.borrow_mut().insert(Wanted { path, what: What::Value });
                Some(Scalar { computed: true, ..Scalar::default() })
            }
        }
    }

    /// Reports whether the atoms determine if a field is present; while atoms are collected, records it and returns true.
    pub(super) fn presence(&self, spot: &Spot) -> bool {
        match &self.ground {
            Ground::Atoms(atoms) => {
                let is_key = matches!(spot.path.as_slice(), [.., Step::Entry { key, .. }, Step::Name(name)] if key == name);
                is_key || spot.path.is_empty() || atoms.iter().any(|atom| atom.path.is_within(&spot.path))
            }
            Ground::Anything(wanted) => {
                if !spot.path.is_empty() {
                    let path = FieldPath(spot.path.clone());
                    wanted.borrow_mut().insert(Wanted { path, what: What::Presence });
                }
                true
            }
        }
    }

    /// Reports whether the atoms determine if a list has an element; while atoms are collected, records it and returns true.
    pub(super) fn membership(&self, spot: &Spot, item: &str) -> bool {
        let path = FieldPath(spot.path.clone());
        match &self.ground {
            Ground::Atoms(atoms) => {
                let is_it = |atom: &Atom| atom.path == path && atom.kind == AtomKind::Member(json!(item));
                atoms.iter().any(is_it)
            }
            Ground::Anything(wanted) => {
                wanted.borrow_mut().insert(Wanted { path, what: What::Member(item.to_owned()) });
                true
            }
        }
    }

    /// Reports whether a free string is only compared with the constants that distinguish it, or with its old value.
    pub(super) fn may_compare(&self, left: &Scalar, right: &Scalar) -> bool {
        let Ground::Atoms(atoms) = &self.ground else { return true };
        let fits = |open: &FieldPath, other: &Scalar| {
            let named = atoms.iter().find(|atom| atom.path == *open).map(|atom| &atom.kind);
            let Some(AtomKind::Text { named, .. }) = named else { return false };
            let is_named = |text: &String| named.iter().any(|own| own.as_str() == Some(text.as_str()));
            !other.computed && other.open.iter().all(|own| own == open) && other.texts.iter().all(is_named)
        };
        left.open.iter().all(|open| fits(open, right)) && right.open.iter().all(|open| fits(open, left))
    }

    pub(super) fn is_list(&self, spot: &Spot) -> bool {
        let pattern = values::pattern_of(&spot.path);
        let schema = self.around.schema.and_then(|schema| values::at(schema, &pattern));
        let names: Vec<&str> = pattern.iter().map(String::as_str).collect();
        schema.is_some_and(|schema| schema.items.is_some()) || names == ["metadata", "finalizers"]
    }

    /// Reports whether every entry of the list has the field, as a string.
    fn is_key(&self, list: &[Step], key: &str) -> bool {
        let pattern = values::pattern_of(list);
        let schema = self.around.schema.and_then(|schema| values::at(schema, &pattern));
        schema.and_then(|list| list.items.as_deref().map(|items| (list, items))).is_some_and(
            |(list, items)| {
                list.list_map_keys.iter().any(|own| **own == *key)
                    || items.checks.required.iter().any(|own| **own == *key)
            },
        )
    }

    pub(super) fn is_unique(&self, list: &[Step], key: &str) -> bool {
        let pattern = values::pattern_of(list);
        let schema = self.around.schema.and_then(|schema| values::at(schema, &pattern));
        let by_schema = schema.is_some_and(|list| matches!(&*list.list_map_keys, [own] if **own == *key));
        by_schema || self.around.unique.iter().any(|(own, by)| own == list && by == key)
    }

    /// Returns the key of a list and its entries that stay.
    pub(super) fn entries(&self, list: &[Step]) -> Option<(String, BTreeSet<String>)> {
        let Ground::Atoms(atoms) = &self.ground else { return None };
        let mut found: Option<(String, BTreeSet<String>)> = None;
        for atom in atoms.iter().filter(|atom| atom.path.is_within(list)) {
            let Some(Step::Entry { key, value }) = atom.path.0.get(list.len()) else { continue };
            let (own, values) = found.get_or_insert_with(|| (key.clone(), BTreeSet::new()));
            if own == key {
                values.insert(value.clone());
            }
        }
        found.filter(|(key, _)| self.is_key(list, key))
    }

    /// Returns the key, and those of its values for which the condition on an element may differ from `wanted`.
    pub(super) fn ties(
        &self,
        list: &Spot,
        condition: &Condition<'a>,
        wanted: bool,
    ) -> Option<(String, BTreeSet<String>)> {
        let Condition { ast, variable, body, scope } = condition;
        let expr = ast.expr(*body);
        let with = |body: ExprId| Condition { ast, variable, body, scope: scope.clone() };
        let Expr::Call { function, target: None, args } = expr else { return None };
        match (&**function, &**args, wanted) {
            ("_&&_", [left, right], false) | ("_||_", [left, right], true) => {
                self.ties(list, &with(*left), wanted).or_else(|| self.ties(list, &with(*right), wanted))
            }
            ("_||_", [left, right], false) | ("_&&_", [left, right], true) => {
                let (key, mut values) = self.ties(list, &with(*left), wanted)?;
                let (other, more) = self.ties(list, &with(*right), wanted)?;
                values.extend(more);
                (key == other).then_some((key, values))
            }
            ("!_", [inner], wanted) => self.ties(list, &with(*inner), !wanted),
            ("_==_", [left, right], false) | ("_!=_", [left, right], true) => {
                let key = |id: ExprId| key_of(ast, id, variable);
                let (key, other) = match (key(*left), key(*right)) {
                    (Some(key), None) => (key, *right),
                    (None, Some(key)) => (key, *left),
                    _ => return None,
                };
                let other = self.text(&self.part(ast, other, scope))?;
                self.is_key(&list.path, key).then(|| (key.to_owned(), BTreeSet::from([other])))
            }
            ("@in", [left, right], false) => {
                let key = key_of(ast, *left, variable).filter(|key| self.is_key(&list.path, key))?;
                let values = match self.part(ast, *right, scope) {
                    Part::Constant(Value::Array(items)) => items
                        .iter()
                        .map(|item| item.as_str().map(ToOwned::to_owned))
                        .collect::<Option<_>>()?,
                    Part::Constant(Value::Object(fields)) => fields.keys().cloned().collect(),
                    _ => return None,
                };
                Some((key.to_owned(), values))
            }
            _ => None,
        }
    }

    /// Returns the string that it is, if there is only one.
    fn text(&self, part: &Part<'a>) -> Option<String> {
        let scalar = self.scalar(part)?;
        let is_one = scalar.texts.len() == 1 && scalar.open.is_empty() && !scalar.computed;
        let is_text = match part {
            Part::Constant(value) => value.is_string(),
            Part::Spot(spot) => {
                matches!(spot.path.as_slice(), [.., Step::Entry { key, .. }, Step::Name(name)] if key == name)
            }
            _ => false,
        };
        scalar.texts.into_iter().next().filter(|_| is_one && is_text)
    }

    pub(super) fn part(&self, ast: &'a Ast, id: ExprId, scope: &Scope<'a>) -> Part<'a> {
        let (steps, depth) = (self.steps.get().saturating_add(1), self.depth.get());
        self.steps.set(steps);
        if steps > MOST_STEPS || depth > DEPTH {
            return Part::Unknown;
        }
        self.depth.set(depth.saturating_add(1));
        let part = match ast.expr(id) {
            Expr::Literal(literal) => constant(literal).map_or(Part::Unknown, Part::Constant),
            Expr::Ident(name) => self.name(name, scope),
            Expr::Select { operand, field, .. } => {
                let of = self.part(ast, *operand, scope);
                of.each(&mut |of| self.select(of, field))
            }
            Expr::Call { function, target, args } => self.call(ast, (function, *target, args), scope),
            Expr::List { elements, optional } if optional.is_empty() => {
                let parts: Vec<Part<'a>> = elements.iter().map(|id| self.part(ast, *id, scope)).collect();
                self.together(&parts, |values| Value::Array(values.to_vec()))
            }
            Expr::Map(entries) if !entries.iter().any(|entry| entry.optional) => {
                let ids = entries.iter().flat_map(|entry| [entry.key, entry.value]);
                let parts: Vec<Part<'a>> = ids.map(|id| self.part(ast, id, scope)).collect();
                let is_keyed =
                    parts.iter().step_by(2).all(|key| key.constant().is_some_and(Value::is_string));
                let map = |values: &[Value]| {
                    let pair = |pair: &[Value]| match pair {
                        [key, value] => (key.as_str().unwrap_or_default().to_owned(), value.clone()),
                        _ => (String::new(), Value::Null),
                    };
                    Value::Object(values.chunks(2).map(pair).collect())
                };
                if is_keyed { self.together(&parts, map) } else { Part::Unknown }
            }
            Expr::List { .. } | Expr::Map(_) | Expr::Struct { .. } | Expr::Comprehension(_) => Part::Unknown,
        };
        self.depth.set(depth);
        part
    }

    /// Builds a list or map: a constant if all its elements are.
    fn together(&self, parts: &[Part<'a>], made: impl Fn(&[Value]) -> Value) -> Part<'a> {
        let constants: Option<Vec<Value>> = parts.iter().map(|part| part.constant().cloned()).collect();
        if let Some(values) = constants {
            return Part::Constant(made(&values));
        }
        let mut all = parts.iter().map(|part| self.scalar(part));
        all.try_fold(Scalar::default(), |all, one| Some(all.or(one?))).map_or(Part::Unknown, Part::Scalar)
    }

    fn name(&self, name: &str, scope: &Scope<'a>) -> Part<'a> {
        let name = name.strip_prefix('.').unwrap_or(name);
        if let Some((_, part)) = scope.iter().rev().find(|(own, _)| *own == name) {
            return part.clone();
        }
        let old = match name {
            "object" | "self" => false,
            "oldObject" | "oldSelf" => true,
            "variables" => return Part::Variables,
            _ => return Part::Unknown,
        };
        Part::Spot(Spot { old, path: self.around.node.clone() })
    }

    fn select(&self, of: Part<'a>, field: &str) -> Part<'a> {
        match of {
            Part::Variables => match self.around.variables.get(field) {
                Some(ast) => self.part(ast, ast.root(), &Vec::new()),
                None => Part::Unknown,
            },
            Part::Spot(spot) => Part::Spot(spot.below(Step::Name(field.to_owned()))),
            Part::Optional(spot) => Part::Optional(spot.below(Step::Name(field.to_owned()))),
            // A missing value is an error for both.
            Part::Constant(value) => {
                value.get(field).cloned().map_or_else(|| Part::Scalar(Scalar::default()), Part::Constant)
            }
            Part::Scalar(scalar) if scalar.open.is_empty() => Part::Scalar(scalar),
            _ => Part::Unknown,
        }
    }
}

/// Returns the field of the variable that the part selects.
fn key_of<'a>(ast: &'a Ast, id: ExprId, variable: &str) -> Option<&'a str> {
    let Expr::Select { operand, field, .. } = ast.expr(id) else { return None };
    matches!(ast.expr(*operand), Expr::Ident(name) if &**name == variable).then_some(&**field)
}
