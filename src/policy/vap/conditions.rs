//! Compiles and evaluates `matchConditions` of policies and of webhook configurations.

use std::collections::HashSet;

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::labels;
use admit_cel::Node;
use bumpalo::Bump;
use serde_json::Value;

use super::authorizer::{Answers, HostAuthorizer};
use super::evaluate::{self, ConditionsError};
use super::expression::{Expression, Role};
use super::objects::{Converted, Objects};
use super::policy::{FailurePolicy, Policy, Reader};
use super::request_value::condition_request_value;
use super::session::Inputs;
use super::stored::Stored;
use crate::matching::{MatchResources, Matched};
use crate::read::decode::{DecodeError, Fields};
use crate::report::decision::Skipped;
use crate::report::options::EvalOptions;
use crate::report::recording::{self, Origin};
use crate::request::Request;
use crate::request::host::Host;
use crate::schema::metadata::configuration;

const MAX_MATCH_CONDITIONS: usize = 64;

/// The `matchConditions` of a webhook, compiled.
///
/// ```
/// use std::borrow::Cow;
///
/// use admit_policy::matching::Matched;
/// use admit_policy::{Documents, FailurePolicy, MatchConditions, Request};
/// use serde_json::json;
///
/// let webhook = json!({"matchConditions": [{"name": "by-hand", "expression": "request.userInfo.username != 'robot'"}]});
/// let conditions = MatchConditions::compile(&webhook, "webhooks[0]", FailurePolicy::Fail).unwrap();
/// let request = json!({
///     "kind": {"group": "", "version": "v1", "kind": "Pod"},
///     "resource": {"group": "", "version": "v1", "resource": "pods"},
///     "operation": "CREATE",
///     "userInfo": {"username": "robot"},
///     "object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}},
/// });
/// let request = Request::from_value(&request).unwrap();
/// let matched = Matched { resource: Cow::Borrowed(&request.resource), kind: Cow::Borrowed(&request.kind) };
/// assert!(!conditions.hold(&request, &matched, &Documents::default())?);
/// # Ok::<(), admit_policy::ConditionsError>(())
/// ```
#[derive(Debug)]
pub struct MatchConditions(Policy);

impl MatchConditions {
    /// Compiles the conditions of `webhook`; error messages name its fields from `path` on: `webhooks[0]`.
    ///
    /// # Errors
    /// Everything that is wrong with the conditions.
    pub fn compile(
        webhook: &Value,
        path: &str,
        failure_policy: FailurePolicy,
    ) -> Result<Self, Vec<FieldError>> {
        Self::compile_knowing(webhook, path, failure_policy, Stored::None)
    }

    /// Like [`Self::compile`], where `stored` has the expressions that are already stored.
    pub(crate) fn compile_knowing(
        webhook: &Value,
        path: &str,
        failure_policy: FailurePolicy,
        stored: Stored,
    ) -> Result<Self, Vec<FieldError>> {
        Reader::knowing(stored).conditions_alone(webhook, path, failure_policy).map(Self)
    }

    /// The same, as conditions of that document.
    pub(crate) fn of(mut self, document: Origin) -> Self {
        self.0.document = Some(document);
        self
    }

    /// Whether the conditions hold for `request`, which the webhook matches as `matched`.
    ///
    /// # Errors
    /// What failed, where the failure policy does not ignore that.
    pub fn hold(
        &self,
        request: &Request<'_>,
        matched: &Matched<'_>,
        host: &dyn Host,
    ) -> Result<bool, ConditionsError> {
        Ok(self.skipped(request, matched, host, EvalOptions::default())?.is_none())
    }

    /// Returns why the webhook is not called for a request that it matches; None where it is called.
    ///
    /// # Errors
    /// As [`Self::hold`].
    pub(crate) fn skipped(
        &self,
        request: &Request<'_>,
        matched: &Matched<'_>,
        host: &dyn Host,
        eval: EvalOptions<'_>,
    ) -> Result<Option<Skipped>, ConditionsError> {
        if self.0.conditions.is_empty() {
            return Ok(None);
        }
        let arena = Bump::new();
        let converted = Converted::of(request, matched, host).map_err(ConditionsError::Conversion)?;
        let objects = match &converted {
            Some(converted) => converted.nodes(),
            None => Objects::of(request),
        };
        let value = condition_request_value(request, matched);
        let request_node = Node::from_json(&value);
        let answers = Answers::default();
        let authorizer = HostAuthorizer::new(host, request, &answers);
        let inputs = Inputs {
            arena: &arena,
            object: objects.object,
            old_object: objects.old_object,
            request: request_node,
            condition_request: request_node,
            params: Node::Null,
            namespace: Node::Null,
            authorizer: Some(&authorizer),
            eval,
        };
        evaluate::conditions(&self.0, inputs)
    }
}

impl MatchConditions {
    /// The expressions, in the order of the document.
    pub(crate) fn expressions(&self) -> Vec<recording::Expression<'_>> {
        self.0.expressions()
    }
}

impl Reader {
    /// A policy of nothing but the `matchConditions` of `document`, whose fields lie at `path`.
    fn conditions_alone(
        mut self,
        document: &Value,
        path: &str,
        failure_policy: FailurePolicy,
    ) -> Result<Policy, Vec<FieldError>> {
        let conditions = Fields::of(document, path).and_then(|fields| self.conditions(&fields));
        match conditions {
            Ok(conditions) if self.errors.is_empty() => Ok(Policy {
                name: "".into(),
                failure_policy,
                param_kind: None,
                constraints: MatchResources::default(),
                conditions,
                variables: Vec::new(),
                variable_names: Box::default(),
                validations: Vec::new(),
                audit_annotations: Vec::new(),
                is_mutating: false,
                document: None,
            }),
            Ok(_) => Err(self.errors.into_vec()),
            Err(error) => Err(vec![configuration::wrong_type(&error)]),
        }
    }

    /// Conditions are compiled before variables are declared: they may not use them.
    pub(super) fn conditions(&mut self, spec: &Fields<'_>) -> Result<Vec<Expression>, DecodeError> {
        let items = spec.objects("matchConditions")?;
        if items.len() > MAX_MATCH_CONDITIONS {
            let count = i64::try_from(items.len()).unwrap_or(i64::MAX);
            let path = spec.path_of("matchConditions");
            self.errors.push(FieldError::too_many(path, count, 64));
        }
        let mut names: HashSet<String> = HashSet::with_capacity(items.len());
        let mut conditions = Vec::with_capacity(items.len());
        for item in items {
            let written = item.string("expression")?;
            let text = written.trim();
            if text.is_empty() {
                self.errors.push(FieldError::required(item.path_of("expression"), ""));
            } else {
                let path = item.path_of("expression");
                let compiled = self.expression(Role::Condition, &path, text);
                conditions.extend(compiled.map(|expression| expression.written_as(&written)));
            }
            let name = item.string("name")?;
            self.condition_name(&item.path_of("name"), &name, &names);
            names.insert(name);
        }
        Ok(conditions)
    }

    fn condition_name(&mut self, path: &str, name: &str, earlier: &HashSet<String>) {
        if name.is_empty() {
            self.errors.push(FieldError::required(path, ""));
            return;
        }
        self.invalid(path, name, labels::key(name));
        if earlier.contains(name) {
            self.errors.push(FieldError::duplicate(path, name));
        }
    }
}
