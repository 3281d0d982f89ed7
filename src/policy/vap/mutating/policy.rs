//! Compiles a MutatingAdmissionPolicy, with kube-apiserver's error messages about each field.

use admit_apimachinery::field_error::{BadValue, FieldError};
use admit_cel::PatternSum;
use serde_json::Value;

use crate::read::decode::{DecodeError, Fields};
use crate::report::recording;
use crate::vap::expression::{CompileError, Expression, Patch, Role};
use crate::vap::policy::{Policy, Reader};
use crate::vap::stored::Stored;

/// A compiled policy that changes objects.
///
/// ```
/// use admit_policy::{
///     Binding, EvalOptions, GroupVersionKind, MutatingPolicy, PolicySet, Reinvocation, Request, Schemas, Unmade,
/// };
/// use serde_json::{Value, json};
///
/// /// JSON patches do without schemas.
/// #[derive(Debug)]
/// struct PatchesOnly;
///
/// impl Schemas for PatchesOnly {
///     fn serves(&self, _: &GroupVersionKind) -> bool {
///         true
///     }
///
///     fn merged(&self, kind: &GroupVersionKind, _: &Value, _: &Value) -> Result<Value, Unmade> {
///         Err(Unmade::Failed(format!("no schema of {}", kind.kind)))
///     }
///
///     fn settled(&self, _: &GroupVersionKind, object: Value, _: bool) -> Result<Value, Unmade> {
///         Ok(object)
///     }
/// }
///
/// let mut document = json!({
///     "apiVersion": "admissionregistration.k8s.io/v1",
///     "kind": "MutatingAdmissionPolicy",
///     "metadata": {"name": "labelled"},
///     "spec": {
///         "reinvocationPolicy": "IfNeeded",
///         "matchConstraints": {"resourceRules": [
///             {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]},
///         ]},
///         "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression":
///             "[JSONPatch{op: 'add', path: '/metadata/labels', value: {'of': object.metadata.name}}]"}}],
///     },
/// });
/// let policy = MutatingPolicy::compile(&document).unwrap();
/// assert!(&*policy.common().name == "labelled" && !policy.uses_namespace());
/// assert_eq!(policy.expressions()[0].id.path, "spec.mutations[0].jsonPatch.expression");
/// let binding = Binding::compile_mutating(&json!({
///     "apiVersion": "admissionregistration.k8s.io/v1",
///     "kind": "MutatingAdmissionPolicyBinding",
///     "metadata": {"name": "everywhere"},
///     "spec": {"policyName": "labelled"},
/// }))
/// .unwrap();
/// let set = PolicySet::default().mutating(vec![policy], vec![binding]);
/// assert_eq!(set.mutating_policies().map(|(_, bindings)| bindings.len()).collect::<Vec<_>>(), [1]);
///
/// let pod = json!({
///     "kind": {"group": "", "version": "v1", "kind": "Pod"},
///     "resource": {"group": "", "version": "v1", "resource": "pods"},
///     "operation": "CREATE",
///     "namespace": "shop",
///     "object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}},
/// });
/// let mut request = Request::from_value(&pod)?;
/// let host = set.documents();
/// let whole = set.mutate_fully(&request, (host, &PatchesOnly), EvalOptions::default(), |_| true).object;
///
/// // The same in steps, where others change the object between the first run and the second.
/// let mut reinvocation = Reinvocation::default();
/// let first = set.mutate(&request, (host, &PatchesOnly), &mut reinvocation, EvalOptions::default());
/// assert!(first.denial.is_none() && first.object == whole);
/// assert_eq!(whole.unwrap()["metadata"]["labels"], json!({"of": "web"}));
/// assert!(reinvocation.is_wanted());
/// reinvocation.begin_second();
/// request.object = first.object.map(Into::into);
/// set.mutate(&request, (host, &PatchesOnly), &mut reinvocation, EvalOptions::default());
/// assert!(!reinvocation.is_wanted(), "there is no third");
///
/// // An update, and what a server reads back from its store.
/// let stored = document.clone();
/// document["spec"]["mutations"][0]["jsonPatch"]["expression"] = json!("Object{}");
/// assert!(MutatingPolicy::compile_update(&document, &stored).is_err());
/// assert!(MutatingPolicy::compile_stored(&stored).is_ok());
/// # Ok::<(), admit_policy::ReviewError>(())
/// ```
#[derive(Debug)]
pub struct MutatingPolicy {
    common: Policy,
    pub(super) mutations: Vec<Mutation>,
    /// `reinvocationPolicy: IfNeeded`.
    pub(super) is_reinvoked: bool,
}

#[derive(Debug)]
pub(super) struct Mutation {
    pub(super) patch: Patch,
    pub(super) expression: Expression,
}

impl MutatingPolicy {
    /// Compiles a policy that is to be created.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn compile(document: &Value) -> Result<Self, Vec<FieldError>> {
        Reader::default().reading(|reader| reader.mutating_policy(document))
    }

    /// Compiles a policy that is to be created, with the patterns of others that count together.
    ///
    /// # Errors
    /// As of [`Self::compile`].
    pub(crate) fn compile_among(
        document: &Value,
        patterns: &mut PatternSum,
    ) -> Result<Self, Vec<FieldError>> {
        Reader::among(patterns, |reader| reader.mutating_policy(document))
    }

    /// Compiles a policy that replaces `stored`; expressions of `stored` stay valid whatever they use.
    ///
    /// # Errors
    /// As of [`Self::compile`].
    pub fn compile_update(document: &Value, stored: &Value) -> Result<Self, Vec<FieldError>> {
        Reader::knowing(Stored::of_policy(stored)).reading(|reader| reader.mutating_policy(document))
    }

    /// Compiles a policy read from where a server stores it.
    ///
    /// # Errors
    /// As of [`Self::compile`].
    pub fn compile_stored(document: &Value) -> Result<Self, Vec<FieldError>> {
        Reader::knowing(Stored::All).reading(|reader| reader.mutating_policy(document))
    }

    /// What it shares with validating policies: its name, constraints, params, conditions and variables. It has no
    /// validations.
    #[must_use]
    pub fn common(&self) -> &Policy {
        &self.common
    }

    /// Every expression, in the order of the document.
    #[must_use]
    pub fn expressions(&self) -> Vec<recording::Expression<'_>> {
        let own = self.mutations.iter().map(|mutation| recording::Expression {
            id: self.common.id_of(&mutation.expression),
            text: &mutation.expression.text,
            program: &mutation.expression.program,
        });
        self.common.expressions().into_iter().chain(own).collect()
    }

    /// Whether the Namespace of a request can make a difference.
    #[must_use]
    pub fn uses_namespace(&self) -> bool {
        let mut own = self.mutations.iter().map(|mutation| &mutation.expression);
        self.common.uses_namespace() || own.any(|expression| expression.uses_namespace)
    }
}

impl Reader {
    fn mutating_policy(&mut self, document: &Value) -> Result<MutatingPolicy, DecodeError> {
        let document = Fields::of(document, "")?;
        let (common, spec) = self.common(&document, true)?;
        let fields = spec.objects("mutations")?;
        if fields.is_empty() {
            let detail = "mutations must contain at least one item";
            self.errors.push(FieldError::required(spec.path_of("mutations"), detail));
        }
        let mut mutations = Vec::with_capacity(fields.len());
        for mutation in &fields {
            mutations.extend(self.mutation(mutation)?);
        }
        let is_reinvoked = self.reinvocation(&spec)?;
        Ok(MutatingPolicy { common, mutations, is_reinvoked })
    }

    /// A mutation has the member that its type names, and no other.
    fn mutation(&mut self, mutation: &Fields<'_>) -> Result<Option<Mutation>, DecodeError> {
        let kind = mutation.string("patchType")?;
        let path = mutation.path_of("patchType");
        let (own, other, patch) = match kind.as_str() {
            "ApplyConfiguration" => ("applyConfiguration", "jsonPatch", Patch::Object),
            "JSONPatch" => ("jsonPatch", "applyConfiguration", Patch::Operations),
            "" => {
                self.errors.push(FieldError::required(path, ""));
                return Ok(None);
            }
            _ => {
                let supported = ["ApplyConfiguration", "JSONPatch"];
                self.errors.push(FieldError::not_supported(path, BadValue::marshalled(&kind), supported));
                return Ok(None);
            }
        };
        let expression = match mutation.optional_object(own)? {
            Some(fields) => self.patch(&fields, patch)?,
            None => {
                let detail = format!("must be specified when patchType is {kind}");
                self.errors.push(FieldError::required(mutation.path_of(own), detail));
                None
            }
        };
        if mutation.optional_object(other)?.is_some() {
            let detail = format!("must not be specified when patchType is {kind}");
            let shown = format!("{{{other}}}");
            self.errors.push(FieldError::invalid(mutation.path_of(other), shown.as_str(), detail));
        }
        Ok(expression.map(|expression| Mutation { patch, expression }))
    }

    fn patch(&mut self, fields: &Fields<'_>, patch: Patch) -> Result<Option<Expression>, DecodeError> {
        let written = fields.string("expression")?;
        let (path, text) = (fields.path_of("expression"), written.trim());
        if text.is_empty() {
            self.errors.push(FieldError::required(path, ""));
            return Ok(None);
        }
        let mode = self.mode(Role::Validation, &written);
        match self.compiler.compile_patch(patch, mode, &path, text) {
            Ok(expression) => return Ok(Some(expression.written_as(&written))),
            Err(CompileError::Invalid(detail)) => {
                self.errors.push(FieldError::invalid(path, text, detail));
            }
            Err(CompileError::Internal(detail)) => self.errors.push(FieldError::internal(path, detail)),
        }
        Ok(None)
    }

    fn reinvocation(&mut self, spec: &Fields<'_>) -> Result<bool, DecodeError> {
        let path = spec.path_of("reinvocationPolicy");
        match spec.string("reinvocationPolicy")?.as_str() {
            "" => self.errors.push(FieldError::required(path, "")),
            "IfNeeded" => return Ok(true),
            "Never" => {}
            other => {
                let shown = BadValue::marshalled(other);
                self.errors.push(FieldError::not_supported(path, shown, ["IfNeeded", "Never"]));
            }
        }
        Ok(false)
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
        let errors = MutatingPolicy::compile(&document).err().unwrap_or_default();
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
        let errors = crate::vap::Policy::compile(&document).err().unwrap_or_default();
        assert!(errors.iter().any(|error| error.detail.contains("undeclared reference to 'Object'")));
    }
}
