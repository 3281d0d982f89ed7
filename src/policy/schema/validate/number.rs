//! Validates numbers: the range of the format, bounds, multiples. Integers are compared as integers, so a bound with
//! a fraction loses it first.

use admit_apimachinery::field_error::BadValue;
use admit_apimachinery::go;
use serde_json::{Number, Value};

use super::{Node, Outcome, SchemaType};
use crate::schema::numeric;

#[derive(Clone, Copy)]
enum Parsed {
    Integer(i64),
    Float(f64),
}

impl<'r> Node<'_, 'r> {
    pub(super) fn number(&self, number: &Number) -> Outcome<'r> {
        let value = number
            .as_i64()
            .map_or_else(|| Parsed::Float(number.as_f64().unwrap_or(f64::NAN)), Parsed::Integer);
        let checks = &self.schema.checks;
        let mut outcome = self.clean();
        self.in_range(&mut outcome, value, "Checked");
        if let Some(factor) = checks.multiple_of {
            self.limit(&mut outcome, number, value, factor, Limit::MultipleOf);
        }
        if let Some(minimum) = checks.minimum {
            self.limit(
                &mut outcome,
                number,
                value,
                minimum,
                Limit::Minimum { exclusive: checks.exclusive_minimum },
            );
        }
        if let Some(maximum) = checks.maximum {
            self.limit(
                &mut outcome,
                number,
                value,
                maximum,
                Limit::Maximum { exclusive: checks.exclusive_maximum },
            );
        }
        outcome.step();
        outcome
    }

    /// Compares natively when the bound itself fits the type, as floats when it does not.
    fn limit(&self, outcome: &mut Outcome<'_>, shown: &Number, value: Parsed, bound: f64, limit: Limit) {
        let bound_fits = self.in_range(outcome, Parsed::Float(bound), limit.name());
        let (value, shown) = match value {
            Parsed::Integer(value) if !bound_fits => {
                let value = as_float(value);
                (Parsed::Float(value), Value::from(value))
            }
            value => (value, Value::Number(shown.clone())),
        };
        match limit.check(value, bound) {
            Check::Holds => {}
            Check::Broken(problem) => outcome.invalid(self.path, shown, || problem),
            Check::BadFactor(factor) => {
                let shown = BadValue::Verbatim(factor.clone());
                outcome.sentence(self.path, shown, || {
                    let name = super::outcome::name(self.path);
                    format!("factor MultipleOf declared for {name} must be positive: {factor}")
                });
            }
        }
    }

    /// Whether the number is in the range of the schema's type and format; adds a failure if not.
    fn in_range(&self, outcome: &mut Outcome<'_>, value: Parsed, what: &str) -> bool {
        let format = self.checked_format().unwrap_or_default();
        let schema_type = if self.schema.int_or_string { None } else { self.schema.schema_type.as_ref() };
        let fits = match (schema_type, value) {
            (Some(SchemaType::Integer), Parsed::Integer(value)) => {
                format != "int32" || i32::try_from(value).is_ok()
            }
            (Some(SchemaType::Integer), Parsed::Float(value)) => {
                // Its shortest digits are read as an integer, and those of -2^63 are beyond the range.
                let whole = numeric::whole(value).filter(|whole| *whole != i64::MIN);
                whole.is_some_and(|whole| format != "int32" || i32::try_from(whole).is_ok())
            }
            (Some(SchemaType::Number), Parsed::Float(value)) if format == "float" => fits_f32(value),
            _ => true,
        };
        if !fits {
            let of = schema_type.map_or("", SchemaType::as_str);
            outcome.general(|| {
                let name = super::outcome::name(self.path);
                if format.is_empty() {
                    format!("{what} value must be of type {of} (default format) in {name}")
                } else {
                    format!("{what} value must be of type {of} with format {format} in {name}")
                }
            });
        }
        fits
    }
}

#[derive(Clone, Copy)]
enum Limit {
    MultipleOf,
    Minimum { exclusive: bool },
    Maximum { exclusive: bool },
}

enum Check {
    Holds,
    /// Completes the sentence about the value.
    Broken(String),
    /// The schema's `multipleOf` is not positive; its text.
    BadFactor(String),
}

impl Limit {
    const fn name(self) -> &'static str {
        match self {
            Self::MultipleOf => "MultipleOf",
            Self::Minimum { .. } => "Minimum boundary",
            Self::Maximum { .. } => "Maximum boundary",
        }
    }

    fn check(self, value: Parsed, bound: f64) -> Check {
        let (broken, bound) = match value {
            Parsed::Integer(value) => {
                let bound = numeric::go_int64(bound);
                let broken = match self {
                    Self::MultipleOf if bound <= 0 => return Check::BadFactor(bound.to_string()),
                    Self::MultipleOf => value.checked_rem(bound) != Some(0),
                    Self::Minimum { exclusive } => value < bound || (exclusive && value == bound),
                    Self::Maximum { exclusive } => value > bound || (exclusive && value == bound),
                };
                (broken, bound.to_string())
            }
            Parsed::Float(value) => {
                let broken = match self {
                    Self::MultipleOf if bound <= 0.0 => return Check::BadFactor(go::float::general(bound)),
                    Self::MultipleOf if bound < 1.0 => !numeric::is_json_integer(1.0 / bound * value),
                    Self::MultipleOf => !numeric::is_json_integer(value / bound),
                    Self::Minimum { exclusive: false } => value < bound,
                    Self::Minimum { exclusive: true } => value <= bound,
                    Self::Maximum { exclusive: false } => value > bound,
                    Self::Maximum { exclusive: true } => value >= bound,
                };
                (broken, go::float::general(bound))
            }
        };
        if broken { Check::Broken(self.text(&bound)) } else { Check::Holds }
    }

    fn text(self, bound: &str) -> String {
        match self {
            Self::MultipleOf => format!("should be a multiple of {bound}"),
            Self::Minimum { exclusive: false } => format!("should be greater than or equal to {bound}"),
            Self::Minimum { exclusive: true } => format!("should be greater than {bound}"),
            Self::Maximum { exclusive: false } => format!("should be less than or equal to {bound}"),
            Self::Maximum { exclusive: true } => format!("should be less than {bound}"),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "the rounding is Go's float64(int64) as well")]
const fn as_float(value: i64) -> f64 {
    value as f64
}

fn fits_f32(value: f64) -> bool {
    // The least magnitude that rounds up to infinity: halfway between the greatest float32 and 2^128.
    value.abs() < 340_282_356_779_733_661_637_539_395_458_142_568_448.0
}
