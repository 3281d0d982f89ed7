//! ClusterOperators: what each part of the platform reports about itself.

use futures::FutureExt;

use super::super::gatherer::{Context, Failure, Gatherer, Yield};
use super::super::lister::{self, Resource};
use super::{name, one_each};

pub(super) const ROW: Gatherer = Gatherer {
    id: "clusterconfig/operators",
    collects: "ClusterOperators",
    path: "config/clusteroperator/{name}.json",
    run: |context| gather(context).boxed(),
};

const RESOURCE: Resource = Resource {
    group: "config.openshift.io",
    version: "v1",
    kind: "ClusterOperator",
    plural: "clusteroperators",
};
const CAP: usize = 1000;

async fn gather(context: Context) -> Result<Yield, Failure> {
    let listed = lister::list(&context, RESOURCE, CAP).await?;
    Ok(one_each(listed, context.now, |object| format!("config/clusteroperator/{}", name(object))))
}
