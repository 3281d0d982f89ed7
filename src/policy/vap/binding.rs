//! Parses bindings of both kinds of policies: where a policy applies, with which params, and what happens on failure.

use std::collections::HashSet;
use std::sync::Arc;

use admit_apimachinery::field_error::{BadValue, FieldError};
use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::names;
use admit_apimachinery::selector::LabelSelector;
use serde_json::Value;

use crate::matching::{LabelValues, MatchResources, label_selector};
use crate::read::decode::{DecodeError, Fields};
use crate::report::decision::Enforcement;
use crate::schema::metadata::configuration;

/// A compiled binding.
///
/// ```
/// use admit_policy::{Binding, Enforcement, Policy};
/// use serde_json::json;
///
/// let mut document = json!({
///     "apiVersion": "admissionregistration.k8s.io/v1",
///     "kind": "ValidatingAdmissionPolicy",
///     "metadata": {"name": "named"},
///     "spec": {
///         "failurePolicy": "Ignore",
///         "matchConstraints": {"resourceRules": [
///             {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]},
///         ]},
///         "validations": [{"expression": "object.metadata.name != 'x'"}],
///     },
/// });
/// let policy = Policy::compile(&document).unwrap();
/// assert_eq!((policy.rule_count(), policy.uses_namespace()), (1, false));
/// assert_eq!(policy.expressions()[0].text, "object.metadata.name != 'x'");
///
/// let binding = Binding::compile(&json!({
///     "apiVersion": "admissionregistration.k8s.io/v1",
///     "kind": "ValidatingAdmissionPolicyBinding",
///     "metadata": {"name": "named"},
///     "spec": {"policyName": "named", "validationActions": ["Audit"]},
/// }))
/// .unwrap();
/// assert_eq!(binding.actions, [Enforcement::Audit]);
/// assert!(!policy.may_deny(&[binding]), "it only writes");
///
/// // An update, and what a server reads back from its store.
/// let stored = document.clone();
/// document["spec"]["validations"][0]["expression"] = json!("object.metadata.name.matches('(')");
/// assert!(Policy::compile_update(&document, &stored).is_err());
/// assert!(Policy::compile_stored(&stored).is_ok());
/// ```
#[derive(Clone, Debug)]
pub struct Binding {
    pub name: Arc<str>,
    pub policy_name: String,
    pub param_ref: Option<ParamRef>,
    /// `None` matches whatever the policy matches.
    pub match_resources: Option<MatchResources>,
    /// The actions, in the order of the document.
    pub actions: Vec<Enforcement>,
}

/// Which params a binding uses.
#[derive(Clone, Debug)]
pub struct ParamRef {
    pub selector: ParamSelector,
    /// Empty for the request's own namespace.
    pub namespace: String,
    pub not_found: NotFoundAction,
}

#[derive(Clone, Debug)]
pub enum ParamSelector {
    Name(String),
    Labels(LabelSelector),
}

/// What to do when no param is found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NotFoundAction {
    /// The binding is skipped.
    Allow,
    /// The policy fails.
    Deny,
}

impl Binding {
    /// Compiles a binding document, or returns everything that is wrong with it.
    pub fn compile(document: &Value) -> Result<Self, Vec<FieldError>> {
        let mut errors = FieldErrors::default();
        let compiled = Self::decode(document, &mut errors);
        match compiled {
            Ok(binding) if errors.is_empty() => Ok(binding),
            Ok(_) => Err(errors.into_vec()),
            Err(error) => Err(vec![configuration::wrong_type(&error)]),
        }
    }

    /// Compiles the binding of a policy that mutates, which has no actions.
    /// [`MutatingPolicy`](crate::MutatingPolicy) has an example.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn compile_mutating(document: &Value) -> Result<Self, Vec<FieldError>> {
        let mut errors = FieldErrors::default();
        let read = Fields::of(document, "").and_then(|document| {
            let name = configuration::name(&document, &mut errors)?;
            let spec = document.object("spec")?;
            let Target { policy_name, param_ref, match_resources } = target(&spec, &mut errors)?;
            mutated_operations(&spec, "matchResources", &mut errors)?;
            Ok(Self { name: name.into(), policy_name, param_ref, match_resources, actions: Vec::new() })
        });
        match read {
            Ok(binding) if errors.is_empty() => Ok(binding),
            Ok(_) => Err(errors.into_vec()),
            Err(error) => Err(vec![configuration::wrong_type(&error)]),
        }
    }

    fn decode(document: &Value, errors: &mut FieldErrors) -> Result<Self, DecodeError> {
        let document = Fields::of(document, "")?;
        let name = configuration::name(&document, errors)?;
        let spec = document.object("spec")?;
        let Target { policy_name, param_ref, match_resources } = target(&spec, errors)?;
        let actions = actions(&spec, errors)?;
        Ok(Self { name: name.into(), policy_name, param_ref, match_resources, actions })
    }
}

/// The common fields of bindings of both kinds of policies: the policy, the params, and the resources.
struct Target {
    policy_name: String,
    param_ref: Option<ParamRef>,
    match_resources: Option<MatchResources>,
}

/// Rejects rules of `member` for operations without an object to mutate. As upstream, the path lacks the index of the rule.
pub(super) fn mutated_operations(
    spec: &Fields<'_>,
    member: &str,
    errors: &mut FieldErrors,
) -> Result<(), DecodeError> {
    const OPERATIONS: [&str; 4] = ["*", "CONNECT", "CREATE", "UPDATE"];
    let Some(resources) = spec.optional_object(member)? else { return Ok(()) };
    let path = format!("{}.operations", resources.path_of("resourceRules"));
    for rule in resources.objects("resourceRules")? {
        let operations = rule.strings("operations")?;
        for other in operations.iter().filter(|name| !OPERATIONS.contains(&name.as_str())) {
            errors.push(FieldError::not_supported(&path, BadValue::marshalled(other), OPERATIONS));
        }
    }
    Ok(())
}

/// Parses the target of a binding.
fn target(spec: &Fields<'_>, errors: &mut FieldErrors) -> Result<Target, DecodeError> {
    let policy_name = spec.string("policyName")?;
    let path = spec.path_of("policyName");
    if policy_name.is_empty() {
        errors.push(FieldError::required(&path, ""));
    } else {
        let complaints = names::dns1123_subdomain(&policy_name);
        errors.extend(complaints.into_iter().map(|c| FieldError::invalid(&path, policy_name.as_str(), c)));
    }
    let param_ref = match spec.optional_object("paramRef")? {
        Some(fields) => ParamRef::decode(&fields, errors)?,
        None => None,
    };
    let match_resources = spec
        .optional_object("matchResources")?
        .map(|fields| MatchResources::decode(&fields, errors))
        .transpose()?;
    Ok(Target { policy_name, param_ref, match_resources })
}

impl ParamRef {
    fn decode(fields: &Fields<'_>, errors: &mut FieldErrors) -> Result<Option<Self>, DecodeError> {
        let name = fields.string("name")?;
        let selector = fields.optional_object("selector")?;
        let path = fields.path_of("name");
        if !name.is_empty() {
            let complaints = names::path_segment(&name, false);
            errors.extend(complaints.into_iter().map(|c| FieldError::invalid(&path, name.as_str(), c)));
        }
        let exclusive = "name and selector are mutually exclusive";
        if !name.is_empty() && selector.is_some() {
            errors.push(FieldError::forbidden(path, exclusive));
        }
        let selector =
            selector.map(|selector| label_selector(&selector, LabelValues::Checked, errors)).transpose()?;
        let selector = match selector {
            None if name.is_empty() => {
                errors.push(FieldError::required(fields.path(), "one of name or selector must be specified"));
                None
            }
            None => Some(ParamSelector::Name(name)),
            Some(_) if !name.is_empty() => {
                errors.push(FieldError::forbidden(fields.path_of("selector"), exclusive));
                None
            }
            Some(selector) => Some(ParamSelector::Labels(selector)),
        };
        let not_found = not_found_action(fields, errors)?;
        let namespace = fields.string("namespace")?;
        Ok(selector.zip(not_found).map(|(selector, not_found)| Self { selector, namespace, not_found }))
    }
}

fn not_found_action(
    fields: &Fields<'_>,
    errors: &mut FieldErrors,
) -> Result<Option<NotFoundAction>, DecodeError> {
    let path = fields.path_of("parameterNotFoundAction");
    match fields.string("parameterNotFoundAction")?.as_str() {
        "" => errors.push(FieldError::required(path, "")),
        "Allow" => return Ok(Some(NotFoundAction::Allow)),
        "Deny" => return Ok(Some(NotFoundAction::Deny)),
        other => errors.push(FieldError::not_supported(path, BadValue::marshalled(other), ["Deny", "Allow"])),
    }
    Ok(None)
}

fn actions(spec: &Fields<'_>, errors: &mut FieldErrors) -> Result<Vec<Enforcement>, DecodeError> {
    let names = spec.strings("validationActions")?;
    let path = spec.path_of("validationActions");
    let mut actions = Vec::with_capacity(names.len());
    let mut earlier = HashSet::new();
    for (index, name) in names.iter().enumerate() {
        let at = format!("{path}[{index}]");
        let shown = || BadValue::marshalled(name);
        match Enforcement::from_name(name) {
            Some(action) => actions.push(action),
            None => errors.push(FieldError::not_supported(&at, shown(), ["Audit", "Deny", "Warn"])),
        }
        if !earlier.insert(name) {
            errors.push(FieldError::duplicate(&at, shown()));
        }
    }
    if actions.contains(&Enforcement::Deny) && actions.contains(&Enforcement::Warn) {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure information in the \
                      API response and headers serves no purpose)";
        errors.push(FieldError::invalid(&path, Value::from(names.clone()), detail));
    }
    if names.is_empty() {
        errors.push(FieldError::required(&path, "at least one validation action is required"));
    }
    Ok(actions)
}
