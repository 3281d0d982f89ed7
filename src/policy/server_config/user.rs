//! Maps the claims of a token to a user, or reports why an authenticator cannot.

use std::borrow::Cow;
use std::fmt;
use std::time::SystemTime;

use admit_apimachinery::go::quote::quote;
use admit_cel::{EvalError, Value};
use bumpalo::Bump;
use indexmap::IndexMap;
use serde_json::{Map, Value as Json};
use thiserror::Error;

use super::authenticator::{Authenticator, Mapping, Rule};
use super::claims::{self, Claims};
use super::expressions::Compiled;
use crate::report::options::EvalOptions;
use crate::request::UserInfo;

/// The key of a user's extra attributes under which the server passes on the token's id.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";
const NO_LIST: &str = "expression must return a string or a list of strings";

/// The claims of a token whose signature was verified. [`Authenticators`](super::Authenticators) has an example.
#[derive(Clone, Copy, Debug)]
pub struct Token<'t> {
    pub claims: &'t Map<String, Json>,
    /// The current time; without it the validity period is not checked.
    pub now: Option<SystemTime>,
    /// Endpoints of distributed claims, each with the claims of the token that it returns.
    pub endpoints: Option<&'t Map<String, Json>>,
}

/// Why a token has no user.
///
/// ```
/// use admit_policy::server_config::NoUser;
///
/// assert_eq!(NoUser::UnknownIssuer.to_string(), "invalid bearer token");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoUser {
    /// No authenticator is for its issuer, and no other knows it.
    #[error("invalid bearer token")]
    UnknownIssuer,
    /// There is no token, and anonymous requests are not decided here.
    #[error("Unauthorized")]
    Unauthorized,
    /// The token is rejected, with the server's message.
    #[error("{0}")]
    Refused(String),
    /// A distributed claim is at an endpoint that is not given.
    #[error(
        "the claim `{claim}` is kept at {endpoint}, which is not asked: give the claim itself, or what is answered there"
    )]
    Elsewhere { claim: String, endpoint: String },
}

impl Authenticator {
    pub(super) fn user(&self, token: &Token<'_>, options: EvalOptions<'_>) -> Result<UserInfo, NoUser> {
        let verified = self.audiences.verify(token.claims, token.now);
        verified.map_err(|error| refused(format!("verify token: {error}")))?;
        let raw = self.expanded(token)?;
        let claims = Claims::new(&raw);
        let arena = Bump::new();
        let inputs = Inputs { raw: &raw, claims: claims.value(&arena), arena: &arena, options };
        let user = UserInfo {
            username: self.username(inputs)?,
            groups: self.groups(inputs)?,
            uid: self.uid(inputs)?,
            extra: self.extra(inputs)?,
        };
        self.check_required(&raw)?;
        let of_claims = hold(&self.claim_rules, inputs.claims, inputs);
        of_claims
            .map_err(|error| refused(format!("error evaluating claim validation expression: {error}")))?;
        let shown = Claims::new(&shown(&user));
        let of_user = hold(&self.user_rules, shown.value(&arena), inputs);
        of_user.map_err(|error| refused(format!("error evaluating user info validation rule: {error}")))?;
        Ok(user)
    }

    /// The claims with that of groups, which may be kept at a place that the token names.
    fn expanded<'t>(&self, token: &Token<'t>) -> Result<Cow<'t, Map<String, Json>>, NoUser> {
        let claims = token.claims;
        let (Mapping::Claim { name, .. }, Some(names)) = (&self.groups, claims.get("_claim_names")) else {
            return Ok(Cow::Borrowed(claims));
        };
        if claims.contains_key(name) {
            return Ok(Cow::Borrowed(claims));
        }
        let failed = |why: &str| refused(format!("could not expand distributed claims: {why}"));
        let sources = claims.get("_claim_sources").ok_or_else(|| failed("oidc: no claim sources"))?;
        let Some(source) = names.get(name).and_then(Json::as_str) else { return Ok(Cow::Borrowed(claims)) };
        let Some(source_of) = sources.get(source) else {
            let why = format!("id token _claim_names contained a source {source} missing in _claims_sources");
            return Err(failed(&why));
        };
        let endpoint = source_of.get("endpoint").and_then(Json::as_str).unwrap_or_default();
        if endpoint.is_empty() {
            return Ok(Cow::Borrowed(claims));
        }
        let answer = token.endpoints.and_then(|endpoints| endpoints.get(endpoint)?.as_object());
        let answer =
            answer.ok_or_else(|| NoUser::Elsewhere { claim: name.clone(), endpoint: endpoint.to_owned() })?;
        let verified = self.audiences.verify(answer, token.now);
        verified.map_err(|error| failed(&format!("verify distributed claim token: {error}")))?;
        let value = answer.get(name).ok_or_else(|| {
            let endpoint = quote(endpoint);
            failed(&format!(
                "jwt returned by distributed claim endpoint {endpoint} did not contain claim: {name}"
            ))
        })?;
        let mut expanded = claims.clone();
        expanded.insert(name.clone(), value.clone());
        Ok(Cow::Owned(expanded))
    }

    fn username(&self, inputs: Inputs<'_>) -> Result<String, NoUser> {
        match &self.username {
            Mapping::Expression(expression) => {
                let name = text_of(expression, "username", inputs)?;
                if name.is_empty() {
                    return Err(refused("empty username via CEL expression is not allowed"));
                }
                Ok(name)
            }
            Mapping::Claim { name, prefix } => {
                let username = claims::text(inputs.raw, name)
                    .map_err(|error| refused(format!("parse username claims {}: {error}", quote(name))))?;
                if name == "email" && inputs.raw.contains_key("email_verified") {
                    let verified = claims::truth(inputs.raw, "email_verified")
                        .map_err(|error| refused(format!("parse 'email_verified' claim: {error}")))?;
                    if !verified {
                        return Err(refused("email not verified"));
                    }
                }
                Ok(format!("{prefix}{username}"))
            }
            Mapping::Nothing => Ok(String::new()),
        }
    }

    fn groups(&self, inputs: Inputs<'_>) -> Result<Vec<String>, NoUser> {
        match &self.groups {
            Mapping::Nothing => Ok(Vec::new()),
            Mapping::Claim { name, prefix } => {
                let Some(claim) = inputs.raw.get(name) else { return Ok(Vec::new()) };
                let groups = claims::texts(claim)
                    .map_err(|error| refused(format!("parse groups claim {}: {error}", quote(name))))?;
                Ok(groups.into_iter().map(|group| format!("{prefix}{group}")).collect())
            }
            Mapping::Expression(expression) => {
                let failed = |why: &dyn fmt::Display| {
                    refused(format!("error evaluating group claim expression: {why}"))
                };
                let value = inputs.eval(expression).map_err(|error| failed(&error))?;
                texts_of(expression, &value).ok_or_else(|| failed(&NO_LIST))
            }
        }
    }

    fn uid(&self, inputs: Inputs<'_>) -> Result<String, NoUser> {
        match &self.uid {
            Mapping::Nothing => Ok(String::new()),
            Mapping::Claim { name, .. } => claims::text(inputs.raw, name)
                .map_err(|error| refused(format!("parse uid claim {}: {error}", quote(name)))),
            Mapping::Expression(expression) => text_of(expression, "uid", inputs),
        }
    }

    fn extra(&self, inputs: Inputs<'_>) -> Result<IndexMap<String, Vec<String>>, NoUser> {
        let mut extra = IndexMap::new();
        // An id that is not a string is ignored.
        if let Some(id) = claims::text(inputs.raw, "jti").ok().filter(|id| !id.is_empty()) {
            extra.insert(CREDENTIAL_ID.to_owned(), vec![format!("JTI={id}")]);
        }
        // All have a value before any is looked at.
        let mut values = Vec::with_capacity(self.extra.len());
        for (key, expression) in &self.extra {
            values.push((
                key,
                expression,
                inputs.eval(expression).map_err(|error| NoUser::Refused(error.to_string()))?,
            ));
        }
        for (key, expression, value) in values {
            let texts = texts_of(expression, &value).ok_or_else(|| {
                refused(format!("error evaluating extra claim expression: {}: {NO_LIST}", expression.text()))
            })?;
            if !texts.is_empty() {
                extra.insert(key.clone(), texts);
            }
        }
        Ok(extra)
    }

    fn check_required(&self, claims: &Map<String, Json>) -> Result<(), NoUser> {
        for (claim, wanted) in &self.required {
            if !claims.contains_key(claim) {
                return Err(refused(format!("required claim {claim} not present in ID token")));
            }
            let got = claims::text(claims, claim)
                .map_err(|error| refused(format!("parse claim {claim}: {error}")))?;
            if got != *wanted {
                let why =
                    format!("required claim {claim} value does not match. Got = {got}, want = {wanted}");
                return Err(refused(why));
            }
        }
        Ok(())
    }
}

/// The fields of a user: every one is there.
fn shown(user: &UserInfo) -> Map<String, Json> {
    let UserInfo { username, uid, groups, extra } = user;
    let fields = [
        ("username", Json::from(username.as_str())),
        ("uid", uid.as_str().into()),
        ("groups", groups.clone().into()),
        ("extra", extra.iter().map(|(key, values)| (key.clone(), Json::from(values.clone()))).collect()),
    ];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// What the expressions of one token see.
#[derive(Clone, Copy)]
struct Inputs<'a> {
    raw: &'a Map<String, Json>,
    claims: Value<'a>,
    arena: &'a Bump,
    options: EvalOptions<'a>,
}

impl<'a> Inputs<'a> {
    fn eval(&self, expression: &'a Compiled) -> Result<Value<'a>, RuleError> {
        evaluated(expression, self.claims, self)
    }
}

/// Why an expression fails, or a validation rule does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
enum RuleError {
    #[error("expression '{expression}' resulted in error: {error}")]
    Eval { expression: String, error: EvalError },
    #[error("validation expression '{expression}' failed: {message}")]
    Failed { expression: String, message: String },
    #[error("validation expression must return a boolean")]
    NoTruth,
}

fn evaluated<'a>(
    expression: &'a Compiled,
    of: Value<'a>,
    inputs: &Inputs<'a>,
) -> Result<Value<'a>, RuleError> {
    let failed = |error| RuleError::Eval { expression: expression.text().to_owned(), error };
    expression.eval(of, inputs.arena, inputs.options).map_err(failed)
}

/// All rules are evaluated before a violation is reported.
fn hold<'a>(rules: &'a [Rule], of: Value<'a>, inputs: Inputs<'a>) -> Result<(), RuleError> {
    let mut values = Vec::with_capacity(rules.len());
    for rule in rules {
        values.push((rule, evaluated(&rule.expression, of, &inputs)?));
    }
    for (rule, value) in values {
        match value {
            Value::Bool(true) => {}
            Value::Bool(false) => {
                let (expression, message) = (rule.expression.text().to_owned(), rule.message.clone());
                return Err(RuleError::Failed { expression, message });
            }
            _ => return Err(RuleError::NoTruth),
        }
    }
    Ok(())
}

fn text_of(expression: &Compiled, what: &str, inputs: Inputs<'_>) -> Result<String, NoUser> {
    let failed = |why: &dyn fmt::Display| refused(format!("error evaluating {what} claim expression: {why}"));
    match inputs.eval(expression).map_err(|error| failed(&error))? {
        Value::String(text) => Ok(text.to_owned()),
        _ => Err(failed(&format_args!("{what} claim expression must return a string"))),
    }
}

/// Returns the strings of a value that is a string or a list of strings, without empty ones. The server does not accept a list that a
/// Go function returned directly.
fn texts_of(expression: &Compiled, value: &Value<'_>) -> Option<Vec<String>> {
    let texts = match value {
        Value::Null => Vec::new(),
        Value::String(text) => vec![(*text).to_owned()],
        Value::List(_) if expression.is_native_list() => return None,
        Value::List(list) => {
            let text = |item: Value<'_>| match item {
                Value::String(text) => Some(text.to_owned()),
                _ => None,
            };
            list.iter().map(text).collect::<Option<_>>()?
        }
        _ => return None,
    };
    Some(texts.into_iter().filter(|text: &String| !text.is_empty()).collect())
}

fn refused(why: impl fmt::Display) -> NoUser {
    NoUser::Refused(format!("oidc: {why}"))
}
