//! What a cluster that keeps images knows of those that run: their layers, hashes of what they start and of where they come from.

use std::time::Duration;

use futures::stream::{self, StreamExt as _};
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::super::super::failure::Failure;
use super::super::super::gatherer::Context;
use super::super::super::lister::{self, Resource};
use super::super::hashed;
use super::super::pods::items;
use super::shape::first;

const IMAGES: Resource =
    Resource { group: "image.openshift.io", version: "v1", kind: "Image", plural: "images" };
/// Images that are asked for at once.
const AT_ONCE: usize = 4;
/// For all of them: shapes are worth more than images, and are kept when this is over.
const PATIENCE: Duration = Duration::from_mins(1);
/// Of images whose origin has this in it the origin says nothing new.
const OWN: &str = "redhat";

/// What is known of images, by their digests. What cannot be read is told.
pub(super) async fn read(context: &Context, ids: Vec<String>) -> Map<String, Value> {
    let mut found = Map::new();
    if !lister::serves(context, IMAGES).await {
        return found;
    }
    let reading = async {
        let mut reads = stream::iter(ids.into_iter().map(|id| one(context, id))).buffer_unordered(AT_ONCE);
        while let Some((id, read)) = reads.next().await {
            match read {
                Ok(image) => {
                    found.extend(image.map(|image| (id, image)));
                }
                Err(failure) => context.recorder.fail(failure.to_string()),
            }
        }
    };
    if timeout(PATIENCE, reading).await.is_err() {
        context.recorder.warn(format!("not all images could be read within {} s", PATIENCE.as_secs()));
    }
    found.sort_keys();
    found
}

async fn one(context: &Context, id: String) -> (String, Result<Option<Value>, Failure>) {
    let read = lister::get(context, IMAGES, &id).await;
    (id, read.map(|image| image.as_ref().and_then(known)))
}

/// None for one whose layers are not known.
fn known(image: &Value) -> Option<Value> {
    let layers: Vec<_> = items(image, "/dockerImageLayers").filter_map(|layer| layer.get("name")).collect();
    if layers.is_empty() {
        return None;
    }
    let mut known = json!({"layerIDs": layers});
    for (field, pointer) in [
        ("firstCommand", "/dockerImageMetadata/ContainerConfig/Entrypoint/0"),
        ("firstArg", "/dockerImageMetadata/ContainerConfig/Cmd/0"),
    ] {
        if let Some(hash) = first(image, pointer) {
            known[field] = json!(hash);
        }
    }
    let origin = image.get("dockerImageReference").and_then(Value::as_str).unwrap_or_default();
    if !origin.is_empty() && !origin.contains(OWN) {
        known["repository"] = json!(hashed::short(origin));
    }
    Some(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_image_layers_are_told_and_hashes() {
        let image = json!({
            "dockerImageReference": "quay.io/shop/till:1", "dockerImageLayers": [{"name": "sha256:a", "size": 1}],
            "dockerImageMetadata": {"ContainerConfig": {"Entrypoint": ["/bin/till"], "Cmd": ["--port=1"]}},
        });
        let expected = json!({
            "layerIDs": ["sha256:a"], "firstCommand": hashed::short("till"), "firstArg": hashed::short("--port"),
            "repository": hashed::short("quay.io/shop/till:1"),
        });
        assert_eq!(known(&image), Some(expected));
        let own = json!({"dockerImageReference": "registry.redhat.io/x", "dockerImageLayers": [{"name": "sha256:a"}]});
        assert_eq!(known(&own), Some(json!({"layerIDs": ["sha256:a"]})));
        assert_eq!(known(&json!({})), None);
    }
}
