//! Validates the cluster IPs of a Service, and their families (`ValidateServiceClusterIPsRelatedFields`).

use std::collections::HashSet;

use admit_apimachinery::findings::FieldErrors;

use super::kind;
use crate::kinds::field::Field;
use crate::kinds::shared::network;

const FAMILIES: [&str; 2] = ["IPv4", "IPv6"];
const POLICIES: [&str; 3] = ["PreferDualStack", "RequireDualStack", "SingleStack"];

/// Returns the strings of a list; none if it is absent.
pub(super) fn texts<'o>(list: Option<&Field<'o>>) -> HashSet<&'o str> {
    list.map(|list| list.items().map(|item| item.text()).collect()).unwrap_or_default()
}

/// Whether the service is headless: it has no address of its own.
pub(super) fn is_headless(spec: &Field<'_>) -> bool {
    let addresses = spec.get("clusterIPs");
    addresses.len() == 1 && addresses.index(0).text() == "None"
}

/// Validates what must hold before addresses are allocated: the fields agree, and are possible in a cluster
/// whose services are IPv4 only (`initIPFamilyFields` of pkg/registry/core/service/storage/alloc.go).
pub(super) fn allottable(spec: &Field<'_>, old: Option<&Field<'_>>, errors: &mut FieldErrors) {
    validate(spec, old, errors);
    if kind(spec) != "ExternalName" && errors.is_empty() {
        of_one_family(spec, old, errors);
    }
}

fn of_one_family(spec: &Field<'_>, old: Option<&Field<'_>>, errors: &mut FieldErrors) {
    let (addresses, families) = (spec.get("clusterIPs"), spec.get("ipFamilies"));
    let policy = spec.get("ipFamilyPolicy");
    let is_bare = is_headless(spec) && spec.get("selector").is_empty();
    let before = old.map_or(0, |old| old.get("spec").get("ipFamilies").len());
    // Missing families were filled in by defaults, two of them for a headless service without selector.
    if is_bare && policy.text() != "SingleStack" && !families.is_empty() && families.len() < before {
        errors.add(|| policy.invalid("must be 'SingleStack' to release the secondary IP family"));
    }
    if policy.text() == "SingleStack" {
        for (several, what) in [(&addresses, "cluster IPs"), (&families, "IP families")] {
            if several.len() == 2 {
                let why = format!(
                    "must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
                );
                errors.add(|| policy.invalid(why));
            }
        }
    }
    for address in addresses.items().skip(families.len()).filter(is_v6) {
        errors.add(|| address.invalid_as(addresses.shown_texts(), "IPv6 is not configured on this cluster"));
    }
    if !errors.is_empty() || is_bare {
        return;
    }
    if policy.text() == "RequireDualStack" {
        errors.add(|| policy.invalid("this cluster is not configured for dual-stack services"));
    }
    for family in families.items().filter(|family| family.text() == "IPv6") {
        errors.add(|| family.invalid("not configured on this cluster"));
    }
}

pub(super) fn validate(spec: &Field<'_>, old: Option<&Field<'_>>, errors: &mut FieldErrors) {
    if kind(spec) == "ExternalName" {
        return;
    }
    let addresses = spec.get("clusterIPs");
    in_step(spec, errors);
    families(spec, errors);
    if !each(&addresses, old, errors) {
        return;
    }
    let six = addresses.items().filter(|address| is_v6(address)).count();
    if addresses.len() > 1 && (six == 0 || six == addresses.len()) {
        errors.add(|| addresses.invalid("may specify no more than one IP for each IP family"));
    }
    if is_headless(spec) {
        return;
    }
    for (at, (address, family)) in addresses.items().zip(spec.get("ipFamilies").items()).enumerate() {
        let other = if is_v6(&address) { "IPv4" } else { "IPv6" };
        if family.text() == other {
            let why = format!("expected an {other} value as indicated by `ipFamilies[{at}]`");
            errors.add(|| address.invalid(why));
        }
    }
}

fn is_v6(address: &Field<'_>) -> bool {
    network::parse_address(address.text()).is_some_and(|address| address.is_ipv6())
}

/// `clusterIP` must equal the first of `clusterIPs`.
fn in_step(spec: &Field<'_>, errors: &mut FieldErrors) {
    let (first, all) = (spec.get("clusterIP"), spec.get("clusterIPs"));
    match (first.is_empty(), all.is_empty()) {
        (false, true) => errors.add(|| all.required("")),
        (false, false) if all.index(0).text() != first.text() => {
            errors.add(|| all.invalid("first value must match `clusterIP`"));
        }
        (true, false) => errors.add(|| all.invalid("must be empty when `clusterIP` is not specified")),
        _ => {}
    }
}

fn families(spec: &Field<'_>, errors: &mut FieldErrors) {
    let mut seen = HashSet::new();
    for family in spec.get("ipFamilies").items() {
        if !FAMILIES.contains(&family.text()) {
            errors.add(|| family.not_supported(&FAMILIES));
        }
        if !seen.insert(family.text()) {
            errors.add(|| family.duplicate());
        }
    }
    let policy = spec.get("ipFamilyPolicy");
    if policy.is_set() && !POLICIES.contains(&policy.text()) {
        errors.add(|| policy.not_supported(&POLICIES));
    }
}

/// Validates each address, except those of the old object. Returns whether all are addresses.
fn each(addresses: &Field<'_>, old: Option<&Field<'_>>, errors: &mut FieldErrors) -> bool {
    let before = old.map(|old| old.get("spec").get("clusterIPs"));
    let kept = texts(before.as_ref());
    let found = errors.count();
    for (at, address) in addresses.items().enumerate() {
        if at == 0 && address.text() == "None" {
            if addresses.len() > 1 {
                errors.add(|| addresses.invalid("'None' must be the first and only value"));
            }
        } else if !kept.contains(address.text()) {
            network::legacy_address(&address, errors);
        }
    }
    let fine = errors.count() == found;
    if addresses.len() > 2 {
        errors.add(|| addresses.invalid("may only hold up to 2 values"));
    }
    fine
}

/// The primary address is immutable; a secondary one, of the other family, may be added and removed.
pub(super) fn changes(spec: &Field<'_>, old: &Field<'_>, errors: &mut FieldErrors) {
    if kind(spec) == "ExternalName" || kind(old) == "ExternalName" {
        return;
    }
    let (headless, was_headless) = (is_headless(spec), is_headless(old));
    if !(headless && was_headless) {
        address_changes(spec, old, errors);
    }
    if !headless && !was_headless {
        family_changes(spec, old, errors);
    }
}

fn address_changes(spec: &Field<'_>, old: &Field<'_>, errors: &mut FieldErrors) {
    let (own, before) = (spec.get("clusterIPs"), old.get("clusterIPs"));
    let shown = own.shown_texts();
    let same_length = own.len() == before.len();
    let looked_at = if same_length { own.len() } else { 1 };
    if own.is_empty() && !before.is_empty() {
        errors.add(|| own.index(0).invalid_as(shown.clone(), "primary clusterIP can not be unset"));
    }
    for (address, old) in own.items().zip(before.items()).take(looked_at) {
        if address.text() != old.text() {
            errors.add(|| address.invalid_as(shown.clone(), "may not change once set"));
        }
    }
    if before.len() > own.len() && own.len() == 1 {
        released(spec, "clusterIP", errors);
    }
}

fn family_changes(spec: &Field<'_>, old: &Field<'_>, errors: &mut FieldErrors) {
    let (own, before) = (spec.get("ipFamilies"), old.get("ipFamilies"));
    let addresses = spec.get("clusterIPs");
    let same_length = own.len() == before.len();
    // If the number of families changes, upstream shows the addresses.
    let shown = if same_length { own.shown_texts() } else { addresses.shown_texts() };
    let first = own.index(0);
    if before.len() > own.len() && addresses.is_empty() {
        errors.add(|| first.invalid_as(own.shown_texts(), "primary ipFamily can not be unset"));
    }
    let looked_at = if same_length { own.len() } else { 1 };
    for (family, old) in own.items().zip(before.items()).take(looked_at) {
        if family.text() != old.text() {
            errors.add(|| first.invalid_as(shown.clone(), "may not change once set"));
        }
    }
    if before.len() > own.len() && own.len() == 1 {
        released(spec, "ipFamily", errors);
    }
}

/// Removing the secondary address or family requires the policy `SingleStack`.
fn released(spec: &Field<'_>, what: &str, errors: &mut FieldErrors) {
    let policy = spec.get("ipFamilyPolicy");
    if policy.text() != "SingleStack" {
        let why = format!("must be set to 'SingleStack' when releasing the secondary {what}");
        errors.add(|| policy.invalid_as(&*policy.as_sent(), why));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn told(spec: &Value) -> Vec<String> {
        let mut errors = FieldErrors::default();
        validate(&Field::root(spec), None, &mut errors);
        errors.into_iter().map(|error| error.to_string()).collect()
    }

    fn changed(spec: &Value, old: &Value) -> Vec<String> {
        let mut errors = FieldErrors::default();
        changes(&Field::root(spec), &Field::root(old), &mut errors);
        errors.into_iter().map(|error| error.to_string()).collect()
    }

    #[test]
    fn addresses_are_of_their_families() {
        for (spec, errors) in [
            (
                json!({"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1", "fd00::1"], "ipFamilies": ["IPv4", "IPv6"]}),
                "",
            ),
            (
                json!({"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.2"]}),
                "clusterIPs: Invalid value: [\"10.0.0.2\"]: first value must match `clusterIP`",
            ),
            (
                json!({"clusterIP": "None", "clusterIPs": ["None", "10.0.0.1"]}),
                "clusterIPs: Invalid value: [\"None\",\"10.0.0.1\"]: 'None' must be the first and only value",
            ),
            (
                json!({"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1", "10.0.0.2"]}),
                "clusterIPs: Invalid value: [\"10.0.0.1\",\"10.0.0.2\"]: may specify no more than one IP for each IP \
                 family",
            ),
            (
                json!({"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ipFamilies": ["IPv6"]}),
                "clusterIPs[0]: Invalid value: \"10.0.0.1\": expected an IPv6 value as indicated by `ipFamilies[0]`",
            ),
        ] {
            assert_eq!(told(&spec).join("; "), errors, "{spec}");
        }
    }

    #[test]
    fn the_first_address_stays() {
        let spec = |addresses: &[&str], families: &[&str], policy: &str| json!({"clusterIPs": addresses, "ipFamilies": families, "ipFamilyPolicy": policy});
        let both = spec(&["10.0.0.1", "fd00::1"], &["IPv4", "IPv6"], "RequireDualStack");
        let one = spec(&["10.0.0.1"], &["IPv4"], "SingleStack");
        assert_eq!(changed(&both, &one), Vec::<String>::new());
        assert_eq!(changed(&one, &both), Vec::<String>::new());
        let kept = spec(&["10.0.0.1"], &["IPv4"], "PreferDualStack");
        assert_eq!(changed(&kept, &both).len(), 2);
        let other = spec(&["10.0.0.9"], &["IPv4"], "SingleStack");
        assert_eq!(
            changed(&other, &one),
            ["clusterIPs[0]: Invalid value: [\"10.0.0.9\"]: may not change once set"]
        );
        let none = spec(&[], &["IPv4"], "SingleStack");
        assert_eq!(
            changed(&none, &one),
            ["clusterIPs[0]: Invalid value: []: primary clusterIP can not be unset"]
        );
    }
}
