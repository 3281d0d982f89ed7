//! Reads the annotation `api-approved.kubernetes.io`, which APIs in the Kubernetes project's own groups need.

use admit_apimachinery::go;
use admit_apimachinery::go::url;

use super::definition::{API_APPROVED, Definition};

/// The meaning of the annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// There is no annotation.
    Missing,
    /// It admits that there was no review.
    Bypassed,
    /// It has the address of the review.
    Given,
    /// Any other text.
    Invalid,
}

impl Definition {
    /// Returns the state of the approval; None where the group needs no approval.
    #[must_use]
    pub fn approval(&self) -> Option<Approval> {
        let of = |domain: &str| {
            self.group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        (of("k8s.io") || of("kubernetes.io")).then(|| self.stated_approval())
    }

    pub(super) fn stated_approval(&self) -> Approval {
        match self.api_approved.as_deref().unwrap_or_default() {
            "" => Approval::Missing,
            reason if reason.starts_with("unapproved") => Approval::Bypassed,
            address if is_address(address) => Approval::Given,
            _ => Approval::Invalid,
        }
    }

    /// The API server's message about the approval.
    #[must_use]
    pub fn approval_text(&self) -> String {
        const REVIEW: &str = "see https://github.com/kubernetes/enhancements/pull/1111";
        let annotation = self.api_approved.as_deref().unwrap_or_default();
        match self.stated_approval() {
            Approval::Missing => {
                format!("protected groups must have approval annotation \"{API_APPROVED}\", {REVIEW}")
            }
            Approval::Bypassed => format!("not approved: {}", go::quote(annotation)),
            Approval::Given => format!("approved in {annotation}"),
            Approval::Invalid => format!(
                "protected groups must have approval annotation \"{API_APPROVED}\" with either a URL or a reason starting \
                 with \"unapproved\", {REVIEW}"
            ),
        }
    }
}

fn is_address(text: &str) -> bool {
    let has_host = text
        .split_once("://")
        .is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty() && !rest.starts_with('/'));
    has_host && url::check_request(text).is_ok()
}
