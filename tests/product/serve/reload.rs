//! Policies and certificates that change while requests run.

use serde_json::json;

use super::server::{Place, policy, review};
use crate::support::https::Client;
use crate::support::reliability::Row;

/// Row 22: what does not load ends the start, and nothing listens.
#[test]
fn row_22_broken_policies_end_the_start() {
    let mut row = Row::short(22, "broken sets, certificates and folders");
    let broken = [
        ("yaml", "a: [".to_owned()),
        ("kind", "apiVersion: v1\nkind: Nothing\nmetadata: {name: a}\n".to_owned()),
        ("no kind", "metadata: {name: a}\n".to_owned()),
        ("expression", policy("p", "object.")),
        ("type", policy("p", "1")),
        ("unknown name", policy("p", "nobody == 1")),
        ("action", policy("p", "true").replace("[Deny]", "[Refuse]")),
        ("no action", policy("p", "true").replace("[Deny]", "[]")),
        ("operation", policy("p", "true").replace("operations: ['*']", "operations: [MAKE]")),
        ("name", policy("p", "true").replace("name: p}", "name: P_P}")),
        ("twice", policy("p", "true") + "---\n" + &policy("p", "true")),
        ("duplicate key", policy("p", "true").replace("kind: V", "kind: A\nkind: V")),
        ("unknown field", policy("p", "true").replace("spec:\n  match", "spec:\n  matches: []\n  match")),
        ("no validations", policy("p", "true").replace("validations", "variables")),
        (
            "a text for a list",
            policy("p", "true").replace("resources: [configmaps]", "resources: configmaps"),
        ),
        (
            "failure policy",
            policy("p", "true").replace("spec:\n  match", "spec:\n  failurePolicy: Maybe\n  match"),
        ),
    ];
    for (what, text) in &broken {
        let place = Place::new();
        place.write("policies/policy.yaml", text);
        let output = place.fails(&[]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(2 | 3)), "{what}: {:?}: {said}", output.status);
        assert!(said.contains("policies/policy.yaml"), "{what}: {said}");
    }
    let place = Place::new();
    for (certificate, key) in [("", "tls.key"), ("tls.crt", "tls.crt"), ("ca/ca.crt", "tls.key")] {
        let output = place.fails(&["--tls-cert", certificate, "--tls-key", key]);
        assert_eq!(output.status.code(), Some(2), "{certificate} {key}");
    }
    assert_ne!(place.fails(&["--policies", "nowhere"]).status.code(), Some(0));
    let sets = broken.len() + 4;
    assert_eq!(sets, 20);
    row.measured(json!({"sets": sets, "nonZeroExits": sets}));
}

/// Row 23: a mistake in the files changes no answer.
#[tokio::test(flavor = "multi_thread")]
async fn row_23_a_bad_edit_changes_nothing() {
    let mut row = Row::short(23, "bad edits");
    let place = Place::new();
    place.write("policies/a.yaml", &policy("a", "object.data.v != 'bad'"));
    let serving = place.start(&[]);
    let (_, before) = serving.observed("/policies").await;
    let mut client = Client::connect(serving.webhook, &place.tls()).await.unwrap();
    for (number, text) in
        ["a: [".to_owned(), policy("b", "object."), policy("a", "true"), String::from("kind: X")]
            .iter()
            .enumerate()
    {
        place.write("policies/b.yaml", text);
        let failures = format!("admit_reloads_total{{part=\"policies\",result=\"failure\"}} {}", number + 1);
        serving.until("/metrics", |metrics| metrics.contains(&failures)).await;
        for (data, allowed) in [("bad", false), ("good", true)] {
            let answered = client.post("/validate", review("u", &json!({"v": data}))).await.unwrap();
            assert_eq!(answered.json()["response"]["allowed"], allowed);
        }
        assert_eq!(serving.observed("/policies").await.1, before);
        assert_eq!(serving.observed("/readyz").await.0, 200);
    }
    assert!(serving.log().contains("those in force stay"), "{}", serving.log());

    place.write("policies/b.yaml", &policy("b", "object.data.v != 'good'"));
    serving.until("/policies", |policies| policies.contains("\"b\"")).await;
    let answered = client.post("/validate", review("u", &json!({"v": "good"}))).await.unwrap();
    let message = &answered.json()["response"]["status"]["message"];
    assert!(message.as_str().unwrap().ends_with("denied request: b says no"), "{message}");
    row.measured(json!({"edits": 4, "changedAnswers": 0}));
    assert!(serving.terminate().success());
}
