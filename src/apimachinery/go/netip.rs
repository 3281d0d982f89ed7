//! Parses addresses as Go's `netip.ParseAddr` and `netip.ParsePrefix`, with their errors, and checks what `net.SplitHostPort` accepts.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::quote;

/// An address, and whether a zone (`%eth0`) followed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zoned {
    /// The address without the zone.
    pub address: IpAddr,
    /// Whether a zone followed.
    pub has_zone: bool,
}

/// Why a text is not an address, with Go's message: `ParseAddr("1.2.3"): IPv4 address too short`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressError {
    text: String,
    message: &'static str,
    /// The rest of the text from the error on; empty if Go does not show it.
    at: String,
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ParseAddr({}): {}", quote(&self.text), self.message)?;
        if self.at.is_empty() { Ok(()) } else { write!(f, " (at {})", quote(&self.at)) }
    }
}

impl std::error::Error for AddressError {}

/// Why a text is not an address with a prefix length, with Go's message: `netip.ParsePrefix("10.0.0.0"): no '/'`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("netip.ParsePrefix({}): {cause}", quote(.text))]
pub struct PrefixError {
    text: String,
    /// The cause.
    #[source]
    pub cause: PrefixProblem,
}

/// Why an address with a prefix length is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrefixProblem {
    /// There is no prefix length.
    #[error("no '/'")]
    NoSlash,
    /// The part before the slash is not an address.
    #[error(transparent)]
    Address(AddressError),
    /// The address has a zone.
    #[error("IPv6 zones cannot be present in a prefix")]
    Zone,
    /// The part after the slash is not a number.
    #[error("bad bits after slash: {}", quote(.0))]
    Length(String),
    /// The address does not have that many bits.
    #[error("prefix length out of range")]
    TooLong,
}

/// A message, and the rest of the text from the error on.
struct Problem<'t> {
    message: &'static str,
    at: &'t str,
}

type Parsed<'t, T> = Result<T, Problem<'t>>;

/// Parses an address.
///
/// # Errors
/// When the text is not an address.
pub fn parse_address(text: &str) -> Result<Zoned, AddressError> {
    let parsed = match text.find(['.', ':', '%']).and_then(|at| text.get(at..)) {
        Some(rest) if rest.starts_with('.') => {
            parse_v4(text).map(|address| Zoned { address: address.into(), has_zone: false })
        }
        Some(rest) if rest.starts_with(':') => parse_v6(text),
        Some(_) => Err(Problem { message: "missing IPv6 address", at: "" }),
        None => Err(Problem { message: "unable to parse IP", at: "" }),
    };
    parsed.map_err(|Problem { message, at }| AddressError {
        text: text.to_owned(),
        message,
        at: at.to_owned(),
    })
}

/// Parses an address with a prefix length; bits after the prefix may be set.
///
/// # Errors
/// When the address or the length is invalid, or the length is too large for the address.
pub fn parse_prefix(text: &str) -> Result<(IpAddr, u8), PrefixError> {
    parse_prefix_parts(text).map_err(|cause| PrefixError { text: text.to_owned(), cause })
}

fn parse_prefix_parts(text: &str) -> Result<(IpAddr, u8), PrefixProblem> {
    let (address, bits) = text.rsplit_once('/').ok_or(PrefixProblem::NoSlash)?;
    let parsed = parse_address(address).map_err(PrefixProblem::Address)?;
    if parsed.has_zone {
        return Err(PrefixProblem::Zone);
    }
    let well_formed = bits.bytes().all(|b| b.is_ascii_digit()) && (bits == "0" || !bits.starts_with('0'));
    let length = if well_formed { bits.parse::<i64>().ok() } else { None };
    let length = length.ok_or_else(|| PrefixProblem::Length(bits.to_owned()))?;
    let greatest = if parsed.address.is_ipv4() { 32 } else { 128 };
    u8::try_from(length)
        .ok()
        .filter(|length| *length <= greatest)
        .map(|length| (parsed.address, length))
        .ok_or(PrefixProblem::TooLong)
}

fn parse_v4(text: &str) -> Parsed<'_, Ipv4Addr> {
    let mut fields = [0_u8; 4];
    let mut position = 0_usize;
    let mut value = 0_u32;
    let mut digits = 0_u32;
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'0'..=b'9' => {
                if digits == 1 && value == 0 {
                    return problem("IPv4 field has octet with leading zero", "");
                }
                value = value.wrapping_mul(10).wrapping_add(u32::from(byte.wrapping_sub(b'0')));
                digits = digits.wrapping_add(1);
                if value > 255 {
                    return problem("IPv4 field has value >255", "");
                }
            }
            b'.' => {
                let first_or_last = index == 0 || index.wrapping_add(1) == text.len();
                if first_or_last || digits == 0 {
                    return problem(
                        "IPv4 field must have at least one digit",
                        text.get(index..).unwrap_or(""),
                    );
                }
                if position == 3 {
                    return problem("IPv4 address too long", "");
                }
                set_field(&mut fields, position, value);
                position = position.wrapping_add(1);
                (value, digits) = (0, 0);
            }
            _ => return problem("unexpected character", text.get(index..).unwrap_or("")),
        }
    }
    if position < 3 {
        return problem("IPv4 address too short", "");
    }
    set_field(&mut fields, position, value);
    Ok(Ipv4Addr::from(fields))
}

fn set_field(fields: &mut [u8; 4], position: usize, value: u32) {
    if let Some(field) = fields.get_mut(position) {
        *field = u8::try_from(value).unwrap_or(u8::MAX);
    }
}

fn problem<'t, T>(message: &'static str, at: &'t str) -> Parsed<'t, T> {
    Err(Problem { message, at })
}

/// The bytes parsed so far, and the position of the ellipsis `::`.
struct V6 {
    bytes: Vec<u8>,
    ellipsis: Option<usize>,
}

fn parse_v6(text: &str) -> Parsed<'_, Zoned> {
    let (mut rest, has_zone) = match text.split_once('%') {
        Some((_, "")) => return problem("zone must be a non-empty string", ""),
        Some((address, _)) => (address, true),
        None => (text, false),
    };
    let mut address = V6 { bytes: Vec::with_capacity(16), ellipsis: None };
    if let Some(after) = rest.strip_prefix("::") {
        address.ellipsis = Some(0);
        rest = after;
        if rest.is_empty() {
            return Ok(Zoned { address: Ipv6Addr::UNSPECIFIED.into(), has_zone });
        }
    }
    while address.bytes.len() < 16 {
        match parse_v6_field(rest, &mut address)? {
            Some(after) => rest = after,
            None => {
                rest = "";
                break;
            }
        }
    }
    if !rest.is_empty() {
        return problem("trailing garbage after address", rest);
    }
    address.finish().map(|address| Zoned { address: address.into(), has_zone })
}

/// Parses one field and the colon after it; None at the end of the address.
fn parse_v6_field<'t>(text: &'t str, address: &mut V6) -> Parsed<'t, Option<&'t str>> {
    let end = text.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end).unwrap_or((text, ""));
    if digits.len() > 4 {
        // Go stops at the fifth digit; the value can exceed 16 bits only with five digits too.
        return problem("each group must have 4 or less digits", text);
    }
    if digits.is_empty() {
        return problem("each colon-separated field must have at least one digit", text);
    }
    if rest.starts_with('.') {
        return parse_embedded_v4(text, address).map(|()| None);
    }
    let value = u16::from_str_radix(digits, 16).unwrap_or(0);
    address.bytes.extend(value.to_be_bytes());
    if rest.is_empty() {
        return Ok(None);
    }
    let Some(after) = rest.strip_prefix(':') else {
        return problem("unexpected character, want colon", rest);
    };
    if after.is_empty() {
        return problem("colon must be followed by more characters", rest);
    }
    let Some(after_ellipsis) = after.strip_prefix(':') else { return Ok(Some(after)) };
    if address.ellipsis.is_some() {
        return problem("multiple :: in address", after);
    }
    address.ellipsis = Some(address.bytes.len());
    Ok((!after_ellipsis.is_empty()).then_some(after_ellipsis))
}

fn parse_embedded_v4<'t>(text: &'t str, address: &mut V6) -> Parsed<'t, ()> {
    if address.ellipsis.is_none() && address.bytes.len() != 12 {
        return problem("embedded IPv4 address must replace the final 2 fields of the address", text);
    }
    if address.bytes.len() > 12 {
        return problem("too many hex fields to fit an embedded IPv4 at the end of the address", text);
    }
    address.bytes.extend(parse_v4(text)?.octets());
    Ok(())
}

impl V6 {
    /// Returns the address, with zeros at the ellipsis.
    fn finish<'t>(self) -> Parsed<'t, Ipv6Addr> {
        let missing = 16_usize.saturating_sub(self.bytes.len());
        let mut bytes = self.bytes;
        match self.ellipsis {
            None if missing > 0 => return problem("address string too short", ""),
            Some(_) if missing == 0 => {
                return problem("the :: must expand to at least one field of zeros", "");
            }
            Some(at) => {
                let tail = bytes.split_off(at.min(bytes.len()));
                bytes.resize(bytes.len().saturating_add(missing), 0);
                bytes.extend(tail);
            }
            None => {}
        }
        let octets = <[u8; 16]>::try_from(bytes)
            .map_err(|_| Problem { message: "address string too long", at: "" })?;
        Ok(Ipv6Addr::from(octets))
    }
}

/// Whether `net.SplitHostPort` accepts a text: `host:port`, `[::1]:port`, with arbitrary parts.
#[must_use]
pub fn is_host_and_port(text: &str) -> bool {
    match text.strip_prefix('[') {
        Some(rest) => rest.split_once("]:").is_some_and(|(_, port)| !port.contains([':', '[', ']'])),
        None => text.matches(':').count() == 1 && !text.contains(['[', ']']),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for text in ["1.2.3.4", "::1", "::", "2001:db8::", "1:2:3:4:5:6:7:8", "64:ff9b::1.2.3.4", "fe80::1"] {
            let expected: IpAddr = text.parse().unwrap();
            assert_eq!(parse_address(text).map(|zoned| zoned.address), Ok(expected), "{text}");
        }
        for (text, error) in [
            ("", r#"ParseAddr(""): unable to parse IP"#),
            ("1.2.3", r#"ParseAddr("1.2.3"): IPv4 address too short"#),
            ("01.2.3.4", r#"ParseAddr("01.2.3.4"): IPv4 field has octet with leading zero"#),
            ("1..2.3", r#"ParseAddr("1..2.3"): IPv4 field must have at least one digit (at ".2.3")"#),
            (
                "[::1]",
                r#"ParseAddr("[::1]"): each colon-separated field must have at least one digit (at "[::1]")"#,
            ),
            ("1:2", r#"ParseAddr("1:2"): address string too short"#),
            ("1::2::3", r#"ParseAddr("1::2::3"): multiple :: in address (at ":3")"#),
            ("1:", r#"ParseAddr("1:"): colon must be followed by more characters (at ":")"#),
        ] {
            assert_eq!(parse_address(text).unwrap_err().to_string(), error);
        }
    }
}
