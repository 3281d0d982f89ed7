//! Runs rows about HTTP itself: fills placeholders of their requests, and compares answers in the form they were recorded in.
//!
//! ```text
//! request    {…, ctype, acceptEncoding, watch: {parameter: value}}    <rv>, CUR, MID, FUT: versions of this server
//! answer     {events: […]}                   of a watch, in any order
//!            {ctype, cache, vary, kind, …}   of a negotiation: headers, and what the body is
//!            {enc, vary, ctype}              of a compression: headers
//!            text, or an object
//! ```

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::place::{Place, admin, compared};
use super::text;
use crate::kinds::http::{Bindings, Received};

pub(super) struct Wire {
    /// When the first row is asked.
    current: u64,
    /// That of an object in the middle of a list.
    middle: u64,
    /// Versions in recorded tokens of lists, and those that they were here.
    tokens: BTreeMap<u64, u64>,
    has_big: bool,
}

const LIST: &str = "/api/v1/namespaces/lw/configmaps";

/// Later than any version that the recording server reached.
const FUTURE: u64 = 100_000;

impl Wire {
    pub(super) async fn of(place: &Place<'_>) -> Result<Self, String> {
        // Only rows that ask for lists name them.
        let current = version(place, LIST).await.unwrap_or_default();
        let middle = version(place, &format!("{LIST}/c10")).await.unwrap_or_default();
        Ok(Self { current, middle, tokens: BTreeMap::new(), has_big: false })
    }

    /// # Errors
    /// How the answer differs from the recorded one.
    pub(super) async fn ask(&mut self, place: &Place<'_>, row: &Value) -> Result<(), String> {
        if row["kind"] == "gzip" && !self.has_big {
            self.has_big = true;
            create_big(place).await?;
        }
        let mut request = self.request(row);
        place.fill_version(&mut request).await?;
        let mut answer = place.sent(&request, admin()).await?;
        let mut expected = row["response"].clone();
        let found = found(&expected, &answer);
        if expected["body"]["code"] == 0 {
            // Never sent by a server: the recording client blotted it out.
            expected["body"]["code"] = found["code"].clone();
        }
        self.learn(&expected["body"], &found);
        // Before causes are put in order, which random names would change.
        let mut names = Bindings::default();
        names.generating(prefix(&row["request"]).as_deref());
        let masked = |body: &Value| -> Value {
            serde_json::from_str(&names.masked(&body.to_string())).unwrap_or_default()
        };
        expected["body"] = masked(&comparable(&expected["body"]));
        answer.body = masked(&comparable(&found)).to_string().into_bytes();
        compared(&expected, &answer)
    }

    /// The request with everything put in.
    fn request(&self, row: &Value) -> Value {
        let recorded = &row["request"];
        let mut request = recorded.clone();
        let mut path = text(recorded, "path").to_owned();
        // Only the id says which version stood there.
        let meant = text(row, "id").split('/').nth(2).unwrap_or_default();
        path = path.replace("<rv>", &self.version(meant));
        if let Some((before, query)) = path.split_once("continue=") {
            let (token, after) =
                query.split_once('&').map_or((query, None), |(token, rest)| (token, Some(rest)));
            let after = after.map(|rest| format!("&{rest}")).unwrap_or_default();
            path = format!("{before}continue={}{after}", self.token(token));
        }
        if let Some(parameters) = recorded["watch"].as_object() {
            let given = parameters.iter().map(|(name, value)| {
                let value = value.as_str().map_or_else(|| value.to_string(), |value| self.version(value));
                (name, value.replace('=', "%3D"))
            });
            let given = given.filter(|(_, value)| !value.is_empty());
            path += "?watch=1";
            given.for_each(|(name, value)| path += &format!("&{name}={value}"));
        }
        request["path"] = path.into();
        match recorded.get("ctype") {
            Some(kind) => request["contentType"] = kind.clone(),
            // Rows without headers of their own were sent as JSON, patches too.
            None if recorded.get("headers").is_none() => request["contentType"] = "application/json".into(),
            None => {}
        }
        if let Some(bytes) = message(recorded) {
            request["body"] = Value::Null;
            request["bodyBase64"] = bytes.into();
        }
        if recorded["accept"] == "" {
            request["accept"] = Value::Null;
        }
        if let Some(encodings) = recorded.get("acceptEncoding") {
            request["headers"] = json!({"Accept-Encoding": encodings});
        }
        request
    }

    fn version(&self, meant: &str) -> String {
        match meant {
            "CUR" => self.current.to_string(),
            "MID" => self.middle.to_string(),
            "FUT" => (self.current + FUTURE).to_string(),
            other => other.to_owned(),
        }
    }

    /// The token as this server would have made it.
    fn token(&self, recorded: &str) -> String {
        let ours = decoded(recorded).and_then(|mut token| {
            token["rv"] = (*self.tokens.get(&token["rv"].as_u64()?)?).into();
            Some(URL_SAFE_NO_PAD.encode(token.to_string()))
        });
        ours.unwrap_or_else(|| recorded.to_owned())
    }

    fn learn(&mut self, expected: &Value, found: &Value) {
        let version = |list: &Value| decoded(text(&list["metadata"], "continue"))?["rv"].as_u64();
        if let (Some(recorded), Some(ours)) = (version(expected), version(found)) {
            self.tokens.insert(recorded, ours);
        }
    }
}

/// The prefix of the name that the server was asked to make, which is random.
fn prefix(request: &Value) -> Option<String> {
    let body = &request["body"];
    let body =
        body.as_str().map_or_else(|| body.clone(), |text| serde_json::from_str(text).unwrap_or_default());
    body["metadata"]["generateName"].as_str().map(str::to_owned)
}

/// Protobuf, where the body of a request is that: it is recorded in Base64, other bodies as they were.
fn message(request: &Value) -> Option<&str> {
    let body = request["body"].as_str()?;
    let is_one = text(request, "ctype").contains("protobuf")
        && STANDARD.decode(body).is_ok_and(|bytes| bytes.starts_with(b"k8s"));
    is_one.then_some(body)
}

/// The answer in the form of the recorded one.
fn found(expected: &Value, answer: &Received) -> Value {
    let header = |name: &str| -> Value {
        let values = answer.headers.get_all(name).iter();
        let values: Vec<_> = values.map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
        if values.is_empty() { Value::Null } else { values.join(", ").into() }
    };
    let content = String::from_utf8_lossy(&answer.body);
    let body = serde_json::from_str::<Value>(&content);
    let (recorded, text) = (&expected["body"], || Value::from(content.clone().into_owned()));
    if recorded.get("events").is_some() {
        let events = content.lines().map(|line| event(&serde_json::from_str(line).unwrap_or_default()));
        return json!({"events": events.collect::<Vec<_>>()});
    }
    if recorded.get("enc").is_some() {
        return json!({
            "enc": header("content-encoding"), "vary": header("vary"), "ctype": header("content-type")
        });
    }
    if recorded.get("cache").is_some() {
        let body = body.unwrap_or_else(|_| text());
        let mut found = json!({
            "ctype": header("content-type"), "cache": header("cache-control"), "vary": header("vary"),
            "kind": body["kind"], "apiVersion": body["apiVersion"]
        });
        if recorded.get("text").is_some() {
            found["text"] = body;
        }
        return found;
    }
    body.ok().filter(|_| !recorded.is_string()).unwrap_or_else(text)
}

/// What is recorded of an event.
fn event(event: &Value) -> Value {
    let (object, kind) = (&event["object"], &event["type"]);
    match kind.as_str() {
        Some("ERROR") => json!({"type": kind, "object": object}),
        Some("BOOKMARK") => {
            let members = object.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
            let rest: Vec<&str> =
                members.filter(|name| !["kind", "apiVersion", "metadata"].contains(name)).collect();
            json!({
                "type": kind, "annotations": object["metadata"]["annotations"], "kind": object["kind"],
                "rest": rest
            })
        }
        _ => json!({"type": kind, "name": object["metadata"]["name"]}),
    }
}

/// The body without what differs from run to run: versions in tokens and in texts, ages, and the order of events.
fn comparable(body: &Value) -> Value {
    let mut body = body.clone();
    if let Some(events) = body.get_mut("events").and_then(Value::as_array_mut) {
        events.iter_mut().for_each(|event| event["object"] = without_versions(&event["object"]));
        events.sort_by_key(Value::to_string);
    }
    if let Some(mut token) = decoded(text(&body["metadata"], "continue")) {
        token["rv"] = Value::Null;
        body["metadata"]["continue"] = token;
    }
    for row in body.get_mut("rows").and_then(Value::as_array_mut).into_iter().flatten() {
        let cells = row.get_mut("cells").and_then(Value::as_array_mut);
        cells.into_iter().flatten().for_each(|cell| *cell = without_chance(cell));
    }
    for cause in body.pointer_mut("/details/causes").and_then(Value::as_array_mut).into_iter().flatten() {
        *cause = without_versions(cause);
    }
    without_versions(&body)
}

/// A cell without spans of time, and without addresses and ports that were allotted.
fn without_chance(cell: &Value) -> Value {
    let Some(text) = cell.as_str() else { return cell.clone() };
    let is_span = text.starts_with(|first: char| first.is_ascii_digit())
        && text.ends_with(['s', 'm', 'h', 'd', 'y'])
        && text.chars().all(|c| c.is_ascii_digit() || "smhdy".contains(c));
    if is_span || text.parse::<std::net::Ipv4Addr>().is_ok() {
        return "<chance>".into();
    }
    let has_ports = ["/TCP", "/UDP", "/SCTP"].iter().any(|protocol| text.contains(protocol));
    if has_ports { masked(text, ":").into() } else { cell.clone() }
}

/// A status whose message tells no versions: those of the recording server were its own.
fn without_versions(status: &Value) -> Value {
    const BEFORE: [&str; 4] = ["resource version: ", "current: ", " (", r#"resourceVersion\":\""#];
    let mut status = status.clone();
    let message = text(&status, "message");
    if message.to_lowercase().contains("version") {
        status["message"] =
            BEFORE.iter().fold(message.to_owned(), |text, before| masked(&text, before)).into();
    }
    status
}

/// The text with the numbers that follow `before` made equal.
fn masked(text: &str, before: &str) -> String {
    let mut parts = text.split(before);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        let number = if rest.len() < part.len() { "<n>" } else { "" };
        out += &format!("{before}{number}{rest}");
    }
    out
}

/// The members of a token that continues a list.
fn decoded(token: &str) -> Option<Value> {
    serde_json::from_slice::<Value>(&URL_SAFE_NO_PAD.decode(token).ok()?).ok().filter(Value::is_object)
}

async fn version(place: &Place<'_>, path: &str) -> Result<u64, String> {
    let answer = place.sent(&json!({"method": "GET", "path": path}), admin()).await?;
    let object: Value = serde_json::from_slice(&answer.body).map_err(|error| format!("{path}: {error}"))?;
    let version = text(&object["metadata"], "resourceVersion");
    version.parse().map_err(|error| format!("{path}: version {version:?}: {error}"))
}

/// An object whose answer is worth compressing, made after the rows that list its neighbours.
async fn create_big(place: &Place<'_>) -> Result<(), String> {
    let body = json!({"metadata": {"name": "big"}, "data": {"a": "x".repeat(300_000)}});
    let answer = place.sent(&json!({"method": "POST", "path": LIST, "body": body}), admin()).await?;
    if answer.status == 201 { Ok(()) } else { Err(format!("{LIST}/big: {}", answer.status)) }
}
