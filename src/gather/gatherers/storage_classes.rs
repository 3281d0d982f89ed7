//! Gathers the StorageClasses of the cluster.

use futures::FutureExt;

use super::super::failure::Failure;
use super::super::gatherer::{Context, Gatherer, Run};
use super::super::lister::{self, Resource};
use super::{keep_each, name};

pub(super) const ROW: Gatherer = Gatherer {
    id: "clusterconfig/storage_classes",
    collects: "StorageClasses",
    path: "config/storage/storageclasses/{name}.json",
    run: Run::Alone(|context| gather(context).boxed()),
};

const RESOURCE: Resource =
    Resource { group: "storage.k8s.io", version: "v1", kind: "StorageClass", plural: "storageclasses" };
const CAP: usize = 1000;

async fn gather(context: Context) -> Result<(), Failure> {
    let listing = lister::list(&context, RESOURCE).capped(CAP);
    keep_each(&context, listing, |object| format!("config/storage/storageclasses/{}", name(object))).await
}
