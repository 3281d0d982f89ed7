//! How many service accounts there are and what those of the readable namespaces are called.

use std::collections::BTreeMap;

use futures::FutureExt;
use serde_json::json;

use super::super::gatherer::{Context, Failure, Gatherer, Yield};
use super::super::lister::{self, Resource};
use super::super::record::Record;
use super::{cut_short, name, namespace};

pub(super) const ROW: Gatherer = Gatherer {
    id: "clusterconfig/service_accounts",
    collects: "number and names of service accounts by namespace, at most 1000",
    path: "config/serviceaccounts.json",
    run: |context| gather(context).boxed(),
};

const RESOURCE: Resource =
    Resource { group: "", version: "v1", kind: "ServiceAccount", plural: "serviceaccounts" };
const CAP: usize = 1000;

async fn gather(context: Context) -> Result<Yield, Failure> {
    let listed = lister::list(&context, RESOURCE, CAP).await?;
    let warnings = cut_short(&listed);
    let total = listed.objects.len();
    let mut namespaces: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for account in listed.objects.iter().filter(|account| context.reads_namespace(namespace(account))) {
        namespaces.entry(namespace(account)).or_default().push(name(account));
    }
    if namespaces.is_empty() {
        return Ok(Yield { warnings, ..Yield::default() });
    }
    let summary = json!({"serviceAccounts": {"TOTAL_COUNT": total, "namespaces": namespaces}});
    let record = Record::json("config/serviceaccounts", summary, context.now);
    Ok(Yield { records: vec![record], warnings, errors: Vec::new() })
}
