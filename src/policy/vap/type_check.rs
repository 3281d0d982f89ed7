//! Type-checks a policy's expressions against the kinds that it matches, and produces the warnings that the API
//! server shows in the policy's status. They change no decision: at run time expressions see objects without types.
//!
//! The counterpart of apiserver `pkg/admission/plugin/policy/validating/typechecking.go`.

use admit_cel::Type;

use super::expression::Compiler;
use super::policy::Policy;
use crate::matching::Rule;
use crate::request::{GroupVersionKind, GroupVersionResource};

/// Kinds that are looked at for one policy.
const MAX_KINDS: usize = 10;

/// Knows kinds and their types.
///
/// ```
/// use admit_cel::{Type, parse_type};
/// use admit_policy::{GroupVersionKind, GroupVersionResource, Policy, Types};
/// use serde_json::json;
///
/// /// Pods are maps of numbers, and there is nothing else.
/// struct Numbers;
///
/// impl Types for Numbers {
///     fn kinds(&self, resource: &GroupVersionResource) -> Vec<GroupVersionKind> {
///         let is_pods = resource.resource == "pods";
///         is_pods.then(|| GroupVersionKind::new("", "v1", "Pod")).into_iter().collect()
///     }
///
///     fn type_of(&self, _: &GroupVersionKind) -> Option<Type> {
///         parse_type("map(string, int)")
///     }
/// }
///
/// let policy = Policy::compile(&json!({
///     "apiVersion": "admissionregistration.k8s.io/v1",
///     "kind": "ValidatingAdmissionPolicy",
///     "metadata": {"name": "small"},
///     "spec": {
///         "matchConstraints": {"resourceRules": [
///             {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]},
///         ]},
///         "validations": [{"expression": "object.size < 'x'"}],
///     },
/// }))
/// .unwrap();
/// assert!(Numbers.built_in().is_empty());
/// assert_eq!(policy.check_types(&Numbers)[0].field, "spec.validations[0].expression");
/// ```
pub trait Types {
    /// The kinds that are served as `resource`.
    fn kinds(&self, resource: &GroupVersionResource) -> Vec<GroupVersionKind>;

    /// Returns the type of objects of `kind`; None where no schema of it is known.
    fn type_of(&self, kind: &GroupVersionKind) -> Option<Type>;

    /// Every resource that is built in, by group; of these groups nothing else is a resource.
    fn built_in(&self) -> Vec<(&str, &str)> {
        Vec::new()
    }
}

/// An expression that does not fit the type of an object.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TypeWarning {
    /// `spec.validations[0].expression`.
    pub field: String,
    /// For each kind with an error, the kind and the compiler's full message.
    pub warning: String,
}

impl Policy {
    /// Checks the validations and their message expressions against every kind that the policy names without wildcards.
    /// [`Types`] has an example.
    #[must_use]
    pub fn check_types(&self, types: &dyn Types) -> Vec<TypeWarning> {
        let params = self.param_kind.as_ref().map(|kind| types.type_of(kind).unwrap_or(Type::Dyn));
        let compilers: Vec<(GroupVersionKind, Type, Compiler)> = kinds(&self.constraints.rules, types)
            .into_iter()
            .filter_map(|kind| {
                let object = types.type_of(&kind)?;
                let compiler = self.typed(&object, params.clone());
                Some((kind, object, compiler))
            })
            .collect();
        let expressions = self.validations.iter().flat_map(|validation| {
            std::iter::once(&validation.expression).chain(&validation.message_expression)
        });
        let warning = |expression: &super::expression::Expression| {
            let texts = compilers.iter().filter_map(|(kind, object, compiler)| {
                let problem = compiler.check(object, &expression.text).err()?;
                Some(format!("{}/{}, Kind={}: {problem}\n", kind.group, kind.version, kind.kind))
            });
            let texts: Vec<String> = texts.collect();
            let field = expression.path.clone();
            (!texts.is_empty()).then(|| TypeWarning { field, warning: texts.join("\n") })
        };
        expressions.filter_map(warning).collect()
    }

    /// The kinds that [`Self::check_types`] checks against.
    pub(crate) fn checked_kinds(&self, types: &dyn Types) -> Vec<GroupVersionKind> {
        kinds(&self.constraints.rules, types)
    }

    /// A compiler that knows the variables by the types that they have beside objects of the type `object`.
    fn typed(&self, object: &Type, params: Option<Type>) -> Compiler {
        let mut compiler = Compiler::default();
        compiler.declare_params(params);
        if !self.variables.is_empty() {
            compiler.declare_variables();
        }
        for variable in &self.variables {
            let ty = compiler.check(object, &variable.expression.text).ok();
            compiler.declare_variable(&variable.name, ty.as_ref());
        }
        compiler
    }
}

/// Returns the kinds in order of group, version and kind.
fn kinds(rules: &[Rule], types: &dyn Types) -> Vec<GroupVersionKind> {
    let mut found: Vec<GroupVersionKind> = Vec::new();
    'rules: for rule in rules {
        let mut of_rule = 0_usize;
        for resource in resources(rule) {
            for kind in types.kinds(&resource) {
                if !found.contains(&kind) {
                    found.push(kind);
                }
                of_rule = of_rule.saturating_add(1);
                if of_rule == MAX_KINDS {
                    break 'rules;
                }
            }
        }
    }
    found.sort_by(|a, b| (&a.group, &a.version, &a.kind).cmp(&(&b.group, &b.version, &b.kind)));
    found
}

/// What a rule names, unless it has a wildcard for the group or the version.
fn resources(rule: &Rule) -> Vec<GroupVersionResource> {
    let is_open = |names: &[String]| names.iter().any(|name| name.contains('*'));
    if is_open(&rule.groups) || is_open(&rule.versions) {
        return Vec::new();
    }
    let sorted = |names: &[String]| {
        let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
        names.sort_unstable();
        names.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let plain = sorted(&rule.resources).into_iter().filter(|name| !name.contains(['*', '/']));
    let plain: Vec<String> = plain.collect();
    let mut out = Vec::new();
    for group in sorted(&rule.groups) {
        for version in sorted(&rule.versions) {
            out.extend(plain.iter().map(|name| GroupVersionResource::new(&group, &version, name)));
        }
    }
    out
}
