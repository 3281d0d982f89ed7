//! Evaluates policies on the objects stored in a cluster: one bounded report per namespace, and one for cluster-scoped objects.
//!
//! ```text
//! object, Applied ──Scan::add──► result by policy ──► Report by namespace ──documents──► OpenReports, PolicyReports
//! ```
//!
//! Each object is decided as if it were created now. An update of an object to itself would hide violations by ratcheting, and
//! transition rules need two objects. The creator is not stored, so a policy that reads the user decides nothing here, unless a user is
//! given.

mod documents;
mod report;

use std::collections::BTreeMap;
use std::sync::Arc;

use admit_policy::apply::{Applied, Identity};
use admit_policy::{Enforcement, PolicyOutcome, PolicySet, RuleOutcome, Skipped, Verdict};

pub use self::documents::{Flavour, documents};
pub use self::report::{Finding, Outcome, Report, Subject, Summary};

use crate::replay::{Side, WITHHELD};

/// The message for a policy that reads what objects do not store.
const ASKS: &str = "asks who makes the request, which is not stored; --as NAME decides as a user";

/// A scan under way.
///
/// ```
/// use std::sync::Arc;
///
/// use admit_analysis::replay::Side;
/// use admit_analysis::scan::{Flavour, Scan, documents};
/// use admit_policy::apply::{Options, Rehearsal, pair};
/// use admit_policy::{PolicySet, manifest};
/// use serde_json::json;
///
/// let policies = "
/// apiVersion: admissionregistration.k8s.io/v1
/// kind: ValidatingAdmissionPolicy
/// metadata: {name: small}
/// spec:
///   matchConstraints:
///     resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [cats]}]
///   validations: [{expression: object.spec.weight <= 9, message: too heavy}]
/// ---
/// apiVersion: admissionregistration.k8s.io/v1
/// kind: ValidatingAdmissionPolicyBinding
/// metadata: {name: small}
/// spec: {policyName: small, validationActions: [Deny]}
/// ";
/// let policies = manifest::read("policy.yaml", policies).unwrap();
/// let set = PolicySet::load(&policies).unwrap();
/// let cat = Arc::new(json!({
///     "apiVersion": "example.com/v1", "kind": "Cat", "metadata": {"name": "tom", "namespace": "home"}, "spec": {"weight": 12},
/// }));
/// let mut scan = Scan::new(Side::new(&set, &policies, false), false);
/// let rehearsal = Rehearsal::new(&set, [], Options::default());
/// for pair in pair(&[cat], &[], set.documents(), "default").unwrap().pairs {
///     scan.add(&pair.identity, "", &rehearsal.apply(&pair));
/// }
/// let reports = scan.finish();
/// assert_eq!(reports["home"].summary.fail, 1);
/// let written = documents(&reports, Flavour::OpenReports);
/// assert_eq!(written[0]["results"][0]["message"], "too heavy");
/// ```
#[derive(Debug)]
pub struct Scan<'s> {
    side: Side<'s>,
    /// Whether a user is named.
    as_somebody: bool,
    /// By name, whether the policy reads the user of the request.
    asking: BTreeMap<Arc<str>, bool>,
    reports: BTreeMap<String, Report>,
}

impl<'s> Scan<'s> {
    /// Starts a scan with the policies of `side`; `as_somebody` says whether a user is given for the requests.
    #[must_use]
    pub fn new(side: Side<'s>, as_somebody: bool) -> Self {
        let asking = asking(side.set());
        Self { side, as_somebody, asking, reports: BTreeMap::new() }
    }

    /// Adds the result for an object whose `metadata.uid` is `uid`.
    pub fn add(&mut self, identity: &Identity, uid: &str, applied: &Applied) {
        let subject = Subject::new(identity, uid);
        let mut findings = Vec::new();
        let by_policy = applied.outcomes.iter().flat_map(|outcome| &outcome.rules);
        let denied_by_policy = by_policy.into_iter().any(|rule| rule.enforced.contains(&Enforcement::Deny));
        if let (Some(status), false) = (&applied.refusal, denied_by_policy) {
            findings.push(Finding {
                policy: self.definition(identity).into(),
                outcome: Outcome::Fail,
                message: self.told(identity, None, &status.message),
                enforced: Some(Enforcement::Deny),
                ..Finding::default()
            });
        } else if applied.validated {
            let policy = self.definition(identity).into();
            findings.push(Finding { policy, ..Finding::default() });
        }
        for outcome in &applied.outcomes {
            findings.extend(self.finding(identity, outcome));
        }
        let report = self.reports.entry(identity.namespace.clone()).or_default();
        report.objects = report.objects.saturating_add(1);
        for finding in findings {
            report.add(Finding { subject: Some(Arc::clone(&subject)), ..finding });
        }
    }

    /// The reports by namespace; an empty one is of the objects that are in none.
    #[must_use]
    pub fn finish(self) -> BTreeMap<String, Report> {
        self.reports
    }

    /// What checks the objects of a kind beside the policies.
    fn definition(&self, identity: &Identity) -> String {
        match self.side.set().documents().crd_of(&identity.kind) {
            Some(crd) => format!("CustomResourceDefinition {}", crd.definition().name),
            None => format!("kind {}", identity.kind.kind),
        }
    }

    /// Returns the most severe result of a policy.
    fn finding(&self, identity: &Identity, outcome: &PolicyOutcome) -> Option<Finding> {
        if let Some(Skipped::Excepted(excepted)) = &outcome.skipped {
            return Some(Finding {
                policy: Arc::clone(&outcome.policy),
                outcome: Outcome::Skip,
                message: "the policy does not change it".to_owned(),
                excepted: Some(excepted.clone()),
                ..Finding::default()
            });
        }
        if outcome.rules.is_empty() {
            return None;
        }
        let policy = Arc::clone(&outcome.policy);
        if !self.as_somebody && self.asking.get(&policy).copied().unwrap_or_default() {
            return Some(Finding {
                policy,
                outcome: Outcome::Skip,
                message: ASKS.to_owned(),
                ..Finding::default()
            });
        }
        let excepted = outcome.excepted.as_ref();
        let of_rule = |rule: &RuleOutcome| {
            let excepted = excepted.filter(|excepted| excepted.in_force);
            let (outcome, message) = match &rule.verdict {
                Verdict::Admitted => (Outcome::Pass, String::new()),
                Verdict::Failed { message, .. } | Verdict::Errored { message, denies: true }
                    if excepted.is_some() =>
                {
                    (Outcome::Skip, message.clone())
                }
                Verdict::Errored { message, .. } => (Outcome::Error, message.clone()),
                Verdict::Failed { .. } if rule.enforced.is_empty() => (Outcome::Pass, String::new()),
                Verdict::Failed { message, .. } if rule.enforced == [Enforcement::Warn] => {
                    (Outcome::Warn, message.clone())
                }
                Verdict::Failed { message, .. } => (Outcome::Fail, message.clone()),
            };
            Finding {
                policy: Arc::clone(&policy),
                rule: rule.path.to_string(),
                outcome,
                message: self.told(identity, Some(&policy), &message),
                enforced: rule.enforced.first().copied(),
                ..Finding::default()
            }
        };
        let mut gravest = outcome.rules.iter().map(of_rule).max_by_key(|finding| finding.outcome)?;
        if gravest.outcome != Outcome::Pass {
            gravest.excepted = excepted.cloned();
        }
        Some(gravest)
    }

    /// The message, unless it may hold a value of a Secret.
    fn told(&self, identity: &Identity, policy: Option<&str>, message: &str) -> String {
        let is_secret = identity.kind.group.is_empty() && identity.kind.kind == "Secret";
        let by_secret = policy.is_some_and(|policy| self.side.has_secret_params(policy));
        let withheld = (is_secret || by_secret) && !message.is_empty() && !self.side.is_fixed(message);
        if withheld { WITHHELD.to_owned() } else { message.to_owned() }
    }
}

/// Determines which policies read the user of the request: names have one spelling in CEL, so the text contains it.
fn asking(set: &PolicySet) -> BTreeMap<Arc<str>, bool> {
    let asks = |text: &str| text.contains("userInfo") || text.contains("authorizer");
    let policies = set.policies().map(|(policy, _)| policy);
    let policies = policies.chain(set.mutating_policies().map(|(policy, _)| policy.common()));
    policies
        .map(|policy| {
            (Arc::clone(&policy.name), policy.expressions().iter().any(|expression| asks(expression.text)))
        })
        .collect()
}
