//! Validates a CRD as the API server does before it stores one, with the same messages (apiextensions
//! `pkg/apis/apiextensions/validation`).
//!
//! The API server moves a schema that all versions share to the top level of its internal form, and reports errors there: with a single
//! version, paths start at `spec.validation.openAPIV3Schema`.

mod certificates;
mod conversion;
mod costs;
mod defaults;
mod demands;
mod internal;
mod lists;
mod node;
mod openapi;
mod patterns;
mod replaced;
mod rules;
mod structural;
mod versions;
mod with_status;

pub(crate) use costs::{EXPRESSION_LIMIT, TOTAL_LIMIT};
pub(crate) use node::occurrences;

use admit_apimachinery::field_error::{BadValue, FieldError};
use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::names::{self, NameRule};
use serde_json::Value;

use super::approval::Approval;
use super::definition::{API_APPROVED, Definition, Names, Scope, Version};
use crate::read::path::Path;
use crate::schema::metadata;

/// Lists everything for which a definition would be rejected, either a new one or an update of another. `manifest` is the document that
/// the definition was parsed from.
pub(super) fn validate(
    manifest: &Value,
    definition: &Definition,
    replaced: Option<&Definition>,
) -> FieldErrors {
    let mut errors = FieldErrors::default();
    let patterns = patterns::validate(definition, &mut errors);
    if !errors.is_empty() {
        return errors;
    }
    if replaced.is_none() {
        metadata_given(manifest, definition, &mut errors);
    }
    group(definition, &mut errors);
    let spec = Path::Root("spec");
    match &definition.scope {
        Scope::Cluster | Scope::Namespaced => {}
        Scope::Other(text) if text.is_empty() => errors.push(FieldError::required("spec.scope", "")),
        Scope::Other(text) => {
            errors.push(FieldError::not_supported("spec.scope", text.as_str(), ["Cluster", "Namespaced"]));
        }
    }
    let checked = versions::Checked::new(manifest, definition, replaced, patterns);
    checked.schemas_given(&spec, &mut errors);
    if definition.preserve_unknown_fields && replaced::has_defaults(definition) {
        let detail = "must be false in order to use defaults in the schema";
        errors.push(FieldError::invalid("spec.preserveUnknownFields", true, detail));
    }
    checked.each(&spec, &mut errors);
    names_given(&definition.names, &mut errors);
    names_valid(&definition.names, &mut errors);
    checked.shared(&spec, &mut errors);
    if let Some(conversion) = &definition.conversion {
        if conversion.strategy != "None" && definition.preserve_unknown_fields {
            let detail = "must be None if spec.preserveUnknownFields is true";
            let shown = BadValue::marshalled(&conversion.strategy);
            errors.push(FieldError::invalid("spec.conversion.strategy", shown, detail));
        }
        conversion::validate(conversion, &checked.demands, &spec.child("conversion"), &mut errors);
    }
    if let Some(replaced) = replaced {
        immutable(definition, replaced, &mut errors);
    }
    stored_versions(definition, replaced, &mut errors);
    if replaced.is_none_or(|replaced| replaced.stated_approval() != definition.stated_approval()) {
        api_approval(definition, &mut errors);
    }
    if definition.preserve_unknown_fields && checked.demands.pruning {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                      spec.versions[*].schema instead";
        errors.push(FieldError::invalid("spec.preserveUnknownFields", true, detail));
    }
    errors
}

fn metadata_given(manifest: &Value, definition: &Definition, errors: &mut FieldErrors) {
    let fields = manifest.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
    let prefix = fields.get("generateName").and_then(Value::as_str).unwrap_or_default();
    if !prefix.is_empty() {
        named(
            "metadata.generateName",
            prefix,
            NameRule::Subdomain.problems(prefix, true),
            definition,
            errors,
        );
    }
    if !definition.name.is_empty() {
        let name = definition.name.as_str();
        named("metadata.name", name, names::dns1123_subdomain(name), definition, errors);
    } else if prefix.is_empty() {
        errors.push(FieldError::required("metadata.name", "name or generateName is required"));
    }
    metadata::validate_object_meta(&fields, false, &Path::Root("metadata"), errors);
}

/// A name, or the beginning of one, which has to be the whole name all the same.
fn named(at: &str, name: &str, mut problems: Vec<String>, definition: &Definition, errors: &mut FieldErrors) {
    if name != definition.group_resource() {
        problems.push("must be spec.names.plural+\".\"+spec.group".to_owned());
    }
    errors.extend(problems.into_iter().map(|problem| FieldError::invalid(at, name, problem)));
}

fn group(definition: &Definition, errors: &mut FieldErrors) {
    let at = "spec.group";
    let group = definition.group.as_str();
    let problems = names::dns1123_subdomain(group);
    if group.is_empty() {
        errors.push(FieldError::required(at, ""));
    } else if !problems.is_empty() {
        errors.push(FieldError::invalid(at, group, problems.join(",")));
    } else if !group.contains('.') {
        errors.push(FieldError::invalid(at, group, "should be a domain with at least one dot"));
    }
}

fn names_given(names: &Names, errors: &mut FieldErrors) {
    let given = [
        ("plural", &names.plural),
        ("singular", &names.singular),
        ("kind", &names.kind),
        ("listKind", &names.list_kind),
    ];
    for (key, _) in given.into_iter().filter(|(_, name)| name.is_empty()) {
        errors.push(FieldError::required(format!("spec.names.{key}"), ""));
    }
}

fn names_valid(names: &Names, errors: &mut FieldErrors) {
    for (key, name) in [("plural", &names.plural), ("singular", &names.singular)] {
        if !name.is_empty() {
            label(name, &format!("spec.names.{key}"), errors);
        }
    }
    for (key, name) in [("kind", &names.kind), ("listKind", &names.list_kind)] {
        let problems = names::dns1035_label(&name.to_lowercase());
        if !name.is_empty() && !problems.is_empty() {
            let detail = format!("may have mixed case, but should otherwise match: {}", problems.join(","));
            errors.push(FieldError::invalid(format!("spec.names.{key}"), name.as_str(), detail));
        }
    }
    let labels = |key: &str, list: &[String], errors: &mut FieldErrors| {
        for (i, name) in list.iter().enumerate() {
            label(name, &format!("spec.names.{key}[{i}]"), errors);
        }
    };
    labels("shortNames", &names.short_names, errors);
    if !names.kind.is_empty() && names.kind == names.list_kind {
        let detail = "kind and listKind may not be the same";
        errors.push(FieldError::invalid("spec.names.listKind", names.list_kind.as_str(), detail));
    }
    labels("categories", &names.categories, errors);
}

fn label(name: &str, at: &str, errors: &mut FieldErrors) {
    let problems = names::dns1035_label(name);
    if !problems.is_empty() {
        errors.push(FieldError::invalid(at, name, problems.join(",")));
    }
}

/// What objects in the store depend on.
fn immutable(definition: &Definition, replaced: &Definition, errors: &mut FieldErrors) {
    let (new, old) = (definition, replaced);
    let fields = [
        ("spec.scope", new.scope.as_str(), old.scope.as_str(), old.established),
        ("spec.names.kind", new.names.kind.as_str(), old.names.kind.as_str(), old.established),
        ("spec.group", new.group.as_str(), old.group.as_str(), true),
        ("spec.names.plural", new.names.plural.as_str(), old.names.plural.as_str(), true),
    ];
    for (at, new, _, _) in fields.into_iter().filter(|(_, new, old, fixed)| *fixed && new != old) {
        errors.push(FieldError::invalid(at, new, "field is immutable"));
    }
}

/// Every version that objects may be stored in is still there. The server adds the first storage version itself.
fn stored_versions(definition: &Definition, replaced: Option<&Definition>, errors: &mut FieldErrors) {
    let at = "status.storedVersions";
    let first = definition.versions.iter().find(|version| version.storage).map(|version| &version.name);
    let mut stored = replaced.map_or_else(Vec::new, |replaced| replaced.stored_versions.clone());
    if let Some(first) = first.filter(|first| !stored.contains(first)) {
        stored.push(first.clone());
    }
    if stored.is_empty() {
        let null = BadValue::Json(Value::Null);
        errors.push(FieldError::invalid(at, null, "must have at least one stored version"));
        return;
    }
    // A stored version answers for one version of its name.
    let mut unanswered = stored.clone();
    let missing = definition.versions.iter().filter(|version| {
        let answer = unanswered.iter().position(|stored| *stored == version.name);
        let answer = answer.map(|at| unanswered.swap_remove(at));
        version.storage && answer.is_none()
    });
    for Version { name: version, .. } in missing {
        let shown = BadValue::Json(serde_json::json!(stored));
        errors.push(FieldError::invalid(at, shown, format!("must have the storage version {version}")));
    }
    for (i, gone) in stored.iter().enumerate().filter(|(_, name)| definition.version(name).is_none()) {
        let detail = format!(
            "missing from spec.versions; {gone} was previously a storage version, and must remain in spec.versions \
             until a storage migration ensures no data remains persisted in {gone} and removes {gone} from \
             status.storedVersions"
        );
        errors.push(FieldError::invalid(format!("{at}[{i}]"), gone.as_str(), detail));
    }
}

/// Groups of the Kubernetes project require a link to the API review, or a note that there was none.
fn api_approval(definition: &Definition, errors: &mut FieldErrors) {
    let at = format!("metadata.annotations[{API_APPROVED}]");
    match definition.approval() {
        None | Some(Approval::Given | Approval::Bypassed) => {}
        Some(Approval::Missing) => errors.push(FieldError::required(at, definition.approval_text())),
        Some(Approval::Invalid) => {
            let annotation = definition.api_approved.as_deref().unwrap_or_default();
            errors.push(FieldError::invalid(at, annotation, definition.approval_text()));
        }
    }
}
