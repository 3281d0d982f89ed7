//! Returns warnings about accepted pods and templates (pkg/api/pod/warnings.go).

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use admit_apimachinery::findings::MAX_FINDINGS;
use admit_apimachinery::go;
use admit_apimachinery::quantity::Quantity;

use super::{all_containers, overlaps};
use crate::kinds::field::Field;
use crate::kinds::shared::network;
use crate::kinds::shared::node_selector::{node_term_warnings, old_label};

const OLD_ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        r#"non-functional in v1.16+; use the "priorityClassName" field instead"#,
    ),
    ("security.alpha.kubernetes.io/sysctls", r#"non-functional in v1.11+; use the "sysctls" field instead"#),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        r#"non-functional in v1.11+; use the "sysctls" field instead"#,
    ),
];

const OLD_VOLUMES: [(&str, &str); 9] = [
    ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

const NO_SELECTOR: &str = "a null labelSelector results in matching no pod";

/// Returns warnings about metadata and specification of `owner`: a pod, or a template.
pub(crate) fn of(owner: &Field<'_>, is_pod: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    let (spec, annotations) = (owner.get("spec"), owner.get("metadata").get("annotations"));
    nodes(&spec, &mut warnings);
    for (key, why) in OLD_ANNOTATIONS {
        if annotations.key(key).is_set() {
            warnings.push(format!("{}: {why}", annotations.key(key)));
        }
    }
    volumes(&spec.get("volumes"), &mut warnings);
    names(&spec, &mut warnings);
    fractions(&spec.get("overhead"), &mut warnings);
    pod_seccomp(&spec, &annotations, &mut warnings);
    for container in all_containers(&spec) {
        of_container(&container, &spec, &annotations, is_pod, &mut warnings);
    }
    ports(&spec, &mut warnings);
    port_names(&spec, &mut warnings);
    let grace = spec.get("terminationGracePeriodSeconds");
    if grace.integer().is_some_and(|seconds| seconds < 0) {
        warnings.push(format!("{grace}: must be >= 0; negative values are invalid and will be treated as 1"));
    }
    pod_terms(&spec, &mut warnings);
    addresses(&spec, &mut warnings);
    warnings
}

fn nodes(spec: &Field<'_>, warnings: &mut Vec<String>) {
    for (key, label) in spec.get("nodeSelector").entries() {
        warnings.extend(old_label(key).map(|why| format!("{label}: {why}")));
    }
    let affinity = spec.get("affinity").get("nodeAffinity");
    let required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution").get("nodeSelectorTerms");
    let preferred = affinity.get("preferredDuringSchedulingIgnoredDuringExecution");
    let terms = required.items().chain(preferred.items().map(|term| term.get("preference")));
    for term in terms {
        node_term_warnings(&term, warnings);
    }
    for constraint in spec.get("topologySpreadConstraints").items() {
        let (key, selector) = (constraint.get("topologyKey"), constraint.get("labelSelector"));
        warnings.extend(old_label(key.text()).map(|why| format!("{key}: {} is {why}", key.text())));
        if !selector.is_set() {
            warnings.push(format!("{selector}: {NO_SELECTOR}"));
        }
    }
}

fn volumes(list: &Field<'_>, warnings: &mut Vec<String>) {
    for volume in list.items() {
        for (source, why) in OLD_VOLUMES {
            if volume.get(source).is_set() {
                warnings.push(format!("{}: {why}", volume.get(source)));
            }
        }
        let claim = volume.get("ephemeral").get("volumeClaimTemplate").get("spec");
        fractional(&claim.get("resources").get("requests").key("storage"), warnings);
    }
    overlaps::warn(list, warnings);
}

fn names(spec: &Field<'_>, warnings: &mut Vec<String>) {
    let mut addresses = HashSet::new();
    for ip in spec.get("hostAliases").items().map(|alias| alias.get("ip")) {
        if !addresses.insert(ip.text()) {
            warnings.push(format!("{ip}: duplicate ip {}", go::quote(ip.text())));
        }
    }
    let secrets = spec.get("imagePullSecrets");
    let mut names = HashSet::new();
    for name in secrets.items().map(|secret| secret.get("name")) {
        if !names.insert(name.text()) {
            warnings.push(format!("{name}: duplicate name {}", go::quote(name.text())));
        }
    }
    for name in secrets.items().map(|secret| secret.get("name")).filter(Field::is_empty) {
        warnings.push(format!("{name}: invalid empty name \"\""));
    }
}

/// Warns about fractions of bytes.
fn fractions(amounts: &Field<'_>, warnings: &mut Vec<String>) {
    for name in ["memory", "ephemeral-storage"] {
        fractional(&amounts.key(name), warnings);
    }
}

fn fractional(amount: &Field<'_>, warnings: &mut Vec<String>) {
    let Ok(quantity) = Quantity::parse(amount.text()) else { return };
    let shown = quantity.to_string();
    // In canonical form, only fractional quantities end like this.
    if shown.ends_with(['m', 'u', 'n']) {
        let shown = go::quote(&shown);
        warnings.push(format!("{amount}: fractional byte value {shown} is invalid, must be an integer"));
    }
}

fn pod_seccomp(spec: &Field<'_>, annotations: &Field<'_>, warnings: &mut Vec<String>) {
    let annotation = annotations.key("seccomp.security.alpha.kubernetes.io/pod");
    if annotation.is_set() && !spec.get("securityContext").get("seccompProfile").is_set() {
        warnings.push(format!("{annotation}: {NO_SECCOMP}"));
    }
}

/// The message for annotations that a field replaces.
pub(crate) const APP_ARMOR_IS_A_FIELD: &str =
    r#"deprecated since v1.30; use the "appArmorProfile" field instead"#;
const NO_SECCOMP: &str = r#"non-functional in v1.27+; use the "seccompProfile" field instead"#;

fn of_container(
    container: &Field<'_>,
    spec: &Field<'_>,
    annotations: &Field<'_>,
    is_pod: bool,
    warnings: &mut Vec<String>,
) {
    let (name, context) = (container.get("name").text(), container.get("securityContext"));
    let seccomp = annotations.key(&format!("container.seccomp.security.alpha.kubernetes.io/{name}"));
    if seccomp.is_set() && !context.get("seccompProfile").is_set() {
        warnings.push(format!("{seccomp}: {NO_SECCOMP}"));
    }
    let app_armor = annotations.key(&format!("container.apparmor.security.beta.kubernetes.io/{name}"));
    let has_field = context.get("appArmorProfile").is_set()
        || spec.get("securityContext").get("appArmorProfile").is_set();
    if app_armor.is_set() && !has_field && !is_pod {
        warnings.push(format!("{app_armor}: {APP_ARMOR_IS_A_FIELD}"));
    }
    let resources = container.get("resources");
    for name in ["memory", "ephemeral-storage"] {
        for side in ["limits", "requests"] {
            fractional(&resources.get(side).key(name), warnings);
        }
    }
    let mut names = HashSet::new();
    for variable in container.get("env").items() {
        let (name, value) = (variable.get("name").text(), variable.get("value").text());
        let reference = format!("$({name})");
        if names.insert(name) {
            continue;
        }
        // A value may refer to the previous definition.
        if variable.get("valueFrom").is_set() || value == reference || !value.contains(&reference) {
            let name = go::quote(name);
            warnings.push(format!(
                "{variable}: hides previous definition of {name}, which may be dropped when using apply"
            ));
        }
    }
}

/// The parts of a port that are compared, and its path.
struct Port {
    place: String,
    host: i64,
    address: String,
}

/// Warns about conflicting ports: containers of a pod share its address, and so its ports.
fn ports(spec: &Field<'_>, warnings: &mut Vec<String>) {
    let mut known: HashMap<(i64, &str), Vec<Port>> = HashMap::new();
    for port in all_containers(spec).flat_map(|container| container.get("ports").items()) {
        let number = |name: &'static str| port.get(name).integer().unwrap_or(0);
        let (host, protocol, address) =
            (number("hostPort"), port.get("protocol").text(), port.get("hostIP").text());
        if !address.is_empty() && host == 0 {
            warnings.push(format!(
                "{port}: hostIP set without hostPort: {{Name:{} HostPort:{host} ContainerPort:{} Protocol:{protocol} \
                 HostIP:{address}}}",
                port.get("name").text(),
                number("containerPort")
            ));
        }
        let own = Port { place: port.to_string(), host, address: address.to_owned() };
        let earlier = known.entry((number("containerPort"), protocol)).or_default();
        // Comparing all pairs is quadratic, so it stops at the maximum of warnings in a response.
        let room = MAX_FINDINGS.saturating_sub(warnings.len());
        warnings.extend(earlier.iter().take(room).filter_map(|other| {
            let how = conflict(&own, other)?;
            Some(format!("{}: {how} port definition with {}", own.place, other.place))
        }));
        earlier.push(own);
    }
}

/// Warns about duplicate port names: a reference by name finds the first in the pod.
fn port_names(spec: &Field<'_>, warnings: &mut Vec<String>) {
    let mut known: HashMap<&str, String> = HashMap::new();
    for port in all_containers(spec).flat_map(|container| container.get("ports").items()) {
        let name = port.get("name").text();
        if name.is_empty() {
            continue;
        }
        match known.entry(name) {
            Entry::Vacant(free) => drop(free.insert(port.to_string())),
            Entry::Occupied(first) if warnings.len() < MAX_FINDINGS => {
                let (first, name) = (first.get(), go::quote(name));
                warnings.push(format!(
                    "{port}: duplicate port name {name} with {first}, services and probes that select ports by name will use \
                     {first}"
                ));
            }
            Entry::Occupied(_) => {}
        }
    }
}

fn conflict(one: &Port, other: &Port) -> Option<&'static str> {
    if one.host == other.host && one.address == other.address {
        Some("duplicate")
    } else if one.host == 0 || other.host == 0 {
        Some("overlapping")
    } else if one.host == other.host && one.address.is_empty() != other.address.is_empty() {
        Some("dangerously ambiguous")
    } else {
        None
    }
}

fn pod_terms(spec: &Field<'_>, warnings: &mut Vec<String>) {
    for pods in ["podAffinity", "podAntiAffinity"].map(|name| spec.get("affinity").get(name)) {
        let required = pods.get("requiredDuringSchedulingIgnoredDuringExecution");
        let preferred = pods.get("preferredDuringSchedulingIgnoredDuringExecution");
        let terms = required.items().chain(preferred.items().map(|weighted| weighted.get("podAffinityTerm")));
        for selector in terms.map(|term| term.get("labelSelector")).filter(|selector| !selector.is_set()) {
            warnings.push(format!("{selector}: {NO_SELECTOR}"));
        }
    }
}

fn addresses(spec: &Field<'_>, warnings: &mut Vec<String>) {
    let aliases = spec.get("hostAliases");
    let servers = spec.get("dnsConfig").get("nameservers");
    let all = servers.items().chain(aliases.items().map(|alias| alias.get("ip")));
    warnings.extend(all.filter_map(|address| network::address_warning(&address)));
}
