//! Determines which newer rules do not apply because the stored object breaks them already (pkg/api/pod/util.go,
//! `GetValidationOptionsFromPodSpecAndMeta`).

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::labels;
use serde_json::Value;

use super::security::has_own_users;
use super::{Options, all_containers, container, containers, projected, scheduling, security};
use crate::kinds::field::Field;
use crate::kinds::shared::label_selector::{self, LabelValues};
use crate::kinds::shared::pod_uses;
use crate::object;

impl<'o> Options<'o> {
    /// Returns the options for a template; `old` is the previous specification, if any.
    pub(crate) fn template(old: Option<&Value>) -> Self {
        old.map(tolerated).unwrap_or_default()
    }

    /// Returns the options for a pod; `old` is the previous specification, if any.
    pub(crate) fn pod(pod: &'o Value, old: Option<&Value>) -> Self {
        let (pod_name, is_mirror) = (object::name(pod), pod_uses::is_mirror(pod));
        Self { is_pod: true, pod_name, is_mirror, ..Self::template(old) }
    }
}

/// Finds the rules that the stored specification breaks.
fn tolerated<'o>(old: &Value) -> Options<'o> {
    let spec = Field::root(old);
    let affinity = spec.get("affinity");
    let pod_terms = ["podAffinity", "podAntiAffinity"].into_iter().flat_map(|kind| {
        let (required, preferred) = (affinity.get(kind).get(REQUIRED), affinity.get(kind).get(PREFERRED));
        required.items().chain(preferred.items().map(|weighted| weighted.get("podAffinityTerm")))
    });
    let odd_selector_values = pod_terms
        .flat_map(|term| [term.get("labelSelector"), term.get("namespaceSelector")])
        .any(|selector| has_odd_values(&selector.get("matchExpressions")));
    let node_terms = affinity.get("nodeAffinity").get(REQUIRED).get("nodeSelectorTerms");
    let odd_node_values = node_terms.items().any(|term| has_odd_values(&term.get("matchExpressions")));
    let odd_spread_selectors = spec.get("topologySpreadConstraints").items().any(|constraint| {
        let mut found = FieldErrors::default();
        label_selector::validate(&constraint.get("labelSelector"), LabelValues::Checked, &mut found);
        !found.is_empty()
    });
    let odd_spread_keys = spec.get("topologySpreadConstraints").items().any(|constraint| {
        let mut found = FieldErrors::default();
        scheduling::label_keys(&constraint, &constraint.get("labelSelector"), &mut found);
        !found.is_empty()
    });
    let shares = |field: &'static str, is_of: fn(&str) -> bool| {
        let names = spec.get("securityContext").get("sysctls");
        spec.get(field).flag() && names.items().any(|sysctl| is_of(sysctl.get("name").text()))
    };
    Options {
        odd_selector_values,
        odd_node_values,
        odd_spread_selectors,
        odd_spread_keys,
        any_token_path: projected::has_odd_token_path(&spec),
        host_sysctls: shares("hostNetwork", security::is_of_network)
            || shares("hostIPC", security::is_of_ipc),
        any_relabelling: spec.get("securityContext").get("seLinuxChangePolicy").is_set(),
        own_users_in_host_network: has_own_users(&spec) && spec.get("hostNetwork").flag(),
        devices_of_own_users: has_own_users(&spec)
            && all_containers(&spec).any(|container| !container.get("volumeDevices").is_empty()),
        restarted_init_containers: spec.get("initContainers").items().any(|container| {
            !containers::is_sidecar(&container)
                && container::restarts_when_resized(&container).next().is_some()
        }),
        ..Options::default()
    }
}

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

fn has_odd_values(expressions: &Field<'_>) -> bool {
    let mut values = expressions.items().flat_map(|expression| expression.get("values").items());
    values.any(|value| !labels::value(value.text()).is_empty())
}
