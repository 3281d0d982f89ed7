//! Defines how exceptions are looked up: which requests one covers, and which exist for a policy. [`crate::exception`] parses and
//! applies them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::SystemTime;

use jiff::Timestamp;

use crate::request::{Operation, Request};

/// Requests that policies admit until a date, although they deny them.
///
/// ```
/// use std::time::{Duration, SystemTime};
///
/// use admit_policy::{Host, PolicyException, PolicySet, Request, manifest};
/// use serde_json::json;
///
/// let text = "
/// apiVersion: admissionregistration.k8s.io/v1
/// kind: ValidatingAdmissionPolicy
/// metadata: {name: few}
/// spec:
///   matchConstraints:
///     resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}]
///   validations: [{expression: object.spec.replicas <= 5, message: too many}]
/// ---
/// apiVersion: admissionregistration.k8s.io/v1
/// kind: ValidatingAdmissionPolicyBinding
/// metadata: {name: few}
/// spec: {policyName: few, validationActions: [Deny]}
/// ---
/// apiVersion: admit/v1
/// kind: PolicyException
/// metadata: {name: sale}
/// spec:
///   policies: [few]
///   namespaces: [shop]
///   names: ['web-*']
///   until: '1970-01-02'
///   reason: the winter sale
/// ";
/// let request = json!({
///     "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
///     "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
///     "operation": "CREATE",
///     "name": "web-1",
///     "namespace": "shop",
///     "object": {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web-1"}, "spec": {"replicas": 9}},
/// });
/// let request = Request::from_value(&request)?;
/// let set = PolicySet::load(&manifest::read("policy.yaml", text).unwrap()).unwrap();
/// let exception = set.exceptions().next().unwrap();
/// assert_eq!((exception.name(), exception.reason()), ("sale", "the winter sale"));
/// assert_eq!((exception.policies().count(), exception.until()), (1, "1970-01-03T00:00:00Z"));
/// assert!(!set.decide(&request, set.documents()).allowed(), "nobody says what time it is");
///
/// let first_day = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000);
/// let set = set.at(first_day);
/// assert!(!set.exceptions().any(|exception| exception.has_ended(first_day)));
/// let decision = set.decide(&request, set.documents());
/// assert!(decision.allowed());
/// let excepted = decision.outcomes[0].excepted.as_ref().unwrap();
/// assert_eq!((&*excepted.name, &*excepted.until, excepted.in_force), ("sale", "1970-01-03T00:00:00Z", true));
///
/// let mut later = set.documents().clone();
/// later.set_now(SystemTime::UNIX_EPOCH + Duration::from_secs(200_000));
/// assert!(later.now() > set.documents().now());
/// let decision = set.decide(&request, &later);
/// assert!(!decision.allowed());
/// assert!(!decision.outcomes[0].excepted.as_ref().unwrap().in_force);
///
/// let more = PolicyException::compile(&json!({
///     "apiVersion": "policies.admit.dev/v1", "kind": "PolicyException", "metadata": {"name": "move", "namespace": "shop"},
///     "spec": {"policies": ["few"], "until": "1970-02-01", "reason": "the shop is being moved"},
/// })).unwrap();
/// assert!(set.excepting([more]).decide(&request, &later).allowed());
/// # Ok::<(), admit_policy::ReviewError>(())
/// ```
#[derive(Clone, Debug)]
pub struct PolicyException {
    /// Its displayed name.
    pub(crate) name: Arc<str>,
    /// The namespace to whose requests it is limited, if it is namespaced.
    pub(crate) home: Option<String>,
    pub(crate) reason: Arc<str>,
    pub(crate) until: Timestamp,
    /// `until` as it is shown.
    pub(crate) shown: Arc<str>,
    pub(crate) policies: BTreeSet<String>,
    /// Patterns of namespaces; empty for all.
    pub(crate) namespaces: Vec<String>,
    pub(crate) names: Vec<String>,
    pub(crate) users: Vec<String>,
    pub(crate) operations: Vec<Operation>,
}

impl PolicyException {
    /// Returns `metadata.name`, after the namespace if it has one: `shop/sale`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the reason of the exception.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Returns when it ends, as in `2027-01-01T00:00:00Z`.
    #[must_use]
    pub fn until(&self) -> &str {
        &self.shown
    }

    /// The policies that it is about, in order of name.
    pub fn policies(&self) -> impl Iterator<Item = &str> {
        self.policies.iter().map(String::as_str)
    }

    /// Whether it is over.
    #[must_use]
    pub fn has_ended(&self, now: SystemTime) -> bool {
        // A time that no calendar has is beyond all dates.
        Timestamp::try_from(now).map_or(true, |now| now >= self.until)
    }

    pub(crate) fn covers(&self, request: &Request<'_>) -> bool {
        let any = |patterns: &[String], text: &str| {
            patterns.is_empty() || patterns.iter().any(|pattern| matches(pattern, text))
        };
        self.home.as_ref().is_none_or(|home| is_inside(request, home))
            && (self.operations.is_empty() || self.operations.contains(&request.operation))
            && any(&self.namespaces, &request.namespace)
            && self.names(request)
            && any(&self.users, &request.user.username)
    }

    /// Whether the request is for an object with one of the names. With `generateName` only the prefix is known, so a pattern must end
    /// with a star to match.
    fn names(&self, request: &Request<'_>) -> bool {
        let Self { names, .. } = self;
        let prefix = request.object.as_ref().and_then(|object| object.metadata("generateName"));
        match prefix.filter(|prefix| request.name.is_empty() && !prefix.is_empty()) {
            _ if names.is_empty() => true,
            Some(prefix) => names.iter().any(|pattern| pattern.ends_with('*') && matches(pattern, prefix)),
            None => names.iter().any(|pattern| matches(pattern, &request.name)),
        }
    }
}

/// Whether the request is for an object in the namespace. A request for a Namespace carries its name, but the Namespace is
/// cluster-scoped: whoever may grant exceptions in a namespace must not control its labels.
fn is_inside(request: &Request<'_>, namespace: &str) -> bool {
    let of_namespaces = request.resource.group.is_empty() && request.resource.resource == "namespaces";
    request.namespace == namespace && !of_namespaces
}

/// Whether `text` matches `pattern`, in which `*` stands for any string. Takes linear time.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        // An empty part matches at once, so two stars are one.
        let Some((_, behind)) = rest.split_once(part) else { return false };
        rest = behind;
    }
    rest.len() >= last.len() && rest.ends_with(last)
}

/// Exceptions, indexed by policy: those of a cluster, which a [`Host`](crate::Host) knows.
///
/// ```
/// use admit_policy::{Exceptions, PolicyException};
/// use serde_json::json;
///
/// let document = |name: &str| json!({
///     "apiVersion": "policies.admit.dev/v1",
///     "kind": "PolicyException",
///     "metadata": {"name": name, "namespace": "shop"},
///     "spec": {"policies": ["few"], "until": "2027-03-31", "reason": "the winter sale"},
/// });
/// let sale = PolicyException::compile(&document("sale")).unwrap();
/// let exceptions: Exceptions = [sale, PolicyException::compile(&document("move")).unwrap()].into_iter().collect();
/// assert_eq!(exceptions.iter().map(PolicyException::name).collect::<Vec<_>>(), ["shop/move", "shop/sale"]);
/// assert_eq!(PolicyException::compile(&json!({"kind": "PolicyException"})).unwrap_err().len(), 4);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Exceptions {
    all: Vec<Arc<PolicyException>>,
    by_policy: HashMap<String, Vec<Arc<PolicyException>>>,
}

impl Exceptions {
    pub(crate) fn add(&mut self, exception: PolicyException) {
        let exception = Arc::new(exception);
        for policy in &exception.policies {
            insert(self.by_policy.entry(policy.clone()).or_default(), &exception);
        }
        insert(&mut self.all, &exception);
    }

    /// All of them, in order of name.
    pub fn iter(&self) -> impl Iterator<Item = &PolicyException> {
        self.all.iter().map(|exception| &**exception)
    }

    pub(crate) fn from(&self, policy: &str) -> impl Iterator<Item = &PolicyException> {
        self.by_policy.get(policy).into_iter().flatten().map(|exception| &**exception)
    }
}

impl FromIterator<PolicyException> for Exceptions {
    fn from_iter<I: IntoIterator<Item = PolicyException>>(exceptions: I) -> Self {
        let mut all = Self::default();
        exceptions.into_iter().for_each(|exception| all.add(exception));
        all
    }
}

fn insert(all: &mut Vec<Arc<PolicyException>>, exception: &Arc<PolicyException>) {
    let place = all.partition_point(|known| known.name <= exception.name);
    all.insert(place, Arc::clone(exception));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text) in [
            ("a", "a"),
            ("*", ""),
            ("a*", "a"),
            ("a*c", "abc"),
            ("*b*", "abc"),
            ("a*b*c", "aXbYbc"),
            ("**", "x"),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in
            [("a", "ab"), ("", "a"), ("a*a", "a"), ("a*c", "acb"), ("*b*", "ac"), ("a*b*b", "ab")]
        {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }
}
