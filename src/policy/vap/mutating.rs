//! Validates MutatingAdmissionPolicies and their bindings, as kube-apiserver does before it stores them. They are not run.

use admit_apimachinery::field_error::{BadValue, FieldError};
use admit_apimachinery::findings::FieldErrors;
use serde_json::Value;

use super::binding;
use super::expression::{CompileError, Patch};
use super::policy::{FailurePolicy, Reader};
use super::stored::Stored;
use crate::read::decode::{DecodeError, Fields};
use crate::schema::metadata::configuration;

/// What is wrong with a MutatingAdmissionPolicy, which replaces `stored` if there is one.
///
/// # Errors
/// Everything that is wrong with it.
///
/// ```
/// use admit_policy::check_mutating;
/// use serde_json::json;
///
/// let policy = json!({
///     "apiVersion": "admissionregistration.k8s.io/v1",
///     "kind": "MutatingAdmissionPolicy",
///     "metadata": {"name": "label"},
///     "spec": {"matchConstraints": {}, "reinvocationPolicy": "Never", "mutations": []},
/// });
/// let errors = check_mutating(&policy, None).unwrap_err();
/// assert!(errors.iter().any(|error| error.to_string().starts_with("spec.mutations: Required value")));
/// ```
pub fn check_mutating(document: &Value, stored: Option<&Value>) -> Result<(), Vec<FieldError>> {
    let mut reader = Reader::knowing(stored.map_or(Stored::None, Stored::of_policy));
    let read = reader.mutating_policy(document);
    told(read, reader.errors)
}

/// What is wrong with a MutatingAdmissionPolicyBinding.
///
/// # Errors
/// Everything that is wrong with it.
///
/// ```
/// use admit_policy::check_mutating_binding;
/// use serde_json::json;
///
/// let binding = json!({
///     "apiVersion": "admissionregistration.k8s.io/v1",
///     "kind": "MutatingAdmissionPolicyBinding",
///     "metadata": {"name": "label"},
///     "spec": {"policyName": "label"},
/// });
/// assert_eq!(check_mutating_binding(&binding), Ok(()));
/// ```
pub fn check_mutating_binding(document: &Value) -> Result<(), Vec<FieldError>> {
    let mut errors = FieldErrors::default();
    let read = Fields::of(document, "").and_then(|document| {
        configuration::name(&document, &mut errors)?;
        binding::target(&document.object("spec")?, &mut errors).map(|_| ())
    });
    told(read, errors)
}

fn told(read: Result<(), DecodeError>, errors: FieldErrors) -> Result<(), Vec<FieldError>> {
    match read {
        Ok(()) if errors.is_empty() => Ok(()),
        Ok(()) => Err(errors.into_vec()),
        Err(error) => Err(vec![configuration::wrong_type(&error)]),
    }
}

impl Reader {
    fn mutating_policy(&mut self, document: &Value) -> Result<(), DecodeError> {
        let document = Fields::of(document, "")?;
        configuration::name(&document, &mut self.errors)?;
        let spec = document.object("spec")?;
        FailurePolicy::decode(&spec, &mut self.errors)?;
        self.param_kind(&spec)?;
        self.constraints(&spec)?;
        self.mutated_operations(&spec)?;
        self.conditions(&spec)?;
        // Those of a mutation are declared even where there are none.
        self.compiler.declare_variables();
        self.variables(&spec)?;
        let mutations = spec.objects("mutations")?;
        if mutations.is_empty() {
            let detail = "mutations must contain at least one item";
            self.errors.push(FieldError::required(spec.path_of("mutations"), detail));
        }
        for mutation in &mutations {
            self.mutation(mutation)?;
        }
        self.reinvocation(&spec)
    }

    /// Nothing is mutated that goes away. Upstream leaves out of the path which rule it is.
    fn mutated_operations(&mut self, spec: &Fields<'_>) -> Result<(), DecodeError> {
        const OPERATIONS: [&str; 4] = ["*", "CONNECT", "CREATE", "UPDATE"];
        let Some(constraints) = spec.optional_object("matchConstraints")? else { return Ok(()) };
        let path = format!("{}.operations", constraints.path_of("resourceRules"));
        for rule in constraints.objects("resourceRules")? {
            let operations = rule.strings("operations")?;
            for other in operations.iter().filter(|name| !OPERATIONS.contains(&name.as_str())) {
                let shown = BadValue::marshalled(other);
                self.errors.push(FieldError::not_supported(&path, shown, OPERATIONS));
            }
        }
        Ok(())
    }

    /// A mutation has the member that its type names, and no other.
    fn mutation(&mut self, mutation: &Fields<'_>) -> Result<(), DecodeError> {
        let kind = mutation.string("patchType")?;
        let path = mutation.path_of("patchType");
        let (own, other, patch) = match kind.as_str() {
            "ApplyConfiguration" => ("applyConfiguration", "jsonPatch", Patch::Object),
            "JSONPatch" => ("jsonPatch", "applyConfiguration", Patch::Operations),
            "" => {
                self.errors.push(FieldError::required(path, ""));
                return Ok(());
            }
            _ => {
                let supported = ["ApplyConfiguration", "JSONPatch"];
                self.errors.push(FieldError::not_supported(path, BadValue::marshalled(&kind), supported));
                return Ok(());
            }
        };
        match mutation.optional_object(own)? {
            Some(fields) => self.patch(&fields, patch)?,
            None => {
                let detail = format!("must be specified when patchType is {kind}");
                self.errors.push(FieldError::required(mutation.path_of(own), detail));
            }
        }
        if mutation.optional_object(other)?.is_some() {
            let detail = format!("must not be specified when patchType is {kind}");
            let shown = format!("{{{other}}}");
            self.errors.push(FieldError::invalid(mutation.path_of(other), shown.as_str(), detail));
        }
        Ok(())
    }

    fn patch(&mut self, fields: &Fields<'_>, patch: Patch) -> Result<(), DecodeError> {
        let written = fields.string("expression")?;
        let (path, text) = (fields.path_of("expression"), written.trim());
        if text.is_empty() {
            self.errors.push(FieldError::required(path, ""));
            return Ok(());
        }
        match self.compiler.check_patch(patch, text) {
            Ok(()) => {}
            Err(CompileError::Invalid(detail)) => {
                self.errors.push(FieldError::invalid(path, text, detail));
            }
            Err(CompileError::Internal(detail)) => self.errors.push(FieldError::internal(path, detail)),
        }
        Ok(())
    }

    fn reinvocation(&mut self, spec: &Fields<'_>) -> Result<(), DecodeError> {
        let path = spec.path_of("reinvocationPolicy");
        match spec.string("reinvocationPolicy")?.as_str() {
            "" => self.errors.push(FieldError::required(path, "")),
            "IfNeeded" | "Never" => {}
            other => {
                let shown = BadValue::marshalled(other);
                self.errors.push(FieldError::not_supported(path, shown, ["IfNeeded", "Never"]));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wrong(mutation: &Value) -> Vec<String> {
        let document = json!({"metadata": {"name": "p"}, "spec": {"reinvocationPolicy": "Never",
            "matchConstraints": {"resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
            ]},
            "variables": [{"name": "a", "expression": "'x'"}], "mutations": [mutation]}});
        let errors = check_mutating(&document, None).err().unwrap_or_default();
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn mutations_make_objects_or_patches() {
        let apply = |text: &str| json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": text}});
        let patch = |text: &str| json!({"patchType": "JSONPatch", "jsonPatch": {"expression": text}});
        for fine in [
            apply("Object{metadata: Object.metadata{labels: {'a': variables.a}}}"),
            apply(
                "Object{spec: Object.spec{containers: [Object.spec.containers{name: object.metadata.name}]}}",
            ),
            patch("[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('a/b'), value: 1}]"),
            patch("has(object.x) ? [JSONPatch{op: 'remove', path: '/x'}] : []"),
        ] {
            assert_eq!(wrong(&fine), Vec::<String>::new(), "{fine}");
        }
        let at = "spec.mutations[0]";
        assert_eq!(
            wrong(&apply("1")),
            [format!(
                "{at}.applyConfiguration.expression: Invalid value: \"1\": must evaluate to Object but got int"
            )]
        );
        assert_eq!(
            wrong(&patch("Object{}")),
            [format!(
                "{at}.jsonPatch.expression: Invalid value: \"Object{{}}\": must evaluate to list(JSONPatch) but got \
                 Object"
            )]
        );
        assert!(wrong(&patch("[JSONPatch{odd: 1}]"))[0].contains("undefined field 'odd'"));
        assert_eq!(
            wrong(&json!({"patchType": "JSONPatch", "applyConfiguration": {"expression": "1"}})),
            [
                format!("{at}.jsonPatch: Required value: must be specified when patchType is JSONPatch"),
                format!(
                    "{at}.applyConfiguration: Invalid value: \"{{applyConfiguration}}\": must not be specified when \
                     patchType is JSONPatch"
                ),
            ]
        );
    }

    #[test]
    fn other_policies_make_nothing() {
        let document =
            json!({"metadata": {"name": "p"}, "spec": {"validations": [{"expression": "Object{} == 1"}]}});
        let errors = super::super::Policy::compile(&document).err().unwrap_or_default();
        assert!(errors.iter().any(|error| error.detail.contains("undeclared reference to 'Object'")));
    }
}
