//! Parses the MatchResources of a document, with kube-apiserver's messages about each invalid field.

use std::collections::HashSet;

use admit_apimachinery::field_error::{BadValue, FieldError};
use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::selector::{LabelSelector, Requirement, SelectorOperator};
use admit_apimachinery::{labels, names};
use serde_json::Value;

use super::{MatchPolicy, MatchResources, Rule, ScopeRule};
use crate::read::decode::{DecodeError, Fields};
use crate::request::Operation;

impl MatchResources {
    /// Parses `fields`; invalid values are added to `errors`, a wrong JSON type ends the parsing.
    pub(crate) fn decode(fields: &Fields<'_>, errors: &mut FieldErrors) -> Result<Self, DecodeError> {
        Ok(Self {
            match_policy: match_policy(fields, errors)?,
            namespace_selector: label_selector(
                &fields.object("namespaceSelector")?,
                LabelValues::Checked,
                errors,
            )?,
            object_selector: label_selector(&fields.object("objectSelector")?, LabelValues::Checked, errors)?,
            rules: rules(fields, "resourceRules", errors)?,
            excludes: rules(fields, "excludeResourceRules", errors)?,
        })
    }
}

/// Whether the values in a selector's expressions must be those that a label can have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum LabelValues {
    Checked,
    Unchecked,
}

pub(crate) fn label_selector(
    fields: &Fields<'_>,
    values: LabelValues,
    errors: &mut FieldErrors,
) -> Result<LabelSelector, DecodeError> {
    let mut requirements = Vec::new();
    let labels = fields.path_of("matchLabels");
    for (key, value) in fields.string_map("matchLabels")? {
        invalid(errors, &labels, &key, labels::key(&key));
        invalid(errors, &labels, &value, labels::value(&value));
        requirements.push(Requirement::new(key, SelectorOperator::In, vec![value]));
    }
    for expression in fields.objects("matchExpressions")? {
        requirements.extend(requirement(&expression, values, errors)?);
    }
    Ok(LabelSelector::new(requirements))
}

fn requirement(
    fields: &Fields<'_>,
    checked: LabelValues,
    errors: &mut FieldErrors,
) -> Result<Option<Requirement>, DecodeError> {
    let name = fields.string("operator")?;
    let operator = SelectorOperator::from_name(&name);
    let key = fields.string("key")?;
    let values = fields.strings("values")?;
    match operator {
        Some(SelectorOperator::In | SelectorOperator::NotIn) if values.is_empty() => {
            let detail = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.push(FieldError::required(fields.path_of("values"), detail));
        }
        Some(SelectorOperator::Exists | SelectorOperator::DoesNotExist) if !values.is_empty() => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(FieldError::forbidden(fields.path_of("values"), detail));
        }
        Some(_) => {}
        None => {
            let detail = "not a valid selector operator";
            errors.push(FieldError::invalid(fields.path_of("operator"), BadValue::marshalled(&name), detail));
        }
    }
    invalid(errors, &fields.path_of("key"), &key, labels::key(&key));
    for (index, value) in values.iter().enumerate().filter(|_| checked == LabelValues::Checked) {
        let path = format!("{}[{index}]", fields.path_of("values"));
        invalid(errors, &path, value, labels::value(value));
    }
    Ok(operator.map(|operator| Requirement::new(key, operator, values)))
}

impl Rule {
    fn decode(fields: &Fields<'_>, errors: &mut FieldErrors) -> Result<Self, DecodeError> {
        let resource_names = resource_names(fields, errors)?;
        let operations = operations(fields, errors)?;
        let groups = fields.strings("apiGroups")?;
        required(errors, fields, "apiGroups", &groups);
        alone(errors, fields, "apiGroups", &groups, "API groups");
        let versions = fields.strings("apiVersions")?;
        required(errors, fields, "apiVersions", &versions);
        alone(errors, fields, "apiVersions", &versions, "API versions");
        for (index, _) in versions.iter().enumerate().filter(|(_, version)| version.is_empty()) {
            errors.push(FieldError::required(format!("{}[{index}]", fields.path_of("apiVersions")), ""));
        }
        let resources = fields.strings("resources")?;
        required(errors, fields, "resources", &resources);
        check_resources(errors, &fields.path_of("resources"), &resources);
        Ok(Self { operations, groups, versions, resources, scope: scope(fields, errors)?, resource_names })
    }
}

pub(crate) fn match_policy(
    fields: &Fields<'_>,
    errors: &mut FieldErrors,
) -> Result<MatchPolicy, DecodeError> {
    match fields.optional_string("matchPolicy")?.as_deref() {
        None | Some("Equivalent") => Ok(MatchPolicy::Equivalent),
        Some("Exact") => Ok(MatchPolicy::Exact),
        Some(other) => {
            let path = fields.path_of("matchPolicy");
            errors.push(FieldError::not_supported(
                path,
                BadValue::marshalled(other),
                ["Equivalent", "Exact"],
            ));
            Ok(MatchPolicy::Equivalent)
        }
    }
}

pub(crate) fn rules(
    fields: &Fields<'_>,
    key: &str,
    errors: &mut FieldErrors,
) -> Result<Vec<Rule>, DecodeError> {
    fields.objects(key)?.iter().map(|rule| Rule::decode(rule, errors)).collect()
}

fn resource_names(fields: &Fields<'_>, errors: &mut FieldErrors) -> Result<Vec<String>, DecodeError> {
    let found = fields.strings("resourceNames")?;
    let mut earlier = HashSet::new();
    for (index, name) in found.iter().enumerate() {
        let path = format!("{}[{index}]", fields.path_of("resourceNames"));
        invalid(errors, &path, name, names::path_segment(name, false));
        if !earlier.insert(name) {
            errors.push(FieldError::duplicate(path, name.as_str()));
        }
    }
    Ok(found)
}

fn operations(fields: &Fields<'_>, errors: &mut FieldErrors) -> Result<Option<Vec<Operation>>, DecodeError> {
    let found = fields.strings("operations")?;
    required(errors, fields, "operations", &found);
    alone(errors, fields, "operations", &found, "operations");
    let mut operations = Vec::with_capacity(found.len());
    for (index, name) in found.iter().enumerate().filter(|(_, name)| *name != "*") {
        match name.parse() {
            Ok(operation) => operations.push(operation),
            Err(_) => errors.push(FieldError::not_supported(
                format!("{}[{index}]", fields.path_of("operations")),
                BadValue::marshalled(name),
                ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"],
            )),
        }
    }
    Ok(if found.iter().any(|name| name == "*") { None } else { Some(operations) })
}

fn scope(fields: &Fields<'_>, errors: &mut FieldErrors) -> Result<ScopeRule, DecodeError> {
    match fields.optional_string("scope")?.as_deref() {
        None | Some("*") => Ok(ScopeRule::All),
        Some("Namespaced") => Ok(ScopeRule::Namespaced),
        Some("Cluster") => Ok(ScopeRule::Cluster),
        Some(other) => {
            let path = fields.path_of("scope");
            errors.push(FieldError::not_supported(
                path,
                BadValue::marshalled(other),
                ["*", "Cluster", "Namespaced"],
            ));
            Ok(ScopeRule::All)
        }
    }
}

/// Rejects wildcards that make other entries of the same list redundant.
fn check_resources(errors: &mut FieldErrors, path: &str, resources: &[String]) {
    let mut any_subresource_of: HashSet<&str> = HashSet::new();
    let mut any_resource_with: HashSet<&str> = HashSet::new();
    let mut plain = false;
    for (index, entry) in resources.iter().enumerate() {
        let at = format!("{path}[{index}]");
        if entry.is_empty() {
            errors.push(FieldError::required(at, ""));
            continue;
        }
        let Some((resource, subresource)) = entry.split_once('/') else {
            // The last entry without a subresource decides, as upstream has it.
            plain = entry != "*";
            continue;
        };
        for (seen, part, wildcard) in [
            (&any_subresource_of, resource, format!("{resource}/*")),
            (&any_resource_with, subresource, format!("*/{subresource}")),
        ] {
            if seen.contains(part) {
                let detail = format!("if '{wildcard}' is present, must not specify {entry}");
                errors.push(FieldError::invalid(&at, entry.as_str(), detail));
            }
        }
        if subresource == "*" {
            any_subresource_of.insert(resource);
        }
        if resource == "*" {
            any_resource_with.insert(subresource);
        }
    }
    let has = |wanted: &str| resources.iter().any(|entry| entry == wanted);
    if resources.len() > 1 && has("*/*") {
        let detail = "if '*/*' is present, must not specify other resources";
        errors.push(FieldError::invalid(path, Value::from(resources.to_vec()), detail));
    }
    if has("*") && plain {
        let detail = "if '*' is present, must not specify other resources without subresources";
        errors.push(FieldError::invalid(path, Value::from(resources.to_vec()), detail));
    }
}

fn required(errors: &mut FieldErrors, fields: &Fields<'_>, key: &str, items: &[String]) {
    if items.is_empty() {
        errors.push(FieldError::required(fields.path_of(key), ""));
    }
}

fn alone(errors: &mut FieldErrors, fields: &Fields<'_>, key: &str, items: &[String], what: &str) {
    if items.len() > 1 && items.iter().any(|item| item == "*") {
        let detail = format!("if '*' is present, must not specify other {what}");
        errors.push(FieldError::invalid(fields.path_of(key), Value::from(items.to_vec()), detail));
    }
}

fn invalid(errors: &mut FieldErrors, path: &str, value: &str, complaints: Vec<String>) {
    errors.extend(complaints.into_iter().map(|complaint| FieldError::invalid(path, value, complaint)));
}
