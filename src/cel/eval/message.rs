//! Evaluates message literals from the values of their fields: well-known types become plain values, others the objects of mutations.

use crate::library::Context;
use crate::plan::{Makes, MessagePlan};
use crate::value::{EvalError, Made, Value};

use super::machine::{Machine, Outcome};
use super::watch::Watch;

/// What making a message costs (cel-go `common/cost.go`).
const MESSAGE: u64 = 40;

impl<'a, W: Watch<'a>> Machine<'a, '_, W> {
    pub(super) fn message(&mut self, plan: &'a MessagePlan) -> Outcome<'a> {
        let outcome = self.made(plan);
        self.paid(outcome, MESSAGE)
    }

    fn made(&mut self, plan: &'a MessagePlan) -> Outcome<'a> {
        let mut set: Vec<(&'a str, Value<'a>)> = Vec::with_capacity(plan.fields.len());
        for field in &plan.fields {
            let name: &'a str = &field.field;
            let value = match (self.step(&field.value)?, field.is_optional) {
                (Value::Optional(Some(value)), true) => value.taken()?,
                (value, false) => value,
                (Value::Optional(None), true) => {
                    set.retain(|(known, _)| *known != name);
                    continue;
                }
                (value, true) => {
                    let value = value.go_text();
                    let text =
                        format!("cannot initialize optional entry '{name}' from non-optional value {value}");
                    return Err(EvalError::Other(text.into()));
                }
            };
            set.push((name, value));
        }
        match &plan.makes {
            Makes::Message(message) => message.make(&Context { arena: self.cx.arena }, &set),
            Makes::Object(ty) => Made::value(self.cx.arena, ty, &set),
        }
    }
}
