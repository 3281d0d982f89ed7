//! Gathers what the cluster's image registry knows of running images: their layers, and hashes of commands and origins.

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
/// Images that are requested at a time.
const AT_ONCE: usize = 4;
/// The time limit for all images: the shapes of Pods matter more, and are kept when it is exceeded.
const PATIENCE: Duration = Duration::from_mins(1);
/// A substring of origins that add no information, those of the platform's own images.
const OWN: &str = "redhat";

/// Returns what is known of images, by digest. Read errors are reported.
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

/// Returns None for an image without known layers.
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
