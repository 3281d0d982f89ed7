//! Gathers certificate signing requests that may explain a problem: those that are undecided, denied or failed. The request
//! itself and an issued certificate are replaced by `x`; the requester and the purpose are kept.

use admit_apimachinery::pointer;
use futures::FutureExt;
use serde_json::Value;

use super::super::anonymize;
use super::super::failure::Failure;
use super::super::gatherer::{Context, Gatherer, Run};
use super::super::lister::{self, Resource};
use super::{name, tell};

pub(super) const ROW: Gatherer = Gatherer {
    id: "clusterconfig/certificate_signing_requests",
    collects: "undecided, denied and failed CertificateSigningRequests, anonymised, at most 5000",
    path: "config/certificatesigningrequests/{name}.json",
    run: Run::Alone(|context| gather(context).boxed()),
};

const RESOURCE: Resource = Resource {
    group: "certificates.k8s.io",
    version: "v1",
    kind: "CertificateSigningRequest",
    plural: "certificatesigningrequests",
};
const CAP: usize = 5000;

async fn gather(context: Context) -> Result<(), Failure> {
    let mut listing = lister::list(&context, RESOURCE).capped(CAP);
    while let Some(mut request) = listing.next().await? {
        if !is_doubtful(&request) {
            continue;
        }
        for pointer in ["/spec/request", "/spec/uid", "/status/certificate"] {
            anonymize::field(&mut request, pointer, anonymize::string);
        }
        context.json(format!("config/certificatesigningrequests/{}", name(&request)), request).await?;
    }
    tell(&context, &listing);
    Ok(())
}

fn is_doubtful(request: &Value) -> bool {
    let conditions = pointer::items(request, "/status/conditions");
    let has = |wanted: &str| {
        let mut types = conditions.iter().filter_map(|condition| condition.get("type"));
        types.any(|found| found == wanted)
    };
    !has("Approved") || has("Denied") || has("Failed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_approved_request_is_not_doubtful() {
        let with = |types: &[&str]| {
            let conditions: Vec<_> = types.iter().map(|t| json!({"type": t})).collect();
            is_doubtful(&json!({"status": {"conditions": conditions}}))
        };
        assert!(!with(&["Approved"]));
        assert!(with(&["Approved", "Failed"]) && with(&["Denied"]) && with(&[]));
        assert!(is_doubtful(&json!({})));
    }
}
