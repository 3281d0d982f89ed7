//! Translates calls of CEL functions and operators into terms, with the semantics of admit-cel.

use std::rc::Rc;

use admit_cel::syntax::{Expr, ExprId, Literal};

use super::eval::Evaluator;
use super::term::Term;
use super::value::{HELD_OTHERWISE, Kind, Outcome, Value};
use super::{Undecided, undecided};

/// An operation on two values, neither of which is a `Value::Choice`.
type Two<'f, 'w, 's, 'a> =
    &'f mut dyn FnMut(&mut Evaluator<'w, 's, 'a>, &Value, &Value) -> Result<Outcome, Undecided>;

impl<'w, 's, 'a> Evaluator<'w, 's, 'a> {
    pub(super) fn call(
        &mut self,
        function: &str,
        target: Option<ExprId>,
        args: &[ExprId],
    ) -> Result<Outcome, Undecided> {
        let all: Vec<ExprId> = target.into_iter().chain(args.iter().copied()).collect();
        match (function, all.as_slice()) {
            ("_&&_", [left, right]) => self.logic(*left, *right, false),
            ("_||_", [left, right]) => self.logic(*left, *right, true),
            ("!_", [operand]) => {
                let (error, value) = self.truth_at(*operand)?;
                let value = Value::Bool(self.world.terms.not(value));
                Ok(Outcome { error, value })
            }
            ("_?_:_", [condition, yes, no]) => self.conditional(*condition, *yes, *no),
            ("_==_" | "_!=_", [left, right]) => self.compared(*left, *right, function == "_!=_"),
            ("@in" | "_in_", [element, range]) => self.membership(*element, *range),
            ("_[_]", [operand, key]) => {
                if let Some(part) = self.part_of_split(*operand, *key) {
                    return part;
                }
                let (operand, key) = (self.operand(*operand)?, self.eval(*key)?);
                self.both(&operand, &key, &mut |this, operand, key| {
                    if let Value::Optional(there, inner) = operand {
                        return this.optional_index(*there, inner, key);
                    }
                    let (error, there, value) = this.element(operand, key)?;
                    let absent = this.world.terms.not(there);
                    Ok(Outcome { error: this.world.terms.or(&[error, absent]), value })
                })
            }
            ("_+_" | "_-_" | "_*_" | "_/_" | "_%_", [left, right]) => {
                let (left, right) = (self.eval(*left)?, self.eval(*right)?);
                self.both(&left, &right, &mut |this, left, right| this.arithmetic(function, left, right))
            }
            ("-_", [operand]) => {
                let operand = self.eval(*operand)?;
                self.each(&operand, &mut |this, value| {
                    let nothing = this.nothing_of(value);
                    this.arithmetic("_-_", &nothing, value)
                })
            }
            ("_<_" | "_<=_" | "_>_" | "_>=_", [left, right]) => {
                let (left, right) = (self.eval(*left)?, self.eval(*right)?);
                self.both(&left, &right, &mut |this, left, right| this.order(function, left, right))
            }
            ("size", [operand]) => {
                if let Some(count) = self.keys_of_query(*operand) {
                    return count;
                }
                let operand = self.eval(*operand)?;
                self.each(&operand, &mut |this, value| this.size(value))
            }
            ("startsWith" | "endsWith" | "contains", [text, part]) => {
                let (text, part) = (self.eval(*text)?, self.eval(*part)?);
                self.both(&text, &part, &mut |this, text, part| this.text_test(function, text, part))
            }
            ("matches", [text, pattern]) => self.matches(*text, *pattern),
            ("type" | "dyn" | "string" | "int" | "bool", [operand]) => {
                let operand = self.eval(*operand)?;
                self.each(&operand, &mut |this, value| this.conversion(function, value))
            }
            _ => self.optional_call(function, target.is_some(), &all),
        }
    }

    fn optional_call(
        &mut self,
        function: &str,
        is_member: bool,
        all: &[ExprId],
    ) -> Result<Outcome, Undecided> {
        match (function, all) {
            ("_?._", [operand, field]) => {
                let Expr::Literal(Literal::String(field)) = self.ast.expr(*field) else {
                    return Err(undecided("a computed field name"));
                };
                let (operand, field) = (self.operand(*operand)?, field.clone());
                self.each(&operand, &mut |this, value| {
                    let yes = this.world.terms.bool(true);
                    let (there, value) = match value {
                        Value::Optional(there, inner) => this.optional_member(*there, inner, &field)?,
                        value => this.optional_member(yes, value, &field)?,
                    };
                    Ok(this.world.good(Value::Optional(there, Rc::new(value))))
                })
            }
            ("_[?_]", [operand, key]) => {
                let (operand, key) = (self.operand(*operand)?, self.eval(*key)?);
                self.both(&operand, &key, &mut |this, operand, key| {
                    let yes = this.world.terms.bool(true);
                    match operand {
                        Value::Optional(there, inner) => this.optional_index(*there, inner, key),
                        operand => this.optional_index(yes, operand, key),
                    }
                })
            }
            ("optional.none", []) => {
                let no = self.world.terms.bool(false);
                Ok(self.world.good(Value::Optional(no, Rc::new(Value::Null))))
            }
            ("optional.of", [operand]) => {
                let operand = self.eval(*operand)?;
                // An attribute starts from it soon: each branch of a conditional is one.
                if operand.value.is_held_otherwise(self.world.view) {
                    return Err(undecided(HELD_OTHERWISE));
                }
                let yes = self.world.terms.bool(true);
                Ok(Outcome { error: operand.error, value: Value::Optional(yes, Rc::new(operand.value)) })
            }
            ("hasValue" | "value", [operand]) if is_member => {
                let operand = self.eval(*operand)?;
                self.each(&operand, &mut |this, value| match value {
                    Value::Optional(there, _) if function == "hasValue" => {
                        Ok(this.world.good(Value::Bool(*there)))
                    }
                    Value::Optional(there, inner) => {
                        let error = this.world.terms.not(*there);
                        Ok(Outcome { error, value: (**inner).clone() })
                    }
                    value => this.no_overload(value),
                })
            }
            ("orValue" | "or", [operand, other]) if is_member => {
                self.or_else(function == "or", *operand, *other)
            }
            _ => self.other_call(function, is_member, all),
        }
    }

    /// Translates `orValue` and `or`: the value of an optional, or `other` if it is empty.
    fn or_else(
        &mut self,
        stays_optional: bool,
        operand: ExprId,
        other: ExprId,
    ) -> Result<Outcome, Undecided> {
        let operand = self.eval(operand)?;
        let other = self.eval(other)?;
        self.each(&operand, &mut |this, value| match value {
            Value::Optional(there, inner) => {
                let inner = if stays_optional { value.clone() } else { (**inner).clone() };
                let inner = this.world.good(inner);
                Ok(this.world.choose(*there, inner, other.clone()))
            }
            value => this.no_overload(value),
        })
    }

    fn other_call(&mut self, function: &str, is_member: bool, all: &[ExprId]) -> Result<Outcome, Undecided> {
        self.text_call(function, all)
            .or_else(|| self.found_call(function, all))
            .or_else(|| self.network_call(function, is_member, all))
            .or_else(|| self.instant_call(function, all))
            .or_else(|| self.measure_call(function, all))
            .unwrap_or_else(|| Err(undecided(format!("the function `{function}`"))))
    }

    /// The outcome for a value that no overload takes: an error, or undecided if its type is unknown.
    pub(super) fn no_overload(&mut self, value: &Value) -> Result<Outcome, Undecided> {
        match value {
            Value::Unknown(what) => Err(what.undecided()),
            _ => Ok(self.world.failed()),
        }
    }

    pub(super) fn both(
        &mut self,
        left: &Outcome,
        right: &Outcome,
        then: Two<'_, 'w, 's, 'a>,
    ) -> Result<Outcome, Undecided> {
        self.each(left, &mut |this, left| this.each(right, &mut |this, right| then(this, left, right)))
    }

    fn logic(&mut self, left: ExprId, right: ExprId, decides: bool) -> Result<Outcome, Undecided> {
        let (left_error, is_left) = match self.eval(left).and_then(|left| self.world.truth(&left)) {
            Ok(truth) => truth,
            Err(undecided) => match self.decided_by(right, decides) {
                Some(outcome) => return Ok(outcome),
                None => self.guess(left, undecided)?,
            },
        };
        // Short circuit: the right side is not evaluated, so it may be unsupported.
        if self.world.terms.known_bool(is_left) == Some(decides)
            && self.world.terms.known_bool(left_error) == Some(false)
        {
            return Ok(self.world.good(Value::Bool(is_left)));
        }
        let (right_error, is_right) = self.truth_at(right)?;
        let terms = &mut self.world.terms;
        let mut deciding = Vec::new();
        for (error, value) in [(left_error, is_left), (right_error, is_right)] {
            let is_it = if decides { value } else { terms.not(value) };
            let good = terms.not(error);
            deciding.push(terms.and(&[good, is_it]));
        }
        let decided = terms.or(&deciding);
        let open = terms.not(decided);
        let error = terms.or(&[left_error, right_error]);
        let error = terms.and(&[error, open]);
        let value = Value::Bool(if decides { decided } else { open });
        Ok(Outcome { error, value })
    }

    /// Evaluates the right side where it alone determines the result of `&&` or `||`.
    fn decided_by(&mut self, right: ExprId, decides: bool) -> Option<Outcome> {
        let right = self.eval(right).ok()?;
        let (error, value) = self.world.truth(&right).ok()?;
        let terms = &self.world.terms;
        let is_decided = terms.known_bool(error) == Some(false) && terms.known_bool(value) == Some(decides);
        is_decided.then(|| self.world.good(Value::Bool(value)))
    }

    fn conditional(&mut self, condition: ExprId, yes: ExprId, no: ExprId) -> Result<Outcome, Undecided> {
        let (error, condition) = self.truth_at(condition)?;
        let chosen = match self.world.terms.known_bool(condition) {
            Some(true) => self.branch(yes)?,
            Some(false) => self.branch(no)?,
            None => {
                let (yes, no) = (self.branch(yes)?, self.branch(no)?);
                self.world.choose(condition, yes, no)
            }
        };
        Ok(self.world.after(error, chosen))
    }

    fn compared(&mut self, left: ExprId, right: ExprId, is_negated: bool) -> Result<Outcome, Undecided> {
        if let Some(outcome) = self.is_no_query(left, right, is_negated) {
            return outcome;
        }
        let (left, right) = (self.eval(left)?, self.eval(right)?);
        self.equality(&left, &right, is_negated)
    }

    /// Translates `==` and `!=`. As in cel-go, `!=` is true if the comparison fails; an error of an operand
    /// stays an error.
    fn equality(&mut self, left: &Outcome, right: &Outcome, is_negated: bool) -> Result<Outcome, Undecided> {
        let (failed, equal) = self.world.equal(&left.value, &right.value)?;
        let terms = &mut self.world.terms;
        let operands = terms.or(&[left.error, right.error]);
        if is_negated {
            let different = terms.not(equal);
            let value = terms.or(&[failed, different]);
            return Ok(Outcome { error: operands, value: Value::Bool(value) });
        }
        let error = terms.or(&[operands, failed]);
        Ok(Outcome { error, value: Value::Bool(equal) })
    }

    fn membership(&mut self, element: ExprId, range: ExprId) -> Result<Outcome, Undecided> {
        let (element, range) = (self.eval(element)?, self.eval(range)?);
        self.both(&element, &range, &mut |this, element, range| {
            let (found, value) = match range {
                Value::List(list) => {
                    let (mut found, mut failed) = (Vec::new(), Vec::new());
                    for (there, item) in list.items.iter() {
                        if list.kind != Kind::Made && item.is_composed() && *element == Value::Null {
                            failed.push(*there);
                            continue;
                        }
                        let equal = this.world.part_equals(list.kind != Kind::Made, item, element)?;
                        found.push(this.world.terms.and(&[*there, equal]));
                    }
                    let (found, failed) = (this.world.terms.or(&found), this.world.terms.or(&failed));
                    // An item that does not compare counts where no other is the one.
                    let missing = this.world.terms.not(found);
                    let error = this.world.terms.and(&[missing, failed]);
                    return Ok(Outcome { error, value: Value::Bool(found) });
                }
                Value::Map(map) => match element {
                    Value::Text(key) => this.entry(map, *key),
                    _ => return Err(undecided("a map key that is not a string")),
                },
                Value::Object(_) => {
                    let key = match element {
                        Value::Text(key) => this.world.terms.known_text(*key).map(str::to_owned),
                        _ => None,
                    };
                    let key = key.ok_or_else(|| undecided("a computed field name"))?;
                    this.member(range, &key)?
                }
                value => return this.no_overload(value),
            };
            this.world.presence(found, &value)
        })
    }

    fn optional_index(&mut self, there: Term, inner: &Value, key: &Value) -> Result<Outcome, Undecided> {
        if let Value::Choice(condition, yes, no) = inner {
            let (yes, no) = (self.optional_index(there, yes, key)?, self.optional_index(there, no, key)?);
            return Ok(self.world.choose(*condition, yes, no));
        }
        if self.world.terms.known_bool(there) == Some(false) {
            return Ok(self.world.good(Value::Optional(there, Rc::new(Value::Null))));
        }
        let (error, found, value) = self.element(inner, key)?;
        let error = self.world.terms.and(&[there, error]);
        let there = self.world.terms.and(&[there, found]);
        Ok(Outcome { error, value: Value::Optional(there, Rc::new(value)) })
    }

    /// Translates an index: whether the key is invalid, whether such an element exists, and its value.
    pub(super) fn element(&mut self, operand: &Value, key: &Value) -> Result<(Term, Term, Value), Undecided> {
        let no = self.world.terms.bool(false);
        match (operand, key) {
            (Value::Unknown(what), _) | (_, Value::Unknown(what)) => Err(what.undecided()),
            (Value::List(list), Value::Int(index)) => {
                let (mut there, mut value) = (no, Value::Null);
                let positions = self.world.positions(list);
                let mut is_first = true;
                for ((is_there, item), at) in list.items.iter().zip(positions).rev() {
                    let same = self.world.terms.eq(at, *index);
                    let is_it = self.world.terms.and(&[*is_there, same]);
                    there = self.world.terms.or(&[there, is_it]);
                    value =
                        if is_first { item.clone() } else { self.world.merged(is_it, item.clone(), value) };
                    is_first = false;
                }
                Ok((no, there, value))
            }
            (Value::Map(map), Value::Text(key)) => {
                let (there, value) = self.entry(map, *key);
                Ok((no, there, value))
            }
            (Value::Object(_), Value::Text(key)) => {
                let key = self.world.terms.known_text(*key).map(str::to_owned);
                let key = key.ok_or_else(|| undecided("a computed field name"))?;
                let (there, value) = self.member(operand, &key)?;
                Ok((no, there, value))
            }
            (Value::Map(_) | Value::Object(_) | Value::List(_), _) => {
                Err(undecided("an index of an unsupported type"))
            }
            _ => Ok((no, no, Value::Null)),
        }
    }
}
