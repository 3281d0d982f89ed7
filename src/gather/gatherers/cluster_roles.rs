//! Gathers the two aggregated cluster roles that most users are bound to: their rules show what was added to them.

use futures::FutureExt;

use super::super::failure::Failure;
use super::super::gatherer::{Context, Gatherer, Run};
use super::super::lister::{self, Resource};

pub(super) const ROW: Gatherer = Gatherer {
    id: "clusterconfig/clusterroles",
    collects: "the cluster roles admin and edit",
    path: "cluster-scoped-resources/rbac.authorization.k8s.io/clusterroles/{name}.json",
    run: Run::Alone(|context| gather(context).boxed()),
};

const RESOURCE: Resource = Resource {
    group: "rbac.authorization.k8s.io",
    version: "v1",
    kind: "ClusterRole",
    plural: "clusterroles",
};

async fn gather(context: Context) -> Result<(), Failure> {
    for name in ["admin", "edit"] {
        let Some(role) = lister::get(&context, RESOURCE, name).await? else { continue };
        let path = format!("cluster-scoped-resources/rbac.authorization.k8s.io/clusterroles/{name}");
        context.json(path, role).await?;
    }
    Ok(())
}
