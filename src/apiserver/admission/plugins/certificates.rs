//! Implements `CertificateApproval`, `CertificateSigning` and `ClusterTrustBundleAttest`, which check permission on the
//! signer, and `CertificateSubjectRestriction`, which refuses requests for client certificates of the group
//! `system:masters`.

use admit_apimachinery::go;
use admit_policy::AccessAttributes;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::pem::Pem;
use x509_parser::prelude::FromDer as _;

use super::alone::Alone;
use super::pods::text;
use super::{Plugin, Request};
use crate::admission::review::Operation;
use crate::identity::MASTERS;
use crate::object;
use crate::status::Refusal;

pub(super) const APPROVAL: Plugin = Plugin {
    name: "CertificateApproval",
    mutate: None,
    validate: Some(validate_approval),
    alone: Alone::Never,
};

pub(super) const SIGNING: Plugin = Plugin {
    name: "CertificateSigning",
    mutate: None,
    validate: Some(validate_signing),
    alone: Alone::Never,
};

pub(super) const ATTEST: Plugin = Plugin {
    name: "ClusterTrustBundleAttest",
    mutate: None,
    validate: Some(validate_attest),
    alone: Alone::Never,
};

pub(super) const SUBJECT: Plugin = Plugin {
    name: "CertificateSubjectRestriction",
    mutate: None,
    validate: Some(validate_subject),
    alone: Alone::Acts,
};

const GROUP: &str = "certificates.k8s.io";
const REQUESTS: &str = "certificatesigningrequests";
/// The signer of certificates that authenticate clients of the API server.
const CLIENTS: &str = "kubernetes.io/kube-apiserver-client";

fn validate_approval(request: &Request<'_>) -> Result<(), Refusal> {
    if !request.is(Operation::Update, (GROUP, REQUESTS, "approval")) {
        return Ok(());
    }
    // The signer of the new object: an approver could change it in the same request.
    let signer = text(request.object(), "/spec/signerName");
    if may(request, "approve", signer) {
        return Ok(());
    }
    let why = format!("user not permitted to approve requests with signerName {}", go::quote(signer));
    Err(request.forbidden(&why))
}

fn validate_signing(request: &Request<'_>) -> Result<(), Refusal> {
    if !request.is(Operation::Update, (GROUP, REQUESTS, "status")) {
        return Ok(());
    }
    let part = |object: &Value, field: &str| {
        let part = object.pointer(&format!("/status/{field}")).cloned();
        part.filter(|part| !part.is_null())
    };
    let is_same = |field| part(request.object(), field) == part(request.old(), field);
    let signer = text(request.old(), "/spec/signerName");
    if (is_same("certificate") && is_same("conditions")) || may(request, "sign", signer) {
        return Ok(());
    }
    let why = format!("user not permitted to sign requests with signerName {}", go::quote(signer));
    Err(request.forbidden(&why))
}

fn validate_attest(request: &Request<'_>) -> Result<(), Refusal> {
    const BUNDLES: &str = "clustertrustbundles";
    let updates = request.updates(GROUP, BUNDLES);
    let signer = text(request.object(), "/spec/signerName");
    if !updates && !request.creates(GROUP, BUNDLES)
        || signer.is_empty()
        || updates && is_for_collectors_only(request)
        || may(request, "attest", signer)
    {
        return Ok(());
    }
    Err(request.forbidden(&format!("user not permitted to attest for signerName {}", go::quote(signer))))
}

/// Returns true if only owners and finalizers change, as garbage collectors do.
fn is_for_collectors_only(request: &Request<'_>) -> bool {
    let rest = |object: &Value| {
        let mut rest = object.clone();
        for field in ["ownerReferences", "finalizers", "managedFields", "resourceVersion"] {
            object::set_meta(&mut rest, field, None);
        }
        rest
    };
    rest(request.object()) == rest(request.old())
}

/// Returns whether the user has the verb on the signer, or on all signers of its domain.
fn may(request: &Request<'_>, verb: &str, signer: &str) -> bool {
    let domain = signer.split('/').next().unwrap_or_default();
    let user = request.review.call.identity.to_user();
    [signer.to_owned(), format!("{domain}/*")].into_iter().any(|name| {
        let attributes = AccessAttributes::Resource {
            verb: verb.to_owned(),
            group: GROUP.to_owned(),
            version: "*".to_owned(),
            resource: "signers".to_owned(),
            subresource: String::new(),
            namespace: String::new(),
            name,
            field_selector: String::new(),
            label_selector: String::new(),
        };
        request.cluster.access(&user, &attributes).allowed
    })
}

fn validate_subject(request: &Request<'_>) -> Result<(), Refusal> {
    if !request.creates(GROUP, REQUESTS) || text(request.object(), "/spec/signerName") != CLIENTS {
        return Ok(());
    }
    // What is not a certificate request has been refused as invalid.
    if is_for_masters(text(request.object(), "/spec/request")) == Some(true) {
        let why = format!("use of {CLIENTS} signer with {MASTERS} group is not allowed");
        return Err(request.forbidden(&why));
    }
    Ok(())
}

/// Returns whether the subject's organizations contain `system:masters`; None if the request cannot be decoded.
fn is_for_masters(encoded: &str) -> Option<bool> {
    let pem = STANDARD.decode(encoded).ok()?;
    let block = Pem::iter_from_buffer(&pem).flatten().find(|block| block.label == "CERTIFICATE REQUEST")?;
    let (_, request) = X509CertificationRequest::from_der(&block.contents).ok()?;
    let mut groups = request.certification_request_info.subject.iter_organization();
    Some(groups.any(|group| group.as_str() == Ok(MASTERS)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::admission::plugins::tests::{Asked, mutated, refused};
    use crate::identity::Identity;
    use crate::resources::Subresource;

    fn signing(subresource: Subresource, user: Identity, new: &Value) -> Result<(), String> {
        let old = json!({"metadata": {"name": "a"}, "spec": {"signerName": "example.com/x"}});
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "r"}, "rules": [{"apiGroups": [GROUP], "resources": ["signers"],
                "resourceNames": ["example.com/*"], "verbs": ["approve"]}]});
        let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": "r"},
            "subjects": [{"kind": "User", "name": "approver"}]});
        let stored = [("clusterroles", role), ("clusterrolebindings", binding)];
        let asked = Asked {
            subresource: Some(subresource),
            old: Some(&old),
            user,
            ..Asked::create(REQUESTS, new, &stored)
        };
        let plugin = if subresource == Subresource::Approval { &APPROVAL } else { &SIGNING };
        asked.of(plugin).map(drop).map_err(|refusal| refusal.message().to_owned())
    }

    #[test]
    fn signers_choose_who_approves_and_signs() {
        let user = |name: &str| Identity::new(name, []);
        let new = json!({"metadata": {"name": "a"}, "spec": {"signerName": "example.com/x"},
            "status": {"conditions": [{"type": "Approved"}]}});
        assert_eq!(signing(Subresource::Approval, user("approver"), &new), Ok(()));
        let forbidden =
            "certificatesigningrequests.certificates.k8s.io \"a\" is forbidden: user not permitted to";
        assert_eq!(
            signing(Subresource::Approval, user("other"), &new),
            Err(format!("{forbidden} approve requests with signerName \"example.com/x\""))
        );
        assert_eq!(
            signing(Subresource::Status, user("approver"), &new),
            Err(format!("{forbidden} sign requests with signerName \"example.com/x\""))
        );
        let same = json!({"metadata": {"name": "a"}, "spec": {"signerName": "example.com/x"}});
        assert_eq!(signing(Subresource::Status, user("other"), &same), Ok(()));
    }

    #[test]
    fn nobody_becomes_a_master_by_a_certificate() {
        let request = |group: &str, signer: &str| {
            let mut params = rcgen::CertificateParams::default();
            params.distinguished_name.push(rcgen::DnType::OrganizationName, group);
            let key = rcgen::KeyPair::generate().unwrap();
            let pem = params.serialize_request(&key).unwrap().pem().unwrap();
            json!({"metadata": {"name": "a"}, "spec": {"signerName": signer, "request": go::base64::encode(pem)}})
        };
        assert_eq!(
            refused(&SUBJECT, REQUESTS, &request(MASTERS, CLIENTS)),
            "certificatesigningrequests.certificates.k8s.io \"a\" is forbidden: use of \
             kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"
        );
        assert_eq!(mutated(&SUBJECT, REQUESTS, &request("devs", CLIENTS)), Ok(None));
        assert_eq!(mutated(&SUBJECT, REQUESTS, &request(MASTERS, "example.com/x")), Ok(None));
    }
}
