//! The kinds of `admissionregistration.k8s.io`. Their specifications are validated by those who compile them: the
//! package of policies.
//!
//! Read from pkg/apis/admissionregistration/validation/validation.go.

mod policy_status;

use super::Strategy;

pub(super) const KINDS: &[Strategy] = &[Strategy {
    kind: "ValidatingAdmissionPolicy",
    validate_status: Some(policy_status::validate),
    ..Strategy::PLAIN
}];
