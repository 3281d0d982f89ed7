//! Decides which requests a policy or a binding matches.
//!
//! Input: MatchResources parsed once into [`MatchResources`], and a request. Output: the resource and kind in which
//! the policy sees the request, or that it does not match. An error of a selector counts only when everything else
//! matches, and is then a failure of the policy, never "no match".

mod autoscaler;
pub mod builtin;
mod decode;
mod event;
mod miss;
mod rules;
mod selector;

use std::borrow::Cow;

use admit_apimachinery::selector::LabelSelector;
use thiserror::Error;

pub(crate) use self::decode::{LabelValues, label_selector, match_policy, rules};
pub use self::miss::Miss;
pub use self::rules::{Rule, ScopeRule};
use self::selector::selects;

use crate::deadline::Interrupted;
use crate::read::object::{Object, node};
use crate::request::host::{Host, HostError};
use crate::request::{GroupVersionKind, GroupVersionResource, Operation, Request};

/// The compiled form of `matchConstraints` and `matchResources`.
///
/// ```
/// use admit_policy::{Documents, Policy, Request};
/// use serde_json::json;
///
/// let policy = Policy::compile(&json!({
///     "apiVersion": "admissionregistration.k8s.io/v1",
///     "kind": "ValidatingAdmissionPolicy",
///     "metadata": {"name": "a"},
///     "spec": {
///         "matchConstraints": {"resourceRules": [
///             {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"]},
///         ]},
///         "validations": [{"expression": "true"}],
///     },
/// }))
/// .unwrap();
/// let constraints = &policy.constraints;
/// assert!(constraints.speak_of("apps", "deployments") && !constraints.speak_of("", "pods"));
/// assert!(constraints.speak_of_group("apps") && constraints.name_version("apps", "v1"));
///
/// let mut request = json!({
///     "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
///     "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
///     "operation": "CREATE",
///     "namespace": "shop",
///     "object": {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}},
/// });
/// let host = Documents::default();
/// let created = Request::from_value(&request).unwrap();
/// assert!(constraints.matches(&created, &host).unwrap().is_some_and(|matched| matched.kind.version == "v1"));
/// request["operation"] = "UPDATE".into();
/// let updated = Request::from_value(&request).unwrap();
/// let misses = constraints.misses(&updated, &host, "spec.matchConstraints");
/// assert_eq!(misses[0].field, "spec.matchConstraints.resourceRules[0]");
/// ```
#[derive(Clone, Debug, Default)]
pub struct MatchResources {
    /// Empty means every resource.
    pub rules: Vec<Rule>,
    pub excludes: Vec<Rule>,
    pub match_policy: MatchPolicy,
    pub namespace_selector: LabelSelector,
    pub object_selector: LabelSelector,
}

/// Whether a rule that names one version of a resource also matches its other versions.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum MatchPolicy {
    Exact,
    #[default]
    Equivalent,
}

/// The form in which a matching policy sees the request.
///
/// Nearly always the request's own, which is then not copied: a set may have many policies for one request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Matched<'r> {
    pub resource: Cow<'r, GroupVersionResource>,
    pub kind: Cow<'r, GroupVersionKind>,
}

/// Matching could not be decided.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum MatchError {
    #[error("namespaces \"{0}\" not found")]
    NamespaceNotFound(String),
    #[error("Internal error occurred: {0}")]
    Host(HostError),
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

impl<'r> Matched<'r> {
    /// Takes the request in its original form, without conversion.
    pub(crate) fn as_it_is(request: &'r Request<'_>) -> Self {
        Self { resource: Cow::Borrowed(&request.resource), kind: Cow::Borrowed(&request.kind) }
    }

    /// Whether that is this form, which nothing has to be converted to. What is of another version is a resource of its
    /// own, though not always of another kind: a Scale is the same in all of them.
    pub(crate) fn is_as_it_is(&self) -> bool {
        matches!((&self.resource, &self.kind), (Cow::Borrowed(_), Cow::Borrowed(_)))
    }
}

impl MatchResources {
    /// Decides whether `request` matches. `Ok(None)` is a clear no.
    pub fn matches<'r>(
        &self,
        request: &'r Request<'_>,
        host: &dyn Host,
    ) -> Result<Option<Matched<'r>>, MatchError> {
        let namespace = self.namespace_matches(request, host);
        if matches!(namespace, Ok(false)) || !self.object_matches(request) {
            return Ok(None);
        }
        if self.any_rule(&self.excludes, request, host).is_some() {
            return Ok(None);
        }
        let matched = if self.rules.is_empty() {
            Some(Matched::as_it_is(request))
        } else {
            self.any_rule(&self.rules, request, host)
        };
        let Some(matched) = matched else { return Ok(None) };
        namespace.map(|_| Some(matched))
    }

    /// Whether some request for objects of the resource, in whatever version, may match.
    #[must_use]
    pub fn speak_of(&self, group: &str, resource: &str) -> bool {
        let speaks = |rule: &Rule| rule.speaks_of_group(group) && rule.resource_matches(resource, "");
        self.rules.is_empty() || self.rules.iter().any(speaks)
    }

    /// Whether some request for objects of the group may match.
    #[must_use]
    pub fn speak_of_group(&self, group: &str) -> bool {
        self.rules.is_empty() || self.rules.iter().any(|rule| rule.speaks_of_group(group))
    }

    /// Whether a rule names that version of the group.
    #[must_use]
    pub fn name_version(&self, group: &str, version: &str) -> bool {
        let names =
            |rule: &Rule| rule.speaks_of_group(group) && rule.versions.iter().any(|one| one == version);
        self.rules.iter().any(names)
    }

    /// Whether a request that one of the rules matches needs no further check.
    pub(crate) fn ask_for_rules_alone(&self) -> bool {
        self.excludes.is_empty() && self.namespace_selector.is_empty() && self.object_selector.is_empty()
    }

    fn namespace_matches(&self, request: &Request<'_>, host: &dyn Host) -> Result<bool, MatchError> {
        // Cluster-scoped objects other than Namespaces have no namespace to be exempted by.
        if request.namespace.is_empty() && request.resource.resource != "namespaces" {
            return Ok(true);
        }
        if self.namespace_selector.is_empty() {
            return Ok(true);
        }
        // A Namespace being written carries its new labels itself; one being deleted has those that are stored.
        let carries_labels = request.resource.resource == "namespaces"
            && request.subresource.is_empty()
            && matches!(request.operation, Operation::Create | Operation::Update);
        if carries_labels {
            return Ok(selects(&self.namespace_selector, node(request.object.as_ref())));
        }
        match host.namespace(&request.namespace).map_err(MatchError::Host)? {
            Some(namespace) => Ok(self.namespace_selector.matches_labels_of(Some(&namespace))),
            None => Err(MatchError::NamespaceNotFound(request.namespace.clone())),
        }
    }

    /// Either side of an update may match: moving an object out of a selector's sight is itself in sight. What has no
    /// metadata, such as the options of an exec, is never selected, whatever is selected.
    fn object_matches(&self, request: &Request<'_>) -> bool {
        let selected = |object: &Option<Object<'_>>| {
            let object = object.as_ref().map(Object::node).filter(|object| object.get("metadata").is_some());
            object.is_some_and(|object| selects(&self.object_selector, object))
        };
        self.object_selector.is_empty() || selected(&request.object) || selected(&request.old_object)
    }

    fn any_rule<'r>(&self, rules: &[Rule], request: &'r Request<'_>, host: &dyn Host) -> Option<Matched<'r>> {
        if rules.iter().any(|rule| rule.matches(request, &request.resource) && rule.names(&request.name)) {
            return Some(Matched::as_it_is(request));
        }
        if rules.is_empty() || self.match_policy == MatchPolicy::Exact {
            return None;
        }
        let equivalents = host.equivalents(&request.resource, &request.subresource);
        rules.iter().find_map(|rule| {
            let equivalent = equivalents
                .iter()
                .filter(|(resource, _)| *resource != request.resource)
                .find(|(resource, _)| rule.matches(request, resource) && rule.names(&request.name));
            equivalent.map(|(resource, kind)| Matched {
                resource: Cow::Owned(resource.clone()),
                kind: Cow::Owned(kind.clone()),
            })
        })
    }
}

/// Configuration of admission itself is never subject to policies: a bad policy must stay removable.
///
/// ```
/// use admit_policy::GroupVersionKind;
/// use admit_policy::matching::is_exempt;
///
/// let group = "admissionregistration.k8s.io";
/// assert!(is_exempt(&GroupVersionKind::new(group, "v1", "ValidatingAdmissionPolicy")));
/// assert!(!is_exempt(&GroupVersionKind::new("", "v1", "Pod")));
/// ```
pub fn is_exempt(kind: &GroupVersionKind) -> bool {
    kind.group == EXEMPT_GROUP && EXEMPT.iter().any(|(exempt, _)| *exempt == kind.kind)
}

/// The group of all that is exempt.
pub(crate) const EXEMPT_GROUP: &str = "admissionregistration.k8s.io";

/// Kinds that are exempt, and their resources.
pub(crate) const EXEMPT: [(&str, &str); 6] = [
    ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
    ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
    ("ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
    ("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
    ("MutatingAdmissionPolicy", "mutatingadmissionpolicies"),
    ("MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings"),
];
