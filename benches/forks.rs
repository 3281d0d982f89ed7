//! How long it takes to fork a warmed cluster: 50 definitions, 1,000 objects. `scripts/bench-envtest` runs it.
#![expect(clippy::print_stdout, reason = "its output is what it is run for")]

use std::error::Error;
use std::time::{Duration, Instant};

use admit_testing::TestCluster;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

const DEFINITIONS: usize = 50;
const OBJECTS: usize = 1_000;
const FORKS: usize = 1_000;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let began = Instant::now();
    let warmed = TestCluster::start().await?;
    println!("start: {:?}", began.elapsed());
    let began = Instant::now();
    fill(&warmed).await?;
    println!("{DEFINITIONS} definitions and {OBJECTS} objects: {:?}", began.elapsed());
    let mut times = Vec::with_capacity(FORKS);
    let mut clusters = Vec::with_capacity(FORKS);
    for _ in 0..FORKS {
        let began = Instant::now();
        clusters.push(warmed.fork().await);
        times.push(began.elapsed());
    }
    tell("fork", &mut times);
    drop(clusters);
    let mut times = Vec::with_capacity(FORKS);
    let map: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "mine"}, "data": {"a": "1"}}))?;
    for _ in 0..FORKS {
        let began = Instant::now();
        let cluster = warmed.fork().await;
        let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
        maps.create(&PostParams::default(), &map).await?;
        maps.get("mine").await?;
        times.push(began.elapsed());
    }
    tell("a test on a fork (a create, a get, the end)", &mut times);
    Ok(())
}

async fn fill(cluster: &TestCluster) -> Result<(), Box<dyn Error>> {
    let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let definitions: Api<DynamicObject> = Api::all_with(cluster.client(), &ApiResource::from_gvk(&kind));
    for number in 0..DEFINITIONS {
        let definition = serde_json::from_value(definition(number))?;
        definitions.create(&PostParams::default(), &definition).await?;
    }
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    for number in 0..OBJECTS {
        let map = json!({"metadata": {"name": format!("map-{number}")}, "data": {"text": "x".repeat(1_000)}});
        maps.create(&PostParams::default(), &serde_json::from_value(map)?).await?;
    }
    Ok(())
}

fn definition(number: usize) -> Value {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object",
        "properties": {"size": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.size < 1000000"}]}}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("thing{number}s.example.com")},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": format!("thing{number}s"), "kind": format!("Thing{number}")},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}
    })
}

fn tell(what: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or_default();
    println!("{what}: median {:?}, 99 % {:?}, all {:?}", at(50), at(99), times.iter().sum::<Duration>());
}
