//! Validates one device of a ResourceSlice: attributes, capacities, taints, counters, and its nodes. Read from
//! `validateDevice` of pkg/apis/resource/validation of Kubernetes 1.36.

use std::collections::HashSet;

use admit_apimachinery::findings::FieldErrors;
use serde_json::Value;

use super::device_taints::taint;
use super::texts::{distinct, qualified_name};
use crate::kinds::field::Field;
use crate::kinds::shared::amount::Amount;
use crate::kinds::shared::inside;
use crate::kinds::shared::node_selector::node_selector;
use crate::kinds::shared::texts::{dns_label, qualified, subdomain};

/// Maximum of attributes and capacities together.
const MOST_MEMBERS: usize = 32;
const MOST_TAINTS: usize = 16;
const MOST_CONSUMPTIONS: usize = 2;
const MOST_BINDING_CONDITIONS: usize = 4;
const TEXT_LENGTH: i64 = 64;
/// Most bytes of an attribute's name with its domain.
const NAME_LENGTH: usize = 63 + 1 + 32;

/// Validates a device; `old` is its previous state. `own_nodes`: each device has its own node selection.
pub(super) fn device(device: &Field<'_>, old: Option<&Field<'_>>, own_nodes: bool, errors: &mut FieldErrors) {
    let (attributes, capacity) = (device.get("attributes"), device.get("capacity"));
    dns_label(&device.get("name"), errors);
    let members = attributes.len().saturating_add(capacity.len());
    if members > MOST_MEMBERS {
        let why = format!("the total number of attributes and capacities must not exceed {MOST_MEMBERS}");
        errors.add(|| device.invalid_as(i64::try_from(members).unwrap_or(i64::MAX), why));
    }
    for (name, own) in attributes.entries() {
        qualified_name(name, &attributes, errors);
        attribute(&attributes.key(&shortened(name, NAME_LENGTH)).with(own.value()), errors);
    }
    let same =
        |field: &'static str| old.is_some_and(|old| old.get(field).value() == device.get(field).value());
    if !same("capacity") {
        let may_share = device.get("allowMultipleAllocations").flag();
        for (name, own) in capacity.entries() {
            qualified_name(name, &capacity, errors);
            let place = capacity.key(&shortened(name, NAME_LENGTH)).with(own.value());
            request_policy(&place, may_share, errors);
        }
    }
    let taints = device.get("taints");
    if !same("taints") && taints.len() > MOST_TAINTS {
        errors.add(|| taints.too_many(16));
    } else if !same("taints") {
        taints.items().for_each(|own| taint(&own, errors));
    }
    let set = |own: &Field<'_>| own.get("counterSet").text().to_owned();
    let consumption = |own: &Field<'_>, errors: &mut FieldErrors| counters(own, "counterSet", 32, errors);
    distinct(&device.get("consumesCounters"), Some(MOST_CONSUMPTIONS), set, consumption, errors);
    nodes(device, own_nodes, errors);
    binding_conditions(device, errors);
}

/// Shortens a long string in the middle.
fn shortened(text: &str, length: usize) -> String {
    if text.len() <= length {
        return text.to_owned();
    }
    let kept = length.saturating_sub(3);
    let head: String = text.chars().take(kept.div_ceil(2)).collect();
    let count = text.chars().count();
    let tail: String = text.chars().skip(count.saturating_sub(kept / 2)).collect();
    format!("{head}...{tail}")
}

/// Validates a named set of counters.
pub(super) fn counters(set: &Field<'_>, name: &'static str, most: usize, errors: &mut FieldErrors) {
    let (name, counters) = (set.get(name), set.get("counters"));
    if name.is_empty() {
        errors.add(|| name.required(""));
    } else {
        dns_label(&name, errors);
    }
    if counters.is_empty() {
        errors.add(|| counters.required(""));
    } else if counters.len() > most {
        errors.add(|| counters.too_many(i64::try_from(most).unwrap_or(i64::MAX)));
    } else {
        for (name, _) in counters.entries() {
            dns_label(&counters.with(&Value::from(name)), errors);
        }
    }
}

/// Formats an attribute for error messages: with a member for each type, including lists, which are not supported yet.
fn every_value(attribute: &Field<'_>) -> Value {
    const VALUES: [(&str, &str); 8] = [
        ("IntValue", "int"),
        ("BoolValue", "bool"),
        ("StringValue", "string"),
        ("VersionValue", "version"),
        ("IntValues", ""),
        ("BoolValues", ""),
        ("StringValues", ""),
        ("VersionValues", ""),
    ];
    let value = |field| attribute.value().get(field).cloned().unwrap_or_default();
    VALUES.into_iter().map(|(shown, field)| (shown.to_owned(), value(field))).collect()
}

fn attribute(attribute: &Field<'_>, errors: &mut FieldErrors) {
    let (text, version) = (attribute.get("string"), attribute.get("version"));
    if is_long(&text) {
        errors.add(|| text.too_long(TEXT_LENGTH));
    }
    if version.is_set() && !is_version(version.text()) {
        errors.add(|| version.invalid("must be a string compatible with semver.org spec 2.0.0"));
    }
    if is_long(&version) {
        errors.add(|| version.too_long(TEXT_LENGTH));
    }
    let given =
        ["bool", "int", "string", "version"].iter().filter(|name| attribute.get(name).is_set()).count();
    if given != 1 {
        let shown = || if given == 0 { "".into() } else { inside::told(&every_value(attribute)) };
        errors.add(|| attribute.invalid_as(shown(), "exactly one value must be specified"));
    }
}

fn is_long(field: &Field<'_>) -> bool {
    i64::try_from(field.text().len()).is_ok_and(|length| length > TEXT_LENGTH)
}

/// Whether the string is a version by semver.org: three numbers, with optional pre-release and build.
fn is_version(text: &str) -> bool {
    let (rest, build) = match text.split_once('+') {
        Some((rest, build)) => (rest, Some(build)),
        None => (text, None),
    };
    let (core, before) = match rest.split_once('-') {
        Some((core, before)) => (core, Some(before)),
        None => (rest, None),
    };
    let is_number = |part: &str| {
        part.bytes().all(|b| b.is_ascii_digit())
            && !part.is_empty()
            && (part == "0" || !part.starts_with('0'))
    };
    let is_mark =
        |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let is_numeric = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    core.split('.').count() == 3
        && core.split('.').all(is_number)
        && before.is_none_or(|marks| {
            marks.split('.').all(|part| is_mark(part) && (!is_numeric(part) || is_number(part)))
        })
        && build.is_none_or(|marks| marks.split('.').all(is_mark))
}

/// Validates how much of a capacity can be requested, which requires that a device may be allocated several times.
fn request_policy(capacity: &Field<'_>, may_share: bool, errors: &mut FieldErrors) {
    let policy = capacity.get("requestPolicy");
    if !policy.is_set() {
        return;
    }
    if !may_share {
        errors.add(|| policy.forbidden("allowMultipleAllocations must be true"));
        return;
    }
    let (values, range, default) =
        (policy.get("validValues"), policy.get("validRange"), policy.get("default"));
    let whole = Amount::of(&capacity.get("value"));
    if !values.is_empty() && range.is_set() {
        let why = "exactly one policy can be specified, cannot specify \"validValues\" and \"validRange\" at the same \
                   time";
        errors.add(|| policy.forbidden(why));
    } else if !values.is_empty() && !default.is_set() {
        errors.add(|| default.required("required when validValues is defined"));
    } else if !values.is_empty() {
        valid_values(&values, &Amount::of(&default), &whole, errors);
    } else if range.is_set() && !default.is_set() {
        errors.add(|| default.required("required when validRange is defined"));
    } else if range.is_set() {
        valid_range(&range, &Amount::of(&default), &whole, errors);
    }
}

fn valid_values(values: &Field<'_>, default: &Amount<'_>, whole: &Amount<'_>, errors: &mut FieldErrors) {
    let mut before: Option<Amount<'_>> = None;
    for value in values.items() {
        let amount = Amount::of(&value);
        if before.as_ref().is_some_and(|before| before.compare(&amount).is_gt()) {
            errors.add(|| value.invalid_as(amount.text(), "values must be sorted in ascending order"));
        }
        before = Some(amount);
    }
    let check = |value: &Field<'_>, errors: &mut FieldErrors| {
        let amount = Amount::of(value);
        if amount.compare(whole).is_gt() {
            let why = format!("option is larger than capacity value: {}", whole.text());
            errors.add(|| value.invalid_as(amount.text(), why));
        }
    };
    distinct(values, Some(10), |own| Amount::of(own).rounded_up().to_string(), check, errors);
    if !values.items().any(|value| Amount::of(&value).compare(default).is_eq()) {
        errors.add(|| {
            values.invalid_as(default.text(), "default value is not valid according to the requestPolicy")
        });
    }
}

fn valid_range(range: &Field<'_>, default: &Amount<'_>, whole: &Amount<'_>, errors: &mut FieldErrors) {
    let (min, max, step) = (range.get("min"), range.get("max"), range.get("step"));
    if !min.is_set() {
        errors.add(|| min.required("required when validRange is defined"));
        return;
    }
    let (least, most) = (Amount::of(&min), Amount::of(&max));
    let larger = |field: &Field<'_>, amount: &Amount<'_>, what: &str, errors: &mut FieldErrors| {
        if amount.compare(whole).is_gt() {
            let why = format!("{what} is larger than capacity value: {}", whole.text());
            errors.add(|| field.invalid_as(amount.text(), why));
        }
    };
    larger(&min, &least, "min", errors);
    if default.compare(&least).is_lt() {
        errors.add(|| min.invalid_as(default.text(), format!("default is less than min: {}", least.text())));
    }
    if max.is_set() {
        if least.compare(&most).is_gt() {
            errors.add(|| max.invalid_as(least.text(), format!("min is larger than max: {}", most.text())));
        }
        larger(&max, &most, "max", errors);
        if default.compare(&most).is_gt() {
            errors
                .add(|| max.invalid_as(default.text(), format!("default is more than max: {}", most.text())));
        }
    }
    if step.is_set() {
        steps(&step, (default, &least, max.is_set().then_some(&most)), whole, errors);
    }
}

/// Default and maximum must be a multiple of the step above the minimum.
fn steps(
    step: &Field<'_>,
    (default, least, most): (&Amount<'_>, &Amount<'_>, Option<&Amount<'_>>),
    whole: &Amount<'_>,
    errors: &mut FieldErrors,
) {
    let one = Amount::of(step);
    if !one.sign().is_gt() {
        errors.add(|| step.invalid_as(one.text(), "must be greater than zero"));
        return;
    }
    if let Some(added) = least.sum(&one).filter(|added| added.compare(&whole.quantity()).is_gt()) {
        let why = format!("one step {added} is larger than capacity value: {}", whole.text());
        errors.add(|| step.invalid_as(one.text(), why));
    }
    for value in [Some(default), most].into_iter().flatten() {
        let above = value.rounded_up().saturating_sub(least.rounded_up());
        if above.checked_rem(one.rounded_up()).is_some_and(|rest| rest != 0) {
            let why =
                format!("value is not a multiple of a given step ({}) from ({})", one.text(), least.text());
            errors.add(|| step.invalid_as(value.text(), why));
        }
    }
}

/// Validates the nodes of a device, if each device has its own.
fn nodes(device: &Field<'_>, own_nodes: bool, errors: &mut FieldErrors) {
    const ONE: &str = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when \
                       `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
    let (name, selector, all) = (device.get("nodeName"), device.get("nodeSelector"), device.get("allNodes"));
    if !own_nodes {
        if name.is_set() || selector.is_set() || all.is_set() {
            let why = "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to \
                       true in the ResourceSlice spec";
            errors.add(|| device.invalid_as(Value::Null, why));
        }
        return;
    }
    let mut ways = Vec::new();
    if name.is_set() && name.is_empty() {
        errors.add(|| name.invalid("must not be empty"));
    } else if name.is_set() {
        ways.push("`nodeName`");
        subdomain(&name, errors);
    }
    if selector.is_set() {
        ways.push("`nodeSelector`");
        node_selector(&selector, errors);
    }
    if all.flag() {
        ways.push("`allNodes`");
    } else if all.is_set() {
        errors.add(|| all.invalid("must be either unset or set to true"));
    }
    match ways.len() {
        0 => errors.add(|| device.required(ONE)),
        1 => {}
        _ => errors.add(|| device.invalid_as(format!("{{{}}}", ways.join(", ")).as_str(), ONE)),
    }
}

/// Validates the conditions for binding a device, and those that prevent it.
pub(super) fn binding_conditions(owner: &Field<'_>, errors: &mut FieldErrors) {
    let (conditions, failures) = (owner.get("bindingConditions"), owner.get("bindingFailureConditions"));
    for list in [&conditions, &failures] {
        if list.len() > MOST_BINDING_CONDITIONS {
            errors.add(|| list.too_many(4));
        } else {
            list.items().for_each(|own| qualified(&own, errors));
        }
    }
    let (mut known, mut failing) = (HashSet::new(), HashSet::new());
    for own in conditions.items() {
        if !known.insert(own.text()) {
            errors.add(|| own.duplicate());
        }
    }
    for own in failures.items() {
        if !failing.insert(own.text()) {
            errors.add(|| own.duplicate());
        }
        if known.contains(own.text()) {
            errors.add(|| own.invalid("bindingFailureConditions must not overlap with bindingConditions"));
        }
    }
    if conditions.is_empty() && !failures.is_empty() {
        let why = "bindingConditions are required to use bindingFailureConditions";
        errors.add(|| conditions.invalid_as(&*conditions.as_sent(), why));
    }
    if failures.is_empty() && !conditions.is_empty() {
        let why = "bindingFailureConditions are required to use bindingConditions";
        errors.add(|| failures.invalid_as(&*failures.as_sent(), why));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn texts(own: &Value, own_nodes: bool) -> Vec<String> {
        let mut errors = FieldErrors::default();
        device(&Field::root(own), None, own_nodes, &mut errors);
        errors.into_iter().map(|error| error.to_string()).collect()
    }

    #[test]
    fn versions_are_of_semver() {
        for fine in ["1.0.0", "0.1.2-alpha.1+build.01", "1.0.0-x-y"] {
            assert!(is_version(fine), "{fine}");
        }
        for odd in ["1.0", "01.0.0", "1.0.0-", "1.0.0-01", "v1.0.0", "1.0.0+"] {
            assert!(!is_version(odd), "{odd}");
        }
    }

    #[test]
    fn policies_of_requests_fit_the_capacity() {
        let own = |policy: Value| {
            json!({"name": "d", "allowMultipleAllocations": true,
                "capacity": {"m": {"value": "10", "requestPolicy": policy}}})
        };
        let at = "capacity[m].requestPolicy";
        assert_eq!(
            texts(&own(json!({"default": "3", "validValues": ["2", "1", "11"]})), false),
            [
                format!(
                    "{at}.validValues[1]: Invalid value: \"1\": values must be sorted in ascending order"
                ),
                format!(
                    "{at}.validValues[2]: Invalid value: \"11\": option is larger than capacity value: 10"
                ),
                format!(
                    "{at}.validValues: Invalid value: \"3\": default value is not valid according to the requestPolicy"
                ),
            ]
        );
        assert_eq!(
            texts(&own(json!({"default": "4", "validRange": {"min": "1", "max": "7", "step": "2"}})), false),
            [format!(
                "{at}.validRange.step: Invalid value: \"4\": value is not a multiple of a given step (2) from (1)"
            )]
        );
    }

    #[test]
    fn devices_say_which_nodes_reach_them() {
        assert!(
            texts(&json!({"name": "d"}), true)[0].starts_with(": Required value: exactly one of `nodeName`")
        );
        let bound = json!({"name": "d", "bindingConditions": ["a", "a"], "bindingFailureConditions": ["a"]});
        assert_eq!(
            texts(&bound, false),
            [
                "bindingConditions[1]: Duplicate value: \"a\"",
                "bindingFailureConditions[0]: Invalid value: \"a\": bindingFailureConditions must not overlap with \
                 bindingConditions",
            ]
        );
    }
}
