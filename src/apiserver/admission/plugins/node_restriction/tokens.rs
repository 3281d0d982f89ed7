//! Checks the token requests of a kubelet: a token must be bound to a pod on its node, and its audience must be requested by
//! a volume of the pod or allowed to the node by RBAC.

use admit_apimachinery::field_error::together;
use admit_apimachinery::go;
use admit_apimachinery::pointer::{items, text};
use admit_policy::AccessAttributes;
use serde_json::Value;

use super::super::Request;
use super::pods;
use crate::admission::review::Operation;
use crate::kinds::shared::pod_uses;
use crate::object;
use crate::status::Refusal;

/// In-tree volume sources that have migrated to a CSI driver, and the driver's name.
const HANDED_OVER: [(&str, &str); 7] = [
    ("awsElasticBlockStore", "ebs.csi.aws.com"),
    ("azureDisk", "disk.csi.azure.com"),
    ("azureFile", "file.csi.azure.com"),
    ("cinder", "cinder.csi.openstack.org"),
    ("gcePersistentDisk", "pd.csi.storage.gke.io"),
    ("portworxVolume", "pxd.portworx.com"),
    ("vsphereVolume", "csi.vsphere.vmware.com"),
];

/// An object that a volume refers to does not exist.
#[derive(Debug, thiserror::Error)]
#[error("{kind} {} not found", go::quote(.name))]
struct NotFound {
    kind: &'static str,
    name: String,
}

/// Says why a node may not request a token for an audience.
#[derive(Debug, thiserror::Error)]
enum AudienceError {
    #[error("node may only request 0 or 1 audiences")]
    Several,
    #[error("error validating audience {}: {}", go::quote(.audience), together(.problems.iter().map(ToString::to_string)))]
    Unknown { audience: String, problems: Vec<NotFound> },
    #[error(
        "audience {} not found in pod spec volume, {user} is not authorized to request tokens for this audience",
        go::quote(.audience)
    )]
    Unwanted { audience: String, user: String },
}

pub(super) fn admit(request: &Request<'_>, node: &str) -> Result<(), Refusal> {
    if request.review.operation != Operation::Create {
        return Ok(());
    }
    let asked = request.object();
    let bound = |field: &str| text(asked, &format!("/spec/boundObjectRef/{field}"));
    if (bound("apiVersion"), bound("kind")) != ("v1", "Pod") || bound("name").is_empty() {
        return Err(request.forbidden("node requested token not bound to a pod"));
    }
    let uid = bound("uid");
    if uid.is_empty() {
        return Err(request.forbidden("node requested token with a pod binding without a uid"));
    }
    let pod = pods::stored(request, bound("name"))?;
    if uid != object::uid(&pod) {
        return Err(request.forbidden(&format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been \
             deleted and then recreated"
        )));
    }
    if text(&pod, "/spec/nodeName") != node {
        return Err(request.forbidden("node requested token bound to a pod scheduled on a different node"));
    }
    admit_audience(request, &pod).map_err(|error| request.forbidden(&error.to_string()))
}

/// Checks that a volume of the pod requests the audience, or that the authorizer lets the node request it.
fn admit_audience(request: &Request<'_>, pod: &Value) -> Result<(), AudienceError> {
    let audience = match items(request.object(), "/spec/audiences") {
        [] => "",
        [one] => one.as_str().unwrap_or_default(),
        _ => return Err(AudienceError::Several),
    };
    match is_wanted(request, pod, audience) {
        Err(problems) => return Err(AudienceError::Unknown { audience: audience.to_owned(), problems }),
        Ok(true) => return Ok(()),
        Ok(false) => {}
    }
    let identity = &request.review.call.identity;
    let attributes = AccessAttributes::Resource {
        verb: "request-serviceaccounts-token-audience".to_owned(),
        group: String::new(),
        version: "v1".to_owned(),
        resource: audience.to_owned(),
        subresource: String::new(),
        namespace: request.namespace().to_owned(),
        name: request.review.name.to_owned(),
        field_selector: String::new(),
        label_selector: String::new(),
    };
    if request.cluster.access(&identity.to_user(), &attributes).allowed {
        return Ok(());
    }
    let (audience, user) = (audience.to_owned(), identity.username.clone());
    Err(AudienceError::Unwanted { audience, user })
}

/// Returns whether a volume of the pod requests a token for the audience, itself or through its CSI driver.
///
/// # Errors
/// If no volume requests it, and some refer to objects that do not exist.
fn is_wanted(request: &Request<'_>, pod: &Value, audience: &str) -> Result<bool, Vec<NotFound>> {
    let mut problems = Vec::new();
    for volume in items(pod, "/spec/volumes") {
        let mut tokens = items(volume, "/projected/sources")
            .iter()
            .filter_map(|source| source.get("serviceAccountToken").filter(|token| token.is_object()));
        if tokens.any(|token| text(token, "/audience") == audience) {
            return Ok(true);
        }
        match driver(request, pod, volume).and_then(|driver| match driver {
            Some(driver) => gives(request, &driver, audience),
            None => Ok(false),
        }) {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(false) } else { Err(problems) }
}

/// Returns the CSI driver of a volume, following a claim to its persistent volume.
fn driver(request: &Request<'_>, pod: &Value, volume: &Value) -> Result<Option<String>, NotFound> {
    let Some(claim) = pod_uses::claim(pod, volume) else { return Ok(driver_of(volume)) };
    let missing = |kind, name: &str| NotFound { kind, name: name.to_owned() };
    let claimed = request
        .stored("persistentvolumeclaims", request.namespace(), &claim)
        .ok_or_else(|| missing("persistentvolumeclaim", &claim))?;
    let name = text(&claimed, "/spec/volumeName");
    let stored =
        request.stored("persistentvolumes", "", name).ok_or_else(|| missing("persistentvolume", name))?;
    Ok(stored.get("spec").and_then(driver_of))
}

/// Returns the CSI driver that a volume, or the spec of a persistent volume, names.
fn driver_of(volume: &Value) -> Option<String> {
    let own = text(volume, "/csi/driver");
    if !own.is_empty() {
        return Some(own.to_owned());
    }
    let is_it = |(source, _): &(&str, &str)| volume.get(source).is_some_and(Value::is_object);
    HANDED_OVER.into_iter().find(is_it).map(|(_, driver)| driver.to_owned())
}

/// Returns whether the driver's `tokenRequests` contain the audience.
fn gives(request: &Request<'_>, driver: &str, audience: &str) -> Result<bool, NotFound> {
    let stored = request
        .stored("csidrivers", "", driver)
        .ok_or_else(|| NotFound { kind: "csidriver.storage.k8s.io", name: driver.to_owned() })?;
    Ok(items(&stored, "/spec/tokenRequests").iter().any(|asked| text(asked, "/audience") == audience))
}
