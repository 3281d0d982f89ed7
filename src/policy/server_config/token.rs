//! Checks a token's issuer, audience and validity period before its other claims are used. The caller must verify the signature.
//!
//! Read from github.com/coreos/go-oidc v2.5 as kube-apiserver uses it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use admit_apimachinery::go;
use admit_apimachinery::go::instant::civil;
use admit_apimachinery::go::quote::{quote, quote_all};
use serde_json::{Map, Value};
use thiserror::Error;

use super::claims::{self, ClaimError};

/// How far the issuer's clock may be ahead.
const LEEWAY: Duration = Duration::from_mins(1);
/// The time of a token that names none, in seconds.
const NO_TIME: i64 = -62_135_596_800;

/// Why a token is rejected before its other claims are read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum TokenError {
    #[error("oidc: failed to unmarshal claims: {0}")]
    Claim(#[from] ClaimError),
    #[error("oidc: failed to obtain source from claim name")]
    NoSource,
    #[error("oidc: source does not exist")]
    UnknownSource,
    /// None of the token's audiences is among `wanted`.
    #[error("oidc: expected audience {} got [{}]", listed(.wanted), quote_all(.got, " "))]
    Audience { wanted: Vec<String>, got: Vec<String> },
    /// The expiry time, in seconds.
    #[error("oidc: token is expired (Token Expiry: {})", shown(*.0))]
    Expired(i64),
    /// Times in seconds.
    #[error("oidc: current time {} before the nbf (not before) time: {}", shown(*.now), shown(*.begin))]
    Early { now: i64, begin: i64 },
}

fn listed(audiences: &[String]) -> String {
    match audiences {
        [only] => quote(only),
        several => {
            let mut several: Vec<&String> = several.iter().collect();
            several.sort();
            format!("in [{}]", quote_all(several, " "))
        }
    }
}

/// Whether a token is for an authenticator of this issuer.
pub(super) fn is_issued_by(claims: &Map<String, Value>, issuer: &str) -> bool {
    let named = claims::text(claims, "iss").unwrap_or_default();
    named == issuer || (named == "accounts.google.com" && issuer == "https://accounts.google.com")
}

/// The audiences for which a token may be issued.
#[derive(Debug)]
pub(super) struct Audiences(Vec<String>);

impl Audiences {
    pub(super) const fn new(audiences: Vec<String>) -> Self {
        Self(audiences)
    }

    /// What is wrong with a token that is to be used at `now`; without a time that is not looked at.
    pub(super) fn verify(
        &self,
        claims: &Map<String, Value>,
        now: Option<SystemTime>,
    ) -> Result<(), TokenError> {
        let issued_for = match claims.get("aud") {
            None => Vec::new(),
            Some(Value::Null) => vec![String::new()],
            Some(audience) => claims::texts(audience).map_err(|_| no_texts(audience))?,
        };
        sources(claims)?;
        if !issued_for.iter().any(|audience| self.0.contains(audience)) {
            return Err(TokenError::Audience { wanted: self.0.clone(), got: issued_for });
        }
        now.map_or(Ok(()), |now| in_time(claims, now))
    }
}

fn no_texts(audience: &Value) -> ClaimError {
    match audience {
        Value::Array(items) => ClaimError::Type {
            found: items.iter().find(|item| !item.is_string()).map_or("array", go::json::kind),
            wanted: "string",
        },
        other => ClaimError::Type { found: go::json::kind(other), wanted: "[]string" },
    }
}

/// Claims that are kept elsewhere name a place that the token has.
fn sources(claims: &Map<String, Value>) -> Result<(), TokenError> {
    let Some(Value::Object(names)) = claims.get("_claim_names") else { return Ok(()) };
    let sources = claims.get("_claim_sources").and_then(Value::as_object);
    for source in names.values() {
        match source.as_str() {
            None | Some("") => return Err(TokenError::NoSource),
            Some(source) if sources.is_none_or(|sources| !sources.contains_key(source)) => {
                return Err(TokenError::UnknownSource);
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn in_time(claims: &Map<String, Value>, now: SystemTime) -> Result<(), TokenError> {
    let expiry = seconds(claims, "exp")?.unwrap_or(NO_TIME);
    if at(expiry) < now {
        return Err(TokenError::Expired(expiry));
    }
    match seconds(claims, "nbf")? {
        Some(begin) if now.checked_add(LEEWAY).is_some_and(|latest| latest < at(begin)) => {
            let current = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
            Err(TokenError::Early { now: i64::try_from(current).unwrap_or(i64::MAX), begin })
        }
        _ => Ok(()),
    }
}

/// The whole seconds of a claim that is a time.
fn seconds(claims: &Map<String, Value>, name: &str) -> Result<Option<i64>, ClaimError> {
    match claims.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Number(number)) => Ok(number.as_i64().or_else(|| whole(number.as_f64()?))),
        Some(other) => Err(ClaimError::Type { found: go::json::kind(other), wanted: "json.Number" }),
    }
}

/// None past all times.
fn whole(seconds: f64) -> Option<i64> {
    format!("{:.0}", seconds.trunc()).parse().ok()
}

fn at(seconds: i64) -> SystemTime {
    let distance = Duration::from_secs(seconds.unsigned_abs());
    let moved = if seconds < 0 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) };
    moved.unwrap_or(UNIX_EPOCH)
}

/// Formats a time as Go does, for a server without a time zone of its own.
fn shown(seconds: i64) -> String {
    let civil = civil(seconds, 0);
    format!(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02} +0000 UTC",
        civil.year, civil.month, civil.day, civil.hour, civil.minute, civil.second
    )
}
