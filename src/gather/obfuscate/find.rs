//! Addresses in text: where they stand, and which they are. Text is bytes here: logs are not always UTF-8.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use regex_automata::Input;
use regex_automata::meta::Regex;

use super::PatternError;

/// A kind of address, and how it is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    V4,
    /// As cloud providers write IPv4 addresses into the names of machines: `ip-10-0-0-1`.
    Dashed,
    V6,
    Mac,
}

impl Kind {
    fn pattern(self) -> &'static str {
        match self {
            Self::V4 => r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}",
            Self::Dashed => r"ip-[0-9]{1,3}(?:-[0-9]{1,3}){3}",
            Self::V6 => r"[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?:(?:\.[0-9]{1,3}){3})?",
            Self::Mac => r"[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}|[0-9A-Fa-f]{2}(?:-[0-9A-Fa-f]{2}){5}",
        }
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Address {
    V4(Ipv4Addr),
    V6(Ipv6Addr),
    Mac([u8; 6]),
}

/// An address, and where it stands.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Found {
    pub range: Range<usize>,
    pub address: Address,
}

/// Finds addresses of some kinds.
#[derive(Debug)]
pub struct Finder {
    pattern: Regex,
    kinds: Vec<Kind>,
}

impl Finder {
    /// Where two kinds begin at the same place, the first of `kinds` is tried first.
    ///
    /// # Errors
    /// [`PatternError`] when a pattern does not compile, which would be a fault of this program.
    pub fn new(kinds: &[Kind]) -> Result<Self, PatternError> {
        let patterns: Vec<&str> = kinds.iter().map(|kind| kind.pattern()).collect();
        let pattern = Regex::new_many(&patterns).map_err(|error| PatternError(error.to_string()))?;
        Ok(Self { pattern, kinds: kinds.to_vec() })
    }

    /// The first address in `text` that begins at `from` or behind it.
    pub fn find(&self, text: &[u8], from: usize) -> Option<Found> {
        let mut at = from;
        while at <= text.len() {
            let found = self.pattern.search(&Input::new(text).range(at..))?;
            let (kind, range) = (*self.kinds.get(found.pattern().as_usize())?, found.range());
            if let Some(found) = read(kind, text, &range) {
                return Some(found);
            }
            // What looks like one and is none may begin with something that is none and end with something that is.
            let skipped = match kind {
                Kind::V4 => range.end,
                Kind::Dashed | Kind::V6 | Kind::Mac => {
                    let inside = text.get(range.clone()).unwrap_or_default();
                    let separator = inside.iter().position(|byte| matches!(byte, b':' | b'-'));
                    range.start + separator.map_or(inside.len(), |at| at + 1)
                }
            };
            at = skipped.max(at + 1);
        }
        None
    }
}

fn read(kind: Kind, text: &[u8], range: &Range<usize>) -> Option<Found> {
    let inside = std::str::from_utf8(text.get(range.clone())?).ok()?;
    let before = range.start.checked_sub(1).and_then(|at| text.get(at)).copied();
    let behind = text.get(range.end).copied();
    let alone = |continues: fn(u8) -> bool| !before.is_some_and(continues) && !behind.is_some_and(continues);
    let (range, address) = match kind {
        Kind::V4 => (range.clone(), Address::V4(inside.parse().ok()?)),
        Kind::Dashed => {
            let digits = inside.strip_prefix("ip-")?;
            if !alone(|byte| byte.is_ascii_alphanumeric()) {
                return None;
            }
            (range.start + 3..range.end, Address::V4(digits.replace('-', ".").parse().ok()?))
        }
        Kind::V6 => {
            if !alone(|byte| byte.is_ascii_alphanumeric() || byte == b':') {
                return None;
            }
            (range.clone(), Address::V6(inside.parse().ok()?))
        }
        Kind::Mac => {
            if !alone(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b':' | b'-')) {
                return None;
            }
            (range.clone(), Address::Mac(mac(inside)?))
        }
    };
    Some(Found { range, address })
}

fn mac(text: &str) -> Option<[u8; 6]> {
    let mut bytes = [0; 6];
    let mut parts = text.split([':', '-']);
    for byte in &mut bytes {
        *byte = u8::from_str_radix(parts.next()?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found in a text, each as it is written there.
    fn found(text: &str) -> Vec<&str> {
        let finder = Finder::new(&[Kind::Mac, Kind::V6, Kind::V4, Kind::Dashed]).unwrap();
        let (mut at, mut all) = (0, Vec::new());
        while let Some(Found { range, .. }) = finder.find(text.as_bytes(), at) {
            at = range.end;
            all.push(&text[range]);
        }
        all
    }

    #[test]
    fn addresses_are_found_where_they_are_and_nowhere_else() {
        for (text, expected) in [
            ("to 10.0.0.1:8080, 10.0.0.2.", vec!["10.0.0.1", "10.0.0.2"]),
            ("10.0.0.0/8", vec!["10.0.0.0"]),
            ("ip-10-0-187-218.ec2.internal", vec!["10-0-187-218"]),
            ("skip-10-0-187-218 ip-10-0-187-2180", vec![]),
            ("fe80::1%eth0 [2001:DB8::2]:443", vec!["fe80::1", "2001:DB8::2"]),
            ("::ffff:10.0.0.1 ::1 ::", vec!["::ffff:10.0.0.1", "::1", "::"]),
            ("at 12:34:56 10.0.0.1", vec!["10.0.0.1"]),
            ("12:34:56:10.0.0.1", vec!["10.0.0.1"]),
            ("kube::ad default::b std::fs", vec![]),
            ("52:54:00:5e:ee:c6 52-54-00-5E-EE-C7", vec!["52:54:00:5e:ee:c6", "52-54-00-5E-EE-C7"]),
            // A fingerprint.
            ("AA:BB:CC:DD:EE:FF:00:11:22:33:44:55:66:77:88:99", vec![]),
            ("1:2:3:4:5:6:7:8", vec!["1:2:3:4:5:6:7:8"]),
            ("300.1.1.1 1.2.3 2021-09-13T10:11:12Z", vec![]),
        ] {
            assert_eq!(found(text), expected, "{text}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_hide_nothing() {
        let finder = Finder::new(&[Kind::V4]).unwrap();
        let found = finder.find(b"\xff\xfe10.0.0.1\xff", 0).unwrap();
        assert_eq!((found.range, found.address), (2..10, Address::V4(Ipv4Addr::new(10, 0, 0, 1))));
    }
}
