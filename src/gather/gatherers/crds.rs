//! Gathers the CRDs that support cases are often about: volume snapshots and those of this program.

use futures::FutureExt;

use super::super::failure::Failure;
use super::super::gatherer::{Context, Gatherer, Run};
use super::super::lister::{self, Resource};

pub(super) const ROW: Gatherer = Gatherer {
    id: "clusterconfig/crds",
    collects: "CustomResourceDefinitions of volume snapshots and of the resources that admit guards",
    path: "config/crd/{name}.json",
    run: Run::Alone(|context| gather(context).boxed()),
};

const RESOURCE: Resource = Resource {
    group: "apiextensions.k8s.io",
    version: "v1",
    kind: "CustomResourceDefinition",
    plural: "customresourcedefinitions",
};

const NAMES: &[&str] = &[
    "volumesnapshots.snapshot.storage.k8s.io",
    "volumesnapshotcontents.snapshot.storage.k8s.io",
    "datagathers.insights.openshift.io",
    "mustgathers.operator.openshift.io",
    "observabilityaddons.observability.open-cluster-management.io",
    "clusteroperators.config.openshift.io",
    "cyndipipelines.cyndi.cloud.redhat.com",
];

async fn gather(context: Context) -> Result<(), Failure> {
    for name in NAMES {
        let Some(definition) = lister::get(&context, RESOURCE, name).await? else { continue };
        context.json(format!("config/crd/{name}"), definition).await?;
    }
    Ok(())
}
