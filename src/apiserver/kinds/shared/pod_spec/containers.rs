//! The three lists of containers: what the containers of one list may have, and how they go together.

use std::collections::HashSet;

use admit_apimachinery::findings::FieldErrors;

use super::{Pod, container, handlers, ports};
use crate::kinds::field::Field;

/// What is wrong with the containers of a specification.
pub(super) fn validate(spec: &Field<'_>, pod: &Pod<'_>, errors: &mut FieldErrors) {
    main(&spec.get("containers"), pod, errors);
    init(spec, pod, errors);
    ephemeral(spec, pod, errors);
}

fn names<'o>(containers: &Field<'o>) -> HashSet<&'o str> {
    containers.items().map(|container| container.get("name").text()).collect()
}

fn main(list: &Field<'_>, pod: &Pod<'_>, errors: &mut FieldErrors) {
    if list.is_empty() {
        return errors.add(|| list.required(""));
    }
    let mut names = HashSet::new();
    for each in list.items() {
        container::validate(&each, pod, errors);
        let name = each.get("name");
        if !names.insert(name.text()) {
            errors.add(|| name.duplicate());
        }
        handlers::of_container(&each, pod, errors);
        container::restart_policy(&each, errors);
    }
    let mut taken = HashSet::new();
    for (at, each) in list.items().enumerate() {
        ports::unique_on_host(&each, &list.index(at), &mut taken, errors);
    }
}

fn init(spec: &Field<'_>, pod: &Pod<'_>, errors: &mut FieldErrors) {
    let mut names = names(&spec.get("containers"));
    let list = spec.get("initContainers");
    for each in list.items() {
        container::validate(&each, pod, errors);
        container::init_restart_policy(&each, errors);
        let name = each.get("name");
        if names.contains(name.text()) {
            errors.add(|| name.duplicate());
        } else if !name.text().is_empty() {
            names.insert(name.text());
        }
        // They run one by one, and do not take ports from each other. Each is told of as if it were the first.
        ports::unique_on_host(&each, &list.index(0), &mut HashSet::new(), errors);
        if is_sidecar(&each) {
            handlers::of_container(&each, pod, errors);
            continue;
        }
        for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            let given = each.get(field);
            if given.is_set() {
                errors.add(|| {
                    given.forbidden("may not be set for init containers without restartPolicy=Always")
                });
            }
        }
        if !pod.restarted_init_containers {
            for restart in container::restarts_when_resized(&each) {
                errors.add(|| {
                    restart.invalid("must not be set to 'RestartContainer' for non-sidecar initContainers")
                });
            }
        }
    }
}

/// Whether an init container goes on beside the others.
pub(super) fn is_sidecar(container: &Field<'_>) -> bool {
    container.get("restartPolicy").text() == "Always"
}

/// Members of a container that one which is put into a running pod may not have, in the order of Go's type.
const NOT_EPHEMERAL: [&str; 9] = [
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
];

const FOR_OTHERS: &str = "cannot be set for an Ephemeral Container";

fn ephemeral(spec: &Field<'_>, pod: &Pod<'_>, errors: &mut FieldErrors) {
    let list = spec.get("ephemeralContainers");
    if list.is_empty() {
        return;
    }
    let mut others = names(&spec.get("containers"));
    others.extend(names(&spec.get("initContainers")));
    let mut all = others.clone();
    for each in list.items() {
        container::validate(&each, pod, errors);
        container::image_is_trimmed(&each, errors);
        let (name, target) = (each.get("name"), each.get("targetContainerName"));
        if !all.insert(name.text()) {
            errors.add(|| name.duplicate());
        }
        if !target.text().is_empty() && !others.contains(target.text()) {
            errors.add(|| target.not_found());
        }
        for field in NOT_EPHEMERAL.into_iter().map(|field| each.get(field)) {
            if !field.is_empty() || field.integer().is_some() {
                errors.add(|| field.forbidden(FOR_OTHERS));
            }
        }
        for mount in each.get("volumeMounts").items() {
            for path in ["subPath", "subPathExpr"].into_iter().map(|field| mount.get(field)) {
                if !path.text().is_empty() {
                    errors.add(|| path.forbidden(FOR_OTHERS));
                }
            }
        }
    }
}
