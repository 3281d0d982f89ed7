//! Defines the strategy of PriorityLevelConfigurations: how many requests are served at once, and which are queued.

use admit_apimachinery::findings::FieldErrors;
use serde_json::Value;

use super::{EXEMPT, fixed, set_number};
use crate::kinds::field::Field;
use crate::kinds::{Habit, Strategy};
use crate::object;

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "PriorityLevelConfiguration",
    habits: &[Habit::ChangeOnce, Habit::ObjectAgain],
    default: Some(default),
    validate: Some(validate),
    validate_status: Some(|object, _, errors| super::status(object, errors)),
    ..Strategy::PLAIN
};

const MOST_QUEUES: i64 = 10_000_000;
/// Most bits of hash for shuffle sharding.
const MOST_BITS: i64 = 60;

fn default(_version: &str, object: &mut Value) {
    if let Some(exempt) = object.pointer_mut("/spec/exempt") {
        set_number(exempt, "nominalConcurrencyShares", false, 0);
        set_number(exempt, "lendablePercent", false, 0);
    }
    if let Some(limited) = object.pointer_mut("/spec/limited") {
        set_number(limited, "nominalConcurrencyShares", false, 30);
        set_number(limited, "lendablePercent", false, 0);
    }
    if let Some(queuing) = object.pointer_mut("/spec/limited/limitResponse/queuing") {
        set_number(queuing, "handSize", true, 8);
        set_number(queuing, "queues", true, 64);
        set_number(queuing, "queueLengthLimit", true, 50);
    }
}

fn validate(object: &Value, errors: &mut FieldErrors) {
    let spec = Field::root(object).get("spec");
    let (kind, limited, exempt) = (spec.get("type"), spec.get("limited"), spec.get("exempt"));
    if (object::name(object) == EXEMPT) != (kind.text() == "Exempt") {
        let why = "must be 'Exempt' if and only if `name` is 'exempt'";
        errors.add(|| kind.invalid(why));
    }
    match kind.text() {
        "Exempt" => {
            if limited.is_set() {
                errors.add(|| limited.forbidden("must be nil if the type is not Limited"));
            }
            if exempt.is_set() {
                shares(&exempt, errors);
                lendable(&exempt, errors);
            }
        }
        "Limited" => {
            if exempt.is_set() {
                errors.add(|| exempt.forbidden("must be nil if the type is Limited"));
            }
            if limited.is_set() {
                self::limited(&limited, errors);
            } else {
                errors.add(|| limited.required("must not be empty when type is Limited"));
            }
        }
        _ => errors.add(|| kind.not_supported(&["Exempt", "Limited"])),
    }
    fixed::level(object, errors);
}

fn limited(limited: &Field<'_>, errors: &mut FieldErrors) {
    shares(limited, errors);
    response(&limited.get("limitResponse"), errors);
    lendable(limited, errors);
    let borrowing = limited.get("borrowingLimitPercent");
    if borrowing.integer().is_some_and(|percent| percent < 0) {
        errors.add(|| borrowing.invalid("if specified, must be a non-negative integer"));
    }
}

fn shares(level: &Field<'_>, errors: &mut FieldErrors) {
    let shares = level.get("nominalConcurrencyShares");
    if shares.integer().is_some_and(|shares| shares < 0) {
        errors.add(|| shares.invalid("must be a non-negative integer"));
    }
}

fn lendable(level: &Field<'_>, errors: &mut FieldErrors) {
    level.get("lendablePercent").in_range(0, 100, errors);
}

fn response(response: &Field<'_>, errors: &mut FieldErrors) {
    let (kind, queuing) = (response.get("type"), response.get("queuing"));
    match kind.text() {
        "Reject" if queuing.is_set() => {
            errors.add(|| queuing.forbidden("must be nil if limited.limitResponse.type is not Limited"));
        }
        "Reject" => {}
        "Queue" if queuing.is_set() => self::queuing(&queuing, errors),
        "Queue" => {
            errors.add(|| queuing.required("must not be empty if limited.limitResponse.type is Limited"));
        }
        _ => errors.add(|| kind.not_supported(&["Queue", "Reject"])),
    }
}

fn queuing(queuing: &Field<'_>, errors: &mut FieldErrors) {
    let [length, queues, hand] = ["queueLengthLimit", "queues", "handSize"].map(|name| queuing.get(name));
    let number = |field: &Field<'_>| field.integer().unwrap_or(0);
    if number(&length) <= 0 {
        errors.add(|| length.invalid_as(number(&length), "must be positive"));
    }
    let (deck, dealt) = (number(&queues), number(&hand));
    if deck <= 0 {
        errors.add(|| queues.invalid_as(deck, "must be positive"));
    } else if deck > MOST_QUEUES {
        errors.add(|| queues.invalid_as(deck, format!("must not be greater than {MOST_QUEUES}")));
    }
    let problem = if dealt <= 0 {
        "must be positive".to_owned()
    } else if dealt > deck {
        format!("should not be greater than queues ({deck})")
    } else if needs_too_many_bits(deck, dealt) {
        format!(
            "required entropy bits of deckSize {deck} and handSize {dealt} should not be greater than {MOST_BITS}"
        )
    } else {
        return;
    };
    errors.add(|| hand.invalid_as(dealt, problem));
}

/// Whether choosing `hand` of `deck` queues needs more bits than a hash has: `ceil(log2(deck) * hand)`.
fn needs_too_many_bits(deck: i64, hand: i64) -> bool {
    let small = |number: i64| i32::try_from(number).map(f64::from).unwrap_or(f64::MAX);
    (small(deck).log2() * small(hand)).ceil() > small(MOST_BITS)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::tests::told;

    #[test]
    fn hands_are_dealt_of_a_hash() {
        let level = |queues: i64, hand: i64| {
            json!({"spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing":
                {"queues": queues, "handSize": hand, "queueLengthLimit": 1}}}}})
        };
        assert!(told(&STRATEGY, &level(64, 10), None).is_empty());
        assert_eq!(
            told(&STRATEGY, &level(64, 11), None),
            [
                "spec.limited.limitResponse.queuing.handSize: Invalid value: 11: required entropy bits of deckSize 64 \
                 and handSize 11 should not be greater than 60"
            ]
        );
        assert_eq!(
            told(&STRATEGY, &level(10_000_001, 2), None),
            [
                "spec.limited.limitResponse.queuing.queues: Invalid value: 10000001: must not be greater than 10000000"
            ]
        );
    }

    #[test]
    fn only_one_level_is_exempt() {
        let level = |name: &str, spec: Value| json!({"metadata": {"name": name}, "spec": spec});
        assert_eq!(
            told(&STRATEGY, &level("a", json!({"type": "Exempt", "limited": {}})), None),
            [
                "spec.type: Invalid value: \"Exempt\": must be 'Exempt' if and only if `name` is 'exempt'",
                "spec.limited: Forbidden: must be nil if the type is not Limited",
            ]
        );
        let exempt = json!({"type": "Exempt", "exempt": {"lendablePercent": 101}});
        assert_eq!(
            told(&STRATEGY, &level("exempt", exempt), None),
            ["spec.exempt.lendablePercent: Invalid value: 101: must be between 0 and 100, inclusive"]
        );
    }

    #[test]
    fn zero_is_no_number_of_queues() {
        let mut object = json!({"spec": {"limited": {"nominalConcurrencyShares": 0, "limitResponse": {"queuing":
            {"queues": 0, "handSize": null}}}}});
        default("v1", &mut object);
        assert_eq!(
            object,
            json!({"spec": {"limited": {"nominalConcurrencyShares": 0, "limitResponse": {"queuing":
                {"queues": 64, "handSize": 8, "queueLengthLimit": 50}}, "lendablePercent": 0}}})
        );
    }
}
