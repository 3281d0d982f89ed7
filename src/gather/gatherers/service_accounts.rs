//! Gathers the number of service accounts, and the names of those in readable namespaces.

use std::collections::BTreeMap;

use futures::FutureExt;
use serde_json::json;

use super::super::failure::Failure;
use super::super::gatherer::{Context, Gatherer, Run};
use super::super::lister::{self, Resource};
use super::{name, namespace, tell};

pub(super) const ROW: Gatherer = Gatherer {
    id: "clusterconfig/service_accounts",
    collects: "number of service accounts, and names of the first 1000 by namespace",
    path: "config/serviceaccounts.json",
    run: Run::Alone(|context| gather(context).boxed()),
};

const RESOURCE: Resource =
    Resource { group: "", version: "v1", kind: "ServiceAccount", plural: "serviceaccounts" };
/// The most names that are recorded; all accounts are counted.
const NAMED: usize = 1000;

async fn gather(context: Context) -> Result<(), Failure> {
    let mut listing = lister::list(&context, RESOURCE);
    let (mut total, mut named, mut unnamed) = (0_usize, 0_usize, 0_usize);
    let mut namespaces: BTreeMap<String, Vec<String>> = BTreeMap::new();
    while let Some(account) = listing.next().await? {
        total += 1;
        if !context.reads_namespace(namespace(&account)) {
            continue;
        }
        if named == NAMED {
            unnamed += 1;
            continue;
        }
        named += 1;
        namespaces.entry(namespace(&account).to_owned()).or_default().push(name(&account).to_owned());
    }
    tell(&context, &listing);
    if unnamed > 0 {
        context
            .recorder
            .warn(format!("{unnamed} service accounts past the first {NAMED} are counted, not named"));
    }
    if namespaces.is_empty() {
        return Ok(());
    }
    let summary = json!({"serviceAccounts": {"TOTAL_COUNT": total, "namespaces": namespaces}});
    context.json("config/serviceaccounts", summary).await
}
