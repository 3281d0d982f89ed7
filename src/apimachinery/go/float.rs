//! Parses and formats doubles as Go's `strconv.ParseFloat` and `strconv.FormatFloat`.

/// Parses a double as Go does: decimal or hexadecimal, underscores between digits, infinities by name; None if Go returns
/// a syntax or range error.
#[must_use]
pub fn parse(text: &str) -> Option<f64> {
    if let Some(special) = parse_special(text) {
        return Some(special);
    }
    let (negative, unsigned) = split_sign(text);
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let plain = without_underscores(unsigned)?;
    let magnitude = match plain.get(..2) {
        Some("0x" | "0X") => parse_hexadecimal(plain.get(2..)?)?,
        _ => plain.parse::<f64>().ok()?,
    };
    magnitude.is_finite().then_some(if negative { -magnitude } else { magnitude })
}

fn parse_special(text: &str) -> Option<f64> {
    let (negative, name) = split_sign(text);
    if text.eq_ignore_ascii_case("nan") {
        return Some(f64::NAN);
    }
    let infinite = name.eq_ignore_ascii_case("inf") || name.eq_ignore_ascii_case("infinity");
    infinite.then_some(if negative { f64::NEG_INFINITY } else { f64::INFINITY })
}

fn split_sign(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

/// Removes underscores between digits, or between a base prefix and a digit; None if there are others.
fn without_underscores(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let hexadecimal = matches!(bytes, [b'0', b'x' | b'X', ..]);
    let is_digit = |b: u8| b.is_ascii_digit() || (hexadecimal && b.is_ascii_hexdigit());
    let prefixed = |at: usize| at == 2 && hexadecimal;
    for (at, _) in bytes.iter().enumerate().filter(|(_, b)| **b == b'_') {
        let before = at.checked_sub(1).and_then(|i| bytes.get(i));
        let after = at.checked_add(1).and_then(|i| bytes.get(i));
        let follows = before.is_some_and(|b| is_digit(*b)) || prefixed(at);
        if !follows || !after.is_some_and(|b| is_digit(*b)) {
            return None;
        }
    }
    Some(text.replace('_', ""))
}

/// Parses `1.8p-3` after its `0x`: the mantissa is rounded once, half to even.
fn parse_hexadecimal(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once(['p', 'P'])?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut bits: u128 = 0;
    let mut power = parse_exponent(exponent)?;
    let digits = whole.bytes().map(|b| (b, false)).chain(fraction.bytes().map(|b| (b, true)));
    for (byte, fractional) in digits {
        let digit = u128::from(char::from(byte).to_digit(16)?);
        // After 120 bits, only whether the rest is zero matters to the rounding.
        let kept = bits.leading_zeros() > 8;
        bits = if kept { (bits << 4_u32) | digit } else { bits | u128::from(digit != 0) };
        power = power.saturating_add(match (kept, fractional) {
            (true, true) => -4,
            (false, false) => 4,
            (true, false) | (false, true) => 0,
        });
    }
    Some(scale_binary(bits, power))
}

fn parse_exponent(text: &str) -> Option<i64> {
    let (negative, digits) = split_sign(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let magnitude = digits.parse::<i64>().unwrap_or(1_000_000).min(1_000_000);
    Some(if negative { magnitude.saturating_neg() } else { magnitude })
}

/// Returns `bits · 2^power`, rounded to the nearest double.
fn scale_binary(bits: u128, power: i64) -> f64 {
    if bits == 0 {
        return 0.0;
    }
    let length = i64::from(128_u32.saturating_sub(bits.leading_zeros()));
    // The value is in [2^(top-1), 2^top); a subnormal number has fewer bits.
    let top = length.saturating_add(power);
    let precision = top.saturating_add(1074).clamp(0, 53);
    let dropped = length.saturating_sub(precision);
    let (kept, shift) = match u32::try_from(dropped) {
        Ok(0) => (bits, 0),
        Ok(dropped) => (round_half_even(bits, dropped), i64::from(dropped)),
        Err(_) => (bits, 0),
    };
    let exponent = power.saturating_add(shift);
    #[expect(
        clippy::cast_precision_loss,
        reason = "at most 54 significant bits are left, of which the last is zero"
    )]
    let mantissa = kept as f64;
    multiply_power_of_two(mantissa, exponent)
}

fn round_half_even(bits: u128, dropped: u32) -> u128 {
    let quotient = bits.checked_shr(dropped).unwrap_or(0);
    let rest = bits ^ quotient.checked_shl(dropped).unwrap_or(0);
    let Some(half) = dropped.checked_sub(1).and_then(|n| 1_u128.checked_shl(n)) else { return quotient };
    let up = rest > half || (rest == half && quotient & 1 == 1);
    quotient.saturating_add(u128::from(up))
}

fn multiply_power_of_two(mut value: f64, mut exponent: i64) -> f64 {
    const STEP: i64 = 1000;
    while exponent > STEP && value.is_finite() {
        value *= 2_f64.powi(1000);
        exponent = exponent.saturating_sub(STEP);
    }
    while exponent < -STEP && value != 0.0 {
        value *= 2_f64.powi(-1000);
        exponent = exponent.saturating_add(STEP);
    }
    value * 2_f64.powi(i32::try_from(exponent).unwrap_or(0))
}

/// Formats the shortest text that is parsed to the same double, without an exponent: Go's `'f', -1`.
#[must_use]
pub fn plain(value: f64) -> String {
    special_name(value).map_or_else(|| value.to_string(), str::to_owned)
}

/// Formats the shortest text that is parsed to the same double: Go's `%g` and `%v`, with an exponent below 1e-4 and
/// from 1e6 up.
#[must_use]
pub fn general(value: f64) -> String {
    if let Some(name) = special_name(value) {
        return name.to_owned();
    }
    let scientific = format!("{value:e}");
    let exponent = scientific.rsplit_once('e').and_then(|(_, e)| e.parse::<i32>().ok()).unwrap_or(0);
    if (-4..6).contains(&exponent) { value.to_string() } else { go_exponent(&scientific) }
}

/// Formats as `encoding/json`: with an exponent below 1e-6 and from 1e21 up, which has no padding zero if it is negative.
#[must_use]
pub fn json(value: f64) -> String {
    if value == 0.0 || (1e-6..1e21).contains(&value.abs()) || !value.is_finite() {
        return plain(value);
    }
    let text = format!("{value:e}");
    if text.contains("e-") { text } else { text.replace('e', "e+") }
}

/// Formats as json-iterator, which structured-merge-diff writes with: like [`json`], but an exponent has two digits.
#[must_use]
pub fn json_iterator(value: f64) -> String {
    let is_plain = value == 0.0 || (1e-6..1e21).contains(&value.abs());
    if is_plain { plain(value) } else { scientific(value, None) }
}

/// Formats as Go's `%e`: with `precision` digits after the point, or as many as needed.
#[must_use]
pub fn scientific(value: f64, precision: Option<usize>) -> String {
    if let Some(name) = special_name(value) {
        return name.to_owned();
    }
    go_exponent(&match precision {
        Some(precision) => format!("{value:.precision$e}"),
        None => format!("{value:e}"),
    })
}

/// Formats as Go's `%f`.
#[must_use]
pub fn fixed(value: f64, precision: usize) -> String {
    special_name(value).map_or_else(|| format!("{value:.precision$}"), str::to_owned)
}

fn special_name(value: f64) -> Option<&'static str> {
    if value.is_nan() {
        Some("NaN")
    } else if value.is_infinite() {
        Some(if value > 0.0 { "+Inf" } else { "-Inf" })
    } else {
        None
    }
}

/// Formats the exponent as Go does: `1.5e+07`, with a sign and at least two digits.
fn go_exponent(text: &str) -> String {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (negative, digits) = split_sign(exponent);
    let sign = if negative { '-' } else { '+' };
    format!("{mantissa}e{sign}{digits:0>2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_go_reads() {
        for (text, value) in [
            ("1", Some(1.0)),
            (".5", Some(0.5)),
            ("5.", Some(5.0)),
            ("1_000.5", Some(1000.5)),
            ("0x1p-2", Some(0.25)),
            ("0x_1.8p1", Some(3.0)),
            ("-0X1.FFFFFFFFFFFFFp1023", Some(f64::MIN)),
            ("0x1p-1074", Some(f64::from_bits(1))),
            ("0x1p-1075", Some(0.0)),
            ("0x1.8p-1074", Some(f64::from_bits(2))),
            ("0x1p1024", None),
            ("+inf", Some(f64::INFINITY)),
            ("1e400", None),
            ("1e-400", Some(0.0)),
            ("1__0", None),
            ("_1", None),
            ("0x1", None),
            ("-nan", None),
            ("", None),
            (" 1", None),
            ("1e", None),
            (".", None),
        ] {
            assert_eq!(parse(text), value, "{text}");
        }
        assert!(parse("NaN").is_some_and(f64::is_nan));
    }

    #[test]
    fn writes_what_go_writes() {
        for (value, plain_text, general_text, json_text) in [
            (0.0, "0", "0", "0"),
            (-0.0, "-0", "-0", "-0"),
            (1.5, "1.5", "1.5", "1.5"),
            (999_999.0, "999999", "999999", "999999"),
            (1e6, "1000000", "1e+06", "1000000"),
            (-1_234_567.5, "-1234567.5", "-1.2345675e+06", "-1234567.5"),
            (1e21, "1000000000000000000000", "1e+21", "1e+21"),
            (0.000_05, "0.00005", "5e-05", "0.00005"),
            (5e-7, "0.0000005", "5e-07", "5e-7"),
            (f64::INFINITY, "+Inf", "+Inf", "+Inf"),
            (f64::NAN, "NaN", "NaN", "NaN"),
        ] {
            assert_eq!(
                (plain(value), general(value), json(value)),
                (plain_text.into(), general_text.into(), json_text.into())
            );
        }
    }
}
