//! Gathers the admission webhook configurations, validating and mutating.

use futures::FutureExt;

use super::super::failure::Failure;
use super::super::gatherer::{Context, Gatherer, Run};
use super::super::lister::{self, Resource};
use super::{keep_each, name};

pub(super) const MUTATING: Gatherer = Gatherer {
    id: "clusterconfig/mutating_webhook_configurations",
    collects: "MutatingWebhookConfigurations",
    path: "config/mutatingwebhookconfigurations/{name}.json",
    run: Run::Alone(|context| {
        gather(context, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations").boxed()
    }),
};

pub(super) const VALIDATING: Gatherer = Gatherer {
    id: "clusterconfig/validating_webhook_configurations",
    collects: "ValidatingWebhookConfigurations",
    path: "config/validatingwebhookconfigurations/{name}.json",
    run: Run::Alone(|context| {
        gather(context, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations").boxed()
    }),
};

const CAP: usize = 1000;

async fn gather(context: Context, kind: &'static str, plural: &'static str) -> Result<(), Failure> {
    let resource = Resource { group: "admissionregistration.k8s.io", version: "v1", kind, plural };
    let listing = lister::list(&context, resource).capped(CAP);
    keep_each(&context, listing, |object| format!("config/{plural}/{}", name(object))).await
}
