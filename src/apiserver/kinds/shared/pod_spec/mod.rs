//! The specification of pods, in a pod or in a template (pkg/apis/core/validation/validation.go, `ValidatePodSpec`).
//!
//! Errors come in Kubernetes' order, and at its paths, some of which lack the index of a list's item.

pub(crate) mod annotations;
mod claims;
mod container;
mod containers;
pub(crate) mod defaults;
mod divisors;
mod dns;
mod env;
mod files;
mod handlers;
mod mounts;
mod options;
mod overlaps;
mod ports;
pub(crate) mod privileged;
mod projected;
mod resources;
pub(crate) mod scheduling;
pub(crate) mod security;
mod source_kinds;
mod sources;
mod spread;
mod switched_off;
mod systems;
mod tolerated;
mod volumes;
pub(crate) mod warnings;
mod windows;

use std::collections::HashSet;

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::labels;
use admit_apimachinery::names::NameRule;
use serde_json::Value;

pub(crate) use container::image_is_trimmed;
pub(crate) use divisors::write_divisors;
pub(crate) use options::Options;
pub(crate) use scheduling::tolerations;
pub(crate) use switched_off::drop_switched_off;

use super::label_selector;
use crate::kinds::field::Field;

/// Where kinds hold specifications of pods.
const SPECS: [&[&str]; 4] = [
    &["spec"],
    &["spec", "template", "spec"],
    &["spec", "jobTemplate", "spec", "template", "spec"],
    &["template", "spec"],
];

fn at<'v>(object: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(object, |value, field| value.get(field))
}

fn at_mut<'v>(object: &'v mut Value, path: &[&str]) -> Option<&'v mut Value> {
    path.iter().try_fold(object, |value, field| value.get_mut(field))
}

/// The lists of containers, in the order in which they are looked at.
const LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// What all containers of a pod have in common.
struct Pod<'o> {
    volumes: volumes::Volumes<'o>,
    claims: HashSet<&'o str>,
    /// `terminationGracePeriodSeconds`.
    grace: Option<i64>,
    restart_policy: &'o str,
    /// Whether users are those of the host.
    host_users: bool,
    /// Whether init containers may start anew when they are resized.
    restarted_init_containers: bool,
}

/// What is wrong with a specification.
pub(crate) fn validate(spec: &Field<'_>, options: &Options<'_>, errors: &mut FieldErrors) {
    let grace = spec.get("terminationGracePeriodSeconds");
    if !grace.is_set() {
        errors.add(|| grace.required(""));
    }
    let volumes = volumes::validate(&spec.get("volumes"), options, errors);
    let pod = Pod {
        volumes,
        claims: claims::names(spec),
        grace: grace.integer(),
        restart_policy: spec.get("restartPolicy").text(),
        host_users: !security::has_own_users(spec),
        restarted_init_containers: options.restarted_init_containers,
    };
    claims::validate(&spec.get("resourceClaims"), options, errors);
    containers::validate(spec, &pod, errors);
    resources::of_pod(spec, &pod, errors);
    ports::on_host_network(spec, options, errors);
    policies(spec, errors);
    label_selector::label_pairs(&spec.get("nodeSelector"), errors);
    security::of_pod(spec, options, errors);
    scheduling::affinity(&spec.get("affinity"), options, errors);
    dns::config(spec, errors);
    gates(spec, errors);
    spread::validate(&spec.get("topologySpreadConstraints"), options, errors);
    windows::host_processes(spec, errors);
    security::host_users(spec, options, errors);
    dns::hostname_override(spec, errors);
    names(spec, errors);
    systems::validate(spec, errors);
    env::file_volumes(spec, errors);
}

fn policies(spec: &Field<'_>, errors: &mut FieldErrors) {
    known(&spec.get("restartPolicy"), &["Always", "OnFailure", "Never"], errors);
    known(&spec.get("dnsPolicy"), &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"], errors);
}

/// A text that has to be there, and to be one of those.
fn known(field: &Field<'_>, supported: &[&str], errors: &mut FieldErrors) {
    if field.text().is_empty() {
        errors.add(|| field.required(""));
    } else {
        field.one_of(supported, errors);
    }
}

/// A text that is one of those if it is there, be it empty.
fn known_if_set(field: &Field<'_>, supported: &[&str], errors: &mut FieldErrors) {
    if field.is_set() && !supported.contains(&field.text()) {
        errors.add(|| field.not_supported(supported));
    }
}

fn gates(spec: &Field<'_>, errors: &mut FieldErrors) {
    for gate in spec.get("readinessGates").items() {
        let condition = gate.get("conditionType");
        condition.problems(labels::key(condition.text()), errors);
    }
    let mut names = HashSet::new();
    for gate in spec.get("schedulingGates").items() {
        let name = gate.with(gate.get("name").value());
        name.problems(labels::key(name.text()), errors);
        if !names.insert(name.text()) {
            errors.add(|| name.duplicate());
        }
    }
}

/// Names of what stands elsewhere, and some numbers between them.
fn names(spec: &Field<'_>, errors: &mut FieldErrors) {
    named(&spec.get("serviceAccountName"), NameRule::Subdomain, errors);
    named(&spec.get("nodeName"), NameRule::Subdomain, errors);
    let deadline = spec.get("activeDeadlineSeconds");
    deadline.in_range(1, i64::from(i32::MAX), errors);
    named(&spec.get("hostname"), NameRule::Label, errors);
    named(&spec.get("subdomain"), NameRule::Label, errors);
    scheduling::tolerations(&spec.get("tolerations"), errors);
    dns::aliases(&spec.get("hostAliases"), errors);
    named(&spec.get("priorityClassName"), NameRule::Subdomain, errors);
    let runtime_class = spec.get("runtimeClassName");
    if runtime_class.is_set() {
        runtime_class.named(NameRule::Subdomain, errors);
    }
    let preemption = spec.get("preemptionPolicy");
    if preemption.is_set() {
        known(&preemption, &["PreemptLowerPriority", "Never"], errors);
    }
    let overhead = spec.get("overhead");
    if overhead.is_set() {
        resources::overhead(&overhead, errors);
    }
}

/// A name that may be left out.
fn named(field: &Field<'_>, rule: NameRule, errors: &mut FieldErrors) {
    if !field.text().is_empty() {
        field.named(rule, errors);
    }
}

/// A path that leads down from where it begins (`validateLocalDescendingPath`).
fn descending_path(path: &Field<'_>, errors: &mut FieldErrors) {
    if path.text().starts_with('/') {
        errors.add(|| path.invalid("must be a relative path"));
    }
    no_backsteps(path, errors);
}

/// A path that leads down, and begins with no name of the system's own (`ValidateLocalNonReservedPath`).
fn local_path(path: &Field<'_>, errors: &mut FieldErrors) {
    descending_path(path, errors);
    if path.text().starts_with("..") && !path.text().starts_with("../") {
        errors.add(|| path.invalid("must not start with '..'"));
    }
}

fn no_backsteps(path: &Field<'_>, errors: &mut FieldErrors) {
    if has_backsteps(path.text()) {
        errors.add(|| path.invalid("must not contain '..'"));
    }
}

fn has_backsteps(path: &str) -> bool {
    path.split('/').any(|part| part == "..")
}

/// The containers of all lists.
fn all_containers<'o>(spec: &Field<'o>) -> impl Iterator<Item = Field<'o>> + use<'o> {
    let spec = spec.clone();
    LISTS.into_iter().flat_map(move |list| spec.get(list).items())
}

/// Images of pods have no blanks around them; those of templates may have.
pub(crate) fn trimmed_images(spec: &Field<'_>, errors: &mut FieldErrors) {
    for list in ["containers", "initContainers"] {
        spec.get(list).items().for_each(|container| container::image_is_trimmed(&container, errors));
    }
}
