//! Tests the other places where Kubernetes evaluates expressions: the users of tokens, which authorizers and webhooks are called, and
//! which devices are selected.
//!
//! ```text
//! Suite ──places──► PlaceCase ──run(case, PolicySet, PlaceDocuments)──► CaseResult
//! ```

mod decode;
mod documents;
mod run;

use std::time::SystemTime;

use serde_json::{Map, Value};

pub(super) use self::decode::decode;
pub use self::decode::{AUTHENTICATION_FIELDS, AUTHORIZATION_FIELDS, DEVICES_FIELDS, WEBHOOK_FIELDS};
pub use self::documents::{PlaceDocuments, PlaceError};
pub use self::run::run_place;
use super::{Case, Outcome, Text};
use crate::server_config::AccessReview;

/// A case about one of these places.
///
/// ```
/// use admit_policy::suite::{PlaceDocuments, Suite, run_place};
/// use admit_policy::PolicySet;
/// use serde_json::json;
///
/// let suite = Suite::decode(&json!({
///     "apiVersion": "admit/v1",
///     "kind": "Suite",
///     "authentication": [{
///         "name": "ann is known by her name",
///         "claims": {"iss": "https://issuer.example.com", "aud": "shop", "sub": "ann"},
///         "expect": {"user": {"username": "shop:ann", "groups": []}},
///     }],
/// }))?;
/// let configuration = json!({
///     "apiVersion": "apiserver.config.k8s.io/v1",
///     "kind": "AuthenticationConfiguration",
///     "jwt": [{
///         "issuer": {"url": "https://issuer.example.com", "audiences": ["shop"]},
///         "claimMappings": {"username": {"claim": "sub", "prefix": "shop:"}},
///     }],
/// });
/// let documents = PlaceDocuments::read([&configuration]).unwrap();
/// assert!(documents.expressions().is_empty());
/// let set = PolicySet::new(Vec::new(), Vec::new());
/// let case = &suite.places[0];
/// let result = run_place(case, &set, &documents, None);
/// assert!(result.passed(), "{result:?}");
/// assert_eq!((case.path.as_str(), case.expected()), ("authentication[0]", result.outcome));
/// # Ok::<(), admit_policy::FieldsError>(())
/// ```
#[derive(Debug)]
pub struct PlaceCase {
    pub name: String,
    /// The path in its suite: `authorization[0]`.
    pub path: String,
    subject: Subject,
    expect: Expected,
}

#[derive(Debug)]
enum Subject {
    /// The claims of a token, and when it is used.
    Token {
        claims: Map<String, Value>,
        now: Option<SystemTime>,
        /// The responses to tokens, by endpoint address.
        endpoints: Map<String, Value>,
    },
    /// A request without a token, for a path.
    Anonymous {
        path: String,
    },
    Access(AccessReview),
    /// What is sent, as in a case about policies.
    Webhooks(Box<Case>),
    Devices {
        class: Option<String>,
        claim: Option<String>,
        request: Option<String>,
        selectors: Vec<String>,
    },
}

/// What is expected. Absent parts are not compared.
#[derive(Debug, Default)]
struct Expected {
    /// Fields of a user.
    user: Option<Map<String, Value>>,
    /// Names of authorizers or webhooks, with the expected result of each.
    turns: Vec<(String, String)>,
    devices: Option<Vec<String>>,
    error: Option<Text>,
}

impl PlaceCase {
    /// The expected outcome, as one word.
    #[must_use]
    pub const fn expected(&self) -> Outcome {
        match (&self.expect.error, &self.subject) {
            (None, _) => Outcome::Allow,
            (Some(_), Subject::Token { .. } | Subject::Anonymous { .. }) => Outcome::Deny,
            (Some(_), Subject::Access(_) | Subject::Webhooks(_) | Subject::Devices { .. }) => Outcome::Error,
        }
    }
}
