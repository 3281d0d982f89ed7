//! Validates the resource claims of a pod, and references to them from its containers.

use std::collections::{BTreeSet, HashSet};

use admit_apimachinery::field_error::{FieldError, FieldErrorKind};
use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::names::NameRule;

use super::Options;
use crate::kinds::field::Field;
use crate::kinds::shared::internal;

/// Returns the names of the pod's claims, to which containers may refer.
pub(super) fn names<'o>(spec: &Field<'o>) -> HashSet<&'o str> {
    let names = spec.get("resourceClaims").items().map(|claim| claim.get("name").text());
    names.filter(|name| !name.is_empty()).collect()
}

/// Validates the resource claims of a pod.
pub(super) fn validate(claims: &Field<'_>, options: &Options<'_>, errors: &mut FieldErrors) {
    let mut names = HashSet::new();
    for claim in claims.items() {
        if options.is_mirror {
            errors.add(|| FieldError::forbidden("", "static pods do not support resource claims"));
            continue;
        }
        let name = claim.get("name");
        if name.text().is_empty() {
            errors.add(|| name.required(""));
        } else if !names.insert(name.text()) {
            errors.add(|| name.duplicate());
        } else {
            name.named(NameRule::Label, errors);
        }
        let (own, template) = (claim.get("resourceClaimName"), claim.get("resourceClaimTemplateName"));
        let shown = || internal::shown(&claim, "io.k8s.api.core.v1.PodResourceClaim");
        match (own.is_set(), template.is_set()) {
            (true, true) => errors.add(|| {
                let why =
                    "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified";
                claim.invalid_as(shown(), why)
            }),
            (false, false) => errors.add(|| {
                let why = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`";
                claim.invalid_as(shown(), why)
            }),
            _ => {}
        }
        for name in [own, template].into_iter().filter(Field::is_set) {
            name.named(NameRule::Subdomain, errors);
        }
    }
}

/// Validates a container's references to claims; `of_pod` are the claims of its pod.
pub(super) fn references(list: &Field<'_>, of_pod: &HashSet<&str>, errors: &mut FieldErrors) {
    // Claims referred to as a whole, requests of claims, and the claims of these requests.
    let (mut whole, mut requests, mut partly) = (HashSet::new(), HashSet::new(), HashSet::new());
    for reference in list.items() {
        let (name, request) = (reference.get("name").text(), reference.get("request"));
        if name.is_empty() {
            errors.add(|| reference.required(""));
            continue;
        }
        if whole.contains(name) {
            errors.add(|| duplicate(&reference, name));
        } else if request.text().is_empty() {
            if partly.contains(name) {
                errors.add(|| duplicate(&reference, name));
            }
            whole.insert(name);
        } else {
            request.named(NameRule::Label, errors);
            if !requests.insert((name, request.text())) {
                errors.add(|| duplicate(&reference, &format!("{name}/{}", request.text())));
            }
            partly.insert(name);
        }
        if !of_pod.contains(name) {
            errors.add(|| unknown(&reference, name, of_pod));
        }
    }
}

fn duplicate(reference: &Field<'_>, name: &str) -> FieldError {
    FieldError::duplicate(reference, name)
}

fn unknown(reference: &Field<'_>, name: &str, of_pod: &HashSet<&str>) -> FieldError {
    let known: Vec<&str> = of_pod.iter().copied().collect::<BTreeSet<&str>>().into_iter().collect();
    let known =
        if known.is_empty() { " which is empty".to_owned() } else { format!(": {}", known.join(", ")) };
    let detail = format!("must be one of the names in pod.spec.resourceClaims{known}");
    FieldError::new(FieldErrorKind::NotFound, reference, name, detail)
}
