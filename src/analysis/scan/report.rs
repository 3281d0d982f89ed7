//! Collects the results for the objects of one namespace, within limits: everything is counted, and a limited number of violations is
//! kept.

use std::collections::BTreeMap;
use std::sync::Arc;

use admit_policy::apply::Identity;
use admit_policy::{Enforcement, Excepted};

/// The maximum number of results per report, and of bytes of their texts: an object in a cluster has at most 1.5 MiB.
const MAX_RESULTS: usize = 1_000;
const MAX_BYTES: usize = 512 << 10;
/// Bytes of a message; more is cut off.
const MAX_MESSAGE: usize = 1_024;

/// The result of one policy for one object, in the terms of reports, in order of increasing severity.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum Outcome {
    /// It is admitted.
    #[default]
    Pass,
    /// Undecided: data is missing, or an exception admits it.
    Skip,
    /// The client would be warned.
    Warn,
    /// The policy cannot be evaluated.
    Error,
    /// It would be denied, or noted in the audit log.
    Fail,
}

impl Outcome {
    /// The word of reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Skip => "skip",
            Self::Warn => "warn",
            Self::Error => "error",
            Self::Fail => "fail",
        }
    }
}

/// The object of a result.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Subject {
    /// `apps/v1`.
    pub api_version: String,
    /// `Deployment`.
    pub kind: String,
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The uid; empty if unknown.
    pub uid: String,
}

impl Subject {
    pub(super) fn new(identity: &Identity, uid: &str) -> Arc<Self> {
        Arc::new(Self {
            api_version: identity.kind.api_version(),
            kind: identity.kind.kind.clone(),
            namespace: identity.namespace.clone(),
            name: identity.name.clone(),
            uid: uid.to_owned(),
        })
    }
}

/// The result of one policy for one object.
#[derive(Clone, Debug, Default)]
pub struct Finding {
    /// The policy; for a definition `CustomResourceDefinition NAME`.
    pub policy: Arc<str>,
    /// `spec.validations[0]`; empty for definitions.
    pub rule: String,
    /// The outcome.
    pub outcome: Outcome,
    /// The reason; empty if it passes.
    pub message: String,
    /// What the binding does.
    pub enforced: Option<Enforcement>,
    /// The exception that lets the object through, or did.
    pub excepted: Option<Excepted>,
    /// The object.
    pub subject: Option<Arc<Subject>>,
}

/// The number of results by outcome.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Summary {
    /// Results, all of them.
    pub pass: u64,
    /// Results, all of them.
    pub fail: u64,
    /// Results, all of them.
    pub warn: u64,
    /// Results, all of them.
    pub error: u64,
    /// Results, all of them.
    pub skip: u64,
}

impl Summary {
    fn count(&mut self, outcome: Outcome) {
        let count = match outcome {
            Outcome::Pass => &mut self.pass,
            Outcome::Skip => &mut self.skip,
            Outcome::Warn => &mut self.warn,
            Outcome::Error => &mut self.error,
            Outcome::Fail => &mut self.fail,
        };
        *count = count.saturating_add(1);
    }
}

/// The results for the objects of one namespace.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The number of evaluated objects.
    pub objects: u64,
    /// The number of results, including those left out.
    pub summary: Summary,
    /// Results other than passes that are left out for want of room; the gravest are kept.
    pub left_out: u64,
    /// The number of results that are undecided because data is missing, or the policy cannot be evaluated.
    pub undecided: u64,
    /// By decreasing severity, then by order of arrival: the last entry is dropped first.
    kept: BTreeMap<(std::cmp::Reverse<Outcome>, u64), Finding>,
    bytes: usize,
    next: u64,
}

impl Report {
    /// What does not pass, the gravest first.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.kept.values()
    }

    pub(super) fn add(&mut self, mut finding: Finding) {
        self.summary.count(finding.outcome);
        if finding.outcome == Outcome::Pass {
            return;
        }
        let is_let_through = finding.excepted.as_ref().is_some_and(|excepted| excepted.in_force);
        if finding.outcome == Outcome::Error || finding.outcome == Outcome::Skip && !is_let_through {
            self.undecided = self.undecided.saturating_add(1);
        }
        let end = finding.message.floor_char_boundary(MAX_MESSAGE);
        if end < finding.message.len() {
            finding.message.truncate(end);
            finding.message.push('…');
        }
        self.bytes = self.bytes.saturating_add(weight(&finding));
        self.kept.insert((std::cmp::Reverse(finding.outcome), self.next), finding);
        self.next = self.next.saturating_add(1);
        while self.kept.len() > MAX_RESULTS || self.bytes > MAX_BYTES {
            let Some((_, least)) = self.kept.pop_last() else { return };
            self.bytes = self.bytes.saturating_sub(weight(&least));
            self.left_out = self.left_out.saturating_add(1);
        }
    }
}

/// Bytes of a result as it is written.
fn weight(finding: &Finding) -> usize {
    let subject = finding.subject.as_ref().map_or(0, |subject| {
        [&subject.api_version, &subject.kind, &subject.namespace, &subject.name, &subject.uid]
            .into_iter()
            .map(String::len)
            .fold(0, usize::saturating_add)
    });
    let excepted = finding.excepted.as_ref().map_or(0, |excepted| excepted.reason.len());
    [finding.policy.len(), finding.rule.len(), finding.message.len(), subject, excepted]
        .into_iter()
        .fold(256, usize::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gravest_are_kept_and_all_are_counted() {
        let mut report = Report::default();
        let finding =
            |outcome, message: &str| Finding { outcome, message: message.to_owned(), ..Finding::default() };
        for _ in 0..3_000 {
            report.add(finding(Outcome::Skip, "s"));
            report.add(finding(Outcome::Pass, ""));
        }
        for _ in 0..600 {
            report.add(finding(Outcome::Fail, "f"));
        }
        assert_eq!((report.summary.skip, report.summary.pass, report.summary.fail), (3_000, 3_000, 600));
        assert_eq!((report.findings().count(), report.left_out), (1_000, 2_600));
        assert_eq!(report.findings().filter(|finding| finding.outcome == Outcome::Fail).count(), 600);
        for _ in 0..1_000 {
            report.add(finding(Outcome::Fail, &"é".repeat(5_000)));
        }
        assert!(report.bytes <= MAX_BYTES, "{}", report.bytes);
        assert!(report.findings().all(|finding| finding.outcome == Outcome::Fail));
        assert_eq!(report.findings().map(|finding| finding.message.len()).max(), Some(1_024 + "…".len()));
        assert_eq!(report.left_out + u64::try_from(report.findings().count()).unwrap(), 4_600);
    }
}
