//! ConfigMaps of the configuration namespace, key by key, with PEM blocks taken out.

use futures::FutureExt;
use serde_json::Value;

use super::super::anonymize;
use super::super::gatherer::{Context, Failure, Gatherer, Yield};
use super::super::lister::{self, Resource};
use super::super::record::Record;
use super::{cut_short, name, namespace};

pub(super) const ROW: Gatherer = Gatherer {
    id: "clusterconfig/config_maps",
    collects: "every ConfigMap of the configuration namespace, a file per key",
    path: "config/configmaps/{namespace}/{name}/{key}",
    run: |context| gather(context).boxed(),
};

const RESOURCE: Resource = Resource { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps" };
const CAP: usize = 1000;

async fn gather(context: Context) -> Result<Yield, Failure> {
    let listed = lister::list_in(&context, &context.config_namespace, RESOURCE, CAP).await?;
    let mut found = Yield { warnings: cut_short(&listed), ..Yield::default() };
    for map in &listed.objects {
        for (key, value) in map.get("data").and_then(Value::as_object).into_iter().flatten() {
            let path = format!("config/configmaps/{}/{}/{key}", namespace(map), name(map));
            let text = anonymize::pem_blocks(value.as_str().unwrap_or_default());
            found.records.push(Record::raw(path, text, context.now));
        }
    }
    Ok(found)
}
