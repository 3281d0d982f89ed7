//! Exceptions: which requests a policy lets through although it denies them, until when and why.
//!
//! An exception takes away the denial alone: the policy is evaluated, and whoever reads a report sees what it would have said.
//! What time it is, is asked of the [`Host`](crate::Host): where that does not know, no exception is in force.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::SystemTime;

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::findings::FieldErrors;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde_json::Value;

use crate::read::decode::{DecodeError, Fields};
use crate::report::decision::Excepted;
use crate::request::{Operation, Request};
use crate::schema::metadata::configuration;

/// Group, version and kind of the documents.
pub(crate) const GROUP: &str = "admit";
pub(crate) const KIND: &str = "PolicyException";
/// Characters of a reason, which stands in every report.
const MAX_REASON: usize = 1_024;

/// Requests that policies let through until a date.
///
/// ```
/// use std::time::{Duration, SystemTime};
///
/// use admit_policy::{Host, PolicySet, Request, manifest};
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
/// # Ok::<(), admit_policy::ReviewError>(())
/// ```
#[derive(Clone, Debug)]
pub struct PolicyException {
    name: Arc<str>,
    reason: Arc<str>,
    until: Timestamp,
    /// `until` as it is shown.
    shown: Arc<str>,
    policies: BTreeSet<String>,
    /// Patterns; none of them for whatever it is.
    namespaces: Vec<String>,
    names: Vec<String>,
    users: Vec<String>,
    operations: Vec<Operation>,
}

impl PolicyException {
    /// Compiles a document, or returns everything that is wrong with it.
    pub(crate) fn compile(document: &Value) -> Result<Self, Vec<FieldError>> {
        let mut errors = FieldErrors::default();
        match Self::decode(document, &mut errors) {
            Ok(Some(exception)) if errors.is_empty() => Ok(exception),
            Ok(_) => Err(errors.into_vec()),
            Err(error) => Err(vec![configuration::wrong_type(&error)]),
        }
    }

    fn decode(document: &Value, errors: &mut FieldErrors) -> Result<Option<Self>, DecodeError> {
        let document = Fields::of(document, "")?;
        let name = configuration::name(&document, errors)?;
        let spec = document.object("spec")?;
        let policies: BTreeSet<String> = spec.strings("policies")?.into_iter().collect();
        if policies.is_empty() {
            errors.push(FieldError::required(spec.path_of("policies"), "name the policies, one by one"));
        }
        let reason = spec.string("reason")?;
        if reason.trim().is_empty() {
            errors.push(FieldError::required(
                spec.path_of("reason"),
                "every report shows why this is let through",
            ));
        }
        if reason.chars().count() > MAX_REASON {
            errors.push(FieldError::too_long(spec.path_of("reason"), 1_024));
        }
        let text = spec.string("until")?;
        let until = end(&text);
        match &until {
            None if text.is_empty() => {
                errors.push(FieldError::required(spec.path_of("until"), "an exception ends"));
            }
            None => errors.push(FieldError::invalid(
                spec.path_of("until"),
                text.as_str(),
                "must be a date (2026-12-31, which it includes, in UTC) or a time (2026-12-31T12:00:00Z)",
            )),
            Some(_) => {}
        }
        let mut operations = Vec::new();
        for (path, operation) in spec.list("operations")? {
            match operation.as_str().and_then(|word| word.parse().ok()) {
                Some(operation) => operations.push(operation),
                None => errors.push(FieldError::not_supported(
                    path,
                    operation.as_str().unwrap_or_default(),
                    ["CONNECT", "CREATE", "DELETE", "UPDATE"],
                )),
            }
        }
        let (namespaces, names, users) =
            (spec.strings("namespaces")?, spec.strings("names")?, spec.strings("users")?);
        Ok(until.map(|until| Self {
            name: name.into(),
            reason: reason.into(),
            until,
            shown: until.to_string().into(),
            policies,
            namespaces,
            names,
            users,
            operations,
        }))
    }

    /// `metadata.name`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Why there is an exception.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// From when on it is in force no more, as in `2027-01-01T00:00:00Z`.
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

    fn covers(&self, policy: &str, request: &Request<'_>) -> bool {
        let any = |patterns: &[String], text: &str| {
            patterns.is_empty() || patterns.iter().any(|pattern| matches(pattern, text))
        };
        self.policies.contains(policy)
            && (self.operations.is_empty() || self.operations.contains(&request.operation))
            && any(&self.namespaces, &request.namespace)
            && any(&self.names, &request.name)
            && any(&self.users, &request.user.username)
    }
}

/// All exceptions of a set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exceptions(Vec<PolicyException>);

impl Exceptions {
    pub(crate) fn add(&mut self, exception: PolicyException) {
        let place = self.0.partition_point(|known| known.name <= exception.name);
        self.0.insert(place, exception);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &PolicyException> {
        self.0.iter()
    }

    /// The first that lets the request pass `policy`; else the last that did so before it ended. `now` is asked where it matters.
    pub(crate) fn covering(
        &self,
        policy: &str,
        request: &Request<'_>,
        now: impl Fn() -> Option<SystemTime>,
    ) -> Option<Excepted> {
        let mut covering = self.0.iter().filter(|exception| exception.covers(policy, request)).peekable();
        covering.peek()?;
        let now = now()?;
        let excepted = |exception: &PolicyException, in_force| Excepted {
            name: Arc::clone(&exception.name),
            reason: Arc::clone(&exception.reason),
            until: Arc::clone(&exception.shown),
            in_force,
        };
        let mut ended: Option<&PolicyException> = None;
        for exception in covering {
            if !exception.has_ended(now) {
                return Some(excepted(exception, true));
            }
            if ended.is_none_or(|known| known.until < exception.until) {
                ended = Some(exception);
            }
        }
        ended.map(|exception| excepted(exception, false))
    }
}

/// The end of a day, or a time.
fn end(text: &str) -> Option<Timestamp> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Some(time);
    }
    // What has hours and no offset is a time of nowhere.
    if text.len() != "2026-12-31".len() {
        return None;
    }
    let next = text.parse::<Date>().ok()?.tomorrow().ok()?;
    next.to_zoned(TimeZone::UTC).ok().map(|day| day.timestamp())
}

/// Whether `text` is as `pattern` says, in which `*` stands for any text. Takes as long as both are.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        // Nothing stands before an empty part, so that two stars are one.
        let Some((_, behind)) = rest.split_once(part) else { return false };
        rest = behind;
    }
    rest.len() >= last.len() && rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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

    #[test]
    fn a_date_is_included() {
        let end = |text| end(text).map(|time| time.to_string());
        assert_eq!(end("2026-12-31").as_deref(), Some("2027-01-01T00:00:00Z"));
        assert_eq!(end("2026-12-31T10:00:00+02:00").as_deref(), Some("2026-12-31T08:00:00Z"));
        for text in ["", "2026-12-32", "2026-12-31T10:00", "tomorrow"] {
            assert_eq!(end(text), None, "{text}");
        }
    }

    #[test]
    fn all_that_is_wrong_is_told() {
        let told = |spec: Value| {
            let document =
                json!({"apiVersion": "admit/v1", "kind": KIND, "metadata": {"name": "a"}, "spec": spec});
            let errors = PolicyException::compile(&document).err().unwrap_or_default();
            errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(told(json!({"policies": ["p"], "reason": "r", "until": "2026-12-31"})), "");
        let all = told(json!({"reason": " ", "until": "soon", "operations": ["WATCH"]}));
        for field in [
            "spec.policies: Required",
            "spec.reason: Required",
            "spec.until: Invalid",
            "spec.operations[0]: Unsupp",
        ] {
            assert!(all.contains(field), "{field}: {all}");
        }
        assert!(told(json!({"policies": "p"})).contains("spec.policies"));
        assert!(told(json!({"policies": ["p"], "reason": "r"})).contains("an exception ends"));
    }
}
