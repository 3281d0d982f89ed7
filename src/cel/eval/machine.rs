//! Runs a program: dispatches over its steps, evaluates literals, and counts cost.
//!
//! The recursion is as deep as the program, which the parser limits; every kind of step has a function of its own, which keeps stack
//! frames small.

use crate::plan::{EntryPlan, ListPlan, Local, Op, OptionalOr, Program, Step};
use crate::value::{Entries, EvalError, List, Value};

use super::bindings::Variables;
use super::evaluation::Evaluation;
use super::landmark::Landmark;
use super::watch::Watch;

pub(super) type Outcome<'a> = Result<Value<'a>, EvalError>;

/// One run of a program.
pub(super) struct Machine<'a, 'r, W> {
    pub(super) program: &'a Program,
    pub(super) variables: &'r dyn Variables<'a>,
    pub(super) cx: &'r mut Evaluation<'a>,
    pub(super) iterations: u32,
    /// Accumulators that have not been read, with their initial values.
    pub(super) pending: Vec<(Local, &'a Step)>,
    /// The object that the last attribute passed through.
    pub(super) landmark: Option<Landmark<'a>>,
    pub(super) watch: W,
}

pub(super) fn run<'a, 'r, W: Watch<'a>>(
    program: &'a Program,
    variables: &'r dyn Variables<'a>,
    cx: &'r mut Evaluation<'a>,
    watch: W,
) -> Outcome<'a> {
    let arena_limit = cx.start(program.locals());
    let mut machine =
        Machine { program, variables, cx, iterations: 0, pending: Vec::new(), landmark: None, watch };
    let outcome = machine.step(program.root());
    machine.cx.finish(arena_limit);
    outcome
}

/// The cost of creating a map (cel-go `common/cost.go`); the costs of lists and other values are with the rows.
pub(super) const MAP: u64 = 30;
pub(super) const LIST: u64 = 10;

impl<'a, W: Watch<'a>> Machine<'a, '_, W> {
    pub(super) fn step(&mut self, step: &'a Step) -> Outcome<'a> {
        let outcome = match &step.op {
            Op::Constant(constant) if W::WATCHES => Ok(constant.value()),
            Op::Constant(constant) => return Ok(constant.value()),
            // Notes its links itself.
            Op::Attribute(attribute) => return self.attribute(attribute),
            Op::Condition(condition) => self.decide(condition).map(Value::Bool),
            Op::OptionalOr(or) => self.optional_or(or),
            Op::Matches(matches) => self.matches(matches),
            Op::Call(call) => self.call(call),
            Op::List(list) => self.list(list),
            Op::Map(entries) => self.map(entries),
            Op::Message(message) => self.message(message),
            Op::Fold(fold) => self.fold(fold),
        };
        self.watch.note(self.program, step.at, &outcome);
        outcome
    }

    /// Adds to the cost.
    ///
    /// # Errors
    ///
    /// When that takes it over the limit of one call.
    #[inline]
    pub(super) const fn charge(&mut self, units: u64) -> Result<(), EvalError> {
        self.cx.cost = self.cx.cost.saturating_add(units);
        if self.cx.cost > self.cx.limit { Err(EvalError::CostLimitExceeded) } else { Ok(()) }
    }

    /// Adds units that are counted one by one, so that the limit is passed by one whatever their number.
    #[inline]
    pub(super) const fn charge_each(&mut self, units: u64) -> Result<(), EvalError> {
        let cost = self.cx.cost.saturating_add(units);
        if cost > self.cx.limit {
            self.cx.cost = self.cx.limit.saturating_add(1);
            return Err(EvalError::CostLimitExceeded);
        }
        self.cx.cost = cost;
        Ok(())
    }

    /// The value of a comprehension's variable. An accumulator is first evaluated when it is first read.
    pub(super) fn local(&mut self, local: Local) -> Outcome<'a> {
        if let Some(at) = self.pending.iter().position(|(pending, _)| *pending == local) {
            let (_, init) = self.pending.swap_remove(at);
            let outcome = unless_final(self.step(init))?;
            self.set_local(local, outcome);
        }
        self.cx.locals.get(usize::from(local)).cloned().unwrap_or(Ok(Value::Null))
    }

    pub(super) fn set_local(&mut self, local: Local, outcome: Outcome<'a>) {
        if self.landmark.as_ref().is_some_and(|landmark| landmark.is_of(local)) {
            self.landmark = None;
        }
        if let Some(place) = self.cx.locals.get_mut(usize::from(local)) {
            *place = outcome;
        }
    }

    /// The right side is evaluated only where the left is empty; a left side that is no optional is the result.
    fn optional_or(&mut self, or: &'a OptionalOr) -> Outcome<'a> {
        let [left, right] = &or.operands;
        match self.step(left)? {
            Value::Optional(None) => self.step(right),
            Value::Optional(Some(inner)) if or.unwraps => inner.taken(),
            value => Ok(value),
        }
    }

    /// An outcome that costs so much also where it is an error, unless that ends the evaluation.
    pub(super) fn paid(&mut self, outcome: Outcome<'a>, units: u64) -> Outcome<'a> {
        let outcome = unless_final(outcome)?;
        self.charge(units)?;
        outcome
    }

    fn list(&mut self, list: &'a ListPlan) -> Outcome<'a> {
        let outcome = self.elements(list);
        self.paid(outcome, LIST)
    }

    fn elements(&mut self, list: &'a ListPlan) -> Outcome<'a> {
        let mut values = self.cx.room_for(list.elements.len())?;
        for (element, is_optional) in list.elements.iter().zip(&list.optional) {
            let value = self.step(element)?;
            if !is_optional {
                values.push(value);
                continue;
            }
            let Value::Optional(inner) = value else {
                let text = "cannot initialize optional list element from non-optional value ";
                return Err(EvalError::Other(format!("{text}{}", value.go_text()).into()));
            };
            values.extend(inner.map(|inner| inner.taken()).transpose()?);
        }
        Ok(Value::List(List::Values(values.into_bump_slice())))
    }

    fn map(&mut self, entries: &'a [EntryPlan]) -> Outcome<'a> {
        let outcome = self.entries(entries);
        self.paid(outcome, MAP)
    }

    fn entries(&mut self, entries: &'a [EntryPlan]) -> Outcome<'a> {
        let mut made = Entries::new(self.cx.arena);
        made.reserve(entries.len())?;
        for entry in entries {
            let key = self.step(&entry.key)?;
            let value = self.step(&entry.value)?;
            key.as_key()?;
            let known = made.position(&key, is_same_literal_key);
            if self.program.is_strict() {
                refuse_key(&key, known.is_some())?;
            }
            let value = match (entry.is_optional, value) {
                (false, value) => value,
                (true, Value::Optional(Some(value))) => value.taken()?,
                (true, Value::Optional(None)) => {
                    if let Some(known) = known {
                        made.remove(known);
                    }
                    continue;
                }
                (true, value) => {
                    let (key, value) = (key.go_text(), value.go_text());
                    let text =
                        format!("cannot initialize optional entry '{key}' from non-optional value {value}");
                    return Err(EvalError::Other(text.into()));
                }
            };
            match known {
                Some(known) => made.set(known, value),
                None => made.push(key, value)?,
            }
        }
        made.finish().map(Value::Map)
    }
}

/// Lets an outcome be looked at, unless it ends the evaluation.
pub(super) fn unless_final(outcome: Outcome<'_>) -> Result<Outcome<'_>, EvalError> {
    match outcome {
        Err(error) if error.is_final() => Err(error),
        outcome => Ok(outcome),
    }
}

/// The error of the conformance suite for an invalid key of a map literal.
fn refuse_key(key: &Value<'_>, is_repeated: bool) -> Result<(), EvalError> {
    match key {
        Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::String(_) if !is_repeated => Ok(()),
        Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::String(_) => {
            Err(EvalError::other(format!("failed with repeated key: {}", key.go_text())))
        }
        _ => Err(EvalError::other(format!("unsupported key type: {}", key.go_text()))),
    }
}

/// In a literal, keys of different types are distinct.
fn is_same_literal_key(a: &Value<'_>, b: &Value<'_>) -> bool {
    std::mem::discriminant(a) == std::mem::discriminant(b) && a.is_found_by(b)
}
