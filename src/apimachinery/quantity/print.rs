//! Formats quantities in canonical form: no trailing zeros, exponents that are multiples of three, a suffix if the
//! format has one.

use std::fmt;

use super::amount::{Format, Magnitude, Quantity};
use super::digits::Digits;

impl fmt::Display for Quantity<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = self.text {
            return f.write_str(text);
        }
        if self.sign().is_eq() {
            return f.write_str("0");
        }
        let number = Magnitude::of(&self.amount);
        let sign = if number.negative { "-" } else { "" };
        // Only binary numbers are expanded, whose exponents are small: others may have any number of zeros.
        let binary_form = match self.format {
            Format::BinarySi if !self.is_within_a_kilo() => whole(&number).map(binary),
            _ => None,
        };
        let (digits, suffix) = binary_form.unwrap_or_else(|| {
            let (digits, exponent) = in_thousands(&number);
            let suffix = match self.format {
                Format::DecimalExponent if exponent != 0 => format!("e{exponent}"),
                Format::DecimalExponent => String::new(),
                Format::BinarySi | Format::DecimalSi => decimal_suffix(exponent).to_owned(),
            };
            (digits, suffix)
        });
        write!(f, "{sign}{}{suffix}", digits.text())
    }
}

impl Quantity<'_> {
    fn is_within_a_kilo(&self) -> bool {
        self.compare(&Quantity::of_integer(-1_024)).is_gt()
            && self.compare(&Quantity::of_integer(1_024)).is_lt()
    }
}

/// Returns the digits of a number without a fraction.
fn whole(number: &Magnitude) -> Option<Digits> {
    let places = usize::try_from(number.exponent.unsigned_abs()).unwrap_or(usize::MAX);
    if number.exponent < 0 {
        let (digits, exact) = number.digits.drop_last_rounding_up(places);
        return exact.then_some(digits);
    }
    let mut digits = number.digits.clone();
    digits.append_zeros(places);
    Some(digits)
}

fn binary(mut digits: Digits) -> (Digits, String) {
    let mut exponent = 0_usize;
    while let Some(quotient) = digits.divided_by_1024().filter(|quotient| !quotient.is_zero()) {
        digits = quotient;
        exponent = exponent.saturating_add(1);
    }
    // After the last suffix the reference writes none.
    let suffix = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].get(exponent).copied().unwrap_or_default();
    (digits, suffix.to_owned())
}

fn in_thousands(number: &Magnitude) -> (Digits, i64) {
    let (mut digits, removed) = number.digits.clone().without_trailing_zeros();
    let exponent = i64::from(number.exponent).saturating_add(i64::try_from(removed).unwrap_or(i64::MAX));
    let excess = exponent.rem_euclid(3);
    digits.append_zeros(usize::try_from(excess).unwrap_or(0));
    (digits, exponent.saturating_sub(excess))
}

/// Returns the suffix; like the reference, an empty one outside of the known range.
const fn decimal_suffix(exponent: i64) -> &'static str {
    match exponent {
        -9 => "n",
        -6 => "u",
        -3 => "m",
        3 => "k",
        6 => "M",
        9 => "G",
        12 => "T",
        15 => "P",
        18 => "E",
        _ => "",
    }
}
