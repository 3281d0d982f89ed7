//! Checks status updates of claims, where kubelets may change only what concerns a resize, and certificate signing requests,
//! which must be for the kubelet's own node.

use std::collections::BTreeSet;

use admit_apimachinery::go;
use admit_apimachinery::pointer::text;
use admit_apimachinery::quantity::Quantity;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::pem::Pem;
use x509_parser::prelude::FromDer as _;

use super::super::Request;
use crate::admission::review::Operation;
use crate::object;
use crate::status::Refusal;

/// The fields of a claim's status that kubelets may change.
const WRITTEN: [&str; 4] = ["allocatedResourceStatuses", "allocatedResources", "capacity", "conditions"];

/// Checks a claim's status update. Upstream's message holds a Go diff of the claims; here it lists the fields.
pub(super) fn admit_claim(request: &Request<'_>, node: &str) -> Result<(), Refusal> {
    let own = go::quote(node);
    if request.review.operation != Operation::Update {
        let operation = go::quote(request.review.operation.as_str());
        return Err(request.forbidden(&format!("unexpected operation {operation}")));
    }
    let mut changed = BTreeSet::new();
    differences(&rest(request.old()), &rest(request.object()), "", &mut changed);
    if changed.is_empty() {
        return Ok(());
    }
    let fields = changed.into_iter().collect::<Vec<_>>().join(", ");
    Err(request.forbidden(&format!(
        "node {own} is not allowed to update fields other than status.quantity and status.conditions: {fields}"
    )))
}

/// Returns the claim without the fields that may change.
fn rest(claim: &Value) -> Value {
    let mut rest = claim.clone();
    object::set_meta(&mut rest, "resourceVersion", None);
    object::set_meta(&mut rest, "managedFields", None);
    if let Some(status) = rest.get_mut("status").and_then(Value::as_object_mut) {
        status.retain(|field, _| !WRITTEN.contains(&field.as_str()));
    }
    rest
}

/// Collects the paths at which two objects differ; missing equals empty, and quantities are compared by value.
fn differences(one: &Value, other: &Value, path: &str, found: &mut BTreeSet<String>) {
    match (one, other) {
        (Value::Object(left), Value::Object(right)) => {
            let keys: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
            for key in keys {
                let (left, right) = (left.get(key), right.get(key));
                let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                differences(left.unwrap_or(&Value::Null), right.unwrap_or(&Value::Null), &below, found);
            }
        }
        (one, other) if one == other || is_empty(one) && is_empty(other) || same_amount(path, one, other) => {
        }
        _ => drop(found.insert(path.to_owned())),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.values().all(is_empty),
        Value::String(text) => text.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

fn same_amount(path: &str, one: &Value, other: &Value) -> bool {
    path.starts_with("spec.resources.")
        && amount(one).zip(amount(other)).is_some_and(|(one, other)| one == other)
}

fn amount(value: &Value) -> Option<Quantity<'_>> {
    Quantity::parse(value.as_str()?).ok()
}

/// The signers of kubelet certificates, serving and client.
const OF_KUBELETS: [&str; 2] =
    ["kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet"];

pub(super) fn admit_signing(request: &Request<'_>, node: &str) -> Result<(), Refusal> {
    let signing = request.object();
    if request.review.operation != Operation::Create
        || !OF_KUBELETS.contains(&text(signing, "/spec/signerName"))
    {
        return Ok(());
    }
    match common_name(text(signing, "/spec/request")) {
        Err(why) => Err(request.forbidden(&format!("unable to parse csr: {why}"))),
        Ok(name) if name == format!("system:node:{node}") => Ok(()),
        Ok(_) => Err(request.forbidden(&format!("can only create a node CSR with CN=system:node:{node}"))),
    }
}

/// Returns the last common name of the subject, which is the one that Go returns.
fn common_name(encoded: &str) -> Result<String, &'static str> {
    let pem = STANDARD.decode(encoded).unwrap_or_default();
    let block = Pem::iter_from_buffer(&pem).next().and_then(Result::ok);
    let block = block.filter(|block| block.label == "CERTIFICATE REQUEST");
    let block = block.ok_or("PEM block type must be CERTIFICATE REQUEST")?;
    let (_, request) = X509CertificationRequest::from_der(&block.contents)
        .map_err(|_| "x509: malformed certificate request")?;
    let names = request.certification_request_info.subject.iter_common_name();
    Ok(names.last().and_then(|name| name.as_str().ok()).unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::PLUGIN;
    use super::*;
    use crate::admission::plugins::tests::Asked;
    use crate::identity::Identity;

    #[test]
    fn claims_differ_in_what_they_say() {
        let claim = |change: &dyn Fn(&mut Value)| {
            let mut claim =
                json!({"metadata": {"name": "c"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}});
            change(&mut claim);
            let mut found = BTreeSet::new();
            let old = json!({"metadata": {"name": "c", "resourceVersion": "1", "labels": {}},
                "spec": {"resources": {"requests": {"storage": "1024Mi"}}}, "status": {"phase": "", "capacity": {"storage": "1"}}});
            differences(&rest(&old), &rest(&claim), "", &mut found);
            found.into_iter().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(claim(&|_| {}), "");
        assert_eq!(claim(&|claim| claim["status"] = json!({"conditions": [{"type": "A"}]})), "");
        assert_eq!(claim(&|claim| claim["status"] = json!({"phase": "Bound"})), "status.phase");
        assert_eq!(claim(&|claim| claim["metadata"]["labels"] = json!({"a": "b"})), "metadata.labels.a");
        assert_eq!(
            claim(&|claim| claim["spec"]["resources"]["requests"]["storage"] = json!("2Gi")),
            "spec.resources.requests.storage"
        );
    }

    #[test]
    fn kubelets_ask_for_certificates_of_their_own_node() {
        let request = |name: &str, signer: &str| {
            let mut params = rcgen::CertificateParams::default();
            params.distinguished_name = rcgen::DistinguishedName::new();
            params.distinguished_name.push(rcgen::DnType::CommonName, name);
            let key = rcgen::KeyPair::generate().unwrap();
            let pem = params.serialize_request(&key).unwrap().pem().unwrap();
            json!({"metadata": {"name": "a"}, "spec": {"signerName": signer, "request": go::base64::encode(pem)}})
        };
        let told = |object: &Value| {
            let user = Identity::new("system:node:n", ["system:nodes".to_owned()]);
            let asked = Asked { user, ..Asked::create("certificatesigningrequests", object, &[]) };
            asked.of(&PLUGIN).map(drop).map_err(|refusal| refusal.message().to_owned())
        };
        let forbidden = |why: &str| {
            Err(format!("certificatesigningrequests.certificates.k8s.io \"a\" is forbidden: {why}"))
        };
        for signer in OF_KUBELETS {
            assert_eq!(told(&request("system:node:n", signer)), Ok(()));
            let why = "can only create a node CSR with CN=system:node:n";
            assert_eq!(told(&request("system:node:other", signer)), forbidden(why));
            let broken =
                json!({"metadata": {"name": "a"}, "spec": {"signerName": signer, "request": "eA=="}});
            let why = "unable to parse csr: PEM block type must be CERTIFICATE REQUEST";
            assert_eq!(told(&broken), forbidden(why));
        }
        assert_eq!(told(&request("other", "kubernetes.io/kube-apiserver-client")), Ok(()));
    }
}
