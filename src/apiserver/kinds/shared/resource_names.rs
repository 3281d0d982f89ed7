//! Classifies and validates names of resources in limits, requests and quotas.

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::labels;

use crate::kinds::field::Field;

/// Resources of containers.
const OF_CONTAINERS: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// Further resources that only quotas have, besides objects.
const OF_QUOTAS: [&str; 7] = [
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
];
/// Counts of objects, which are whole numbers.
const OBJECTS: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];
pub(crate) const HUGE_PAGES: &str = "hugepages-";

/// Whether the resource is huge pages, whose size is part of the name.
pub(crate) fn is_huge_page(name: &str) -> bool {
    name.starts_with(HUGE_PAGES)
}

fn is_huge_page_of_quota(name: &str) -> bool {
    is_huge_page(name) || name.strip_prefix("requests.").is_some_and(is_huge_page)
}

/// Whether quotas may limit the resource.
pub(crate) fn is_of_quotas(name: &str) -> bool {
    [&OF_CONTAINERS[..], &OF_QUOTAS, &OBJECTS].iter().any(|names| names.contains(&name))
        || is_huge_page_of_quota(name)
}

fn is_standard(name: &str) -> bool {
    name == "storage" || is_of_quotas(name)
}

/// Whether the resource is defined by Kubernetes.
pub(crate) fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Whether the resource is an extended one, defined by others.
pub(crate) fn is_extended(name: &str) -> bool {
    !is_native(name) && !name.starts_with("requests.") && labels::key(&format!("requests.{name}")).is_empty()
}

/// Whether quantities of it must be whole numbers.
pub(crate) fn is_whole(name: &str) -> bool {
    OBJECTS.contains(&name) || is_extended(name)
}

/// Whether limits may exceed requests.
pub(crate) fn may_be_overcommitted(name: &str) -> bool {
    is_native(name) && !is_huge_page(name)
}

/// Validates the name of any resource: a qualified name, or a standard name without domain. Returns whether it is valid.
pub(crate) fn any(name: &str, field: &Field<'_>, errors: &mut FieldErrors) -> bool {
    let mut problems = labels::key(name);
    if problems.is_empty() && !name.contains('/') && !is_standard(name) {
        problems.push("must be a standard resource type or fully qualified".to_owned());
    }
    let is_one = problems.is_empty();
    for problem in problems {
        errors.add(|| field.invalid_as(name, problem));
    }
    is_one
}

/// Validates the name of a container's resource.
pub(crate) fn of_container(name: &str, field: &Field<'_>, errors: &mut FieldErrors) {
    any(name, field, errors);
    if !name.contains('/') {
        if !OF_CONTAINERS.contains(&name) && !is_huge_page(name) {
            errors.add(|| field.invalid_as(name, "must be a standard resource for containers"));
        }
    } else if !is_native(name) && !is_extended(name) {
        errors.add(|| field.invalid_as(name, "doesn't follow extended resource name standard"));
    }
}

/// Validates the name of a resource in a quota.
pub(crate) fn of_quota(name: &str, field: &Field<'_>, errors: &mut FieldErrors) {
    any(name, field, errors);
    if !name.contains('/') && !is_of_quotas(name) {
        errors.add(|| field.invalid_as(name, "must be a standard resource for quota"));
    }
}
