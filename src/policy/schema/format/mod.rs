//! Checks `format` of strings: the formats that a server checks, and what each accepts (kube-openapi
//! `pkg/validation/strfmt`). Unknown formats are ignored.

mod email;
mod network;
mod time;

use std::sync::LazyLock;

use admit_apimachinery::go::url;
use admit_apimachinery::names;
use regex_automata::meta::Regex;

use crate::release;

/// Whether the format is checked.
#[must_use]
pub(super) fn is_known(format: &str) -> bool {
    check_of(&normalised(format)).is_some()
}

/// Whether the string has the format; every string has an unknown format.
#[must_use]
pub(super) fn matches(format: &str, text: &str) -> bool {
    check_of(&normalised(format)).is_none_or(|check| check(text))
}

/// Dashes in a format's name do not count: `date-time` is `datetime`.
fn normalised(format: &str) -> String {
    format.replace('-', "")
}

fn check_of(name: &str) -> Option<fn(&str) -> bool> {
    Some(match name {
        "bsonobjectid" => |text| text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit()),
        "uri" => |text| url::check_request(text).is_ok(),
        "email" => email::is_address,
        "hostname" => network::is_hostname,
        "ipv4" => network::is_ipv4,
        "ipv6" => network::is_ipv6,
        "cidr" => network::is_cidr,
        "mac" => network::is_mac,
        "uuid" => |text| is_uuid(text, None, false),
        "uuid3" => |text| is_uuid(text, Some(b'3'), false),
        "uuid4" => |text| is_uuid(text, Some(b'4'), true),
        "uuid5" => |text| is_uuid(text, Some(b'5'), true),
        "isbn" => |text| is_isbn10(text) || is_isbn13(text),
        "isbn10" => is_isbn10,
        "isbn13" => is_isbn13,
        "creditcard" => is_credit_card,
        "ssn" => is_ssn,
        "hexcolor" => is_hex_color,
        "rgbcolor" => |text| is_match(&RGB_COLOR, text),
        "byte" => is_base64,
        "password" => |_| true,
        "date" => time::is_date,
        "duration" => time::is_duration,
        "datetime" => time::is_date_time,
        "k8sshortname" | "k8slongname" if !release::checks_name_formats() => return None,
        "k8sshortname" => |text| names::dns1123_label(text).is_empty(),
        "k8slongname" => |text| names::dns1123_subdomain(text).is_empty(),
        _ => return None,
    })
}

/// A constant expression; a mistake in one would make its format accept nothing, which the tests would show.
type Constant = LazyLock<Option<Regex>>;

fn is_match(regex: &Constant, text: &str) -> bool {
    regex.as_ref().is_some_and(|regex| regex.is_match(text))
}

static RGB_COLOR: Constant = LazyLock::new(|| {
    const COMPONENT: &str = r"[\t\n\f\r ]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[\t\n\f\r ]*";
    Regex::new(&format!(r"^rgb\({COMPONENT},{COMPONENT},{COMPONENT}\)$")).ok()
});

static CREDIT_CARD: Constant = LazyLock::new(|| {
    Regex::new(
        "^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|\
         3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$",
    )
    .ok()
});

/// Hexadecimal digits in groups of 8, 4, 4, 4 and 12, with dashes between or not.
fn is_uuid(text: &str, version: Option<u8>, variant: bool) -> bool {
    let mut rest = text;
    for (i, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if i > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some((group, tail)) = rest.split_at_checked(length) else { return false };
        let first = group.bytes().next().map(|b| b.to_ascii_lowercase());
        let marked = match i {
            2 => version.is_none() || first == version,
            3 => !variant || matches!(first, Some(b'8' | b'9' | b'a' | b'b')),
            _ => true,
        };
        if !marked || !group.bytes().all(|b| b.is_ascii_hexdigit()) {
            return false;
        }
        rest = tail;
    }
    rest.is_empty()
}

fn without_spaces_and_dashes(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, '\t' | '\n' | '\x0c' | '\r' | ' ' | '-')).collect()
}

/// Returns the digits of a number, the check digit last, where `X` stands for ten.
fn isbn_digits(text: &str, length: usize) -> Option<Vec<u32>> {
    let text = without_spaces_and_dashes(text);
    if text.len() != length {
        return None;
    }
    let last = length.saturating_sub(1);
    text.chars()
        .enumerate()
        .map(|(i, c)| if c == 'X' && length == 10 && i == last { Some(10) } else { c.to_digit(10) })
        .collect()
}

fn is_isbn10(text: &str) -> bool {
    let Some(digits) = isbn_digits(text, 10) else { return false };
    let sum = digits
        .iter()
        .zip(1_u32..)
        .fold(0_u32, |sum, (digit, factor)| sum.saturating_add(digit.saturating_mul(factor)));
    sum.checked_rem(11) == Some(0)
}

fn is_isbn13(text: &str) -> bool {
    let Some(digits) = isbn_digits(text, 13) else { return false };
    let sum = digits
        .iter()
        .zip([1, 3].into_iter().cycle())
        .fold(0_u32, |sum, (digit, factor)| sum.saturating_add(digit.saturating_mul(factor)));
    sum.checked_rem(10) == Some(0)
}

fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let sum = digits.bytes().rev().enumerate().fold(0_u32, |sum, (i, b)| {
        let digit = u32::from(b.saturating_sub(b'0'));
        let doubled = digit.saturating_mul(2);
        let counted = match i.checked_rem(2) {
            Some(0) => digit,
            _ if doubled >= 10 => doubled.saturating_sub(9),
            _ => doubled,
        };
        sum.saturating_add(counted)
    });
    is_match(&CREDIT_CARD, &digits) && sum.checked_rem(10) == Some(0)
}

/// `ddd-dd-dddd`, each dash a dash or a blank.
fn is_ssn(text: &str) -> bool {
    text.len() == 11
        && text.bytes().enumerate().all(|(i, b)| match i {
            3 | 6 => matches!(b, b'-' | b' '),
            _ => b.is_ascii_digit(),
        })
}

fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && digits.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Standard alphabet with padding, at least one group of four.
fn is_base64(text: &str) -> bool {
    let digits = text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text);
    !digits.is_empty()
        && text.len().checked_rem(4) == Some(0)
        && digits.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/'))
}
