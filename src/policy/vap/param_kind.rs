//! Parses the `paramKind` of a policy, with kube-apiserver's error messages.

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::names;

use crate::read::decode::{DecodeError, Fields};
use crate::request::GroupVersionKind;

/// Parses the kind; what is wrong with it is added to `errors`.
pub(super) fn decode(fields: &Fields<'_>, errors: &mut FieldErrors) -> Result<GroupVersionKind, DecodeError> {
    let api_version = fields.string("apiVersion")?;
    let kind = fields.string("kind")?;
    let parsed = GroupVersionKind::from_api_version(&api_version, &kind);
    let path = fields.path_of("apiVersion");
    if api_version.is_empty() {
        errors.push(FieldError::required(path, ""));
    } else if parsed.version.contains('/') {
        let detail = format!("unexpected GroupVersion string: {api_version}");
        errors.push(FieldError::invalid(path, api_version.as_str(), detail));
    } else {
        check_group_version(&path, &api_version, &parsed, errors);
    }
    check_kind(&fields.path_of("kind"), &kind, errors);
    Ok(parsed)
}

fn check_group_version(path: &str, api_version: &str, parsed: &GroupVersionKind, errors: &mut FieldErrors) {
    let group = if parsed.group.is_empty() { Vec::new() } else { names::dns1123_subdomain(&parsed.group) };
    if !group.is_empty() {
        errors.push(FieldError::invalid(path, parsed.group.as_str(), group.join(",")));
    }
    if parsed.version.is_empty() {
        errors.push(FieldError::invalid(path, api_version, "version must be specified"));
        return;
    }
    let version = names::dns1035_label(&parsed.version);
    if !version.is_empty() {
        errors.push(FieldError::invalid(path, parsed.version.as_str(), version.join(",")));
    }
}

fn check_kind(path: &str, kind: &str, errors: &mut FieldErrors) {
    if kind.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let complaints = names::dns1035_label(&kind.to_lowercase());
    if !complaints.is_empty() {
        let detail = format!("may have mixed case, but should otherwise match: {}", complaints.join(","));
        errors.push(FieldError::invalid(path, kind, detail));
    }
}
