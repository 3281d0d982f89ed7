//! Test suites in the format of the OpenShift API project (`*.testsuite.yaml`): custom resources that are created and
//! updated under one CustomResourceDefinition, run as that project's own runner runs them against an API server.
//!
//! ```text
//! document ──CrdSuite::decode──► CrdSuite ──cases──► run(case, variants) ──► CaseResult
//!                                           Variant: a definition narrowed to the version under test
//! ```
//!
//! [`CrdSuite::covers`] tells which CRDs a suite is for; finding the files is left to the caller.

mod decode;
mod gates;
mod run;
mod text;
mod variant;

use serde_json::Value;

pub use self::gates::{FeatureGates, NoGates};
pub use self::run::run;
pub use self::variant::{Variant, VariantError};
use super::Outcome;

/// The tests of one file.
#[derive(Debug)]
pub struct CrdSuite {
    pub name: String,
    pub definition: Named,
    /// Gates that a definition must be made for; those with a leading `-` must be off.
    pub feature_gates: Vec<String>,
    /// The version under test: as declared, else that of the objects.
    pub version: String,
    pub cases: Vec<CrdCase>,
    /// Fields of the document that the format does not have, which are passed over as its own reader does.
    pub unread: Vec<String>,
}

/// How a suite names the definition that it is for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Named {
    /// `crdName`: its `metadata.name`, such as `dnses.config.openshift.io`.
    Name(String),
    /// `crd`: the file that it is in, as suites named it before 2024.
    File(String),
}

/// One object, and the expected result of creating it, or of creating and then updating it.
#[derive(Debug)]
pub struct CrdCase {
    pub name: String,
    /// The path of the case in its document: `tests.onCreate[0]`.
    pub path: String,
    /// JSON patches on the definition that is in force while the object is created.
    patches: Option<json_patch::Patch>,
    initial: Value,
    /// Absent where the object is created only.
    updated: Option<Value>,
    /// The object that must be stored in the end; absent if it is the one that was sent last.
    expected: Option<Value>,
    /// Part of the message of the last request's refusal.
    expected_error: Option<String>,
    /// Part of the message with which the status is refused.
    expected_status_error: Option<String>,
}

impl CrdCase {
    /// The expected outcome, as one word.
    pub fn expected(&self) -> Outcome {
        if self.expected_error.is_some() || self.expected_status_error.is_some() {
            Outcome::Deny
        } else {
            Outcome::Allow
        }
    }
}
