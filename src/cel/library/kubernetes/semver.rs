//! Implements semantic versions, parsed strictly or after normalisation.

use std::cmp::Ordering;
use std::fmt;

use admit_apimachinery::go::integer::{self, NumberError};
use admit_apimachinery::go::quote;

use crate::library::{Context, Overload, Version, cost, mismatch};
use crate::value::{EvalError, Opaque, Semver, Value};
use Value::{Bool, Int, String};

const SINCE: Version = Version(1, 33);

pub(super) const ROWS: &[Overload] = &[
    Overload::new(
        "string_to_semver",
        "semver(string) -> kubernetes.Semver",
        |context, args| match args {
            [String(text)] => parsed(context, text),
            _ => mismatch(),
        },
        "Reads a semantic version.",
    )
    .costs_by_name(cost::estimate_traverse_first, cost::traverse_first)
    .since(SINCE),
    Overload::new(
        "string_bool_to_semver",
        "semver(string, bool) -> kubernetes.Semver",
        |context, args| match args {
            [String(text), Bool(normalises)] => parsed(context, prepared(context, text, *normalises)?),
            _ => mismatch(),
        },
        "Reads a semantic version; if the flag is set, also with a `v`, leading zeros or missing numbers.",
    )
    .costs_by_name(cost::estimate_traverse_first, cost::traverse_first)
    .since(SINCE),
    Overload::new(
        "is_semver_string",
        "isSemver(string) -> bool",
        |_, args| match args {
            [String(text)] => Ok(Bool(read(text).is_ok())),
            _ => mismatch(),
        },
        "Whether `semver` reads a string.",
    )
    .costs_by_name(cost::estimate_traverse_first, cost::traverse_first)
    .since(SINCE),
    Overload::new(
        "is_semver_string_bool",
        "isSemver(string, bool) -> bool",
        |context, args| match args {
            [String(text), Bool(normalises)] => {
                Ok(Bool(prepared(context, text, *normalises).is_ok_and(|text| read(text).is_ok())))
            }
            _ => mismatch(),
        },
        "Whether `semver` reads a string with the same flag.",
    )
    .costs_by_name(cost::estimate_traverse_first, cost::traverse_first)
    .since(SINCE),
    Overload::new(
        "semver_is_greater_than",
        "kubernetes.Semver.isGreaterThan(kubernetes.Semver) -> bool",
        |_, args| two(args, |order| Bool(order.is_gt())),
        "Whether a version comes after another.",
    )
    .since(SINCE),
    Overload::new(
        "semver_is_less_than",
        "kubernetes.Semver.isLessThan(kubernetes.Semver) -> bool",
        |_, args| two(args, |order| Bool(order.is_lt())),
        "Whether a version comes before another.",
    )
    .since(SINCE),
    Overload::new(
        "semver_compare_to",
        "kubernetes.Semver.compareTo(kubernetes.Semver) -> int",
        |_, args| two(args, |order| Int(order as i64)),
        "-1, 0 or 1 for a version before, equal to or after another.",
    )
    .since(SINCE),
    Overload::new(
        "semver_major",
        "kubernetes.Semver.major() -> int",
        |_, args| one(args, |v| v.major),
        "The first number.",
    )
    .since(SINCE),
    Overload::new(
        "semver_minor",
        "kubernetes.Semver.minor() -> int",
        |_, args| one(args, |v| v.minor),
        "The second number.",
    )
    .since(SINCE),
    Overload::new(
        "semver_patch",
        "kubernetes.Semver.patch() -> int",
        |_, args| one(args, |v| v.patch),
        "The third number.",
    )
    .since(SINCE),
];

fn one<'a>(args: &[Value<'a>], part: fn(&Semver<'_>) -> u64) -> Result<Value<'a>, EvalError> {
    match args {
        // Past 63 bits the number wraps, as in the reference.
        [Value::Opaque(Opaque::Semver(version))] => Ok(Int(part(version).cast_signed())),
        _ => mismatch(),
    }
}

fn two<'a>(args: &[Value<'a>], body: fn(Ordering) -> Value<'a>) -> Result<Value<'a>, EvalError> {
    match args {
        [Value::Opaque(Opaque::Semver(x)), Value::Opaque(Opaque::Semver(y))] => Ok(body(x.compare(y))),
        _ => mismatch(),
    }
}

fn parsed<'a>(context: &Context<'a>, text: &'a str) -> Result<Value<'a>, EvalError> {
    let version = read(text).map_err(|error| EvalError::other(error.to_string()))?;
    Ok(Value::Opaque(Opaque::Semver(context.keep(version)?)))
}

fn prepared<'a>(context: &Context<'a>, text: &'a str, normalises: bool) -> Result<&'a str, EvalError> {
    if normalises { context.str(&normalised(text).map_err(EvalError::other)?) } else { Ok(text) }
}

/// Removes a leading `v` and leading zeros, and adds zeros for missing numbers.
fn normalised(text: &str) -> Result<std::string::String, &'static str> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<_> = text.splitn(3, '.').map(without_leading_zeros).collect();
    if parts.len() < 3 {
        if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
            return Err("short version cannot contain PreRelease/Build meta data");
        }
        parts.resize(3, "0".to_owned());
    }
    Ok(parts.join("."))
}

fn without_leading_zeros(part: &str) -> std::string::String {
    if part.len() < 2 {
        return part.to_owned();
    }
    let stripped = part.trim_start_matches('0');
    let zero = if stripped.starts_with(|c: char| c.is_ascii_digit()) { "" } else { "0" };
    format!("{zero}{stripped}")
}

/// Why a string is not a semantic version, in the words of the library that Kubernetes uses (github.com/blang/semver/v4).
#[derive(Debug)]
enum SemverError {
    Empty,
    /// There are fewer than three numbers.
    TooShort,
    /// A number has something else than digits.
    Characters(NumberPart, std::string::String),
    LeadingZeroes(NumberPart, std::string::String),
    TooLarge(NumberError),
    PrereleaseEmpty,
    PrereleaseZeroes(std::string::String),
    PrereleaseCharacters(std::string::String),
    BuildEmpty,
    BuildCharacters(std::string::String),
}

/// One of the three numbers.
#[derive(Clone, Copy, Debug)]
enum NumberPart {
    Major,
    Minor,
    Patch,
}

impl fmt::Display for SemverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("Version string empty"),
            Self::TooShort => f.write_str("No Major.Minor.Patch elements found"),
            Self::Characters(part, text) => {
                let name = part.name().to_ascii_lowercase();
                write!(f, "Invalid character(s) found in {name} number {}", quote(text))
            }
            Self::LeadingZeroes(part, text) => {
                write!(f, "{} number must not contain leading zeroes {}", part.name(), quote(text))
            }
            Self::TooLarge(error) => error.fmt(f),
            Self::PrereleaseEmpty => f.write_str("Prerelease is empty"),
            Self::PrereleaseZeroes(text) => {
                write!(f, "Numeric PreRelease version must not contain leading zeroes {}", quote(text))
            }
            Self::PrereleaseCharacters(text) => {
                write!(f, "Invalid character(s) found in prerelease {}", quote(text))
            }
            Self::BuildEmpty => f.write_str("Build meta data is empty"),
            Self::BuildCharacters(text) => {
                write!(f, "Invalid character(s) found in build meta data {}", quote(text))
            }
        }
    }
}

impl NumberPart {
    const fn name(self) -> &'static str {
        match self {
            Self::Major => "Major",
            Self::Minor => "Minor",
            Self::Patch => "Patch",
        }
    }
}

/// Reads a version.
fn read(text: &str) -> Result<Semver<'_>, SemverError> {
    if text.is_empty() {
        return Err(SemverError::Empty);
    }
    let mut parts = text.splitn(3, '.');
    let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(SemverError::TooShort);
    };
    let (rest, build) = split_suffix(rest, '+');
    let (patch, prerelease) = split_suffix(rest, '-');
    let version = Semver {
        text,
        major: number(NumberPart::Major, major)?,
        minor: number(NumberPart::Minor, minor)?,
        patch: number(NumberPart::Patch, patch)?,
        prerelease,
    };
    prerelease.map_or(Ok(()), |text| text.split('.').try_for_each(check_prerelease))?;
    build.map_or(Ok(()), |text| text.split('.').try_for_each(check_build))?;
    Ok(version)
}

fn split_suffix(text: &str, mark: char) -> (&str, Option<&str>) {
    text.split_once(mark).map_or((text, None), |(before, after)| (before, Some(after)))
}

fn number(part: NumberPart, text: &str) -> Result<u64, SemverError> {
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(SemverError::Characters(part, text.to_owned()));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(SemverError::LeadingZeroes(part, text.to_owned()));
    }
    integer::parse_uint_or_error(text).map_err(SemverError::TooLarge)
}

fn check_prerelease(text: &str) -> Result<(), SemverError> {
    if text.is_empty() {
        return Err(SemverError::PrereleaseEmpty);
    }
    if text.bytes().all(|b| b.is_ascii_digit()) {
        if text.len() > 1 && text.starts_with('0') {
            return Err(SemverError::PrereleaseZeroes(text.to_owned()));
        }
        return integer::parse_uint_or_error(text).map(|_| ()).map_err(SemverError::TooLarge);
    }
    if text.bytes().all(is_identifier_byte) {
        return Ok(());
    }
    Err(SemverError::PrereleaseCharacters(text.to_owned()))
}

fn check_build(text: &str) -> Result<(), SemverError> {
    if text.is_empty() {
        return Err(SemverError::BuildEmpty);
    }
    if text.bytes().all(is_identifier_byte) {
        return Ok(());
    }
    Err(SemverError::BuildCharacters(text.to_owned()))
}

const fn is_identifier_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_of_the_specification() {
        let ascending =
            ["1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0"];
        for pair in ascending.windows(2) {
            let [x, y] = [pair[0], pair[1]].map(|text| read(text).unwrap());
            assert_eq!(x.compare(&y), Ordering::Less, "{pair:?}");
        }
        assert_eq!(read("1.0.0+a").unwrap(), read("1.0.0+b").unwrap());
    }

    #[test]
    fn normalises() {
        for (text, normal) in
            [("v1", "1.0.0"), ("01.02", "1.2.0"), ("1.2.03-a", "1.2.3-a"), ("00.0.0", "0.0.0")]
        {
            assert_eq!(normalised(text).as_deref(), Ok(normal));
        }
        assert!(normalised("1.2-a").is_err());
    }
}
