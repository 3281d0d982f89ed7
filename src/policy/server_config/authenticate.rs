//! Determines the user of a token, from an AuthenticationConfiguration and the token's claims, or why it is rejected.
//!
//! Signatures are not verified: the claims are taken as signed by the issuer. The result lacks the group `system:authenticated`, which
//! servers add to every authenticated user.
//!
//! Read from plugin/pkg/authenticator/token/oidc and pkg/authentication/cel of k8s.io/apiserver 1.36.

use admit_apimachinery::field_error::FieldError;
use serde_json::Value as Json;

use super::authenticator::{Authenticator, Unread};
use super::expressions::Compiled;
use super::token;
use super::user::{NoUser, Token};
use crate::read::decode::{DecodeError, Fields};
use crate::report::options::EvalOptions;
use crate::report::recording::Expression;
use crate::request::UserInfo;
use crate::schema::metadata::configuration;

/// The authenticators of an AuthenticationConfiguration, for tokens and for requests without one.
///
/// ```
/// use admit_policy::EvalOptions;
/// use admit_policy::server_config::{Authenticators, Token};
/// use serde_json::json;
///
/// let configuration = json!({
///     "apiVersion": "apiserver.config.k8s.io/v1",
///     "kind": "AuthenticationConfiguration",
///     "jwt": [{
///         "issuer": {"url": "https://issuer.example.com", "audiences": ["shop"]},
///         "claimMappings": {
///             "username": {"expression": "'shop:' + claims.sub"},
///             "groups": {"claim": "roles", "prefix": "shop:"},
///         },
///         "userValidationRules": [{"expression": "user.username != 'shop:root'", "message": "nobody is root"}],
///     }],
///     "anonymous": {"enabled": true, "conditions": [{"path": "/livez"}]},
/// });
/// let authenticators = Authenticators::compile(&configuration).unwrap();
/// assert_eq!(authenticators.expressions().len(), 2);
/// let claims = |sub: &str| json!({"iss": "https://issuer.example.com", "aud": "shop", "sub": sub, "roles": ["clerk"]});
/// let ask = |sub: &str| {
///     let claims = claims(sub);
///     let token = Token { claims: claims.as_object().unwrap(), now: None, endpoints: None };
///     authenticators.authenticate(&token, EvalOptions::default())
/// };
/// let user = ask("ann").unwrap();
/// assert_eq!((user.username.as_str(), user.groups.as_slice()), ("shop:ann", &["shop:clerk".to_owned()][..]));
/// assert_eq!(
///     ask("root").unwrap_err().to_string(),
///     "oidc: error evaluating user info validation rule: validation expression 'user.username != 'shop:root'' failed: \
///      nobody is root"
/// );
/// assert!(authenticators.anonymous("/livez").is_some_and(|user| user.username == "system:anonymous"));
/// assert!(authenticators.anonymous("/api").is_none());
/// ```
#[derive(Debug)]
pub struct Authenticators {
    jwt: Vec<Authenticator>,
    anonymous: Option<Anonymous>,
}

#[derive(Debug)]
struct Anonymous {
    is_enabled: bool,
    paths: Vec<String>,
}

impl Authenticators {
    /// Compiles a configuration.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn compile(document: &Json) -> Result<Self, Vec<FieldError>> {
        let problems = super::problems(super::AUTHENTICATION, document);
        if !problems.is_empty() {
            return Err(problems);
        }
        Self::read(document).map_err(|error| match error {
            Unread::Type(error) => vec![configuration::wrong_type(&error)],
            Unread::Expression(error) => vec![*error],
        })
    }

    /// Every expression, in the order in which a token meets them.
    #[must_use]
    pub fn expressions(&self) -> Vec<Expression<'_>> {
        self.jwt.iter().flat_map(Authenticator::expressions).map(Compiled::listed).collect()
    }

    /// Returns the user of a token.
    ///
    /// # Errors
    /// [`NoUser`] if no authenticator accepts it.
    pub fn authenticate(&self, token: &Token<'_>, options: EvalOptions<'_>) -> Result<UserInfo, NoUser> {
        let is_for =
            |authenticator: &&Authenticator| token::is_issued_by(token.claims, &authenticator.issuer);
        self.jwt.iter().find(is_for).ok_or(NoUser::UnknownIssuer)?.user(token, options)
    }

    /// Returns the user of a request for `path` without a token; None if anonymous requests are disabled there, or flags of the server
    /// decide.
    #[must_use]
    pub fn anonymous(&self, path: &str) -> Option<UserInfo> {
        let Anonymous { is_enabled, paths } = self.anonymous.as_ref()?;
        let may = *is_enabled && (paths.is_empty() || paths.iter().any(|known| known == path));
        may.then(|| UserInfo {
            username: "system:anonymous".to_owned(),
            groups: vec!["system:unauthenticated".to_owned()],
            ..UserInfo::default()
        })
    }

    fn read(document: &Json) -> Result<Self, Unread> {
        let fields = Fields::of(document, "")?;
        let jwt = fields.objects("jwt")?.iter().map(Authenticator::read).collect::<Result<_, _>>()?;
        let anonymous = fields.optional_object("anonymous")?.map(|anonymous| {
            let paths = anonymous.objects("conditions")?;
            Ok::<_, DecodeError>(Anonymous {
                is_enabled: anonymous.bool("enabled")?,
                paths: paths.iter().map(|condition| condition.string("path")).collect::<Result<_, _>>()?,
            })
        });
        Ok(Self { jwt, anonymous: anonymous.transpose()? })
    }
}
