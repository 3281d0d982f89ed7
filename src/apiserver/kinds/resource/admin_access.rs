//! Validates admin access to devices that are in use: it is only allowed for claims in a labelled namespace. Read from
//! pkg/registry/resource/utils.go of Kubernetes 1.36.

use admit_apimachinery::findings::FieldErrors;
use serde_json::Value;

use crate::kinds::field::Field;
use crate::object;

const LABEL: &str = "resource.kubernetes.io/admin-access";

/// Requires the label on the namespace if a request of a new claim asks for admin access. Subrequests cannot ask for it.
pub(super) fn requested(devices: &Field<'_>, namespace: Option<&Value>, errors: &mut FieldErrors) {
    let mut requests = devices.get("requests").items();
    let asks = requests.find(|request| request.get("exactly").get("adminAccess").flag());
    labelled(asks.as_ref(), namespace, errors);
}

/// Requires the label if an allocation result has admin access, unless one had it before.
pub(super) fn granted(claim: &Value, old: &Value, namespace: Option<&Value>, errors: &mut FieldErrors) {
    let result = |claim| {
        let devices = Field::root(claim).get("status").get("allocation").get("devices");
        devices.get("results").items().find(|result| result.get("adminAccess").flag())
    };
    if result(old).is_none() {
        labelled(result(claim).as_ref(), namespace, errors);
    }
}

/// Reports the first `owner` with admin access if the namespace has no label.
fn labelled(owner: Option<&Field<'_>>, namespace: Option<&Value>, errors: &mut FieldErrors) {
    let label = namespace.and_then(|namespace| object::meta(namespace, "labels")?.get(LABEL)?.as_str());
    if let Some(owner) = owner.filter(|_| label != Some("true")) {
        let why =
            format!("admin access to devices requires the `{LABEL}: true` label on the containing namespace");
        errors.add(|| owner.get("adminAccess").forbidden(why));
    }
}
