//! Validates the configuration files of an API server that contain expressions: AuthenticationConfiguration (the users of tokens) and
//! AuthorizationConfiguration (which requests an authorizer sees), with kube-apiserver's messages. What it reads from its machine is
//! not checked: files that are named, and the contents of certificates.
//!
//! | part | decides |
//! |---|---|
//! | `expressions` | which variables expressions have, and what they may come to |
//! | `authentication` | whether an AuthenticationConfiguration is valid |
//! | `authenticator`, `authenticate` | which authenticator a token is for, and who asks without one |
//! | `token` | whether a token is for this server, and valid now |
//! | `claims` | what a claim is for Go, and what claims are in expressions |
//! | `user` | whose a token is |
//! | `authorization` | whether an AuthorizationConfiguration is valid |
//! | `review` | what an authorizer is asked |
//! | `authorize` | which authorizers are asked |
//!
//! Read from pkg/apis/apiserver/validation of k8s.io/apiserver 1.36.

mod authenticate;
mod authentication;
mod authenticator;
mod authorization;
mod authorize;
mod claims;
mod expressions;
mod review;
mod token;
mod user;

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::findings::FieldErrors;
use admit_cel::Env;
use serde_json::Value;

pub use self::authenticate::Authenticators;
pub use self::authorize::{Asked, Authorizers, Turn};
use self::expressions::About;
pub use self::review::AccessReview;
pub use self::user::{NoUser, Token};
use crate::read::decode::Fields;
use crate::schema::metadata::configuration;

/// The group of the kinds.
pub(crate) const GROUP: &str = "apiserver.config.k8s.io";
pub(crate) const AUTHENTICATION: &str = "AuthenticationConfiguration";
pub(crate) const AUTHORIZATION: &str = "AuthorizationConfiguration";
/// The versions that are read.
pub(crate) const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];

/// Returns the errors in a configuration of this kind; empty for other kinds.
pub(crate) fn problems(kind: &str, document: &Value) -> Vec<FieldError> {
    let mut errors = FieldErrors::default();
    let checked = Fields::of(document, "").and_then(|fields| match kind {
        AUTHENTICATION => authentication::check(&fields, &mut errors),
        AUTHORIZATION => authorization::check(&fields, &mut errors),
        _ => Ok(()),
    });
    if let Err(error) = checked {
        errors.push(configuration::wrong_type(&error));
    }
    errors.into_vec()
}

/// Returns the environment of the expression at a path of keys and indices; None where there is no expression.
///
/// ```
/// use admit_policy::server_config::configuration_env;
///
/// let names = |kind: &str, path: &str| {
///     let steps: Vec<&str> = path.split('.').collect();
///     configuration_env(kind, &steps).map(|env| env.variables().map(str::to_owned).collect::<Vec<_>>())
/// };
/// let user = "jwt.0.userValidationRules.0.expression";
/// assert_eq!(names("AuthenticationConfiguration", user).unwrap(), ["user"]);
/// assert_eq!(names("AuthenticationConfiguration", "jwt.0.claimMappings.uid.expression").unwrap(), ["claims"]);
/// let condition = "authorizers.0.webhook.matchConditions.0.expression";
/// assert_eq!(names("AuthorizationConfiguration", condition).unwrap(), ["request"]);
/// assert_eq!(names("AuthorizationConfiguration", user), None);
/// ```
#[must_use]
pub fn configuration_env(kind: &str, steps: &[&str]) -> Option<Env> {
    let about = match (kind, steps) {
        (AUTHENTICATION, ["jwt", _, "claimValidationRules", _, "expression"])
        | (AUTHENTICATION, ["jwt", _, "claimMappings", "username" | "groups" | "uid", "expression"])
        | (AUTHENTICATION, ["jwt", _, "claimMappings", "extra", _, "valueExpression"]) => About::Claims,
        (AUTHENTICATION, ["jwt", _, "userValidationRules", _, "expression"]) => About::User,
        (AUTHORIZATION, ["authorizers", _, "webhook", "matchConditions", _, "expression"]) => About::Request,
        _ => return None,
    };
    Some(about.env())
}

/// Whether it is one of the kinds that are checked here.
pub(crate) fn is_read(kind: &str) -> bool {
    matches!(kind, AUTHENTICATION | AUTHORIZATION)
}
