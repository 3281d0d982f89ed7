//! Validates an AuthenticationConfiguration: which tokens an API server accepts, and how it maps them to users.

use std::collections::HashSet;

use admit_apimachinery::field_error::{BadValue, FieldError};
use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::go::url;
use admit_apimachinery::names;
use admit_cel::syntax::{Ast, Expr, Literal};

use super::expressions::{About, Yields};
use crate::read::decode::{DecodeError, Fields};

const MOST_AUTHENTICATORS: usize = 64;
/// What an optional field is selected by.
const OPTIONAL_SELECT: &str = "_?._";
const BOTH: &str = "claim and expression can't both be set";
const NEITHER: &str = "claim or expression is required";

pub(super) fn check(fields: &Fields<'_>, errors: &mut FieldErrors) -> Result<(), DecodeError> {
    let authenticators = fields.objects("jwt")?;
    if authenticators.len() > MOST_AUTHENTICATORS {
        let count = i64::try_from(authenticators.len()).unwrap_or(i64::MAX);
        errors.push(FieldError::too_many("jwt", count, 64));
        return Ok(());
    }
    let (mut issuers, mut discovered) = (HashSet::new(), HashSet::new());
    for authenticator in authenticators {
        let of_issuer = authenticator.object("issuer")?;
        issuer(&of_issuer, errors)?;
        let mut verified = claim_rules(&authenticator, errors)?;
        mappings(&authenticator.object("claimMappings")?, &mut verified, errors)?;
        user_rules(&authenticator, errors)?;
        for (field, seen) in [("url", &mut issuers), ("discoveryURL", &mut discovered)] {
            let url = of_issuer.string(field)?;
            if (field == "url" || !url.is_empty()) && !seen.insert(url.clone()) {
                errors.push(FieldError::duplicate(of_issuer.path_of(field), url.as_str()));
            }
        }
    }
    let anonymous = fields.object("anonymous")?;
    if !anonymous.objects("conditions")?.is_empty() && !anonymous.bool("enabled")? {
        let why = "enabled should be set to true when conditions are defined";
        let shown = anonymous.get("conditions").cloned().unwrap_or_default();
        errors.push(FieldError::invalid("anonymous.conditions", BadValue::Json(shown), why));
    }
    Ok(())
}

fn issuer(issuer: &Fields<'_>, errors: &mut FieldErrors) -> Result<(), DecodeError> {
    let (own, discovery) = (issuer.string("url")?, issuer.string("discoveryURL")?);
    let (at, of_discovery) = (issuer.path_of("url"), issuer.path_of("discoveryURL"));
    if own.is_empty() {
        errors.push(FieldError::required(at, ""));
    } else {
        check_url(&own, &at, errors);
    }
    if !discovery.is_empty() {
        if !own.is_empty() && own.trim_end_matches('/') == discovery.trim_end_matches('/') {
            let why = "discoveryURL must be different from URL";
            errors.push(FieldError::invalid(&of_discovery, discovery.as_str(), why));
        }
        check_url(&discovery, &of_discovery, errors);
    }
    audiences(issuer, errors)?;
    let authority = issuer.string("certificateAuthority")?;
    if !authority.is_empty() && !authority.contains("-----BEGIN CERTIFICATE-----") {
        let why = "data does not contain any valid RSA or ECDSA certificates";
        errors.push(FieldError::invalid(issuer.path_of("certificateAuthority"), "<omitted>", why));
    }
    let egress = issuer.string("egressSelectorType")?;
    if !matches!(egress.as_str(), "" | "controlplane" | "cluster") {
        let why = "egress selector must be either controlplane or cluster";
        errors.push(FieldError::invalid(issuer.path_of("egressSelectorType"), egress.as_str(), why));
    }
    Ok(())
}

fn check_url(text: &str, at: &str, errors: &mut FieldErrors) {
    let mut refuse = |why: String| errors.push(FieldError::invalid(at, text, why));
    let parsed = match url::parse(text) {
        Ok(parsed) => parsed,
        Err(error) => return refuse(error.to_string()),
    };
    let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let behind_scheme = rest.split_once("//").map(|(_, rest)| rest).unwrap_or_default();
    let authority = behind_scheme.split('/').next().unwrap_or_default();
    for (is_wrong, why) in [
        (parsed.scheme != "https", "URL scheme must be https"),
        (authority.contains('@'), "URL must not contain a username or password"),
        (!query.is_empty(), "URL must not contain a query"),
        (!fragment.is_empty(), "URL must not contain a fragment"),
    ] {
        if is_wrong {
            refuse(why.to_owned());
        }
    }
}

fn audiences(issuer: &Fields<'_>, errors: &mut FieldErrors) -> Result<(), DecodeError> {
    let (path, audiences) = (issuer.path_of("audiences"), issuer.strings("audiences")?);
    if audiences.is_empty() {
        errors.push(FieldError::required(&path, format!("at least one {path} is required")));
        return Ok(());
    }
    let mut seen = HashSet::new();
    for (index, audience) in audiences.iter().enumerate() {
        let at = format!("{path}[{index}]");
        if audience.is_empty() {
            errors.push(FieldError::required(&at, ""));
        }
        if !seen.insert(audience) {
            errors.push(FieldError::duplicate(&at, audience.as_str()));
        }
    }
    let policy = issuer.string("audienceMatchPolicy")?;
    let why = match (audiences.len(), policy.as_str()) {
        (_, "MatchAny") | (1, "") => return Ok(()),
        (1, _) => "audienceMatchPolicy must be empty or MatchAny for single audience",
        _ => "audienceMatchPolicy must be MatchAny for multiple audiences",
    };
    errors.push(FieldError::invalid(issuer.path_of("audienceMatchPolicy"), policy.as_str(), why));
    Ok(())
}

/// Answers whether a rule looks at whether the address of mail is verified.
fn claim_rules(authenticator: &Fields<'_>, errors: &mut FieldErrors) -> Result<bool, DecodeError> {
    let (mut claims, mut expressions, mut verified) = (HashSet::new(), HashSet::new(), false);
    for rule in authenticator.objects("claimValidationRules")? {
        let (claim, expression) = (rule.string("claim")?, rule.string("expression")?);
        let (message, required) = (rule.string("message")?, rule.string("requiredValue")?);
        if !claim.is_empty() && !expression.is_empty() {
            errors.push(FieldError::invalid(rule.path(), claim.as_str(), BOTH));
        } else if claim.is_empty() && expression.is_empty() {
            errors.push(FieldError::required(rule.path(), NEITHER));
        } else if !claim.is_empty() {
            if !message.is_empty() {
                let why = "may not be specified when claim is set";
                errors.push(FieldError::invalid(rule.path_of("message"), message.as_str(), why));
            }
            if !claims.insert(claim.clone()) {
                errors.push(FieldError::duplicate(rule.path_of("claim"), claim.as_str()));
            }
        } else {
            if !required.is_empty() {
                let why = "may not be specified when expression is set";
                errors.push(FieldError::invalid(rule.path_of("requiredValue"), required.as_str(), why));
            }
            let at = rule.path_of("expression");
            if !expressions.insert(expression.clone()) {
                errors.push(FieldError::duplicate(at, expression.as_str()));
                continue;
            }
            let ast = compiled(About::Claims, Yields::Truth, &expression, &at, errors);
            verified |= ast.is_some_and(|ast| reads(&ast, "email_verified"));
        }
    }
    Ok(verified)
}

fn user_rules(authenticator: &Fields<'_>, errors: &mut FieldErrors) -> Result<(), DecodeError> {
    let mut seen = HashSet::new();
    for rule in authenticator.objects("userValidationRules")? {
        let (at, expression) = (rule.path_of("expression"), rule.string("expression")?);
        if expression.is_empty() {
            errors.push(FieldError::required(at, ""));
        } else if !seen.insert(expression.clone()) {
            errors.push(FieldError::duplicate(at, expression.as_str()));
        } else {
            compiled(About::User, Yields::Truth, &expression, &at, errors);
        }
    }
    Ok(())
}

fn mappings(mappings: &Fields<'_>, verified: &mut bool, errors: &mut FieldErrors) -> Result<(), DecodeError> {
    let username = prefixed(&mappings.object("username")?, true, errors)?;
    let uses_email = username.as_ref().is_some_and(|ast| reads(ast, "email"));
    *verified |= username.is_some_and(|ast| reads(&ast, "email_verified"));
    prefixed(&mappings.object("groups")?, false, errors)?;
    let uid = mappings.object("uid")?;
    let (claim, expression) = (uid.string("claim")?, uid.string("expression")?);
    if !claim.is_empty() && !expression.is_empty() {
        errors.push(FieldError::invalid(uid.path(), "", BOTH));
    } else if !expression.is_empty() {
        compiled(About::Claims, Yields::Anything, &expression, &uid.path_of("expression"), errors);
    }
    let mut keys = HashSet::new();
    for extra in mappings.objects("extra")? {
        let (at, key) = (extra.path_of("key"), extra.string("key")?);
        check_key(&key, &at, errors);
        if !keys.insert(key.clone()) {
            errors.push(FieldError::duplicate(at, key.as_str()));
            continue;
        }
        let (at, value) = (extra.path_of("valueExpression"), extra.string("valueExpression")?);
        if value.is_empty() {
            errors.push(FieldError::required(at, ""));
            continue;
        }
        let ast = compiled(About::Claims, Yields::Anything, &value, &at, errors);
        *verified |= ast.is_some_and(|ast| reads(&ast, "email_verified"));
    }
    if uses_email && !*verified {
        let username = mappings.object("username")?;
        let why = "claims.email_verified must be used in claimMappings.username.expression or \
                   claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in \
                   claimMappings.username.expression";
        let written = username.string("expression")?;
        errors.push(FieldError::invalid(username.path_of("expression"), written.as_str(), why));
    }
    Ok(())
}

/// A claim with a prefix, or an expression, which is returned where nothing else is wrong.
fn prefixed(
    mapping: &Fields<'_>,
    is_needed: bool,
    errors: &mut FieldErrors,
) -> Result<Option<Ast>, DecodeError> {
    let (claim, expression) = (mapping.string("claim")?, mapping.string("expression")?);
    let prefix = mapping.optional_string("prefix")?;
    let mut ast = None;
    if !claim.is_empty() && !expression.is_empty() {
        errors.push(FieldError::invalid(mapping.path(), "", BOTH));
    } else if !expression.is_empty() {
        let at = mapping.path_of("expression");
        if let Some(prefix) = &prefix {
            let why = "may not be specified when expression is set";
            errors.push(FieldError::invalid(mapping.path_of("prefix"), prefix.as_str(), why));
        }
        ast = compiled(About::Claims, Yields::Anything, &expression, &at, errors);
        ast = ast.filter(|_| prefix.is_none());
    } else if !claim.is_empty() {
        if prefix.is_none() {
            let why =
                "prefix is required when claim is set. It can be set to an empty string to disable prefixing";
            errors.push(FieldError::required(mapping.path_of("prefix"), why));
        }
    } else if is_needed {
        errors.push(FieldError::required(mapping.path(), NEITHER));
    }
    Ok(ast)
}

/// Checks the key of an extra attribute of users: a domain, which is not Kubernetes' own, and a path.
fn check_key(key: &str, at: &str, errors: &mut FieldErrors) {
    if key.is_empty() {
        errors.push(FieldError::required(at, ""));
    } else {
        for (part, problem) in names::domain_prefixed_path(key) {
            errors.push(FieldError::invalid(at, part, problem));
        }
    }
    if key.chars().any(char::is_uppercase) {
        errors.push(FieldError::invalid(at, key, "must be lowercase"));
    }
    let domain = key.split_once('/').map(|(domain, _)| domain).unwrap_or_default();
    let is_below =
        |own: &str| domain.strip_suffix(own).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    if is_below("kubernetes.io") || is_below("k8s.io") {
        let why = "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use";
        errors.push(FieldError::invalid(at, key, why));
    }
}

fn compiled(about: About, yields: Yields, text: &str, at: &str, errors: &mut FieldErrors) -> Option<Ast> {
    about.compile(yields, text, at).map(|(_, ast)| ast).map_err(|error| errors.push(*error)).ok()
}

/// Whether an expression selects this claim from `claims`.
fn reads(ast: &Ast, claim: &str) -> bool {
    let mut left = vec![ast.root()];
    let is_claims = |id| matches!(ast.expr(id), Expr::Ident(name) if &**name == "claims");
    while let Some(id) = left.pop() {
        match ast.expr(id) {
            Expr::Literal(_) | Expr::Ident(_) => {}
            Expr::Select { operand, field, .. } => {
                if is_claims(*operand) && &**field == claim {
                    return true;
                }
                left.push(*operand);
            }
            Expr::Call { function, target, args } => {
                if let (OPTIONAL_SELECT, None, [of, field]) = (&**function, target, &**args)
                    && is_claims(*of)
                    && matches!(ast.expr(*field), Expr::Literal(Literal::String(name)) if &**name == claim)
                {
                    return true;
                }
                left.extend(target.iter().chain(args));
            }
            Expr::List { elements, .. } => left.extend(elements),
            Expr::Map(entries) | Expr::Struct { entries, .. } => {
                left.extend(entries.iter().flat_map(|entry| [entry.key, entry.value]));
            }
            Expr::Comprehension(parts) => {
                left.extend([parts.range, parts.accu_init, parts.condition, parts.step, parts.result]);
            }
        }
    }
    false
}
