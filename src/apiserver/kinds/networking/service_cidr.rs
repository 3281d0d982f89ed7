//! Defines the strategy of ServiceCIDRs: ranges of Service addresses, one for each address family.

use admit_apimachinery::findings::FieldErrors;
use serde_json::{Value, json};

use crate::kinds::Strategy;
use crate::kinds::field::Field;
use crate::kinds::shared::network::{self, Network};

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "ServiceCIDR",
    validate: Some(validate),
    validate_update: Some(update),
    ..Strategy::PLAIN
};

fn validate(object: &Value, errors: &mut FieldErrors) {
    let ranges = Field::root(object).get("spec").get("cidrs");
    if ranges.is_empty() {
        return errors.add(|| ranges.required("at least one CIDR required"));
    }
    if ranges.len() > 2 {
        let shown = json!({"CIDRs": ranges.shown_texts()});
        return errors.add(|| ranges.invalid_as(shown, "may only hold up to 2 values"));
    }
    for range in ranges.items() {
        network::network(&range, errors);
    }
    let mut families = ranges.texts().filter_map(Network::parse).map(|network| network.is_v4());
    if let (Some(one), Some(other)) = (families.next(), families.next())
        && one == other
    {
        let why = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        errors.add(|| ranges.invalid_as(ranges.shown_texts(), why));
    }
}

/// Ranges are immutable, but one of the other family may be added.
fn update(object: &Value, old: &Value, errors: &mut FieldErrors) {
    let ranges = |object| Field::root(object).get("spec").get("cidrs");
    let (new, old) = (ranges(object), ranges(old));
    let fixed = |errors: &mut FieldErrors| {
        let changed = new.texts().zip(old.texts()).enumerate().filter(|(_, (now, before))| now != before);
        for (at, _) in changed {
            errors.add(|| new.index(at).invalid("field is immutable"));
        }
    };
    match (old.len(), new.len()) {
        (before, now) if before == now => fixed(errors),
        (1, 2) => {
            fixed(errors);
            validate(object, errors);
        }
        _ => errors.add(|| new.invalid_as(new.shown_texts(), "field is immutable")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::told;

    #[test]
    fn one_range_of_each_family() {
        let of = |ranges: &[&str]| json!({"spec": {"cidrs": ranges}});
        let (one, other) = ("10.0.0.0/24", "2001:db8::/64");
        assert!(told(&STRATEGY, &of(&[one, other]), Some(&of(&[one]))).is_empty());
        assert_eq!(
            told(&STRATEGY, &of(&[one, "10.1.0.0/24"]), None),
            [
                "spec.cidrs: Invalid value: [\"10.0.0.0/24\",\"10.1.0.0/24\"]: may specify no more than one IP for \
                 each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
            ]
        );
        assert_eq!(
            told(&STRATEGY, &of(&[one, other, one]), None),
            [
                "spec.cidrs: Invalid value: {\"CIDRs\":[\"10.0.0.0/24\",\"2001:db8::/64\",\"10.0.0.0/24\"]}: may only \
                 hold up to 2 values"
            ]
        );
        assert_eq!(
            told(&STRATEGY, &of(&[one]), Some(&of(&[one, other]))),
            ["spec.cidrs: Invalid value: [\"10.0.0.0/24\"]: field is immutable"]
        );
    }
}
