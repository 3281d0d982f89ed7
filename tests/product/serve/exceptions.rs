//! Exceptions at the webhook: what a policy denies is let through until a date, and the answer says by which exception and why.

use serde_json::{Value, json};

use super::server::{Place, policy, review};
use crate::support::https::Client;

fn exception(name: &str, namespace: &str, until: &str) -> String {
    format!(
        "apiVersion: admit/v1\nkind: PolicyException\nmetadata: {{name: {name}}}\nspec:\n  policies: [a]\n  \
         namespaces: ['{namespace}']\n  until: '{until}'\n  reason: it is being moved\n"
    )
}

async fn asked(client: &mut Client) -> Value {
    let answered = client.post("/validate", review("u", &json!({"v": "bad"}))).await.unwrap();
    answered.json()["response"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn exceptions_let_through_what_they_name_until_they_end() {
    let namespace = serde_json::from_str::<Value>(&review("u", &json!({"v": "bad"}))).unwrap();
    let namespace = namespace["request"]["namespace"].as_str().unwrap().to_owned();
    let place = Place::new();
    place.write("policies/a.yaml", &policy("a", "object.data.v != 'bad'"));
    place.write("policies/past.yaml", &exception("past", &namespace, "2020-12-31"));
    place.write("policies/elsewhere.yaml", &exception("elsewhere", "elsewhere", "2999-12-31"));
    let serving = place.start(&[]);
    let mut client = Client::connect(serving.webhook, &place.tls()).await.unwrap();
    let refused = asked(&mut client).await;
    assert_eq!(
        refused["allowed"], false,
        "neither the one that has ended nor that of another namespace: {refused}"
    );

    place.write("policies/now.yaml", &exception("now", &namespace, "2999-12-31"));
    serving
        .until("/metrics", |metrics| {
            metrics.contains("admit_reloads_total{part=\"policies\",result=\"success\"} 1")
        })
        .await;
    let let_through = asked(&mut client).await;
    assert_eq!(let_through["allowed"], true, "{let_through}");
    let told = let_through.to_string();
    for word in ["now", "it is being moved", "3000-01-01"] {
        assert!(told.contains(word), "{word}: {told}");
    }
    assert!(let_through["warnings"].as_array().is_some_and(|warnings| warnings.len() == 1), "{told}");
    assert!(let_through["auditAnnotations"].as_object().is_some_and(|told| !told.is_empty()), "{told}");

    place.write("policies/now.yaml", &exception("now", &namespace, "2020-12-31"));
    serving
        .until("/metrics", |metrics| {
            metrics.contains("admit_reloads_total{part=\"policies\",result=\"success\"} 2")
        })
        .await;
    assert_eq!(asked(&mut client).await["allowed"], false);
    assert!(serving.terminate().success());
}
