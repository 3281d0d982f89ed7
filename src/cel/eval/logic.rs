//! Evaluates boolean steps: `&&`, `||`, `!`, equality, membership in constants, presence. Their results need not be wrapped in a
//! [`Value`].

use crate::document::Key;
use crate::library::cost;
use crate::plan::{Condition, Equal, EqualConstant, KeyIn, Member, Op, Step};
use crate::value::{Constant, EvalError, Value};

use super::machine::{Machine, Outcome};
use super::watch::Watch;

type Truth = Result<bool, EvalError>;

impl<'a, W: Watch<'a>> Machine<'a, '_, W> {
    /// The truth value of a step; of one that has another value, `no such overload`.
    pub(super) fn truth(&mut self, step: &'a Step) -> Truth {
        if !W::WATCHES {
            match &step.op {
                Op::Attribute(attribute) if attribute.is_test => {
                    if let Some(outcome) = self.tested(attribute) {
                        return outcome;
                    }
                }
                Op::Condition(condition) => return self.decide(condition),
                _ => {}
            }
        }
        truth_of(self.step(step))
    }

    pub(super) fn decide(&mut self, condition: &'a Condition) -> Truth {
        match condition {
            Condition::And(terms) => self.logic(terms, false),
            Condition::Or(terms) => self.logic(terms, true),
            Condition::Not(operand) => self.not(operand),
            Condition::Equal(equal) => self.equal(equal),
            Condition::EqualConstant(equal) => self.equal_constant(equal),
            Condition::Member(member) => self.membership(member),
            Condition::KeyIn(key_in) => self.key_in(key_in),
        }
    }

    /// `||` where `decides` is true, `&&` where it is false: one deciding term is enough, else the first error wins.
    fn logic(&mut self, terms: &'a [Step], decides: bool) -> Truth {
        let mut error = None;
        for term in terms {
            match self.truth(term) {
                Ok(b) if b == decides => return Ok(decides),
                Ok(_) => {}
                Err(e) if e.is_final() => return Err(e),
                Err(e) => {
                    error.get_or_insert(e);
                }
            }
        }
        error.map_or(Ok(!decides), Err)
    }

    fn not(&mut self, operand: &'a Step) -> Truth {
        let outcome = self.truth(operand);
        if let Err(error) = &outcome
            && error.is_final()
        {
            return outcome;
        }
        self.charge(1)?;
        outcome.map(|b| !b)
    }

    fn equal(&mut self, equal: &'a Equal) -> Truth {
        let [left, right] = &equal.operands;
        let left = self.step(left);
        if let Err(error) = &left
            && error.is_final()
        {
            return Err(error.clone());
        }
        let right = self.step(right);
        let (result, units) = match (&left, &right) {
            (Ok(Value::String(a)), Ok(Value::String(b))) => (Ok(a == b), cost::compare_strings(a, b)),
            (Ok(left), Ok(right)) => {
                (self.compare(left, right)?, cost_of_equality(left, right, equal.is_negated))
            }
            (_, Err(error)) if error.is_final() => return Err(error.clone()),
            (Err(error), right) => {
                let right = right.as_ref().unwrap_or(&Value::Null);
                self.charge(cost_of_equality(&Value::Null, right, equal.is_negated))?;
                return Err(error.clone());
            }
            (Ok(left), Err(error)) => {
                self.charge(cost_of_equality(left, &Value::Null, equal.is_negated))?;
                return Err(error.clone());
            }
        };
        self.charge(units)?;
        negated(result, equal.is_negated)
    }

    /// Whether two values are equal; an error that ends the evaluation is not charged.
    fn compare(&self, left: &Value<'a>, right: &Value<'a>) -> Result<Truth, EvalError> {
        match left.try_equals(self.cx.arena, right) {
            Err(error) if error.is_final() => Err(error),
            result => Ok(result),
        }
    }

    fn equal_constant(&mut self, equal: &'a EqualConstant) -> Truth {
        let value = self.step(&equal.operand);
        if let (Ok(Value::String(a)), Constant::String(b)) = (&value, &equal.constant) {
            self.charge(cost::compare_strings(a, b))?;
            return Ok((**a == **b) != equal.is_negated);
        }
        let constant = equal.constant.value();
        match &value {
            Ok(value) => {
                let result = self.compare(value, &constant)?;
                self.charge(cost_of_equality(value, &constant, equal.is_negated))?;
                negated(result, equal.is_negated)
            }
            Err(error) if error.is_final() => Err(error.clone()),
            Err(error) => {
                self.charge(cost_of_equality(&Value::Null, &constant, equal.is_negated))?;
                Err(error.clone())
            }
        }
    }

    fn key_in(&mut self, key_in: &'a KeyIn) -> Truth {
        let KeyIn { name, hash, call } = key_in;
        if let Some(Op::Attribute(attribute)) = call.args.last().map(|step| &step.op)
            && let Some(is_there) = self.walked_key(attribute, Key::with_hash(name, *hash))
        {
            let is_there = is_there?;
            self.charge(1)?;
            return Ok(is_there);
        }
        truth_of(self.call(call))
    }

    fn membership(&mut self, member: &'a Member) -> Truth {
        let value = self.step(&member.operand)?;
        Ok(match value {
            Value::String(text) => member.strings.contains(text),
            _ => member.others.iter().map(Constant::value).any(|item| value.equals(&item)),
        })
    }
}

fn truth_of(outcome: Outcome<'_>) -> Truth {
    match outcome {
        Ok(Value::Bool(b)) => Ok(b),
        Ok(_) => Err(EvalError::NoSuchOverload),
        Err(error) => Err(error),
    }
}

/// Negates for `!=`, where an error counts as true, as in cel-go.
fn negated(equal: Truth, is_negated: bool) -> Truth {
    if is_negated { Ok(equal != Ok(true)) } else { equal }
}

/// Up to the end of the shorter; Kubernetes' own values at constant cost, though only for `==`.
fn cost_of_equality(left: &Value<'_>, right: &Value<'_>, is_negated: bool) -> u64 {
    if matches!(left, Value::Opaque(_)) && !is_negated {
        return 1;
    }
    cost::compare(&[*left, *right], &Value::Null)
}
