//! Implements what command lines do with policies beside deciding requests: test suites, lint, predicting the outcome of applying
//! manifests, generating an initial suite, and evaluating single expressions.

pub mod apply;
pub(crate) mod eval;
pub mod init;
pub mod lint;
pub mod suite;
pub(crate) mod system_fields;
