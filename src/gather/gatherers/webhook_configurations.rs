//! Admission webhook configurations of both kinds.

use futures::FutureExt;

use super::super::gatherer::{Context, Failure, Gatherer, Yield};
use super::super::lister::{self, Resource};
use super::{name, one_each};

pub(super) const MUTATING: Gatherer = Gatherer {
    id: "clusterconfig/mutating_webhook_configurations",
    collects: "MutatingWebhookConfigurations",
    path: "config/mutatingwebhookconfigurations/{name}.json",
    run: |context| gather(context, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations").boxed(),
};

pub(super) const VALIDATING: Gatherer = Gatherer {
    id: "clusterconfig/validating_webhook_configurations",
    collects: "ValidatingWebhookConfigurations",
    path: "config/validatingwebhookconfigurations/{name}.json",
    run: |context| {
        gather(context, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations").boxed()
    },
};

const CAP: usize = 1000;

async fn gather(context: Context, kind: &'static str, plural: &'static str) -> Result<Yield, Failure> {
    let resource = Resource { group: "admissionregistration.k8s.io", version: "v1", kind, plural };
    let listed = lister::list(&context, resource, CAP).await?;
    Ok(one_each(listed, context.now, |object| format!("config/{plural}/{}", name(object))))
}
