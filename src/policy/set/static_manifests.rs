//! Validates manifests that an API server reads from a folder (`staticManifestsDir`), with its messages.
//!
//! Their names end with `.static.k8s.io`, which no other object may have. Each admission plugin has a folder of its own: the first such
//! name in a folder shows by its kind which plugin reads the folder. Duplicate names are reported across all documents.
//!
//! Read from pkg/admission/plugin/manifest and the loaders of policies and webhooks of k8s.io/apiserver 1.36.

use std::collections::{BTreeMap, HashSet};

use admit_apimachinery::go::quote::quote;
use admit_apimachinery::pointer;
use serde_json::Value;

use crate::read::manifest::{Document, LoadError};

/// The end of the names.
const SUFFIX: &str = ".static.k8s.io";
const GROUP: &str = "admissionregistration.k8s.io/";

/// What reads a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Plugin {
    ValidatingPolicies,
    MutatingPolicies,
    ValidatingWebhooks,
    MutatingWebhooks,
}

/// What is wrong with the static manifests among documents.
pub(super) fn problems(documents: &[&Document]) -> Vec<LoadError> {
    let mut folders: BTreeMap<&str, Vec<&Document>> = BTreeMap::new();
    for document in documents {
        let folder = document.file.rsplit_once('/').map_or("", |(folder, _)| folder);
        folders.entry(folder).or_default().push(document);
    }
    folders.values().flat_map(|documents| of_folder(documents)).collect()
}

fn of_folder(documents: &[&Document]) -> Vec<LoadError> {
    let read: Vec<(&Document, Option<Plugin>)> =
        documents.iter().map(|document| (*document, plugin_of(document))).collect();
    let is_static = |(document, plugin): &&(&Document, Option<Plugin>)| {
        plugin.is_some() && text(document, "/metadata/name").ends_with(SUFFIX)
    };
    let Some((_, Some(first))) = read.iter().find(is_static) else { return Vec::new() };
    let mut errors = Vec::new();
    let mut policies = HashSet::new();
    for (document, plugin) in &read {
        match plugin {
            Some(plugin) if plugin == first => {}
            Some(_) => {
                errors.push(unsupported(document));
                continue;
            }
            // Objects of other kinds are reported as unused by any policy.
            None => continue,
        }
        if let Some(error) = restricted(document) {
            errors.push(error);
        } else if kind(document).ends_with("Policy") {
            policies.insert(text(document, "/metadata/name"));
        }
    }
    let of_plugin = read.iter().filter(|(_, plugin)| *plugin == Some(*first));
    let bindings = of_plugin.filter(|(document, _)| kind(document).ends_with("Binding"));
    let (mut named, has_errors) = (Vec::new(), !errors.is_empty());
    for (document, _) in bindings {
        let policy = text(document, "/spec/policyName");
        if !policies.contains(policy) {
            let why = format!(
                "binding {} references policy {} which does not exist in the manifest directory",
                quote(text(document, "/metadata/name")),
                quote(policy)
            );
            named.push(at(document, "spec.policyName", why));
        }
    }
    // The server reports only the first error, and a binding is not to blame if its policy was rejected.
    if !has_errors {
        errors.extend(named);
    }
    errors
}

fn kind(document: &Document) -> &str {
    text(document, "/kind")
}

fn text<'d>(document: &'d Document, pointer: &str) -> &'d str {
    pointer::text(&document.value, pointer)
}

fn plugin_of(document: &Document) -> Option<Plugin> {
    if !text(document, "/apiVersion").starts_with(GROUP) {
        return None;
    }
    match kind(document) {
        "ValidatingAdmissionPolicy" | "ValidatingAdmissionPolicyBinding" => Some(Plugin::ValidatingPolicies),
        "MutatingAdmissionPolicy" | "MutatingAdmissionPolicyBinding" => Some(Plugin::MutatingPolicies),
        "ValidatingWebhookConfiguration" => Some(Plugin::ValidatingWebhooks),
        "MutatingWebhookConfiguration" => Some(Plugin::MutatingWebhooks),
        _ => None,
    }
}

/// A plugin's folder must not contain objects of another plugin.
fn unsupported(document: &Document) -> LoadError {
    let why = format!(
        "error loading {}: unsupported resource type *v1.{}: a folder of static manifests holds those of one plugin",
        document.file,
        kind(document)
    );
    at(document, "kind", why)
}

/// The first that is wrong with a manifest.
fn restricted(document: &Document) -> Option<LoadError> {
    let name = text(document, "/metadata/name");
    if name.is_empty() {
        let why = format!("resource in file {} must have a name", quote(&document.file));
        return Some(at(document, "metadata.name", why));
    }
    if !name.ends_with(SUFFIX) {
        let (name, file) = (quote(name), quote(&document.file));
        let why = format!("{name} in file {file} must have a name ending with {}", quote(SUFFIX));
        return Some(at(document, "metadata.name", why));
    }
    match plugin_of(document)? {
        Plugin::ValidatingPolicies | Plugin::MutatingPolicies if kind(document).ends_with("Binding") => {
            binding(document, name)
        }
        Plugin::ValidatingPolicies | Plugin::MutatingPolicies => is_set(&document.value, "/spec/paramKind")
            .then(|| {
                let why = format!(
                    "{} {}: spec.paramKind is not supported for static manifests",
                    kind(document),
                    quote(name)
                );
                at(document, "spec.paramKind", why)
            }),
        Plugin::ValidatingWebhooks | Plugin::MutatingWebhooks => client(document, name),
    }
}

fn binding(document: &Document, name: &str) -> Option<LoadError> {
    let (name, policy) = (quote(name), text(document, "/spec/policyName"));
    let (field, why) = if policy.is_empty() {
        ("spec.policyName", format!("binding {name} must reference a policy (spec.policyName)"))
    } else if !policy.ends_with(SUFFIX) {
        let (policy, end) = (quote(policy), quote(SUFFIX));
        ("spec.policyName", format!("binding {name}: spec.policyName {policy} must end with {end}"))
    } else if is_set(&document.value, "/spec/paramRef") {
        ("spec.paramRef", format!("binding {name}: spec.paramRef is not supported for static manifests"))
    } else {
        return None;
    };
    Some(at(document, field, why))
}

/// Webhooks are reached at an address: a server that starts knows of no services.
fn client(document: &Document, name: &str) -> Option<LoadError> {
    let webhooks = document.value.pointer("/webhooks").and_then(Value::as_array)?;
    webhooks.iter().enumerate().find_map(|(index, webhook)| {
        let of_webhook = webhook.get("name").and_then(Value::as_str).unwrap_or_default();
        let place =
            format!("webhook {} in {} (file {})", quote(of_webhook), quote(name), quote(&document.file));
        let config = format!("webhooks[{index}].clientConfig");
        if is_set(webhook, "/clientConfig/service") {
            let why = format!(
                "{place}: clientConfig.service is not supported for static manifests; use clientConfig.url instead"
            );
            return Some(at(document, &format!("{config}.service"), why));
        }
        let url = pointer::text(webhook, "/clientConfig/url");
        let why = || format!("{place}: clientConfig.url is required for static manifests");
        url.is_empty().then(|| at(document, &config, why()))
    })
}

fn is_set(value: &Value, pointer: &str) -> bool {
    value.pointer(pointer).is_some_and(|value| !value.is_null())
}

fn at(document: &Document, field: &str, message: String) -> LoadError {
    LoadError { field: field.to_owned(), position: document.position(field), ..document.mistake(message) }
}
