//! Measures starting with fifty definitions, serving a new definition, and stopping with open watches.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::Trouble;
use crate::client::Client;
use crate::report::{Bar, Report};
use crate::server::{Kind, Server};
use crate::watchers;

const DEFINITIONS: usize = 50;
const CLIENTS: usize = 4;
/// The number of definitions that are created one at a time.
const SINGLE: usize = 20;
const WATCHES: usize = 50;
const AT: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

pub(crate) async fn measure(kind: &Kind, who: &'static str, report: &mut Report) -> Result<(), Trouble> {
    let server = Server::start(kind, None).await?;
    report.add(who, ("ready", "s"), Bar::None, server.took.as_secs_f64());
    let began = Instant::now();
    let mut clients = JoinSet::new();
    for first in 0..CLIENTS {
        let access = server.access.clone();
        clients.spawn(async move {
            let mut client = access.connect().await?;
            for number in (first..DEFINITIONS).step_by(CLIENTS) {
                client.create(AT, &definition("many", number)).await?;
            }
            for number in (first..DEFINITIONS).step_by(CLIENTS) {
                served(&mut client, "many", number).await?;
            }
            Ok::<_, Trouble>(())
        });
    }
    while let Some(done) = clients.join_next().await {
        done??;
    }
    let took = server.took + began.elapsed();
    report.add(who, ("ready with 50 definitions", "s"), Bar::Most(0.25), took.as_secs_f64());
    report.add(who, ("ready with them", "s of CPU"), Bar::None, server.worked()?);
    report.add(
        who,
        ("resident with 50 definitions", "MiB"),
        Bar::None,
        server.resident()? / f64::from(1 << 20),
    );

    let mut client = server.client().await?;
    let mut slowest = Duration::ZERO;
    for number in 0..SINGLE {
        client.create(AT, &definition("one", number)).await?;
        let created = Instant::now();
        served(&mut client, "one", number).await?;
        slowest = slowest.max(created.elapsed());
    }
    report.add(who, ("served after its creation", "ms"), Bar::Most(20.0), slowest.as_secs_f64() * 1000.0);

    let watches = watchers::open(&server, "default", WATCHES).await?;
    let took = server.stop().await?;
    drop(watches);
    report.add(who, ("stop under 50 watches", "s"), Bar::Most(0.3), took.as_secs_f64());
    Ok(())
}

async fn served(client: &mut Client, group: &str, number: usize) -> Result<(), Trouble> {
    let path = format!("/apis/{group}.example.com/v1/things{number}");
    loop {
        match client.length(Method::GET, &path, Bytes::new()).await? {
            (StatusCode::OK, _) => return Ok(()),
            // The last is upstream's while it sets up the storage of a kind.
            (StatusCode::NOT_FOUND | StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS, _) => {
                sleep(Duration::from_millis(1)).await
            }
            (code, _) => return Err(format!("{path}: {code}").into()),
        }
    }
}

/// Returns a typical operator's definition: forty fields of a few levels, some with defaults and rules.
fn definition(group: &str, number: usize) -> Value {
    let leaf = |n: usize| match n % 4 {
        0 => {
            json!({"type": "string", "maxLength": 253, "description": "What the thing is called where it is used."})
        }
        1 => json!({"type": "integer", "minimum": 0, "maximum": 100, "default": 3}),
        2 => json!({"type": "array", "maxItems": 16, "items": {"type": "string", "maxLength": 63}}),
        _ => json!({"type": "boolean"}),
    };
    let fields =
        |count: usize| (0..count).map(|n| (format!("field{n}"), leaf(n))).collect::<serde_json::Map<_, _>>();
    let mut spec = fields(20);
    spec.insert("inner".to_owned(), json!({"type": "object", "properties": fields(20)}));
    let rule = json!({"rule": "!has(self.field1) || self.field1 < 100", "message": "too many"});
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": spec, "x-kubernetes-validations": [rule]},
        "status": {"type": "object", "properties": fields(8)},
    }});
    let (group, plural) = (format!("{group}.example.com"), format!("things{number}"));
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": plural, "singular": format!("thing{number}"), "kind": format!("Thing{number}")},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    })
}
