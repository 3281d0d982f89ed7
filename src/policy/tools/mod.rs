//! What command lines do with policies, beside deciding requests: suites of tests, lint, the outcome of applying manifests,
//! a suite to start from, and single expressions.

pub mod apply;
pub(crate) mod eval;
pub mod init;
pub mod lint;
pub mod suite;
pub(crate) mod system_fields;
