//! The limits of the webhook hold wherever reviews are decided: where objects are changed as where they are judged.

use std::sync::Arc;
use std::thread::available_parallelism;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use serde_json::{Value, json};

use super::support::{Fault, Faulty, Gate, Post, Server, bound, config_map, server, server_with};

const ROUTES: [&str; 2] = ["/validate", "/mutate"];

/// A policy of each kind, both of which ask the cluster for the Namespace.
fn asking() -> Vec<Vec<Value>> {
    let judges = json!({"validations": [{"expression": "namespaceObject != null"}]});
    let rule =
        json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]});
    let expression = "[JSONPatch{op: 'add', path: '/data', value: {'n': namespaceObject.metadata.name}}]";
    let changes = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": "changes"},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]}, "reinvocationPolicy": "Never",
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": "changes"}, "spec": {"policyName": "changes"},
    });
    vec![bound("judges", &judges, &json!({}), "Deny"), vec![changes, binding]]
}

/// How often reviews of the route were answered so.
fn counted(server: &Server, route: &str, answer: &str) -> usize {
    let (route, answer) = (format!("\"{}\"", route.trim_start_matches('/')), format!("answer=\"{answer}\""));
    let metrics = server.metrics();
    let is_it = |line: &&str| line.starts_with("admit_request_seconds_count") && line.contains(&route);
    let lines = metrics.lines().filter(is_it).filter(|line| line.contains(&answer));
    lines.map(|line| line.rsplit_once(' ').unwrap().1.parse::<usize>().unwrap()).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn more_reviews_than_queues_take_are_refused_at_once() {
    const REFUSED: usize = 20;
    // Of each thread: what it is at, and what waits for it.
    let room = available_parallelism().map_or(2, |count| count.get().max(2)) * 65;
    for route in ROUTES {
        let gate = Arc::new(Gate::default());
        let server = server_with(&asking(), Faulty::every(1, Fault::Held(Arc::clone(&gate))));
        let asked: FuturesUnordered<_> = (0..REFUSED + room)
            .map(|number| {
                let server = &server;
                async move { (number, server.post(route, &config_map(&number.to_string())).await) }
            })
            .collect();
        let mut refused = 0;
        let mut answered = asked.enumerate();
        while let Some((count, (number, answer))) = answered.next().await {
            if answer.code.as_u16() == 429 {
                assert_eq!(answer.json["reason"], "TooManyRequests", "{route}: {}", answer.json);
                refused += 1;
            } else {
                assert_eq!(answer.code.as_u16(), 200, "{route}: {}", answer.json);
                let response = &answer.json["response"];
                assert_eq!(response["uid"], number.to_string(), "{route}");
                // On a machine that is very slow its time may have passed.
                if response["allowed"] == true {
                    assert_eq!(response.get("patch").is_some(), route == "/mutate", "{response}");
                }
            }
            if count + 1 == REFUSED {
                gate.open();
            }
        }
        assert!(refused >= REFUSED, "{route}: {refused}");
        assert_eq!(counted(&server, route, "overloaded"), refused, "{}", server.metrics());
    }
}

#[tokio::test]
async fn what_comes_too_late_is_a_failure_under_its_uid() {
    for route in ROUTES {
        let server = server_with(&asking(), Faulty::every(1, Fault::Error));
        let answer = server.send(Post::to(&format!("{route}?timeout=1us")), &config_map("u")).await;
        let response = &answer.json["response"];
        assert_eq!((answer.code.as_u16(), &response["uid"]), (200, &json!("u")), "{route}: {}", answer.json);
        assert_eq!(response["allowed"], false, "{route}: {response}");
        let message = response["status"]["message"].as_str().unwrap();
        assert!(message.starts_with("the policies could not be evaluated: "), "{route}: {message}");
        assert_eq!(counted(&server, route, "timeout"), 1, "{route}: {}", server.metrics());
    }
}

#[tokio::test]
async fn bodies_are_bounded_in_size_depth_and_kind() {
    let server = server(&asking());
    for route in ROUTES {
        let large = server.post(route, &" ".repeat(8 * 1024 * 1024 + 1)).await;
        assert_eq!(large.code.as_u16(), 413, "{route}");
        let yaml = server.send(Post { content_type: "application/yaml", ..Post::to(route) }, "").await;
        assert_eq!(yaml.code.as_u16(), 415, "{route}");
        let nested = format!(r#"{{"data":{}{}}}"#, "[".repeat(600), "]".repeat(600));
        let deep = config_map("u").replace(r#""object":{}"#, &format!(r#""object":{nested}"#));
        let answer = server.post(route, &deep).await;
        let response = &answer.json["response"];
        assert_eq!((&response["uid"], &response["allowed"]), (&json!("u"), &json!(false)), "{route}");
    }
}

#[tokio::test]
async fn a_panic_is_that_of_one_review() {
    for route in ROUTES {
        let server = server_with(&asking(), Faulty::every(2, Fault::Panic));
        for number in 1..=20_usize {
            let answer = server.post(route, &config_map(&number.to_string())).await;
            let response = &answer.json["response"];
            assert_eq!(response["uid"], number.to_string(), "{route}: {}", answer.json);
            assert_eq!(response["allowed"], number % 2 != 0, "{route}: {}", answer.json);
        }
        assert!(server.metrics().contains("admit_panics_total 10\n"), "{route}: {}", server.metrics());
    }
}
