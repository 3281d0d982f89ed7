//! Measures the memory of a server for its stored objects.

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};

use crate::Trouble;
use crate::load::{config_map, config_maps, fill};
use crate::report::{Bar, Report};
use crate::server::Server;

const PODS: usize = 2_000;
const CONFIG_MAPS: usize = 20_000;

/// Returns a Pod with three kilobytes for each container, as operators create them: many short fields.
pub(crate) fn pod(n: usize, containers: usize) -> Value {
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
        "spec": {"automountServiceAccountToken": false, "containers": (0..containers).map(container).collect::<Vec<_>>()},
    })
}

pub(crate) async fn measure(server: &Server, who: &'static str, report: &mut Report) -> Result<(), Trouble> {
    let mut client = server.client().await?;
    // Memory that the first requests allocate for good does not count for the objects.
    fill(server, &config_maps("kube-public"), 100, |n| config_map(&format!("c{n}"))).await?;
    let pods = "/api/v1/namespaces/default/pods";
    let before = server.resident()?;
    fill(server, pods, PODS, |n| pod(n, 3)).await?;
    let held = server.resident()? - before;
    let stored = stored(&mut client, pods).await?;
    report.add(who, ("held of 2,000 Pods", "× JSON"), Bar::Most(2.5), held / stored);

    let before = server.resident()?;
    fill(server, &config_maps("default"), CONFIG_MAPS, |n| config_map(&format!("c{n}"))).await?;
    let held = server.resident()? - before;
    let stored = self::stored(&mut client, &config_maps("default")).await?;
    report.add(who, ("held of 20,000 ConfigMaps", "× JSON"), Bar::Most(2.5), held / stored);
    Ok(())
}

/// Returns the bytes of the JSON of all objects at a path, listed in pages to keep the list's memory small.
async fn stored(client: &mut crate::client::Client, path: &str) -> Result<f64, Trouble> {
    let (mut token, mut bytes) = (String::new(), 0.0);
    loop {
        let page = format!("{path}?limit=200&continue={token}");
        let (_, list) = client.send(Method::GET, &page, Bytes::new()).await?;
        let items = list["items"].as_array().ok_or("no list")?;
        bytes += items
            .iter()
            .map(|item| item.to_string().len())
            .fold(0.0, |sum, n| sum + f64::from(u32::try_from(n).unwrap_or(u32::MAX)));
        token = list["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
        if token.is_empty() {
            return Ok(bytes);
        }
    }
}
