//! Lists all gatherers. Adding one takes a file with a row constant, and a line here.
//!
//! All of them use the API of a plain Kubernetes cluster; kinds that a server does not serve give a row without data.

mod certificate_signing_requests;
mod cluster_roles;
mod conditional;
mod config_maps;
mod container_images;
mod crds;
mod hashed;
mod nodes;
mod operators;
mod operators_pods_and_events;
mod pod_disruption_budgets;
mod pods;
mod service_accounts;
mod storage_classes;
mod version;
mod webhook_configurations;
mod workloads;

use admit_apimachinery::pointer;
use serde_json::Value;

use super::failure::Failure;
use super::gatherer::{Context, Gatherer, Shared};
use super::lister::{self, Listing, Resource};

/// Every gatherer, in the order in which rows are reported.
pub static GATHERERS: &[Gatherer] = &[
    certificate_signing_requests::ROW,
    cluster_roles::ROW,
    config_maps::ROW,
    container_images::ROW,
    crds::ROW,
    webhook_configurations::MUTATING,
    nodes::ROW,
    operators::ROW,
    operators_pods_and_events::ROW,
    pod_disruption_budgets::ROW,
    service_accounts::ROW,
    storage_classes::ROW,
    webhook_configurations::VALIDATING,
    version::ROW,
    conditional::logs::ROW,
    conditional::rules::ROW,
    workloads::helm_charts::ROW,
    workloads::pods::ROW,
];

const PODS: Resource = Resource { group: "", version: "v1", kind: "Pod", plural: "pods" };

/// Starts reading a list that several gatherers share.
pub(super) fn listing(list: Shared, context: &Context) -> Listing {
    match list {
        Shared::Pods => lister::list(context, PODS),
        Shared::ClusterOperators => lister::list(context, operators::RESOURCE).capped(operators::CAP),
    }
}

fn name(object: &Value) -> &str {
    pointer::text(object, "/metadata/name")
}

fn namespace(object: &Value) -> &str {
    pointer::text(object, "/metadata/namespace")
}

/// Records each object of a list at the path that `path` returns for it.
async fn keep_each(
    context: &Context,
    mut listing: Listing,
    path: impl Fn(&Value) -> String + Send,
) -> Result<(), Failure> {
    while let Some(object) = listing.next().await? {
        context.json(path(&object), object).await?;
    }
    tell(context, &listing);
    Ok(())
}

/// Reports a part that could not be read, and continues; only a record that cannot be written ends a gatherer.
fn told(context: &Context, part: Result<(), Failure>) -> Result<(), Failure> {
    match part {
        Ok(()) => Ok(()),
        Err(failure @ Failure::Disk(_)) => Err(failure),
        Err(failure) => {
            context.recorder.fail(failure.to_string());
            Ok(())
        }
    }
}

/// Reports warnings about a list that was read to its end.
fn tell(context: &Context, listing: &Listing) {
    listing.warnings().for_each(|warning| context.recorder.warn(warning));
}

#[cfg(test)]
mod tests {
    use super::*;
    use regex_automata::meta::Regex;
    use std::collections::BTreeSet;

    #[test]
    fn every_row_has_an_id_of_its_own_that_a_status_row_may_carry() {
        let rule = Regex::new("^[a-z]+[_a-z]*[a-z]([/a-z][_a-z]*)?[a-z]$").unwrap();
        let ids: BTreeSet<_> = GATHERERS.iter().map(|gatherer| gatherer.id).collect();
        assert_eq!(ids.len(), GATHERERS.len());
        for gatherer in GATHERERS {
            assert!(rule.is_match(gatherer.id) && (5..=256).contains(&gatherer.id.len()), "{}", gatherer.id);
            assert!(!gatherer.collects.is_empty() && !gatherer.path.is_empty(), "{}", gatherer.id);
        }
    }
}
