//! Parses the cases of a suite that are about tokens, authorizers, webhooks and devices.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{Expected, PlaceCase, Subject};
use crate::read::decode::{Fields, FieldsError, known, wrong};
use crate::server_config::AccessReview;
use crate::tools::suite::Case;
use crate::tools::suite::expect::text;

/// The fields of an item of `authentication`.
pub const AUTHENTICATION_FIELDS: &[&str] = &["name", "claims", "endpoints", "path", "now", "expect"];
/// The fields of an item of `authorization`.
pub const AUTHORIZATION_FIELDS: &[&str] = &["name", "accessReview", "expect"];
/// The fields of an item of `devices`.
pub const DEVICES_FIELDS: &[&str] = &["name", "class", "claim", "request", "selectors", "expect"];
/// The fields that an item of `webhooks` has in its `expect`; the others are those of a case.
pub const WEBHOOK_FIELDS: &[&str] = &["webhooks", "error"];

const USER_FIELDS: &[&str] = &["username", "uid", "groups", "extra"];
const AUTHORIZER_WORDS: &[&str] = &["called", "allowed", "skipped", "failed", "denied", "not reached"];
const WEBHOOK_WORDS: &[&str] = &["called", "unmatched", "skipped", "ignored", "error"];

/// Parses the cases of all lists of a suite; `webhook_case` parses requests.
pub(in crate::tools::suite) fn decode(
    suite: &Fields<'_>,
    webhook_case: &dyn Fn(&Fields<'_>) -> Result<Case, FieldsError>,
) -> Result<Vec<PlaceCase>, FieldsError> {
    let mut cases = Vec::new();
    for fields in suite.objects("authentication")? {
        cases.push(authentication(&fields)?);
    }
    for fields in suite.objects("authorization")? {
        known(&fields, AUTHORIZATION_FIELDS)?;
        let Some(review) = fields.optional_object("accessReview")? else {
            return Err(wrong(
                fields.path_of("accessReview"),
                "must be specified: the spec of a SubjectAccessReview",
            ));
        };
        let subject = Subject::Access(AccessReview::decode(&review)?);
        let expect = turns(&fields, "authorizers", AUTHORIZER_WORDS)?;
        cases.push(PlaceCase { name: name(&fields)?, path: fields.path().to_owned(), subject, expect });
    }
    for fields in suite.objects("webhooks")? {
        let subject = Subject::Webhooks(Box::new(webhook_case(&fields)?));
        let expect = turns(&fields, "webhooks", WEBHOOK_WORDS)?;
        cases.push(PlaceCase { name: name(&fields)?, path: fields.path().to_owned(), subject, expect });
    }
    for fields in suite.objects("devices")? {
        cases.push(devices(&fields)?);
    }
    Ok(cases)
}

fn name(fields: &Fields<'_>) -> Result<String, FieldsError> {
    match fields.string("name")? {
        name if name.is_empty() => {
            Err(wrong(fields.path_of("name"), "must be specified: results and --run tell cases by it"))
        }
        name => Ok(name),
    }
}

fn authentication(fields: &Fields<'_>) -> Result<PlaceCase, FieldsError> {
    known(fields, AUTHENTICATION_FIELDS)?;
    let subject = match (fields.get("claims"), fields.optional_string("path")?) {
        (Some(Value::Object(claims)), None) => {
            let (now, endpoints) = (now(fields)?, endpoints(fields)?);
            Subject::Token { claims: claims.clone(), now, endpoints }
        }
        (None, Some(path)) => Subject::Anonymous { path },
        (Some(_), None) => return Err(wrong(fields.path_of("claims"), "must be a map of what a token says")),
        _ => {
            let problem = "must have either `claims`, those of a token, or `path`, of a request without one";
            return Err(wrong(fields.path(), problem));
        }
    };
    let of_expect = fields.object("expect")?;
    known(&of_expect, &["user", "error"])?;
    let user = of_expect.optional_object("user")?;
    if let Some(user) = &user {
        known(user, USER_FIELDS)?;
    }
    let user = of_expect.get("user").and_then(Value::as_object).cloned();
    let expect = Expected { user, error: text(&of_expect, "error")?, ..Expected::default() };
    if expect.user.is_some() == expect.error.is_some() {
        return Err(wrong(fields.path_of("expect"), "must have either `user` or `error`"));
    }
    Ok(PlaceCase { name: name(fields)?, path: fields.path().to_owned(), subject, expect })
}

/// Parses the responses of endpoints to tokens.
fn endpoints(fields: &Fields<'_>) -> Result<Map<String, Value>, FieldsError> {
    let Some(endpoints) = fields.optional_object("endpoints")? else { return Ok(Map::new()) };
    for endpoint in endpoints.keys() {
        endpoints.object(endpoint)?;
    }
    Ok(fields.get("endpoints").and_then(Value::as_object).cloned().unwrap_or_default())
}

fn now(fields: &Fields<'_>) -> Result<Option<std::time::SystemTime>, FieldsError> {
    let Some(text) = fields.optional_string("now")? else { return Ok(None) };
    let time: Timestamp = text.parse().map_err(|_| {
        wrong(fields.path_of("now"), format!("`{text}` must be a time such as 2026-12-31T12:00:00Z"))
    })?;
    Ok(Some(time.into()))
}

/// Parses the expected results by name.
fn turns(fields: &Fields<'_>, key: &str, words: &[&str]) -> Result<Expected, FieldsError> {
    let of_expect = fields.object("expect")?;
    known(&of_expect, &[key, "error"])?;
    let turns = of_expect.string_map(key)?;
    let place = of_expect.path_of(key);
    if let Some((name, word)) = turns.iter().find(|(_, word)| !words.contains(&word.as_str())) {
        let problem = format!("`{word}` is not one of {}", words.join(", "));
        return Err(wrong(format!("{place}.{name}"), problem));
    }
    if turns.is_empty() {
        return Err(wrong(place, format!("must say what becomes of each: {}", words.join(", "))));
    }
    Ok(Expected { turns, error: text(&of_expect, "error")?, ..Expected::default() })
}

fn devices(fields: &Fields<'_>) -> Result<PlaceCase, FieldsError> {
    known(fields, DEVICES_FIELDS)?;
    let subject = Subject::Devices {
        class: fields.optional_string("class")?,
        claim: fields.optional_string("claim")?,
        request: fields.optional_string("request")?,
        selectors: fields.strings("selectors")?,
    };
    if let Subject::Devices { class: None, claim: None, selectors, .. } = &subject
        && selectors.is_empty()
    {
        return Err(wrong(fields.path(), "must have `class`, `claim` or `selectors`"));
    }
    let of_expect = fields.object("expect")?;
    known(&of_expect, &["devices", "error"])?;
    let devices = match of_expect.get("devices") {
        None => None,
        Some(_) => Some(of_expect.strings("devices")?),
    };
    let expect = Expected { devices, error: text(&of_expect, "error")?, ..Expected::default() };
    if expect.devices.is_none() && expect.error.is_none() {
        return Err(wrong(fields.path_of("expect"), "must have `devices`, `error` or both"));
    }
    Ok(PlaceCase { name: name(fields)?, path: fields.path().to_owned(), subject, expect })
}
