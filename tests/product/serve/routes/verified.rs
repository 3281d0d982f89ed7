//! Row 5: whatever policies say, the answer is one that kube-apiserver accepts from a validating webhook. What it verifies
//! is written here once more, from `admissionreview.go` and `attributes.go` of its packages.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::support::{bound, config_map, server};
use crate::soak::{Random, percent, scaled};
use crate::support::reliability::Row;

/// The decoder of an API server drops what it does not know; here it is a mistake.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Review {
    api_version: String,
    kind: String,
    response: Response,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Response {
    uid: String,
    allowed: bool,
    status: Option<Status>,
    #[serde(default)]
    warnings: Vec<String>,
    #[serde(default)]
    audit_annotations: BTreeMap<String, String>,
    patch: Option<Value>,
    patch_type: Option<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Status {
    metadata: Value,
    status: String,
    code: i32,
    message: String,
    reason: String,
    details: Option<Value>,
}

#[tokio::test]
async fn row_05_answers_are_verified() {
    verified(200, Row::short(5, "answers of random policies")).await;
}

#[tokio::test]
#[ignore = "long; scripts/soak runs it"]
async fn row_05_answers_in_full() {
    verified(scaled(10_000), Row::full(5, "answers of random policies", percent())).await;
}

async fn verified(policies: usize, mut row: Row) {
    let mut random = Random(0x5eed_0005);
    let (mut denied, mut annotated, mut warned) = (0, 0, 0);
    for number in 0..policies {
        let uid = format!("{number}-{}", random.of(&TEXTS));
        let server = server(&[policy(&mut random)]);
        let mut request: Value = serde_json::from_str(&config_map(&uid)).unwrap();
        request["request"]["name"] = (*random.of(&TEXTS)).into();
        request["request"]["object"] = json!({"data": {"text": random.of(&TEXTS)}});
        let answer =
            server.post(random.of::<&str>(&["/validate", "/enforce", "/audit"]), &request.to_string()).await;
        match verify(&uid, &answer.json) {
            Ok(response) => {
                denied += usize::from(!response.allowed);
                annotated += usize::from(!response.audit_annotations.is_empty());
                warned += usize::from(!response.warnings.is_empty());
            }
            Err(refusal) => panic!("{number}: {refusal}: {}", answer.json),
        }
    }
    assert!(
        [denied, annotated, warned].iter().all(|count| *count > policies / 20),
        "{denied} {annotated} {warned}"
    );
    row.measured(json!({
        "policies": policies, "denied": denied, "annotated": annotated, "warned": warned, "refusals": 0,
    }));
}

/// As an API server looks at what a validating webhook returned.
fn verify(uid: &str, answer: &Value) -> Result<Response, String> {
    let review: Review = serde_json::from_value(answer.clone()).map_err(|error| error.to_string())?;
    let Review { api_version, kind, response } = review;
    if (api_version.as_str(), kind.as_str()) != ("admission.k8s.io/v1", "AdmissionReview") {
        return Err(format!("{api_version}, Kind={kind}"));
    }
    if response.uid != uid {
        return Err(format!("expected response.uid={uid:?}, got {:?}", response.uid));
    }
    if response.patch.is_some() || response.patch_type.is_some() {
        return Err("validating webhook may not return response.patch or response.patchType".to_owned());
    }
    match &response.status {
        None if response.allowed => {}
        Some(Status { metadata, status, code, message, reason, details }) if !response.allowed => {
            let whole = metadata.is_object()
                && status == "Failure"
                && (400..600).contains(code)
                && !message.is_empty()
                && !reason.is_empty()
                && details.as_ref().is_none_or(Value::is_object);
            if !whole {
                return Err("the status is not one of a failure".to_owned());
            }
        }
        _ => return Err("the status does not go with the verdict".to_owned()),
    }
    match response.audit_annotations.keys().find(|key| !is_qualified(&format!("hook.example.com/{key}"))) {
        Some(key) => Err(format!("annotation key {key:?} would be dropped")),
        None => Ok(response),
    }
}

/// `IsQualifiedName` of a name with a prefix.
fn is_qualified(key: &str) -> bool {
    let Some((prefix, name)) = key.split_once('/') else { return false };
    let edge = |text: &str| text.starts_with(|c: char| c.is_ascii_alphanumeric());
    let ends = |text: &str| text.ends_with(|c: char| c.is_ascii_alphanumeric());
    let of = |text: &str, more: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c));
    prefix.len() <= 253 && of(prefix, "-.") && name.len() <= 63 && edge(name) && ends(name) && of(name, "-_.")
}

/// Texts that an answer may have to quote.
const TEXTS: [&str; 8] = [
    "plain",
    "with \"quotes\" and \\ and </script>",
    "lines\nand\ttabs\r\n",
    "control \u{0}\u{1b}[31m\u{7f}",
    "\u{202e}right to left\u{2066}",
    "\u{1f980} \u{10ffff} \u{feff}",
    " ",
    "{\"patch\":\"W10=\",\"patchType\":\"JSONPatch\"}",
];

/// A policy and a binding, of parts that were drawn.
fn policy(random: &mut Random) -> Vec<Value> {
    let quoted = |text: &str| serde_json::to_string(text).unwrap().replace("\\u0000", "\\x00");
    let mut validation = json!({"expression": random.of(&[
        "true", "false", "object.data.text.size() > 5", "object.missing.field == 'x'", "1 / int(size(object.data) - 1) == 1",
    ])});
    match random.below(4) {
        0 => validation["message"] = (*random.of(&["says no", "\u{1f980} no", "no \"quotes\""])).into(),
        1 => validation["messageExpression"] = "'about: ' + object.data.text".into(),
        2 => {
            validation["messageExpression"] =
                format!("{} + string(1 / 0)", quoted(random.of::<&str>(&TEXTS))).into()
        }
        _ => {}
    }
    if random.one_in(2) {
        validation["reason"] = (*random.of(&["Forbidden", "Invalid", "RequestEntityTooLarge"])).into();
    }
    let mut spec = json!({
        "validations": [validation], "failurePolicy": random.of(&["Fail", "Ignore"]),
    });
    if random.one_in(2) {
        let key = random.of(&[
            "k",
            "Key_with.all-kinds",
            "a-key-that-is-as-long-as-keys-may-be--which-is-63-characters-lo",
        ]);
        spec["auditAnnotations"] = json!([{"key": key, "valueExpression": random.of(&[
            "string(object.data.text)", "null", "'v'", "string(object.missing)", "'x'.replace('x', 'long ')",
        ])}]);
    }
    let bindings = [
        json!(["Deny"]),
        json!(["Warn"]),
        json!(["Audit"]),
        json!(["Warn", "Audit"]),
        json!(["Deny", "Audit"]),
    ];
    let actions = random.of(&bindings);
    let name = random.of(&[
        "p",
        "demo-policy.example.com",
        "a.very.long.name.of.a.policy.which.is.more.than.sixty-three.characters.long",
    ]);
    bound(name, &spec, &json!({"validationActions": actions}), "Deny")
}
