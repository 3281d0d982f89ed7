//! The HTTPS edge of the policies: AdmissionReview in, decision out.
