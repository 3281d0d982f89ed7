//! PodDisruptionBudgets of all namespaces, capped.

use futures::FutureExt;

use super::super::gatherer::{Context, Failure, Gatherer, Yield};
use super::super::lister::{self, Resource};
use super::{name, namespace, one_each};

pub(super) const ROW: Gatherer = Gatherer {
    id: "clusterconfig/pdbs",
    collects: "PodDisruptionBudgets, at most 100",
    path: "config/pdbs/{namespace}/{name}.json",
    run: |context| gather(context).boxed(),
};

const RESOURCE: Resource =
    Resource { group: "policy", version: "v1", kind: "PodDisruptionBudget", plural: "poddisruptionbudgets" };
const CAP: usize = 100;

async fn gather(context: Context) -> Result<Yield, Failure> {
    let listed = lister::list(&context, RESOURCE, CAP).await?;
    Ok(one_each(listed, context.now, |object| format!("config/pdbs/{}/{}", namespace(object), name(object))))
}
