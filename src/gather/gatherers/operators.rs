//! ClusterOperators: what each part of the platform reports about itself.

use futures::FutureExt;

use super::super::gatherer::{Context, Failure, Gatherer};
use super::super::lister::{self, Resource};
use super::{keep_each, name};

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

async fn gather(context: Context) -> Result<(), Failure> {
    let listing = lister::list(&context, RESOURCE).capped(CAP);
    keep_each(&context, listing, |object| format!("config/clusteroperator/{}", name(object))).await
}
