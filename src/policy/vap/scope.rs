//! What the expressions of a policy may name, and of which types: for editors, so also of a policy that is being written
//! and would be refused.

use admit_cel::{Env, Type};
use serde_json::Value;

use super::expression::Compiler;
use super::type_check::Types;
use crate::request::{GroupVersionKind, GroupVersionResource};

/// Kinds that are looked at for one policy.
const MAX_KINDS: usize = 10;
/// Variables that are looked at.
const MAX_VARIABLES: usize = 1_000;

/// The environment of the expressions of one policy, validating or mutating.
///
/// ```
/// use admit_policy::{Documents, PolicyScope};
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
/// let env = scope.env(None, false);
/// assert!(env.compile("variables.names.size() == 1 && params != null").is_ok());
/// assert!(env.compile("variables.later == 1").is_err(), "it is declared behind the expression");
/// ```
#[derive(Debug)]
pub struct PolicyScope {
    kinds: Vec<(GroupVersionKind, Option<Type>)>,
    params: Option<GroupVersionKind>,
    params_type: Option<Type>,
    /// With their expressions.
    variables: Option<Vec<(String, String)>>,
}

impl PolicyScope {
    /// Of the expressions behind as many of its variables; behind all of them where none is said.
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
        let kinds = kinds(spec, types).into_iter().map(|kind| {
            let ty = types.type_of(&kind);
            (kind, ty)
        });
        Self { kinds: kinds.collect(), params, params_type, variables }
    }

    /// The kinds that the policy names without wildcards, with their types where these are known.
    #[must_use]
    pub fn kinds(&self) -> &[(GroupVersionKind, Option<Type>)] {
        &self.kinds
    }

    /// The kind of its params.
    #[must_use]
    pub const fn param_kind(&self) -> Option<&GroupVersionKind> {
        self.params.as_ref()
    }

    /// What an expression may name on objects of the type `object`, or of any; `patches` where it makes a patch.
    #[must_use]
    pub fn env(&self, object: Option<&Type>, patches: bool) -> Env {
        let object = object.unwrap_or(&Type::Dyn);
        let mut compiler = Compiler::default();
        compiler.declare_params(self.params_type.clone());
        if let Some(variables) = &self.variables {
            compiler.declare_variables();
            for (name, text) in variables {
                let ty = compiler.check(object, text).ok();
                compiler.declare_variable(name, ty.as_ref());
            }
        }
        compiler.written(object, patches)
    }
}

fn kinds(spec: &Value, types: &dyn Types) -> Vec<GroupVersionKind> {
    let names = |rule: &Value, key: &str| -> Vec<String> {
        let names = rule.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        names.filter(|name| !name.contains(['*', '/'])).map(str::to_owned).collect()
    };
    let rules = spec.pointer("/matchConstraints/resourceRules").and_then(Value::as_array);
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
    let mut found: Vec<GroupVersionKind> = Vec::new();
    for kind in asked.iter().flat_map(|resource| types.kinds(resource)) {
        if found.len() < MAX_KINDS && !found.contains(&kind) {
            found.push(kind);
        }
    }
    found
}
