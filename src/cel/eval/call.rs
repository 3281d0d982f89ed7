//! Evaluates calls of library functions. Up to three arguments, which nearly all calls have, are kept on the native stack.

use crate::library::{Context, Overload};
use crate::plan::{Call, Matches, Meter, Op, Step, Target, unknown};
use crate::value::{EvalError, List, Value};

use super::machine::{Machine, Outcome};
use super::watch::Watch;

/// Arguments of one call without an allocation.
const FEW: usize = 3;

/// The error of cel-go's cost counters of `sort` and `flatten` for an argument that is an error.
const NOT_A_LIST: &str = "interface conversion: *types.Err is not traits.Lister: missing method Add";
const NOT_AN_INT: &str = "interface conversion: ref.Val is *types.Err, not types.Int";

impl<'a, W: Watch<'a>> Machine<'a, '_, W> {
    pub(super) fn call(&mut self, call: &'a Call) -> Outcome<'a> {
        let mut few = [Value::Null; FEW];
        if let Some(args) = few.get_mut(..call.args.len()) {
            return self.call_with(call, args);
        }
        let mut many = vec![Value::Null; call.args.len()];
        self.call_with(call, &mut many)
    }

    fn call_with(&mut self, call: &'a Call, args: &mut [Value<'a>]) -> Outcome<'a> {
        if let Err(error) = self.arguments(&call.args, call.stops_at_error, args)? {
            match (call.meter, &*args) {
                (Meter::List, _) => return Err(EvalError::Internal(NOT_A_LIST.into())),
                (Meter::Depth, [_, Value::Null]) => return Err(EvalError::Internal(NOT_AN_INT.into())),
                _ => {}
            }
            let row = match &call.target {
                Target::Known(row) | Target::Guarded(row, _) => row.cost,
                Target::Dynamic(function) => dynamic_cost(&function.overloads),
                Target::Unknown(_) => dynamic_cost(&[]),
            };
            self.charge(row(args, &Value::Null))?;
            return Err(error);
        }
        let (row, cost): (&Overload, _) = match &call.target {
            Target::Known(row) => (row, row.cost),
            Target::Guarded(row, function) => match function.admit(row, args) {
                Ok(()) => (row, row.cost),
                Err(error) => return self.refused(row.cost, args, refusal(call, error)),
            },
            Target::Dynamic(function) => match function.choose(args) {
                Ok(row) => (row, row.dynamic_cost),
                Err(error) => {
                    return self.refused(dynamic_cost(&function.overloads), args, refusal(call, error));
                }
            },
            Target::Unknown(name) => return self.refused(dynamic_cost(&[]), args, unknown(name)),
        };
        self.apply(row, cost, args)
    }

    fn apply(&mut self, row: &Overload, cost: crate::library::Cost, args: &[Value<'a>]) -> Outcome<'a> {
        let outcome = match args {
            [Value::List(left @ List::Document { .. }), Value::List(right)] if row.id == "add_list" => {
                self.join(left, right)
            }
            _ => (row.implementation)(&Context { arena: self.cx.arena }, args),
        };
        if let Err(error) = &outcome
            && error.is_final()
            && *error != EvalError::CostLimitExceeded
        {
            return outcome;
        }
        self.charge(cost(args, outcome.as_ref().unwrap_or(&Value::Null)))?;
        outcome
    }

    fn refused(&mut self, cost: crate::library::Cost, args: &[Value<'a>], error: EvalError) -> Outcome<'a> {
        self.charge(cost(args, &Value::Null))?;
        Err(error)
    }

    /// Evaluates arguments; the inner error is the call's, which is charged. An error before the last argument of a strict call leaves
    /// it uncharged, since the cost counter never sees all arguments.
    fn arguments(
        &mut self,
        steps: &'a [Step],
        stops_at_error: bool,
        args: &mut [Value<'a>],
    ) -> Result<Result<(), EvalError>, EvalError> {
        let mut first_error = None;
        let last = steps.len().saturating_sub(1);
        for (at, (step, arg)) in steps.iter().zip(args).enumerate() {
            if let (Op::Constant(constant), false) = (&step.op, W::WATCHES) {
                *arg = constant.value();
                continue;
            }
            let outcome = match self.step(step) {
                // Library functions get a document's list only after every item is known to have its declared type.
                Ok(Value::List(list)) if list.may_fail() => list.settled(self.cx.arena).map(Value::List),
                outcome => outcome,
            };
            match outcome {
                Ok(value) => *arg = value,
                Err(error) if error.is_final() || (stops_at_error && at != last) => return Err(error),
                Err(error) => {
                    first_error.get_or_insert(error);
                }
            }
        }
        Ok(first_error.map_or(Ok(()), Err))
    }

    pub(super) fn matches(&mut self, matches: &'a Matches) -> Outcome<'a> {
        let mut args = [Value::Null; 2];
        self.arguments(&matches.operands, true, &mut args)??;
        let outcome = match args {
            [Value::String(text), _] => Ok(Value::Bool(matches.regex.is_match(text))),
            _ => Err(EvalError::NoSuchOverload),
        };
        self.charge((matches.row.cost)(&args, outcome.as_ref().unwrap_or(&Value::Null)))?;
        outcome
    }
}

/// Returns the cost of a call whose overload is unknown.
fn dynamic_cost(overloads: &[crate::library::Declared]) -> crate::library::Cost {
    overloads.first().map_or(|_, _| 1, |declared| declared.row.dynamic_cost)
}

/// In cel-go, calls with a constant pattern have an implementation of their own, whose error does not name the arguments.
fn refusal(call: &Call, error: EvalError) -> EvalError {
    if call.has_constant_pattern { EvalError::NoSuchOverload } else { error }
}
