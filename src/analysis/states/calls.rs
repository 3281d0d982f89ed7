//! Analyses calls, operators and macros of an expression over an object reduced to its atoms ([`super::local`]).

use std::collections::BTreeSet;

use admit_cel::syntax::{Ast, Expr, ExprId};
use serde_json::{Value, json};

use super::field::Step;
use super::local::{Ground, Local};
use super::scalar::{Condition, Part, Scalar, Scope, Spot, Truth};

/// The maximum length of a constant list that a macro iterates over.
const MOST_CONSTANTS: usize = 64;

/// The macros that iterate over elements and return a condition.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Quantifier {
    All,
    Exists,
    ExistsOne,
}

impl<'a> Local<'a> {
    pub(super) fn call(
        &self,
        ast: &'a Ast,
        (function, target, args): (&'a str, Option<ExprId>, &'a [ExprId]),
        scope: &Scope<'a>,
    ) -> Part<'a> {
        if let (Some(target), [variable, body]) = (target, args)
            && let Expr::Ident(variable) = ast.expr(*variable)
            && let Some(part) = self.macro_of(ast, (function, target), (variable, *body), scope)
        {
            return part;
        }
        let ids: Vec<ExprId> = target.iter().chain(args).copied().collect();
        if let ("has", None, [only]) = (function, target, ids.as_slice()) {
            return self.has(ast, *only, scope);
        }
        let parts: Vec<Part<'a>> = ids.iter().map(|id| self.part(ast, *id, scope)).collect();
        match (function, parts.as_slice()) {
            ("_&&_" | "_||_", [left, right]) => {
                Part::Condition(self.truth_of(left).and(self.truth_of(right)))
            }
            ("!_", [inner]) => Part::Condition(self.truth_of(inner).not()),
            ("_?_:_", [condition, yes, no]) if self.truth_of(condition).exact => {
                Part::OneOf(vec![yes.clone(), no.clone()])
            }
            ("_==_" | "_!=_" | "_<_" | "_<=_" | "_>_" | "_>=_", [left, right]) => {
                self.compared(function, left, right)
            }
            ("@in", [item, of]) => of.clone().each(&mut |of| self.contained(item, &of)),
            ("_[_]", [of, key]) => of.clone().each(&mut |of| self.index(of, key)),
            ("_?._", [of, key]) => of.clone().each(&mut |of| match (of, key.constant()) {
                (Part::Spot(spot) | Part::Optional(spot), Some(Value::String(name))) => {
                    Part::Optional(spot.below(Step::Name(name.clone())))
                }
                _ => Part::Unknown,
            }),
            ("orValue", [of, other]) => of.clone().each(&mut |of| match of {
                Part::Optional(spot) if self.presence(&spot) => {
                    Part::OneOf(vec![Part::Spot(spot), other.clone()])
                }
                _ => Part::Unknown,
            }),
            ("hasValue", [of]) => of.clone().each(&mut |of| match of {
                Part::Optional(spot) => Part::exact_if(self.presence(&spot)),
                _ => Part::Unknown,
            }),
            ("dyn", [of]) => of.clone(),
            ("size", [of]) => of.clone().each(&mut |of| self.size(of)),
            (_, parts) => self.computed(parts),
        }
    }

    fn has(&self, ast: &'a Ast, id: ExprId, scope: &Scope<'a>) -> Part<'a> {
        let Expr::Select { operand, field, .. } = ast.expr(id) else { return Part::Unknown };
        self.part(ast, *operand, scope).each(&mut |of| match of {
            Part::Spot(spot) => Part::exact_if(self.presence(&spot.below(Step::Name((**field).to_owned())))),
            _ => Part::Unknown,
        })
    }

    /// Evaluates a function on known values, unless one of them may be any string.
    fn computed(&self, parts: &[Part<'a>]) -> Part<'a> {
        let mut all = Scalar::default();
        for part in parts {
            match self.scalar(part) {
                Some(scalar) if scalar.open.is_empty() => all = all.or(scalar),
                _ => return Part::Unknown,
            }
        }
        Part::Scalar(Scalar { computed: true, ..all })
    }

    fn compared(&self, function: &str, left: &Part<'a>, right: &Part<'a>) -> Part<'a> {
        let is_equality = matches!(function, "_==_" | "_!=_");
        for (one, other) in [(left, right), (right, left)] {
            match (one, other) {
                (Part::Spot(spot), Part::Constant(Value::Null)) if is_equality => {
                    return Part::exact_if(self.presence(spot));
                }
                // Only emptiness is known, so the only decidable comparisons are with zero or one.
                (Part::Emptiness, Part::Constant(count)) => {
                    let is_first = std::ptr::eq(one, left);
                    let is_told = matches!(
                        (function, count.as_i64(), is_first),
                        ("_==_" | "_!=_", Some(0), _)
                            | ("_>_" | "_<=_", Some(0), true)
                            | ("_<_" | "_>=_", Some(1), true)
                            | ("_<_" | "_>=_", Some(0), false)
                            | ("_>_" | "_<=_", Some(1), false)
                    );
                    return Part::exact_if(is_told);
                }
                _ => {}
            }
        }
        if let (Part::OneOf(parts), other) | (other, Part::OneOf(parts)) = (left, right)
            && parts.iter().any(|part| matches!(part, Part::Emptiness | Part::OneOf(_)))
        {
            let all = parts.iter().map(|part| self.truth_of(&self.compared(function, part, other)));
            return Part::Condition(all.fold(Truth::EXACT, Truth::and));
        }
        match (self.scalar(left), self.scalar(right)) {
            (Some(left), Some(right)) if is_equality => Part::exact_if(self.may_compare(&left, &right)),
            (Some(left), Some(right)) => Part::exact_if(left.open.is_empty() && right.open.is_empty()),
            _ => Part::Unknown,
        }
    }

    fn contained(&self, item: &Part<'a>, of: &Part<'a>) -> Part<'a> {
        if let (Part::Spot(spot), Some(Value::String(name))) = (of, item.constant()) {
            return Part::exact_if(if self.is_list(spot) {
                self.membership(spot, name)
            } else {
                self.presence(&spot.below(Step::Name(name.clone())))
            });
        }
        if matches!(of, Part::Spot(_)) {
            return Part::Unknown;
        }
        match (self.scalar(item), self.scalar(of)) {
            (Some(item), Some(of)) => Part::exact_if(self.may_compare(&item, &of)),
            _ => Part::Unknown,
        }
    }

    fn index(&self, of: Part<'a>, key: &Part<'a>) -> Part<'a> {
        match (of, key.constant()) {
            (Part::Spot(spot), Some(Value::String(name))) => Part::Spot(spot.below(Step::Name(name.clone()))),
            (Part::Filtered(list, conditions), Some(Value::Number(first))) if first.as_i64() == Some(0) => {
                match self.only(&list, &conditions) {
                    Some((key, value)) => Part::Spot(list.below(Step::Entry { key, value })),
                    None => Part::Unknown,
                }
            }
            (of @ (Part::Constant(_) | Part::Scalar(_)), _) => match (self.scalar(&of), self.scalar(key)) {
                (Some(of), Some(key)) if self.may_compare(&of, &key) && of.open.is_empty() => {
                    Part::Scalar(of)
                }
                _ => Part::Unknown,
            },
            _ => Part::Unknown,
        }
    }

    /// Returns the key that elements must have, if the conditions require nothing else.
    fn only(&self, list: &Spot, conditions: &[Condition<'a>]) -> Option<(String, String)> {
        let [condition] = conditions else { return None };
        let (key, values) = self.ties(list, condition, false)?;
        let mut values = values.into_iter();
        let (value, None) = (values.next()?, values.next()) else { return None };
        let is_alone = matches!(
            condition.ast.expr(condition.body),
            Expr::Call { function, .. } if &**function == "_==_"
        );
        let is_exact =
            || self.is_unique(&list.path, &key) && self.meets(list, conditions, &key, &value).exact;
        (is_alone || is_exact()).then_some((key, value))
    }

    fn size(&self, of: Part<'a>) -> Part<'a> {
        match of {
            Part::Filtered(list, conditions) => match self.only(&list, &conditions) {
                Some((key, _)) if self.is_unique(&list.path, &key) => Part::Scalar(Scalar::default()),
                Some(_) => Part::Emptiness,
                None => Part::Unknown,
            },
            of => self.computed(&[of]),
        }
    }

    fn macro_of(
        &self,
        ast: &'a Ast,
        (function, target): (&str, ExprId),
        (variable, body): (&'a str, ExprId),
        scope: &Scope<'a>,
    ) -> Option<Part<'a>> {
        let quantifier = match function {
            "all" => Some(Quantifier::All),
            "exists" => Some(Quantifier::Exists),
            "exists_one" | "existsOne" => Some(Quantifier::ExistsOne),
            "filter" => None,
            "map" => return Some(Part::Unknown),
            _ => return None,
        };
        let of = self.part(ast, target, scope);
        let condition = Condition { ast, variable, body, scope: scope.clone() };
        Some(of.each(&mut |of| match (of, quantifier) {
            (Part::Constant(Value::Array(items)), quantifier) if items.len() <= MOST_CONSTANTS => {
                self.over_constants(&items, quantifier, &condition)
            }
            (Part::Spot(list), None) => Part::Filtered(list, vec![condition.clone()]),
            (Part::Filtered(list, mut conditions), None) => {
                conditions.push(condition.clone());
                Part::Filtered(list, conditions)
            }
            (Part::Spot(list), Some(quantifier)) => {
                Part::Condition(self.over_entries(&list, &[], quantifier, &condition))
            }
            (Part::Filtered(list, conditions), Some(quantifier)) => {
                Part::Condition(self.over_entries(&list, &conditions, quantifier, &condition))
            }
            _ => Part::Unknown,
        }))
    }

    fn over_constants(
        &self,
        items: &[Value],
        quantifier: Option<Quantifier>,
        condition: &Condition<'a>,
    ) -> Part<'a> {
        let each = items.iter().map(|item| {
            let mut scope = condition.scope.clone();
            scope.push((condition.variable, Part::Constant(item.clone())));
            self.truth_of(&self.part(condition.ast, condition.body, &scope))
        });
        let all = each.fold(Truth::EXACT, Truth::and);
        match quantifier {
            Some(Quantifier::All | Quantifier::Exists) => Part::Condition(all),
            Some(Quantifier::ExistsOne) => Part::exact_if(all.exact),
            None if items.is_empty() => Part::Constant(json!([])),
            None if all.exact => Part::Scalar(Scalar::of_constant(&json!(items))),
            None => Part::Unknown,
        }
    }

    /// Evaluates a condition on an element for the entry with this key.
    fn meets(&self, list: &Spot, conditions: &[Condition<'a>], key: &str, value: &str) -> Truth {
        let entry = list.below(Step::Entry { key: key.to_owned(), value: value.to_owned() });
        let one = |condition: &Condition<'a>| {
            let mut scope = condition.scope.clone();
            scope.push((condition.variable, Part::Spot(entry.clone())));
            self.truth_of(&self.part(condition.ast, condition.body, &scope))
        };
        conditions.iter().map(one).fold(Truth::EXACT, Truth::and)
    }

    /// Evaluates a quantifier over the list elements that meet the conditions.
    fn over_entries(
        &self,
        list: &Spot,
        conditions: &[Condition<'a>],
        quantifier: Quantifier,
        body: &Condition<'a>,
    ) -> Truth {
        // Elements that pass a filter met its first condition; a later one may fail before it is evaluated.
        let ties = match conditions.first() {
            Some(first) => self.ties(list, first, false),
            None => self.ties(list, body, quantifier == Quantifier::All),
        };
        let staying = match &self.ground {
            Ground::Atoms(_) => self.entries(&list.path),
            Ground::Anything(_) => ties.clone(),
        };
        let Some((key, values)) = staying else { return Truth::NONE };
        let is_tied =
            ties.is_some_and(|(own, tied): (String, BTreeSet<String>)| own == key && tied.is_subset(&values));
        let is_local = is_tied && self.is_unique(&list.path, &key);
        let (mut filter, mut inner) = (Truth::EXACT, Truth::EXACT);
        for value in &values {
            filter = filter.and(self.meets(list, conditions, &key, value));
            inner = inner.and(self.meets(list, std::slice::from_ref(body), &key, value));
        }
        let is_exact = is_local && filter.exact && inner.exact;
        match quantifier {
            Quantifier::All => Truth {
                refusal: filter.exact && inner.refusal,
                truth: is_local && filter.exact && inner.truth,
                exact: is_exact,
            },
            Quantifier::Exists => Truth {
                refusal: is_local && filter.exact && inner.refusal,
                truth: filter.exact && inner.truth,
                exact: is_exact,
            },
            Quantifier::ExistsOne => Truth::exact_if(is_exact),
        }
    }
}
