//! Gathers the ConfigMaps of the configuration namespace, one record per key, without PEM blocks.

use futures::FutureExt;
use serde_json::Value;

use super::super::anonymize;
use super::super::failure::Failure;
use super::super::gatherer::{Context, Gatherer, Run};
use super::super::lister::{self, Resource};
use super::{name, namespace, tell};

pub(super) const ROW: Gatherer = Gatherer {
    id: "clusterconfig/config_maps",
    collects: "every ConfigMap of the configuration namespace, a file per key",
    path: "config/configmaps/{namespace}/{name}/{key}",
    run: Run::Alone(|context| gather(context).boxed()),
};

const RESOURCE: Resource = Resource { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps" };
const CAP: usize = 1000;

async fn gather(context: Context) -> Result<(), Failure> {
    let mut listing = lister::list_in(&context, &context.config_namespace, RESOURCE).capped(CAP);
    while let Some(map) = listing.next().await? {
        for (key, value) in map.get("data").and_then(Value::as_object).into_iter().flatten() {
            let path = format!("config/configmaps/{}/{}/{key}", namespace(&map), name(&map));
            let text = anonymize::pem_blocks(value.as_str().unwrap_or_default());
            context.raw(path, text).await?;
        }
    }
    tell(&context, &listing);
    Ok(())
}
