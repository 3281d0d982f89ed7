//! Walks a new object together with its old one, and evaluates every rule whose node is present.

use admit_apimachinery::field_error::{BadValue, FieldError};
use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::go;
use admit_cel::{EvalError, Evaluation, Program, Value};
use bumpalo::Bump;
use serde_json::Value as Json;

use super::message::{result_text, rule_text, static_message};
use super::tree::{PlacedRule, RuleNode, RuleTree};
use super::variables::{NodeVariables, RuleVariables};
use crate::read::path::Path;
use crate::report::recording::{self, ExpressionId, Recording};
use crate::schema::correlate::{Correlated, Items, MapListIndex};
use crate::schema::{Reason, Rule, Schema, SchemaType};

/// The object that rules are evaluated on.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The schema that the rules were compiled for.
    pub schema: &'a Schema,
    /// The path of the value.
    pub path: &'a Path<'a>,
    pub new: &'a Json,
    /// None, or null, where the value is created.
    pub old: Option<&'a Json>,
    /// Whether failures of unchanged values are tolerated.
    pub ratchet: bool,
    /// Where evaluations are recorded, if requested.
    pub recorder: Option<Recorder<'a>>,
}

/// A recording, and the path of the schema that the rules were compiled for.
#[derive(Clone, Copy, Debug)]
pub struct Recorder<'a> {
    pub recording: &'a Recording,
    pub schema: &'a ExpressionId,
}

/// Cost limits of evaluations.
#[derive(Clone, Copy)]
pub struct Limits<'a> {
    /// All rules of an object together.
    pub budget: i64,
    /// The cost limit of one evaluation of one expression.
    pub per_call: u64,
    /// Asked now and then whether to stop.
    pub expired: Option<&'a dyn Fn() -> bool>,
}

impl std::fmt::Debug for Limits<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { budget, per_call, expired: _ } = self;
        f.debug_struct("Limits").field("budget", budget).field("per_call", per_call).finish_non_exhaustive()
    }
}

impl Default for Limits<'_> {
    /// Kubernetes' limits (apiserver `pkg/apis/cel/config.go`), without a deadline.
    fn default() -> Self {
        Self { budget: 10_000_000, per_call: admit_cel::PER_CALL_LIMIT, expired: None }
    }
}

/// The result of evaluating the rules.
#[derive(Debug, Default)]
pub struct Findings {
    pub errors: FieldErrors,
    /// Failures that were tolerated because nothing that they refer to has changed.
    pub forgiven: FieldErrors,
    /// What is left of the budget; negative when evaluation was stopped.
    pub remaining: i64,
    /// Whether time ran out, which the last error says.
    pub interrupted: bool,
}

impl RuleTree {
    /// Evaluates the rules. With an old value, transition rules too.
    #[must_use]
    pub fn evaluate(&self, subject: &Subject<'_>, limits: &Limits<'_>) -> Findings {
        let Subject { schema, path, new, old, ratchet, recorder } = *subject;
        let Some(root) = &self.root else {
            return Findings { remaining: limits.budget, ..Findings::default() };
        };
        let arena = Bump::new();
        let old = old.filter(|old| !old.is_null());
        let correlated = old.filter(|_| ratchet).map(|old| Correlated { new, old, schema });
        let mut cx = Evaluation::new(&arena).per_call_limit(limits.per_call);
        if let Some(expired) = &limits.expired {
            cx = cx.deadline(*expired);
        }
        let findings = Findings { remaining: limits.budget, ..Findings::default() };
        let mut walk = Walk { arena: &arena, cx, findings, recorder, expired: limits.expired, evaluated: 0 };
        let place =
            Place { rules: root, schema, new, old, ratchet: Ratchet { current: correlated, parent: None } };
        // A stop has left its error behind.
        let _ = walk.node(&place, path);
        walk.findings
    }
}

/// What the walk looks at.
struct Place<'a> {
    rules: &'a RuleNode,
    schema: &'a Schema,
    new: &'a Json,
    old: Option<&'a Json>,
    ratchet: Ratchet<'a>,
}

/// The node's own correlation, and the nearest one above it.
#[derive(Clone, Copy)]
struct Ratchet<'a> {
    current: Option<Correlated<'a>>,
    parent: Option<Correlated<'a>>,
}

impl<'a> Ratchet<'a> {
    fn forgives(&self) -> bool {
        self.current.or(self.parent).is_some_and(|correlated| correlated.is_unchanged())
    }

    fn key(self, key: &str) -> Self {
        match self.current {
            None => self,
            // Both documents were converted to the same version, which hides a change of these.
            Some(_) if self.parent.is_none() && matches!(key, "apiVersion" | "kind") => {
                Self { current: None, parent: None }
            }
            Some(current) => Self { current: current.key(key), parent: Some(current) },
        }
    }

    fn index(self, items: &Items<'a>, index: usize) -> Self {
        match self.current {
            None => self,
            Some(_) => Self { current: items.get(index), parent: self.current },
        }
    }
}

/// Which expression of a rule.
#[derive(Clone, Copy)]
enum Part {
    Rule,
    Message,
}

/// Evaluation ends here: the budget is spent.
struct Stopped;

struct Walk<'a> {
    arena: &'a Bump,
    cx: Evaluation<'a>,
    findings: Findings,
    recorder: Option<Recorder<'a>>,
    expired: Option<&'a dyn Fn() -> bool>,
    /// Rules run so far.
    evaluated: u32,
}

impl<'a> Walk<'a> {
    fn node(&mut self, place: &Place<'a>, path: &Path<'_>) -> Result<(), Stopped> {
        if place.new.is_null() {
            return Ok(());
        }
        self.own_rules(place, path)?;
        for part in &place.rules.all_of {
            let ratchet = Ratchet { current: None, parent: place.ratchet.parent };
            self.node(&Place { rules: part, ratchet, ..*place }, path)?;
        }
        match place.new {
            Json::Array(items) => self.items(place, items, path),
            Json::Object(map) => map.iter().try_for_each(|(key, new)| self.entry(place, (key, new), path)),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => Ok(()),
        }
    }

    fn items(&mut self, place: &Place<'a>, new: &'a [Json], path: &Path<'_>) -> Result<(), Stopped> {
        let (Some(rules), Some(schema)) = (place.rules.items.as_deref(), place.schema.items.as_deref())
        else {
            return Ok(());
        };
        let old_items = place.old.and_then(|old| OldItems::new(place.schema, old));
        let correlated = place.ratchet.current.map_or_else(Items::none, |current| current.items());
        for (i, new) in new.iter().enumerate() {
            let old = old_items.as_ref().and_then(|items| items.find(new));
            let ratchet = place.ratchet.index(&correlated, i);
            self.node(&Place { rules, schema, new, old, ratchet }, &path.index(i))?;
        }
        Ok(())
    }

    fn entry(
        &mut self,
        place: &Place<'a>,
        (key, new): (&'a str, &'a Json),
        path: &Path<'_>,
    ) -> Result<(), Stopped> {
        let old = place.old.filter(|_| place.schema.map_is_correlatable()).and_then(|old| old.get(key));
        let old = old.filter(|old| !old.is_null());
        let ratchet = place.ratchet.key(key);
        if let (Some(rules), Some(schema)) =
            (place.rules.additional.as_deref(), place.schema.additional_schema())
        {
            self.node(&Place { rules, schema, new, old, ratchet }, &path.key(key))?;
        }
        if let (Some(rules), Some(schema)) =
            (place.rules.properties.get(key), place.schema.properties.get(key))
        {
            self.node(&Place { rules, schema, new, old, ratchet }, &path.child(key))?;
        }
        Ok(())
    }

    fn own_rules(&mut self, place: &Place<'a>, path: &Path<'_>) -> Result<(), Stopped> {
        if let Some(error) = place.rules.error {
            self.fail(place, path, || format!("rule compiler initialization error: {error}"));
            return Ok(());
        }
        if place.rules.rules.is_empty() {
            return Ok(());
        }
        if self.findings.remaining <= 0 {
            return self.out_of_budget(place, path);
        }
        // If no rule of the node uses `oldSelf`, message expressions do not see the old value either.
        let sees_old = place.rules.rules.iter().any(|placed| placed.compiled.uses_old_self);
        let old = place.old.filter(|_| sees_old);
        let variables = NodeVariables::new(self.arena, place.new, old, place.rules.decl.as_deref());
        for placed in &place.rules.rules {
            let PlacedRule { rule, compiled, path: _ } = placed;
            let Some(program) = &compiled.program else { continue };
            let program = match program {
                Ok(program) => program,
                Err(error) => {
                    self.fail(place, path, || format!("rule compile error: {error}"));
                    continue;
                }
            };
            let optional = rule.optional_old_self == Some(true);
            // A transition rule needs an old value, unless `optionalOldSelf` is set.
            if compiled.uses_old_self && place.old.is_none() && !optional {
                continue;
            }
            if self.is_overdue() {
                return self.interrupted(rule, place, path);
            }
            let variables = RuleVariables { node: &variables, optional };
            let result = self.eval(placed, Part::Rule, &program.program, &variables, path);
            self.pay(place, path)?;
            match result {
                Err(error) => self.runtime_error(&error, rule, place, path)?,
                Ok(Value::Bool(true)) => {}
                Ok(_) => {
                    // Messages see the old value itself, also where the rule sees an optional one.
                    let variables = RuleVariables { optional: false, ..variables };
                    self.broken(placed, &variables, place, path)?;
                }
            }
        }
        Ok(())
    }

    /// Looks at the caller's clock now and then: rules without rounds of their own do not.
    fn is_overdue(&mut self) -> bool {
        const EVERY: u32 = 100;
        self.evaluated = self.evaluated.wrapping_add(1);
        self.evaluated.is_multiple_of(EVERY) && self.expired.is_some_and(|expired| expired())
    }

    /// What is left of the rules is not run.
    fn interrupted(&mut self, rule: &Rule, place: &Place<'_>, path: &Path<'_>) -> Result<(), Stopped> {
        self.fail(place, path, || format!("{} evaluating rule: {}", EvalError::Interrupted, rule_text(rule)));
        self.findings.interrupted = true;
        self.stop()
    }

    fn eval(
        &mut self,
        placed: &PlacedRule,
        part: Part,
        program: &'a Program,
        variables: &RuleVariables<'a, '_>,
        path: &Path<'_>,
    ) -> Result<Value<'a>, EvalError> {
        let Some(Recorder { recording, schema }) = self.recorder else {
            return program.eval(variables, &mut self.cx);
        };
        let [rule, message] = placed.paths();
        let (below, text) = match part {
            Part::Rule => (rule, &placed.rule.rule),
            Part::Message => (message, &placed.rule.message_expression),
        };
        let subject = recording::Subject { id: &|| schema.below(&below), text, at: &|| path.to_string() };
        recording.eval(&subject, program, variables, &mut self.cx)
    }

    fn fail(&mut self, place: &Place<'_>, path: &Path<'_>, detail: impl FnOnce() -> String) {
        self.findings.errors.add(|| FieldError::invalid(path, place.schema.type_text(), detail()));
    }

    /// Takes the cost of the last evaluation from the budget.
    fn pay(&mut self, place: &Place<'_>, path: &Path<'_>) -> Result<(), Stopped> {
        match i64::try_from(self.cx.cost()) {
            Ok(cost) if cost <= self.findings.remaining => {
                self.findings.remaining = self.findings.remaining.saturating_sub(cost);
                Ok(())
            }
            _ => self.out_of_budget(place, path),
        }
    }

    fn out_of_budget(&mut self, place: &Place<'_>, path: &Path<'_>) -> Result<(), Stopped> {
        let detail =
            "validation failed due to running out of cost budget, no further validation rules will be run";
        self.fail(place, path, || detail.to_owned());
        self.stop()
    }

    fn stop(&mut self) -> Result<(), Stopped> {
        self.findings.remaining = -1;
        Err(Stopped)
    }

    fn runtime_error(
        &mut self,
        error: &EvalError,
        rule: &Rule,
        place: &Place<'_>,
        path: &Path<'_>,
    ) -> Result<(), Stopped> {
        // As upstream, the following rules are still evaluated; each is interrupted in its first iterations.
        self.findings.interrupted |= *error == EvalError::Interrupted;
        let over_limit = *error == EvalError::CostLimitExceeded;
        self.fail(place, path, || {
            let (text, rule) = (error.to_string(), rule_text(rule));
            if text.starts_with("no such overload") {
                format!(
                    "'{text}': call arguments did not match a supported operator, function or macro signature for \
                     rule: {rule}"
                )
            } else if over_limit {
                format!(
                    "'{text}': no further validation rules will be run due to call cost exceeds limit for rule: {rule}"
                )
            } else {
                format!("{text} evaluating rule: {rule}")
            }
        });
        if over_limit { self.stop() } else { Ok(()) }
    }

    /// The rule gave false.
    fn broken(
        &mut self,
        placed: &'a PlacedRule,
        variables: &RuleVariables<'a, '_>,
        place: &Place<'a>,
        path: &Path<'_>,
    ) -> Result<(), Stopped> {
        let PlacedRule { rule, compiled, path: _ } = placed;
        // Ratcheting tolerates violations by unchanged values, except of transition rules.
        let forgiven = !compiled.uses_old_self && place.ratchet.forgives();
        let list = if forgiven { &mut self.findings.forgiven } else { &mut self.findings.errors };
        if list.is_full() {
            // Nobody would see its message.
            list.count_one();
            return Ok(());
        }
        let at = match &compiled.field_path {
            Some(below) => path.child(below).to_string(),
            None => path.to_string(),
        };
        let message = match &compiled.message {
            Some(Ok(expression)) => {
                let result = self.eval(placed, Part::Message, &expression.program, variables, path);
                if let Some(detail) = self.message_over_limit(rule, &result) {
                    self.tell(FieldError::invalid(at, place.schema.type_text(), detail), forgiven);
                    return self.stop();
                }
                result_text(&result)
            }
            Some(Err(_)) | None => None,
        };
        let detail = message.unwrap_or_else(|| static_message(rule));
        let value = match place.schema.schema_type {
            Some(SchemaType::Object | SchemaType::Array) => BadValue::Omitted,
            _ => BadValue::from(place.new),
        };
        self.tell(error_for(rule, at, value, detail), forgiven);
        Ok(())
    }

    /// Charges for a message expression; returns the error that ends the evaluation if the budget is exceeded.
    fn message_over_limit(&mut self, rule: &Rule, result: &Result<Value<'_>, EvalError>) -> Option<String> {
        match i64::try_from(self.cx.cost()) {
            Ok(cost) if cost <= self.findings.remaining => {
                self.findings.remaining = self.findings.remaining.saturating_sub(cost);
            }
            _ => {
                return Some(
                    "messageExpression evaluation failed due to running out of cost budget, no further validation \
                     rules will be run"
                        .to_owned(),
                );
            }
        }
        (*result.as_ref().err()? == EvalError::CostLimitExceeded).then(|| {
            format!(
                "no further validation rules will be run due to call cost exceeds limit for messageExpression: {}",
                go::quote(&rule.message_expression)
            )
        })
    }

    fn tell(&mut self, error: FieldError, forgiven: bool) {
        let list = if forgiven { &mut self.findings.forgiven } else { &mut self.findings.errors };
        list.push(error);
    }
}

fn error_for(rule: &Rule, at: String, value: BadValue, detail: String) -> FieldError {
    match rule.reason {
        Some(Reason::Forbidden) => FieldError::forbidden(at, detail),
        Some(Reason::Required) => FieldError::required(at, detail),
        Some(Reason::Duplicate) => FieldError::duplicate(at, value),
        Some(Reason::Invalid | Reason::Other(_)) | None => FieldError::invalid(at, value, detail),
    }
}

/// The items of an old map list.
struct OldItems<'a> {
    items: &'a [Json],
    by_key: MapListIndex<'a>,
}

impl<'a> OldItems<'a> {
    fn new(schema: &'a Schema, list: &'a Json) -> Option<Self> {
        let items = list.as_array()?;
        Some(Self { items, by_key: MapListIndex::new(schema, items)? })
    }

    fn find(&self, item: &Json) -> Option<&'a Json> {
        self.items.get(self.by_key.position(item)?)
    }
}
