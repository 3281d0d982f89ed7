//! Gathers the PodDisruptionBudgets of all namespaces, up to a limit.

use futures::FutureExt;

use super::super::failure::Failure;
use super::super::gatherer::{Context, Gatherer, Run};
use super::super::lister::{self, Resource};
use super::{keep_each, name, namespace};

pub(super) const ROW: Gatherer = Gatherer {
    id: "clusterconfig/pdbs",
    collects: "PodDisruptionBudgets, at most 100",
    path: "config/pdbs/{namespace}/{name}.json",
    run: Run::Alone(|context| gather(context).boxed()),
};

const RESOURCE: Resource =
    Resource { group: "policy", version: "v1", kind: "PodDisruptionBudget", plural: "poddisruptionbudgets" };
const CAP: usize = 100;

async fn gather(context: Context) -> Result<(), Failure> {
    let listing = lister::list(&context, RESOURCE).capped(CAP);
    keep_each(&context, listing, |object| format!("config/pdbs/{}/{}", namespace(object), name(object))).await
}
