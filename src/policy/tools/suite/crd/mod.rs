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
///
/// ```
/// use std::sync::Arc;
///
/// use admit_policy::suite::Outcome;
/// use admit_policy::suite::crd::{CrdSuite, FeatureGates, Variant, run};
/// use serde_json::json;
///
/// let document = json!({
///     "name": "Cats",
///     "crdName": "cats.example.com",
///     "tests": {"onCreate": [
///         {"name": "many lives", "initial": "{apiVersion: example.com/v1, kind: Cat, spec: {lives: 10}}",
///          "expectedError": "should be less than or equal to 9"},
///     ]},
/// });
/// assert!(CrdSuite::is(&document));
/// let suite = CrdSuite::decode(&document)?;
/// assert_eq!(suite.cases[0].expected(), Outcome::Deny);
///
/// let definition = json!({
///     "apiVersion": "apiextensions.k8s.io/v1",
///     "kind": "CustomResourceDefinition",
///     "metadata": {"name": "cats.example.com"},
///     "spec": {
///         "group": "example.com",
///         "names": {"plural": "cats", "singular": "cat", "kind": "Cat"},
///         "scope": "Namespaced",
///         "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
///             "type": "object",
///             "properties": {"spec": {"type": "object", "properties": {"lives": {"type": "integer", "maximum": 9}}}},
///         }}}],
///     },
/// });
/// let mut gates = FeatureGates::default();
/// assert!(!gates.add(&definition), "no FeatureGate");
/// assert_eq!(suite.covers(&definition, &gates), Ok(true));
/// let variant = Variant::compile("cats.yaml", Arc::new(definition), "v1").unwrap();
/// assert!(variant.expressions().is_empty());
/// let result = run(&suite.cases[0], &[&variant], None);
/// assert!(result.passed(), "{result:?}");
/// # Ok::<(), admit_policy::FieldsError>(())
/// ```
#[derive(Debug)]
pub struct CrdSuite {
    pub name: String,
    pub definition: Named,
    /// Gates that a definition must be generated for; those with a leading `-` must be off.
    pub feature_gates: Vec<String>,
    /// The version under test: as declared, else that of the objects.
    pub version: String,
    pub cases: Vec<CrdCase>,
    /// Unknown fields of the document, which are ignored as the project's own parser does.
    pub unread: Vec<String>,
}

/// How a suite identifies the definition that it is for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Named {
    /// `crdName`: its `metadata.name`, such as `dnses.config.openshift.io`.
    Name(String),
    /// `crd`: the file that it is in, as suites named it before 2024.
    File(String),
}

/// An object, and the expected result of creating it, or of creating and then updating it.
///
/// [`CrdSuite`] has an example.
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
    /// Part of the message with which the status update is rejected.
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
