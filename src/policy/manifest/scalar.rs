//! Resolves plain YAML scalars as Kubernetes' YAML reader does (sigs.k8s.io/yaml over go-yaml 2): YAML 1.1, then
//! JSON's types. `yes` is a boolean, `010` is eight, `1.0` is the integer that JSON makes of it, a date stays text.

use admit_apimachinery::go;
use serde_json::{Number, Value};

/// The value of an unquoted scalar; an error where JSON has no such value.
pub(super) fn resolve(text: &str) -> Result<Value, String> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::Null),
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" | "true" | "True" | "TRUE" => {
            return Ok(true.into());
        }
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" | "false" | "False" | "FALSE" => {
            return Ok(false.into());
        }
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" | "-.inf" | "-.Inf" | "-.INF" | ".nan"
        | ".NaN" | ".NAN" => return Err(format!("`{text}` is no JSON value")),
        _ => {}
    }
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
        return Ok(text.into());
    }
    let digits: String = text.chars().filter(|c| *c != '_').collect();
    if let Some(integer) = integer(&digits) {
        return Ok(Value::Number(integer));
    }
    if !is_float(&digits) {
        return Ok(text.into());
    }
    match digits.parse::<f64>() {
        Ok(float) if float.is_finite() => Ok(number(float)),
        // Out of range: Go's reader gives the text up as a number, and keeps it as text.
        _ => Ok(text.into()),
    }
}

/// A double as it comes through Go's JSON encoder and Kubernetes' decoder.
fn number(float: f64) -> Value {
    Number::from_f64(float).map_or(Value::Null, |number| Value::Number(go::json::reread(&number)))
}

/// Signs, and the bases of Go's literals: `0x`, `0o`, `0b`, and a leading zero for octal.
fn integer(digits: &str) -> Option<Number> {
    let (negative, rest) = match digits.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, digits.strip_prefix('+').unwrap_or(digits)),
    };
    let (radix, rest) = radix(rest);
    // `from_str_radix` would take a second sign.
    if rest.is_empty() || !rest.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    let magnitude = u64::from_str_radix(rest, radix).ok()?;
    if negative {
        let value = 0_i128.checked_sub(i128::from(magnitude))?;
        return i64::try_from(value).ok().map(Number::from);
    }
    Some(Number::from(magnitude))
}

fn radix(digits: &str) -> (u32, &str) {
    let lower =
        |prefix: &str, upper: &str| digits.strip_prefix(prefix).or_else(|| digits.strip_prefix(upper));
    if let Some(rest) = lower("0x", "0X") {
        (16, rest)
    } else if let Some(rest) = lower("0b", "0B") {
        (2, rest)
    } else if let Some(rest) = lower("0o", "0O") {
        (8, rest)
    } else if let Some(rest) = digits.strip_prefix('0').filter(|rest| !rest.is_empty()) {
        (8, rest)
    } else {
        (10, digits)
    }
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn is_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let digits = |text: &str| text.chars().all(|c| c.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mantissa_fits = digits(whole) && digits(fraction) && !(whole.is_empty() && fraction.is_empty());
    let exponent_fits = exponent.is_none_or(|exponent| {
        let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        !exponent.is_empty() && digits(exponent)
    });
    mantissa_fits && exponent_fits
}
