//! Lists the variables, with types, that expressions of a policy or conditions of a webhook may use. Editors use it, so it also works
//! for a policy that is incomplete and would be rejected.

use admit_cel::{Env, Extra, Type};
use serde_json::Value;

use super::expression::Compiler;
use super::type_check::Types;
use crate::request::{GroupVersionKind, GroupVersionResource};

/// Kinds that are looked at for one policy.
const MAX_KINDS: usize = 10;
/// Variables that are looked at.
const MAX_VARIABLES: usize = 1_000;

/// The role of an expression, which determines the names that it may use.
///
/// [`PolicyScope`] has an example.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PolicyPart {
    /// A match condition of a policy or a webhook, without variables.
    Condition,
    /// It is a rule, the value of a variable, or an annotation.
    Rule,
    /// A message expression, which may not use the authorizer.
    Message,
    /// It makes a patch.
    Patch,
}

/// The environment of the expressions of one policy, validating or mutating, or of one webhook.
///
/// ```
/// use admit_policy::{Documents, PolicyPart, PolicyScope};
/// use serde_json::json;
///
/// let policy = json!({
///     "kind": "ValidatingAdmissionPolicy",
///     "spec": {
///         "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
///         "variables": [{"name": "names", "expression": "['a']"}, {"name": "later", "expression": "1"}],
///         "validations": [{"expression": "is being wri"}],
///     },
/// });
/// let scope = PolicyScope::of(&policy, Some(1), &Documents::default());
/// assert!(scope.kinds().is_empty() && scope.param_kind().is_some_and(|kind| kind.kind == "ConfigMap"));
/// let env = scope.env(None, PolicyPart::Rule);
/// assert!(env.compile("variables.names.size() == 1 && params != null").is_ok());
/// assert!(env.compile("variables.later == 1").is_err(), "it is declared behind the expression");
/// assert!(scope.env(None, PolicyPart::Condition).compile("variables.names.size() == 1").is_err());
/// assert!(scope.env(None, PolicyPart::Message).compile("authorizer != null").is_err());
///
/// let webhook = json!({"rules": [{"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"]}]});
/// let env = PolicyScope::of_webhook(&webhook, &Documents::default()).env(None, PolicyPart::Condition);
/// assert!(env.compile("object.kind == 'Deployment'").is_ok() && env.compile("params != null").is_err());
/// ```
#[derive(Debug)]
pub struct PolicyScope {
    kinds: Vec<(GroupVersionKind, Option<Type>)>,
    params: Option<GroupVersionKind>,
    params_type: Option<Type>,
    /// The variables with their expressions.
    variables: Option<Vec<(String, String)>>,
}

impl PolicyScope {
    /// Returns the scope of expressions after the first `before` variables; after all of them if None.
    #[must_use]
    pub fn of(document: &Value, before: Option<usize>, types: &dyn Types) -> Self {
        let spec = document.get("spec").unwrap_or(&Value::Null);
        let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let params = spec.get("paramKind").filter(|kind| kind.is_object()).map(|kind| {
            let version = text(kind, "apiVersion").unwrap_or_default();
            GroupVersionKind::from_api_version(&version, &text(kind, "kind").unwrap_or_default())
        });
        let params_type = params.as_ref().map(|kind| types.type_of(kind).unwrap_or(Type::Dyn));
        let variables = spec.get("variables").and_then(Value::as_array).map(|variables| {
            let seen = variables.iter().take(before.unwrap_or(MAX_VARIABLES).min(MAX_VARIABLES));
            seen.filter_map(|variable| Some((text(variable, "name")?, text(variable, "expression")?)))
                .collect()
        });
        let kinds = kinds(spec.pointer("/matchConstraints/resourceRules"), types);
        Self { kinds, params, params_type, variables }
    }

    /// Returns the scope of a webhook's conditions.
    #[must_use]
    pub fn of_webhook(webhook: &Value, types: &dyn Types) -> Self {
        let kinds = kinds(webhook.get("rules"), types);
        Self { kinds, params: None, params_type: None, variables: None }
    }

    /// Returns the kinds that the policy names without wildcards, with their types if known.
    #[must_use]
    pub fn kinds(&self) -> &[(GroupVersionKind, Option<Type>)] {
        &self.kinds
    }

    /// The kind of its params.
    #[must_use]
    pub const fn param_kind(&self) -> Option<&GroupVersionKind> {
        self.params.as_ref()
    }

    /// What an expression may name on objects of the type `object`, or of any.
    #[must_use]
    pub fn env(&self, object: Option<&Type>, part: PolicyPart) -> Env {
        let object = object.unwrap_or(&Type::Dyn);
        let mut compiler = Compiler::default();
        compiler.declare_params(self.params_type.clone());
        if let Some(variables) = self.variables.as_ref().filter(|_| part != PolicyPart::Condition) {
            compiler.declare_variables();
            for (name, text) in variables {
                let ty = compiler.check(object, text).ok();
                compiler.declare_variable(name, ty.as_ref());
            }
        }
        let env = compiler.written(object, part != PolicyPart::Message);
        if part == PolicyPart::Patch { env.with_library(Extra::JsonPatch).with_patch_types() } else { env }
    }
}

/// The kinds that rules name without wildcards, with their types.
fn kinds(rules: Option<&Value>, types: &dyn Types) -> Vec<(GroupVersionKind, Option<Type>)> {
    let names = |rule: &Value, key: &str| -> Vec<String> {
        let names = rule.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        names.filter(|name| !name.contains(['*', '/'])).map(str::to_owned).collect()
    };
    let rules = rules.and_then(Value::as_array);
    let mut asked: Vec<GroupVersionResource> = Vec::new();
    for rule in rules.into_iter().flatten() {
        let (versions, resources) = (names(rule, "apiVersions"), names(rule, "resources"));
        for group in names(rule, "apiGroups") {
            let of_version = |version: &String| {
                let of = |resource: &String| GroupVersionResource::new(&group, version, resource);
                resources.iter().map(of).collect::<Vec<_>>()
            };
            asked.extend(versions.iter().flat_map(of_version));
        }
    }
    let mut found: Vec<(GroupVersionKind, Option<Type>)> = Vec::new();
    for kind in asked.iter().flat_map(|resource| types.kinds(resource)) {
        if found.len() < MAX_KINDS && !found.iter().any(|(known, _)| *known == kind) {
            let ty = types.type_of(&kind);
            found.push((kind, ty));
        }
    }
    found
}
