//! Row 38: what is secret shows in the answer to whoever sent it, and nowhere else.

use serde_json::{Value, json};

use super::server::{Place, policy, review};
use crate::support::https::Client;

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
    let serving = place.start_tracing();
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
}
