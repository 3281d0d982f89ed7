//! Go's number conversions, on which messages and verdicts of number checks depend.

/// Returns the integer that a float represents, if it is whole and fits.
#[must_use]
pub(crate) fn whole(value: f64) -> Option<i64> {
    // 2^63 is the first float that does not fit.
    (value.fract() == 0.0 && (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&value))
        .then(|| saturating(value))
}

/// Converts like Go's `int64(float)` on amd64: truncates; what does not fit becomes the minimum.
#[must_use]
pub(super) fn go_int64(value: f64) -> i64 {
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&value) {
        saturating(value)
    } else {
        i64::MIN
    }
}

/// Whether a float counts as a JSON integer: whole within the noise of one division, and no larger than 2^53.
#[must_use]
pub(super) fn is_json_integer(value: f64) -> bool {
    const MAX_SAFE: f64 = 9_007_199_254_740_991.0;
    const EPSILON: f64 = 1e-9;
    if value.is_nan() || value.is_infinite() || value.abs() > MAX_SAFE {
        return false;
    }
    let truncated = value.trunc();
    if value == truncated {
        return true;
    }
    let difference = (value - truncated).abs();
    truncated != 0.0 && difference / (value.abs() + truncated.abs()).min(f64::MAX) < EPSILON
}

#[expect(clippy::cast_possible_truncation, reason = "callers have checked the range or want saturation")]
const fn saturating(value: f64) -> i64 {
    value as i64
}
