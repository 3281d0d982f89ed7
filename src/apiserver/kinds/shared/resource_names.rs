//! The names of resources that are limited, requested and counted.

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::labels;

use crate::kinds::field::Field;

/// What containers ask for.
const OF_CONTAINERS: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// What only quotas count, beside those of containers and objects.
const OF_QUOTAS: [&str; 7] = [
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
];
/// Objects, of which there is a whole number.
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

/// Pages of one size, which is part of the name.
pub(crate) fn is_huge_page(name: &str) -> bool {
    name.starts_with(HUGE_PAGES)
}

fn is_huge_page_of_quota(name: &str) -> bool {
    is_huge_page(name) || name.strip_prefix("requests.").is_some_and(is_huge_page)
}

/// A resource that quotas count.
pub(crate) fn is_of_quotas(name: &str) -> bool {
    [&OF_CONTAINERS[..], &OF_QUOTAS, &OBJECTS].iter().any(|names| names.contains(&name))
        || is_huge_page_of_quota(name)
}

fn is_standard(name: &str) -> bool {
    name == "storage" || is_of_quotas(name)
}

/// A resource of Kubernetes itself.
pub(crate) fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// A resource of somebody else.
pub(crate) fn is_extended(name: &str) -> bool {
    !is_native(name) && !name.starts_with("requests.") && labels::key(&format!("requests.{name}")).is_empty()
}

/// Whether there is a whole number of it.
pub(crate) fn is_whole(name: &str) -> bool {
    OBJECTS.contains(&name) || is_extended(name)
}

/// Whether more of it may be promised than there is.
pub(crate) fn may_be_overcommitted(name: &str) -> bool {
    is_native(name) && !is_huge_page(name)
}

/// The name of any resource: a qualified name; one without a domain is one that Kubernetes knows. Answers whether it is one.
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

/// The name of a resource that containers ask for.
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

/// The name of a resource that quotas count.
pub(crate) fn of_quota(name: &str, field: &Field<'_>, errors: &mut FieldErrors) {
    any(name, field, errors);
    if !name.contains('/') && !is_of_quotas(name) {
        errors.add(|| field.invalid_as(name, "must be a standard resource for quota"));
    }
}
