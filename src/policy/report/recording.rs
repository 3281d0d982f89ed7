//! Records what expressions did while requests were decided and objects validated: values of their parts, for
//! explanations, and branches taken, for test coverage.
//!
//! A [`Recording`] is passed to [`PolicySet::decide_recorded`](crate::PolicySet::decide_recorded), to the
//! [`ValidateOptions`](crate::crd::ValidateOptions) of a custom resource, or to
//! [`suite::run_recorded`](crate::tools::suite::run_recorded), any number of times, and read afterwards. Verdicts, messages
//! and costs are those of a decision without one. Expressions that were never evaluated are not in it:
//! [`Policy::expressions`](crate::vap::Policy::expressions) and
//! [`CrdVersion::expressions`](crate::crd::CrdVersion::expressions) list all of them.

use std::cell::RefCell;

use admit_cel::{Coverage, EvalError, Evaluation, Program, Span, Trace, Value, Variables};
use indexmap::IndexMap;
use serde_json::Value as Json;

/// Identifies an expression by its document's name and its path there, whatever file it is in.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExpressionId {
    pub origin: Origin,
    /// The path as field errors name it: `spec.validations[0].expression`, or
    /// `spec.versions[0].schema.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule`.
    pub path: String,
}

/// The document that contains an expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Origin {
    /// A ValidatingAdmissionPolicy.
    Policy { name: String },
    /// A MutatingAdmissionPolicy.
    Mutating { name: String },
    /// A version of a CustomResourceDefinition.
    Definition { name: String, version: String },
    /// Another document with expressions, by its kind: configuration of an API server, of webhooks, a DeviceClass. Those that
    /// servers read from files have no name.
    Configuration { kind: String, name: String },
}

impl Origin {
    /// The kind of the document.
    ///
    /// ```
    /// use admit_policy::Origin;
    ///
    /// let origin = Origin::Policy { name: "replicas".to_owned() };
    /// assert_eq!((origin.kind(), origin.name()), ("ValidatingAdmissionPolicy", "replicas"));
    /// ```
    #[must_use]
    pub fn kind(&self) -> &str {
        match self {
            Self::Policy { .. } => "ValidatingAdmissionPolicy",
            Self::Mutating { .. } => "MutatingAdmissionPolicy",
            Self::Definition { .. } => "CustomResourceDefinition",
            Self::Configuration { kind, .. } => kind,
        }
    }

    /// Its name; empty where it has none.
    #[must_use]
    pub fn name(&self) -> &str {
        let (Self::Policy { name }
        | Self::Mutating { name }
        | Self::Definition { name, .. }
        | Self::Configuration { name, .. }) = self;
        name
    }
}

impl ExpressionId {
    /// The expression at a place below this one.
    pub(crate) fn below(&self, path: &str) -> Self {
        Self { origin: self.origin.clone(), path: format!("{}.{path}", self.path) }
    }
}

/// An expression of a policy or a definition.
#[derive(Clone, Debug)]
pub struct Expression<'p> {
    pub id: ExpressionId,
    /// The text that spans refer to: without surrounding white space where Kubernetes trims it.
    pub text: &'p str,
    pub program: &'p Program,
}

/// How much to keep of each expression.
#[derive(Clone, Copy, Debug)]
pub struct Keep {
    /// Evaluations whose traces are kept, the first ones; none for coverage alone.
    pub traces: usize,
    /// Outcomes in one trace.
    pub outcomes: usize,
    /// The maximum length of one value's text in bytes.
    pub value_bytes: usize,
}

/// Records evaluations.
///
/// [`PolicySet`](crate::PolicySet) has an example.
#[derive(Debug)]
pub struct Recording {
    keep: Keep,
    recorded: RefCell<IndexMap<ExpressionId, Recorded>>,
    spent: RefCell<IndexMap<(Origin, Purse), Spent>>,
}

/// Expressions of a document whose costs are limited together.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Purse {
    /// Match conditions.
    Conditions,
    /// Validations with their messages, each mutation, all rules of a definition.
    Rules,
    /// Audit annotations.
    Annotations,
}

/// What the expressions of one purse cost together.
///
/// ```
/// use admit_policy::{Keep, PolicySet, Purse, Recording, Request, manifest};
/// use serde_json::json;
///
/// let text = "
/// apiVersion: admissionregistration.k8s.io/v1
/// kind: ValidatingAdmissionPolicy
/// metadata: {name: a}
/// spec:
///   matchConstraints:
///     resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [configmaps]}]
///   validations: [{expression: 'object.data.size() < 3'}, {expression: 'has(object.metadata)'}]
/// ---
/// apiVersion: admissionregistration.k8s.io/v1
/// kind: ValidatingAdmissionPolicyBinding
/// metadata: {name: a}
/// spec: {policyName: a, validationActions: [Deny]}
/// ";
/// let set = PolicySet::load(&manifest::read("a.yaml", text).unwrap()).unwrap();
/// let request = Request::from_value(&json!({
///     "resource": {"group": "", "version": "v1", "resource": "configmaps"}, "operation": "CREATE", "name": "a",
///     "kind": {"group": "", "version": "v1", "kind": "ConfigMap"}, "namespace": "n", "userInfo": {},
///     "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {}},
/// })).unwrap();
/// let recording = Recording::new(Keep::COVERAGE);
/// set.decide_recorded(&request, set.documents(), |_| true, &recording);
/// let spent = recording.spent();
/// let rules = spent.iter().find(|spent| spent.purse == Purse::Rules).unwrap();
/// assert_eq!((rules.origin.name(), rules.limit, rules.exceeded), ("a", 10_000_000, false));
/// let each: u64 = recording.finish().values().map(|recorded| recorded.cost).sum();
/// assert!(rules.cost == each && each > 0);
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Spent {
    /// The document.
    pub origin: Origin,
    /// Which of its expressions.
    pub purse: Purse,
    /// The cost of the most expensive evaluation: with one binding and one param.
    pub cost: u64,
    /// What they may cost together.
    pub limit: u64,
    /// Whether more cost was needed, so that the rest was not evaluated.
    pub exceeded: bool,
}

/// The recorded evaluations of one expression.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub text: String,
    pub coverage: Coverage,
    pub evaluations: u64,
    /// The cost of the most expensive evaluation.
    pub cost: u64,
    pub traces: Vec<RecordedTrace>,
}

/// One recorded evaluation.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedTrace {
    /// The path in the object at which a rule was evaluated, `<nil>` for the object itself; empty for policies.
    pub at: String,
    pub cost: u64,
    /// A value in CEL's notation, shortened.
    pub outcome: Result<String, EvalError>,
    /// The parts of the expression in the order of their completion, the whole last.
    pub parts: Vec<RecordedOutcome>,
    /// The number of outcomes beyond the recorded ones.
    pub omitted: u64,
    /// For the expression of a mutation: how it changed the object.
    pub change: Option<ObjectChange>,
}

/// An object before and after a mutation, with the defaults that a server gives it.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectChange {
    pub before: Json,
    pub after: Json,
}

/// The value or error of one part of an expression.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedOutcome {
    pub span: Span,
    /// Inside macros: the round of every macro around it, counted from 0, outermost first.
    pub rounds: Box<[u32]>,
    /// A value in CEL's notation, shortened.
    pub outcome: Result<String, EvalError>,
}

impl Keep {
    /// Which branches were taken, and nothing of the values.
    pub const COVERAGE: Self = Self { traces: 0, outcomes: 0, value_bytes: 0 };
    /// Enough to explain a decision to a person.
    pub const TRACES: Self = Self { traces: 32, outcomes: 2_000, value_bytes: 240 };
}

impl Recording {
    #[must_use]
    pub fn new(keep: Keep) -> Self {
        Self { keep, recorded: RefCell::default(), spent: RefCell::default() }
    }

    /// What expressions cost together, in the order in which they were first evaluated. [`Spent`] has an example.
    #[must_use]
    pub fn spent(&self) -> Vec<Spent> {
        self.spent.borrow().values().cloned().collect()
    }

    /// Records the cost so far of the expressions that share a budget, in one evaluation; `None` if the budget was exceeded.
    pub(crate) fn pay(&self, origin: &Origin, purse: Purse, cost: Option<u64>, limit: u64) {
        let mut all = self.spent.borrow_mut();
        let new = || Spent { origin: origin.clone(), purse, cost: 0, limit, exceeded: false };
        let spent = all.entry((origin.clone(), purse)).or_insert_with(new);
        spent.cost = spent.cost.max(cost.unwrap_or(limit));
        spent.exceeded |= cost.is_none();
    }

    /// Returns the recorded evaluations, in the order in which expressions were first evaluated.
    #[must_use]
    pub fn finish(self) -> IndexMap<ExpressionId, Recorded> {
        self.recorded.into_inner()
    }

    /// Evaluates and records. A policy's expression may have its variables evaluated meanwhile, which are recorded too.
    pub(crate) fn eval<'a>(
        &self,
        subject: &Subject<'_>,
        program: &'a Program,
        variables: &dyn Variables<'a>,
        cx: &mut Evaluation<'a>,
    ) -> Result<Value<'a>, EvalError> {
        let mut coverage = Coverage::new(program);
        let mut trace = Trace::new(self.keep.outcomes);
        let outcome = if self.keep.outcomes == 0 {
            program.observe(variables, cx, &mut coverage)
        } else {
            program.observe(variables, cx, &mut (&mut coverage, &mut trace))
        };
        let mut recorded = self.recorded.borrow_mut();
        let entry = recorded.entry((subject.id)()).or_insert_with(|| Recorded {
            text: subject.text.to_owned(),
            coverage: Coverage::new(program),
            evaluations: 0,
            cost: 0,
            traces: Vec::new(),
        });
        entry.coverage.merge(&coverage);
        entry.evaluations = entry.evaluations.saturating_add(1);
        entry.cost = entry.cost.max(cx.cost());
        if entry.traces.len() < self.keep.traces {
            let at = (subject.at)();
            entry.traces.push(self.trace(at, cx.cost(), &outcome, &trace));
        }
        outcome
    }

    /// Records how the mutation evaluated last changed the object, if its trace is recorded.
    pub(crate) fn changed(&self, id: &ExpressionId, before: &Json, after: &Json) {
        let mut recorded = self.recorded.borrow_mut();
        let Some(of) = recorded.get_mut(id) else { return };
        let kept = u64::try_from(of.traces.len()).unwrap_or(u64::MAX);
        if let Some(last) = of.traces.last_mut().filter(|_| kept == of.evaluations) {
            last.change = Some(ObjectChange { before: before.clone(), after: after.clone() });
        }
    }

    fn trace(
        &self,
        at: String,
        cost: u64,
        outcome: &Result<Value<'_>, EvalError>,
        trace: &Trace<'_>,
    ) -> RecordedTrace {
        let parts = trace.entries().iter().map(|entry| RecordedOutcome {
            span: entry.span,
            rounds: entry.rounds.clone(),
            outcome: self.shown(&entry.outcome),
        });
        RecordedTrace {
            at,
            cost,
            outcome: self.shown(outcome),
            parts: parts.collect(),
            omitted: trace.omitted(),
            change: None,
        }
    }

    fn shown(&self, outcome: &Result<Value<'_>, EvalError>) -> Result<String, EvalError> {
        outcome.as_ref().map(|value| value.preview(self.keep.value_bytes)).map_err(Clone::clone)
    }
}

/// The expression and its input; converted to text only if it is recorded.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'s> {
    pub(crate) id: &'s dyn Fn() -> ExpressionId,
    pub(crate) text: &'s str,
    pub(crate) at: &'s dyn Fn() -> String,
}
