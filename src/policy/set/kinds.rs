//! Lists the kinds that configure decisions, with the versions in which they are read, and suggests the intended kind for a misspelt
//! one. A policy under a misspelt kind has no effect, and would silently admit what it forbids.

use admit_apimachinery::suggest::{did_you_mean, nearest};
use serde_json::Value;

use super::LoadErrorKind;
use crate::exception;
use crate::request::GroupVersionKind;
use crate::server_config;

const ADMISSION: &str = "admissionregistration.k8s.io";
const DEFINITIONS: &str = "apiextensions.k8s.io";

/// Group, kind, and supported versions, the first of which is suggested for an unsupported one.
const READ: [(&str, &str, &[&str]); 13] = [
    (ADMISSION, "ValidatingAdmissionPolicy", &["v1", "v1beta1"]),
    (ADMISSION, "ValidatingAdmissionPolicyBinding", &["v1", "v1beta1"]),
    (ADMISSION, "ValidatingWebhookConfiguration", &["v1"]),
    (ADMISSION, "MutatingWebhookConfiguration", &["v1"]),
    (ADMISSION, "MutatingAdmissionPolicy", &["v1", "v1beta1"]),
    (ADMISSION, "MutatingAdmissionPolicyBinding", &["v1", "v1beta1"]),
    (DEFINITIONS, "CustomResourceDefinition", &["v1"]),
    ("", "Namespace", &["v1"]),
    (exception::GROUP, exception::KIND, &["v1"]),
    (exception::STORED_GROUP, exception::KIND, &["v1"]),
    (exception::STORED_GROUP, exception::CLUSTER_KIND, &["v1"]),
    (server_config::GROUP, server_config::AUTHENTICATION, &server_config::VERSIONS),
    (server_config::GROUP, server_config::AUTHORIZATION, &server_config::VERSIONS),
];

/// Returns why a manifest that is meant to configure admission has no effect on any server: its kind is a misspelling of a
/// configuration kind, or the group or version is wrong. None for every other manifest.
///
/// ```
/// use admit_policy::apply::misnamed;
/// use serde_json::json;
///
/// let why = |api_version: &str, kind: &str| {
///     misnamed(&json!({"apiVersion": api_version, "kind": kind})).map(|error| error.to_string())
/// };
/// assert_eq!(why("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"), None);
/// assert_eq!(why("example.com/v1", "Widget"), None);
/// assert_eq!(
///     why("admissionregistration.k8s.io/v1", "ValidatingAdmisionPolicy").unwrap(),
///     "admissionregistration.k8s.io ValidatingAdmisionPolicy: there is no such kind; \
///      did you mean `ValidatingAdmissionPolicy`?"
/// );
/// ```
#[must_use]
pub fn misnamed(manifest: &Value) -> Option<LoadErrorKind> {
    let text = |key: &str| manifest.get(key).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    if api_version.is_empty() || kind.is_empty() {
        return is_meant(api_version, kind).then_some(LoadErrorKind::NoKind);
    }
    refused(&GroupVersionKind::from_api_version(api_version, kind))
}

/// Whether half of a name, where the other is not written, is that of configuration.
fn is_meant(api_version: &str, kind: &str) -> bool {
    let (group, _) = api_version.split_once('/').unwrap_or_default();
    let is_kind = |(of, named, _): &(&str, &str, _)| !of.is_empty() && *named == kind;
    group_meant(group).is_some() || READ.iter().any(is_kind)
}

/// As [`misnamed`], for a given kind.
pub(super) fn refused(kind: &GroupVersionKind) -> Option<LoadErrorKind> {
    let GroupVersionKind { group, version, kind: name } = kind;
    let written = || format!("{} {name}", kind.api_version());
    if let Some((.., read)) = READ.iter().find(|(of, named, _)| of == group && named == name) {
        let names = match read.len() {
            1 => "v1",
            2 => "v1 and v1beta1",
            _ => "v1, v1beta1 and v1alpha1",
        };
        let is_read = read.contains(&version.as_str());
        return (!is_read).then(|| LoadErrorKind::Version(written(), names));
    }
    let no_such = |written: String, meant: Option<&str>| {
        let meant = meant.map(|meant| format!("; {}", did_you_mean(Some(meant)))).unwrap_or_default();
        Some(LoadErrorKind::NoSuchKind(written, meant))
    };
    let home = READ.iter().find(|(_, named, _)| named == name).map(|(of, _, read)| in_version(of, read));
    let home = home.as_deref();
    match group_meant(group) {
        Some(of) if of == group => {
            let of_group = READ.iter().filter(|(of, ..)| of == group).map(|(_, named, _)| *named);
            no_such(format!("{group} {name}"), home.or_else(|| nearest(name, of_group)))
        }
        Some(of) => no_such(written(), Some(&format!("{of}/v1"))),
        // Groups of Kubernetes itself, in which nobody else defines such a kind.
        None if !group.contains('.') => {
            let near = nearest(name, READ.iter().map(|(_, named, _)| *named));
            if home.is_some() || near.is_some() { no_such(written(), home.or(near)) } else { None }
        }
        None if (group.ends_with(".k8s.io") || group.ends_with("admit.dev")) && home.is_some() => {
            no_such(written(), home)
        }
        None => None,
    }
}

fn in_version(group: &str, versions: &[&str]) -> String {
    let version = versions.first().copied().unwrap_or_default();
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// The group of configuration that a name is, or is a slip of.
fn group_meant(group: &str) -> Option<&'static str> {
    let (first, rest) = group.split_once('.').unwrap_or((group, ""));
    if group == exception::STORED_GROUP {
        return Some(exception::STORED_GROUP);
    }
    // A group that Kubernetes once had.
    if group == "extensions" {
        return None;
    }
    let is_rest = matches!(rest, "" | "k8s.io" | "k8s" | "io" | "kubernetes.io") || near(rest, "k8s.io");
    [ADMISSION, DEFINITIONS].into_iter().find(|of| {
        let (name, _) = of.split_once('.').unwrap_or_default();
        is_rest && (first == name || near(first, name))
    })
}

fn near(word: &str, known: &str) -> bool {
    nearest(word, [known]).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(api_version: &str, kind: &str) -> Option<String> {
        misnamed(&serde_json::json!({"apiVersion": api_version, "kind": kind})).map(|kind| kind.to_string())
    }

    #[test]
    fn slips_of_configuration_are_refused_with_what_was_meant() {
        for (api_version, kind, meant) in [
            ("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicys", "`MutatingAdmissionPolicy`"),
            ("admissionregistration.k8s.io/v1", "validatingadmissionpolicybinding", "PolicyBinding`"),
            ("admissionregistration.k8s.io/v1", "CustomResourceDefinition", "`apiextensions.k8s.io/v1`"),
            (
                "admissionregistration.k8s/v1",
                "ValidatingAdmissionPolicy",
                "`admissionregistration.k8s.io/v1`",
            ),
            (
                "admissionregistration.k8s.io.v1",
                "ValidatingAdmissionPolicy",
                "admissionregistration.k8s.io/v1",
            ),
            (
                "admisionregistration.k8s.io/v1",
                "ValidatingAdmisionPolicy",
                "`admissionregistration.k8s.io/v1`",
            ),
            ("v1", "ValidatingAdmissionPolicy", "`admissionregistration.k8s.io/v1`"),
            ("policy/v1", "MutatingAdmissionPolicyBinding", "`admissionregistration.k8s.io/v1`"),
            ("apps/v1", "ValidatingAdmisionPolicy", "`ValidatingAdmissionPolicy`"),
            ("rbac.authorization.k8s.io/v1", "CustomResourceDefinition", "`apiextensions.k8s.io/v1`"),
            ("apiextensions.k8s.io/v1", "CustomResourceDefintion", "`CustomResourceDefinition`"),
            ("apiextensions/v1", "CustomResourceDefinition", "`apiextensions.k8s.io/v1`"),
            ("v1", "Namspace", "`Namespace`"),
        ] {
            let told = told(api_version, kind).unwrap_or_default();
            assert!(told.contains("there is no such kind; did you mean"), "{api_version} {kind}: {told}");
            assert!(told.contains(meant), "{api_version} {kind}: {told}");
        }
        assert_eq!(
            told("admissionregistration.k8s.io/v1", "Odd").as_deref(),
            Some("admissionregistration.k8s.io Odd: there is no such kind")
        );
    }

    #[test]
    fn versions_that_are_not_read_are_refused() {
        for (api_version, kind) in [
            ("admissionregistration.k8s.io/v2", "ValidatingAdmissionPolicy"),
            ("admissionregistration.k8s.io/v1alpha1", "MutatingAdmissionPolicy"),
            ("admissionregistration.k8s.io/v1beta1", "ValidatingWebhookConfiguration"),
            ("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition"),
            ("v2", "Namespace"),
        ] {
            let told = told(api_version, kind).unwrap_or_default();
            assert!(told.contains("this version is not read, only v1"), "{api_version} {kind}: {told}");
        }
    }

    #[test]
    fn half_a_name_of_configuration_is_no_other_manifest() {
        assert_eq!(told("", "ValidatingAdmissionPolicy"), Some(LoadErrorKind::NoKind.to_string()));
        assert_eq!(told("apiextensions.k8s.io/v1", ""), Some(LoadErrorKind::NoKind.to_string()));
        assert_eq!(told("", "Deployment"), None);
        assert_eq!(told("", ""), None);
    }

    #[test]
    fn what_others_define_is_none_of_ours() {
        for (api_version, kind) in [
            ("example.com/v1", "ValidatingAdmissionPolicy"),
            ("admissionregistration.example.com/v1", "ValidatingAdmissionPolicy"),
            ("policies.kubewarden.io/v1", "ClusterAdmissionPolicy"),
            ("policy.networking.k8s.io/v1alpha1", "AdminNetworkPolicy"),
            ("apiregistration.k8s.io/v1", "APIService"),
            ("extensions/v1beta1", "Ingress"),
            ("apps/v1", "Deployment"),
            ("v1", "Namespace"),
            ("v1", "ServiceAccount"),
        ] {
            assert_eq!(told(api_version, kind), None, "{api_version} {kind}");
        }
    }
}
