//! The HTTPS edge of the policies: AdmissionReview in, decision out. What a request means is `admit_policy`'s to say.

pub mod tls;
