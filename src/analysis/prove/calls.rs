//! The functions and operators that are followed, each as admit-cel has it.

use std::rc::Rc;

use admit_cel::syntax::{Expr, ExprId, Literal};

use super::eval::Evaluator;
use super::regular;
use super::term::Term;
use super::value::{Kind, List, Outcome, Value};
use super::{Undecided, undecided};

/// Of values that are no choices.
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
            ("_==_" | "_!=_", [left, right]) => {
                let (left, right) = (self.eval(*left)?, self.eval(*right)?);
                self.equality(&left, &right, function == "_!=_")
            }
            ("@in" | "_in_", [element, range]) => self.membership(*element, *range),
            ("_[_]", [operand, key]) => {
                let (operand, key) = (self.eval(*operand)?, self.eval(*key)?);
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
                let zero = Value::Int(self.world.terms.int(0));
                self.each(&operand, &mut |this, value| this.arithmetic("_-_", &zero, value))
            }
            ("_<_" | "_<=_" | "_>_" | "_>=_", [left, right]) => {
                let (left, right) = (self.eval(*left)?, self.eval(*right)?);
                self.both(&left, &right, &mut |this, left, right| this.order(function, left, right))
            }
            ("size", [operand]) => {
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
                    return Err(undecided("a field whose name is computed"));
                };
                let (operand, field) = (self.eval(*operand)?, field.clone());
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
                let (operand, key) = (self.eval(*operand)?, self.eval(*key)?);
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
                let operand = self.eval(*operand)?;
                let other = self.eval(*other)?;
                self.each(&operand, &mut |this, value| match value {
                    Value::Optional(there, inner) => {
                        let inner = if function == "or" { value.clone() } else { (**inner).clone() };
                        let inner = this.world.good(inner);
                        Ok(this.world.choose(*there, inner, other.clone()))
                    }
                    value => this.no_overload(value),
                })
            }
            _ => Err(undecided(format!("the function `{function}`"))),
        }
    }

    /// A value that no overload takes; or one of which that is not known.
    fn no_overload(&mut self, value: &Value) -> Result<Outcome, Undecided> {
        match value {
            Value::Unknown(what) => Err(undecided(*what)),
            _ => Ok(self.world.failed()),
        }
    }

    fn both(
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
        // What is decided needs nothing more, so that what follows need not be one that is followed.
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

    /// What the right side decides alone, whatever is on the left.
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
            Some(true) => self.eval(yes)?,
            Some(false) => self.eval(no)?,
            None => {
                let (yes, no) = (self.eval(yes)?, self.eval(no)?);
                self.world.choose(condition, yes, no)
            }
        };
        Ok(self.world.after(error, chosen))
    }

    /// Of `!=` an error of the comparison is true, as cel-go has it; one of an operand is an error.
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
            let found = match range {
                Value::List(list) => {
                    let mut found = Vec::new();
                    for (there, item) in list.items.iter() {
                        let equal = this.world.surely_equal(element, item)?;
                        found.push(this.world.terms.and(&[*there, equal]));
                    }
                    this.world.terms.or(&found)
                }
                Value::Map(map) => match element {
                    Value::Text(key) => this.entry(map, *key).0,
                    _ => return Err(undecided("a key that is no text")),
                },
                Value::Object(_) => {
                    let key = match element {
                        Value::Text(key) => this.world.terms.known_text(*key).map(str::to_owned),
                        _ => None,
                    };
                    let key = key.ok_or_else(|| undecided("a field whose name is computed"))?;
                    this.member(range, &key)?.0
                }
                value => return this.no_overload(value),
            };
            Ok(this.world.good(Value::Bool(found)))
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

    /// An item or entry: whether the key is none, whether there is such a one, and what it is.
    fn element(&mut self, operand: &Value, key: &Value) -> Result<(Term, Term, Value), Undecided> {
        let no = self.world.terms.bool(false);
        match (operand, key) {
            (Value::Unknown(what), _) | (_, Value::Unknown(what)) => Err(undecided(*what)),
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
                let key = key.ok_or_else(|| undecided("a field whose name is computed"))?;
                let (there, value) = self.member(operand, &key)?;
                Ok((no, there, value))
            }
            (Value::Map(_) | Value::Object(_) | Value::List(_), _) => {
                Err(undecided("an index of another type"))
            }
            _ => Ok((no, no, Value::Null)),
        }
    }

    fn arithmetic(&mut self, function: &str, left: &Value, right: &Value) -> Result<Outcome, Undecided> {
        match (function, left, right) {
            (_, Value::Unknown(what), _) | (_, _, Value::Unknown(what)) => Err(undecided(*what)),
            (_, Value::Int(left), Value::Int(right)) => Ok(self.whole(function, *left, *right)),
            ("_+_", Value::Text(left), Value::Text(right)) => {
                let joined = self.world.terms.join(*left, *right);
                Ok(self.world.good(Value::Text(joined)))
            }
            ("_+_", Value::List(left), Value::List(right)) => {
                let is_merged = |list: &List| matches!(list.kind, Kind::Set | Kind::Keyed(_));
                if is_merged(left) || is_merged(right) {
                    return Err(undecided("sets and map lists put together"));
                }
                let items = left.items.iter().chain(right.items.iter()).cloned().collect();
                Ok(self.world.good(Value::list(items)))
            }
            _ => Ok(self.world.failed()),
        }
    }

    /// On 64 bits: what does not fit is an error.
    fn whole(&mut self, function: &str, left: Term, right: Term) -> Outcome {
        let terms = &mut self.world.terms;
        let (zero, minus_one) = (terms.int(0), terms.int(-1));
        let (least, most) = (terms.int(i64::MIN), terms.int(i64::MAX));
        let by_zero = terms.eq(right, zero);
        let is_least = terms.eq(left, least);
        let by_minus_one = terms.eq(right, minus_one);
        let beyond = terms.and(&[is_least, by_minus_one]);
        let (value, error) = match function {
            "_+_" => (terms.add(left, right), None),
            "_-_" => (terms.sub(left, right), None),
            "_*_" => (terms.mul(left, right), None),
            "_/_" => (terms.quotient(left, right), Some(terms.or(&[by_zero, beyond]))),
            _ => (terms.remainder(left, right), Some(terms.or(&[by_zero, beyond]))),
        };
        let error = error.unwrap_or_else(|| {
            let (low, high) = (terms.lt(value, least), terms.lt(most, value));
            terms.or(&[low, high])
        });
        Outcome { error, value: Value::Int(value) }
    }

    fn order(&mut self, function: &str, left: &Value, right: &Value) -> Result<Outcome, Undecided> {
        let (a, b, is_text) = match (left, right) {
            (Value::Unknown(what), _) | (_, Value::Unknown(what)) => return Err(undecided(*what)),
            (Value::Int(a), Value::Int(b)) => (*a, *b, false),
            (Value::Text(a), Value::Text(b)) => (*a, *b, true),
            (Value::Bool(_), Value::Bool(_)) => return Err(undecided("truth values in an order")),
            _ => return Ok(self.world.failed()),
        };
        let terms = &mut self.world.terms;
        let (a, b) = if matches!(function, "_>_" | "_>=_") { (b, a) } else { (a, b) };
        let strict = matches!(function, "_<_" | "_>_");
        let value = match (is_text, strict) {
            (false, true) => terms.lt(a, b),
            (false, false) => terms.le(a, b),
            (true, true) => terms.text_lt(a, b),
            (true, false) => {
                let greater = terms.text_lt(b, a);
                terms.not(greater)
            }
        };
        Ok(self.world.good(Value::Bool(value)))
    }

    fn size(&mut self, value: &Value) -> Result<Outcome, Undecided> {
        let size = match value {
            Value::Text(text) => self.world.terms.length(*text),
            Value::List(list) => self.world.count(list.items.iter().map(|(there, _)| *there)),
            Value::Map(map) => self.world.count(map.entries.iter().map(|(there, ..)| *there)),
            Value::Object(id) => self.object_size(*id)?,
            value => return self.no_overload(value),
        };
        Ok(self.world.good(Value::Int(size)))
    }

    fn text_test(&mut self, function: &str, text: &Value, part: &Value) -> Result<Outcome, Undecided> {
        let (Value::Text(text), Value::Text(part)) = (text, part) else {
            return match part {
                Value::Unknown(what) => Err(undecided(*what)),
                _ => self.no_overload(text),
            };
        };
        let terms = &mut self.world.terms;
        let holds = match function {
            "startsWith" => terms.starts_with(*text, *part),
            "endsWith" => terms.ends_with(*text, *part),
            _ => terms.contains(*text, *part),
        };
        Ok(self.world.good(Value::Bool(holds)))
    }

    fn matches(&mut self, text: ExprId, pattern: ExprId) -> Result<Outcome, Undecided> {
        let Expr::Literal(Literal::String(pattern)) = self.ast.expr(pattern) else {
            return Err(undecided("`matches` with a pattern that is not constant"));
        };
        let language =
            regular::language(pattern).map_err(|why| undecided(format!("`matches` with {why}")))?;
        let text = self.eval(text)?;
        self.each(&text, &mut |this, value| match value {
            Value::Text(text) => {
                let holds = this.world.terms.in_language(*text, &language);
                Ok(this.world.good(Value::Bool(holds)))
            }
            value => this.no_overload(value),
        })
    }

    fn conversion(&mut self, function: &str, value: &Value) -> Result<Outcome, Undecided> {
        let same = self.world.good(value.clone());
        match (function, value) {
            (_, Value::Unknown(what)) => Err(undecided(*what)),
            ("dyn", _) | ("string", Value::Text(_)) | ("int", Value::Int(_)) | ("bool", Value::Bool(_)) => {
                Ok(same)
            }
            ("type", value) => {
                let name = match value {
                    Value::Null => "null_type",
                    Value::Bool(_) => "bool",
                    Value::Int(_) => "int",
                    Value::Text(_) => "string",
                    Value::List(_) => "list",
                    Value::Map(_) => "map",
                    _ => return Err(undecided("the type of an object")),
                };
                Ok(self.world.good(Value::Type(name)))
            }
            _ => Err(undecided(format!("the function `{function}` on values of other types"))),
        }
    }
}
