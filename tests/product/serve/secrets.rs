//! Rows 13 and 38: what of a request shows in logs. What is secret shows in the answer to whoever sent it, and nowhere else.

use serde_json::{Value, json};

use super::server::{Place, policy, review};
use crate::support::https::Client;
use crate::support::reliability::Row;

const CANARY: &str = "canary-4f1c9a";

fn secret_review() -> Value {
    let mut review: Value = serde_json::from_str(&review("u", &json!({}))).unwrap();
    let request = &mut review["request"];
    request["kind"]["kind"] = json!("Secret");
    request["resource"]["resource"] = json!("secrets");
    request["userInfo"]["extra"] = json!({"token": [CANARY]});
    request["object"] = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {
            "name": "c", "namespace": "n",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": CANARY},
            "managedFields": [{"manager": CANARY, "fieldsV1": {CANARY: {}}}],
        },
        "stringData": {"password": CANARY}, "data": {CANARY: CANARY},
    });
    review
}

#[tokio::test(flavor = "multi_thread")]
async fn row_38_secrets_are_told_to_nobody_else() {
    let mut row = Row::short(38, "canaries in reviews, logs at trace");
    let place = Place::new();
    let secrets = policy("s", "false").replace("[configmaps]", "[secrets]");
    place.write(
        "policies/s.yaml",
        &secrets
            .replace("message: s says no", "messageExpression: \"'leaks ' + object.stringData.password\""),
    );
    let urls = policy("u", "false");
    place.write(
        "policies/u.yaml",
        &urls.replace(
            "message: u says no",
            "messageExpression: \"'see https://user:' + object.data.v + '@host/'\"",
        ),
    );
    let serving = place.start_logging("trace", &[]);
    let mut client = Client::connect(serving.webhook, &place.tls()).await.unwrap();
    let mut answers = Vec::new();
    for body in [secret_review().to_string(), review("u", &json!({"v": CANARY}))] {
        answers.push(client.post("/validate", body.clone()).await.unwrap().text());
        // Cut short: a review that cannot be read is told of, too.
        let cut = body[..body.len() - 2].to_owned();
        client.post("/validate", cut).await.unwrap();
    }
    assert!(answers.iter().all(|answer| answer.contains(CANARY)), "the caller is told: {answers:?}");
    for path in ["/metrics", "/policies", "/readyz"] {
        assert!(!serving.observed(path).await.1.contains(CANARY), "{path}");
    }
    let log = serving.log();
    assert!(log.contains("denied") && log.contains("TRACE"), "{log}");
    let leaks: Vec<&str> = log.lines().filter(|line| line.contains(CANARY)).collect();
    assert!(leaks.is_empty(), "{leaks:#?}");
    row.measured(json!({"logLines": log.lines().count(), "hits": 0}));
}

/// Row 13: whatever requests are called, a line of the log stays a line, and reads from left to right.
#[tokio::test(flavor = "multi_thread")]
async fn row_13_log_lines_hold_no_control_characters() {
    let mut row = Row::short(13, "text in log lines");
    let place = Place::new();
    let quoting =
        policy("p", "false").replace("message: p says no", "messageExpression: \"'about ' + object.data.v\"");
    place.write("policies/p.yaml", &quoting);
    let serving = place.start(&[]);
    let mut client = Client::connect(serving.webhook, &place.tls()).await.unwrap();
    let strange = [
        '\0', '\u{7}', '\u{8}', '\n', '\r', '\t', '\u{b}', '\u{1b}', '\u{7f}', '\u{85}', '\u{9b}',
        '\u{200b}', '\u{200e}', '\u{2028}', '\u{2029}', '\u{202a}', '\u{202e}', '\u{2060}', '\u{2066}',
        '\u{2069}', '\u{feff}',
    ];
    for (number, c) in strange.iter().enumerate() {
        let text = format!("a{c}b");
        let mut review: Value =
            serde_json::from_str(&review(&format!("{number}{c}"), &json!({"v": text}))).unwrap();
        for field in ["name", "namespace", "subResource"] {
            review["request"][field] = if field == "subResource" { json!("") } else { json!(text) };
        }
        review["request"]["userInfo"]["username"] = json!(text);
        let answered = client.post("/validate", review.to_string()).await.unwrap();
        assert_eq!(answered.json()["response"]["allowed"], false);
    }
    let log = serving.log_until(|log| log.matches("\"denied\"").count() == strange.len());
    let raw = log.chars().filter(|c| *c != '\n' && (c.is_control() || strange.contains(c))).count();
    assert_eq!(raw, 0, "{log:?}");
    row.measured(json!({"characters": strange.len(), "raw": raw}));
}
