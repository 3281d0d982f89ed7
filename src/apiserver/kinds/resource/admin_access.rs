//! Access to devices that others use: only claims in a namespace with a label may ask for it, and get it. Read from
//! pkg/registry/resource/utils.go of Kubernetes 1.36.

use admit_apimachinery::findings::FieldErrors;
use serde_json::Value;

use crate::kinds::field::Field;

const LABEL: &str = "resource.kubernetes.io/admin-access";

/// Whether the requests of a new claim are those of a namespace with the label. Alternatives never ask for access.
pub(super) fn requested(devices: &Field<'_>, namespace: Option<&Value>, errors: &mut FieldErrors) {
    let mut requests = devices.get("requests").items();
    let asks = requests.find(|request| request.get("exactly").get("adminAccess").flag());
    labelled(asks.as_ref(), namespace, errors);
}

/// The same of the results that a claim gets, unless it got such ones before.
pub(super) fn granted(claim: &Value, old: &Value, namespace: Option<&Value>, errors: &mut FieldErrors) {
    let result = |claim| {
        let devices = Field::root(claim).get("status").get("allocation").get("devices");
        devices.get("results").items().find(|result| result.get("adminAccess").flag())
    };
    if result(old).is_none() {
        labelled(result(claim).as_ref(), namespace, errors);
    }
}

/// The first that asks is told of.
fn labelled(owner: Option<&Field<'_>>, namespace: Option<&Value>, errors: &mut FieldErrors) {
    let label = namespace.and_then(|namespace| namespace.pointer("/metadata/labels")?.get(LABEL)?.as_str());
    if let Some(owner) = owner.filter(|_| label != Some("true")) {
        let why =
            format!("admin access to devices requires the `{LABEL}: true` label on the containing namespace");
        errors.add(|| owner.get("adminAccess").forbidden(why));
    }
}
