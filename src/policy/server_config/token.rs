//! What is checked of a token before its claims are looked at: by whom and for whom it was issued, and until when it is valid.
//! Whether it is signed by whom it says is for the caller to know.
//!
//! Read from github.com/coreos/go-oidc v2.5 as kube-apiserver uses it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use admit_apimachinery::go;
use admit_apimachinery::go::instant::civil;
use admit_apimachinery::go::quote::{quote, quote_all};
use serde_json::{Map, Value};

use super::claims;

/// How far the clock of an issuer may be ahead.
const LEEWAY: Duration = Duration::from_mins(1);
/// The time of a token that names none, in seconds.
const NO_TIME: i64 = -62_135_596_800;

/// Whether a token is for an authenticator of this issuer.
pub(super) fn is_issued_by(claims: &Map<String, Value>, issuer: &str) -> bool {
    let named = claims::text(claims, "iss").unwrap_or_default();
    named == issuer || (named == "accounts.google.com" && issuer == "https://accounts.google.com")
}

/// Who may be asked with a token.
#[derive(Debug)]
pub(super) struct Audiences(Vec<String>);

impl Audiences {
    pub(super) const fn new(audiences: Vec<String>) -> Self {
        Self(audiences)
    }

    /// What is wrong with a token that is to be used at `now`; without a time that is not looked at.
    pub(super) fn verify(&self, claims: &Map<String, Value>, now: Option<SystemTime>) -> Result<(), String> {
        let issued_for = match claims.get("aud") {
            None => Vec::new(),
            Some(Value::Null) => vec![String::new()],
            Some(audience) => claims::texts(audience)
                .map_err(|_| format!("oidc: failed to unmarshal claims: {}", no_texts(audience)))?,
        };
        sources(claims)?;
        if !issued_for.iter().any(|audience| self.0.contains(audience)) {
            let got = quote_all(&issued_for, " ");
            return Err(match self.0.as_slice() {
                [only] => format!("oidc: expected audience {} got [{got}]", quote(only)),
                several => {
                    let mut several: Vec<&String> = several.iter().collect();
                    several.sort();
                    format!("oidc: expected audience in [{}] got [{got}]", quote_all(several, " "))
                }
            });
        }
        now.map_or(Ok(()), |now| in_time(claims, now))
    }
}

fn no_texts(audience: &Value) -> String {
    let found = match audience {
        Value::Array(items) => items.iter().find(|item| !item.is_string()).map_or("array", go::json::kind),
        other => {
            return format!(
                "json: cannot unmarshal {} into Go value of type []string",
                go::json::kind(other)
            );
        }
    };
    format!("json: cannot unmarshal {found} into Go value of type string")
}

/// Claims that are kept elsewhere name a place that the token has.
fn sources(claims: &Map<String, Value>) -> Result<(), String> {
    let Some(Value::Object(names)) = claims.get("_claim_names") else { return Ok(()) };
    let sources = claims.get("_claim_sources").and_then(Value::as_object);
    for source in names.values() {
        match source.as_str() {
            None | Some("") => return Err("oidc: failed to obtain source from claim name".to_owned()),
            Some(source) if sources.is_none_or(|sources| !sources.contains_key(source)) => {
                return Err("oidc: source does not exist".to_owned());
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn in_time(claims: &Map<String, Value>, now: SystemTime) -> Result<(), String> {
    let expiry = seconds(claims, "exp")?.unwrap_or(NO_TIME);
    if at(expiry) < now {
        return Err(format!("oidc: token is expired (Token Expiry: {})", shown(expiry)));
    }
    match seconds(claims, "nbf")? {
        Some(begin) if now.checked_add(LEEWAY).is_some_and(|latest| latest < at(begin)) => {
            let current = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
            let (current, begin) = (shown(i64::try_from(current).unwrap_or(i64::MAX)), shown(begin));
            Err(format!("oidc: current time {current} before the nbf (not before) time: {begin}"))
        }
        _ => Ok(()),
    }
}

/// The whole seconds of a claim that is a time.
fn seconds(claims: &Map<String, Value>, name: &str) -> Result<Option<i64>, String> {
    match claims.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Number(number)) => Ok(number.as_i64().or_else(|| whole(number.as_f64()?))),
        Some(other) => Err(format!(
            "oidc: failed to unmarshal claims: json: cannot unmarshal {} into Go value of type json.Number",
            go::json::kind(other)
        )),
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

/// As Go shows a time, in the zone of a server that has none of its own.
fn shown(seconds: i64) -> String {
    let civil = civil(seconds, 0);
    format!(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02} +0000 UTC",
        civil.year, civil.month, civil.day, civil.hour, civil.minute, civil.second
    )
}
