//! Validates and compares quantities in objects. Decoding has made them canonical; null reads as zero.

use std::cmp::Ordering;

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::quantity::Quantity;
use serde_json::Value;

use super::resource_names;
use crate::kinds::field::Field;

/// A quantity, and its string.
#[derive(Clone, Debug)]
pub(crate) struct Amount<'o> {
    text: &'o str,
    quantity: Quantity<'o>,
}

impl<'o> Amount<'o> {
    /// Reads the quantity in the field; zero if there is none.
    pub(crate) fn of(field: &Field<'o>) -> Self {
        Self::read(field.value())
    }

    /// Like [`Amount::of`], for a value.
    pub(crate) fn read(value: &'o Value) -> Self {
        let text = value.as_str().filter(|text| !text.is_empty()).unwrap_or("0");
        Self { text, quantity: Quantity::parse(text).unwrap_or_else(|_| Quantity::of_integer(0)) }
    }

    /// Returns the string as it is in the object.
    pub(crate) const fn text(&self) -> &'o str {
        self.text
    }

    /// Compares by value.
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        self.quantity.compare(&other.quantity)
    }

    /// Compares with zero.
    pub(crate) fn sign(&self) -> Ordering {
        self.quantity.sign()
    }

    /// Returns the parsed quantity.
    pub(crate) fn quantity(&self) -> Quantity<'o> {
        self.quantity.clone()
    }

    /// Returns the sum; None if it cannot be represented.
    pub(crate) fn sum(&self, other: &Self) -> Option<Quantity<'o>> {
        self.quantity.plus(&other.quantity).ok()
    }

    /// Returns the value as a float, with rounding.
    pub(crate) fn approximate(&self) -> f64 {
        self.quantity.approximate()
    }

    /// Whether it is a whole number, after rounding up to thousandths.
    pub(crate) fn is_whole(&self) -> bool {
        self.quantity.as_integer().is_some() || {
            let thousandths = (self.approximate() * 1000.0).ceil();
            thousandths.rem_euclid(1000.0) == 0.0
        }
    }

    /// Rounds to a whole number away from zero.
    #[expect(clippy::cast_possible_truncation, reason = "a number beyond the range is its end, as Go has it")]
    pub(crate) fn rounded_up(&self) -> i64 {
        self.quantity.as_integer().unwrap_or_else(|| {
            let near = self.approximate();
            if near < 0.0 { near.floor() as i64 } else { near.ceil() as i64 }
        })
    }
}

/// Requires a quantity of at least 0.
pub(crate) fn not_negative(field: &Field<'_>, errors: &mut FieldErrors) {
    let amount = Amount::of(field);
    if amount.sign().is_lt() {
        errors.add(|| field.invalid_as(amount.text(), "must be greater than or equal to 0"));
    }
}

/// Requires a quantity of more than 0.
pub(crate) fn positive(field: &Field<'_>, errors: &mut FieldErrors) {
    let amount = Amount::of(field);
    if !amount.sign().is_gt() {
        errors.add(|| field.invalid_as(amount.text(), "must be greater than zero"));
    }
}

/// Requires a quantity of at least 0, with the older message for volumes.
pub(crate) fn basic(field: &Field<'_>, errors: &mut FieldErrors) {
    let amount = Amount::of(field);
    if amount.sign().is_lt() {
        errors.add(|| field.invalid_as(amount.rounded_up(), "must be a valid resource quantity"));
    }
}

/// Validates a quantity of a resource: at least 0, and a whole number for indivisible resources.
pub(crate) fn of_resource(resource: &str, field: &Field<'_>, errors: &mut FieldErrors) {
    not_negative(field, errors);
    let amount = Amount::of(field);
    if resource_names::is_whole(resource) && !amount.is_whole() {
        errors.add(|| field.invalid_as(amount.text(), "must be an integer"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn amounts_are_whole_positive_or_refused() {
        let object = json!({"pods": "1500m", "cpu": "1500m", "less": "-1500m", "none": null});
        let root = Field::root(&object);
        let mut errors = FieldErrors::default();
        for (resource, amount) in root.entries() {
            of_resource(resource, &amount, &mut errors);
        }
        basic(&root.get("less"), &mut errors);
        positive(&root.get("none"), &mut errors);
        let texts: Vec<String> = errors.into_iter().map(|error| error.to_string()).collect();
        assert_eq!(
            texts,
            [
                "[less]: Invalid value: \"-1500m\": must be greater than or equal to 0",
                "[pods]: Invalid value: \"1500m\": must be an integer",
                "less: Invalid value: -2: must be a valid resource quantity",
                "none: Invalid value: \"0\": must be greater than zero",
            ]
        );
    }
}
