//! What the API server holds of the objects that it stores: no more than three bytes for each byte of their text, history
//! and caches included. One test, because the memory of the whole process is counted.

use memory::cluster::{Cluster, PODS};
use memory::{growth, held};
use serde_json::{Value, json};

/// As many as take more than the caches do, whose bounds are constants.
const OBJECTS: usize = 1_000;
const TIMES: usize = 3;

/// Of ten thousand bytes, as operators make them: many short fields.
fn pod(n: usize) -> Value {
    let environment =
        |n: usize| json!({"name": format!("VARIABLE_{n}"), "value": format!("the value of {n}")});
    let container = |n: usize| {
        json!({
            "name": format!("c{n}"), "image": "registry.example.com/team/application:1.2.3",
            "env": (0..30).map(environment).collect::<Vec<_>>(),
            "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m", "memory": "1Gi"}},
        })
    };
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("p{n}"), "labels": {"app": "a"}},
        "spec": {"containers": (0..3).map(container).collect::<Vec<_>>()},
    })
}

fn tell(what: &str, taken: usize, bytes: usize) {
    if std::env::var_os("ADMIT_MEMORY_TELLS").is_some() {
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "{what}: {taken} bytes are held for {bytes}");
    }
}

#[test]
fn a_server_holds_three_times_what_it_stores() {
    let cluster = Cluster::new().unwrap();
    let send = |method: &str, path: &str, content_type: &str, body: Value| {
        let (code, answer) = cluster.send(method, path, content_type, body.to_string().into());
        assert!(code < 300, "{}", String::from_utf8_lossy(&answer));
        answer.len()
    };
    let (taken, stored) =
        held(|| (0..OBJECTS).map(|n| send("POST", PODS, "application/json", pod(n))).sum::<usize>());
    assert!(stored > OBJECTS * 8_000, "{stored} bytes");
    assert!(taken <= TIMES * stored, "{taken} bytes are held for {stored} that were created");

    tell("created", taken, stored);

    // History is bounded by what there is.
    let change = |n: usize| {
        let label = json!({"metadata": {"labels": {"app": "b"}}});
        send("PATCH", &format!("{PODS}/p{n}"), "application/merge-patch+json", label)
    };
    let (more, stored) = held(|| (0..OBJECTS).map(change).sum::<usize>());
    let taken = taken + more;
    tell("changed", taken, stored);
    assert!(taken <= TIMES * stored, "{taken} bytes are held for {stored} that were changed");

    // A list is made of texts: it takes its own length, and that of no value.
    let (grown, (code, list)) = growth(|| cluster.send("GET", PODS, "application/json", Vec::new().into()));
    assert_eq!(code, 200);
    tell("listed", grown, list.len());
    assert!(grown <= TIMES * list.len(), "a list of {} bytes took {grown}", list.len());
}
