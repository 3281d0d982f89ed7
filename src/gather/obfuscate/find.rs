//! Finds addresses in text. Text is bytes here: logs are not always UTF-8.
//!
//! Regular expressions define what an address is; they run only where one can be. Each kind of address has a separator, and most other
//! uses of these characters are ruled out by the few bytes beside them. Regular expressions that begin with any digit would be slower.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use memchr::memchr3;
use regex_automata::meta::Regex;
use regex_automata::{Anchored, Input};

use super::PatternError;

/// A kind of address and its notation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    V4,
    /// IPv4 in host names, as cloud providers write it: `ip-10-0-0-1`.
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

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Address {
    V4(Ipv4Addr),
    V6(Ipv6Addr),
    Mac([u8; 6]),
}

/// An address with its position.
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
    /// Whether each kind is searched, by its number.
    asked: [bool; 4],
}

/// The most bytes of an address before its first separator.
const MAX_FIRST: usize = 4;

impl Finder {
    /// Compiles the patterns. If two kinds match at the same position, the first of `kinds` is preferred.
    ///
    /// # Errors
    /// [`PatternError`] when a pattern does not compile, which would be a bug of this program.
    pub fn new(kinds: &[Kind]) -> Result<Self, PatternError> {
        let patterns: Vec<&str> = kinds.iter().map(|kind| kind.pattern()).collect();
        let pattern = Regex::new_many(&patterns).map_err(|error| PatternError(error.to_string()))?;
        let asked = [Kind::V4, Kind::Dashed, Kind::V6, Kind::Mac].map(|kind| kinds.contains(&kind));
        Ok(Self { pattern, kinds: kinds.to_vec(), asked })
    }

    /// Returns the first address in `text` that begins at or after `from`.
    pub fn find(&self, text: &[u8], from: usize) -> Option<Found> {
        // No address begins before `at`, or has its first separator before `separator`.
        let (mut at, mut separator) = (from, from);
        loop {
            separator = self.separator(text, separator)?;
            let Some((kind, range)) = self.around(text, at, separator) else {
                separator += 1;
                continue;
            };
            if let Some(found) = read(kind, text, &range) {
                return Some(found);
            }
            // A match that is not an address may still contain the beginning of one.
            at = match kind {
                Kind::V4 => range.end,
                Kind::Dashed | Kind::V6 | Kind::Mac => separator + 1,
            };
            separator = at;
        }
    }

    /// Returns a match that begins at or after `from` and has its first separator at `separator`.
    fn around(&self, text: &[u8], from: usize, separator: usize) -> Option<(Kind, Range<usize>)> {
        // The part before the first separator contains none.
        let front = text.get(from..separator).unwrap_or_default();
        let first =
            front.iter().rev().take(MAX_FIRST).take_while(|byte| byte.is_ascii_alphanumeric()).count();
        (separator - first..=separator).find_map(|start| {
            let found = self.pattern.search(&Input::new(text).range(start..).anchored(Anchored::Yes))?;
            Some((*self.kinds.get(found.pattern().as_usize())?, found.range()))
        })
    }

    /// Returns the next position from `from` on that may be the first separator of an address.
    fn separator(&self, text: &[u8], from: usize) -> Option<usize> {
        let [v4, dashed, v6, mac] = self.asked;
        let mut at = from;
        loop {
            at = separator(text, at)?;
            let may_begin = match text.get(at) {
                Some(b'.') => v4 && begins_v4(text, at),
                Some(b':') => (mac && begins_mac(text, at)) || (v6 && begins_v6(text, at)),
                _ => (mac && begins_mac(text, at)) || (dashed && begins_dashed(text, at)),
            };
            if may_begin {
                return Some(at);
            }
            at += 1;
        }
    }
}

// Whether the separator at `at` may be the first of an address of a kind. True for every real first separator.

fn begins_v4(text: &[u8], at: usize) -> bool {
    is(text, at.checked_sub(1), u8::is_ascii_digit) && dotted(text, at)
}

fn begins_dashed(text: &[u8], at: usize) -> bool {
    is(text, at.checked_add(1), u8::is_ascii_digit)
        && text.get(..at).is_some_and(|before| before.ends_with(b"ip"))
}

fn begins_v6(text: &[u8], at: usize) -> bool {
    ends_first_group(text, at) && is_v6(text, at)
}

fn begins_mac(text: &[u8], at: usize) -> bool {
    let hex = |at: Option<usize>| is(text, at, u8::is_ascii_hexdigit);
    // Not part of something longer, such as a fingerprint.
    !is(text, at.checked_sub(3), continues_mac)
        && text.get(at + 3) == text.get(at)
        && [at.checked_sub(2), at.checked_sub(1), Some(at + 1), Some(at + 2)].into_iter().all(hex)
        && !is(text, at.checked_add(15), continues_mac)
}

/// Whether there is a byte at `at` that satisfies `so`.
fn is(text: &[u8], at: Option<usize>, so: fn(&u8) -> bool) -> bool {
    at.and_then(|at| text.get(at)).is_some_and(so)
}

/// Returns the next separator of any kind from `from` on. Close ones, as in a fingerprint, are found by a simple loop before
/// the vectorised search starts.
fn separator(text: &[u8], from: usize) -> Option<usize> {
    let rest = text.get(from..)?;
    let (near, far) = rest.split_at_checked(8).unwrap_or((rest, &[]));
    let near = near.iter().position(|byte| matches!(byte, b'.' | b':' | b'-'));
    near.or_else(|| Some(8 + memchr3(b'.', b':', b'-', far)?)).map(|at| from + at)
}

fn continues_mac(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b':' | b'-')
}

/// Whether the text before the colon at `at` can be the first group of an address: it is a whole word, and no part of something with
/// colons.
fn ends_first_group(text: &[u8], at: usize) -> bool {
    let before = text.get(..at).unwrap_or_default();
    for (length, byte) in before.iter().rev().enumerate() {
        if !byte.is_ascii_alphanumeric() {
            return *byte != b':';
        }
        if length == MAX_FIRST {
            return false;
        }
    }
    true
}

/// Counts how many bytes from `at` on satisfy `so`, up to `most`.
fn run(text: &[u8], at: usize, most: usize, so: fn(&u8) -> bool) -> usize {
    text.iter().skip(at).take(most).take_while(|byte| so(byte)).count()
}

/// Whether three groups of digits follow the dot at `at`, the last of any length.
fn dotted(text: &[u8], mut at: usize) -> bool {
    for _ in 0..2 {
        let digits = run(text, at + 1, 4, u8::is_ascii_digit);
        at += 1 + digits;
        if !(1..=3).contains(&digits) || text.get(at) != Some(&b'.') {
            return false;
        }
    }
    text.get(at + 1).is_some_and(u8::is_ascii_digit)
}

/// Whether the number of colons from `at` on fits an address: two in a row, or six or seven; six with a dotted end.
fn is_v6(text: &[u8], mut at: usize) -> bool {
    let mut colons = 0;
    while text.get(at) == Some(&b':') {
        colons += 1;
        let digits = run(text, at + 1, 5, u8::is_ascii_hexdigit);
        at += 1 + digits;
        if digits == 0 && text.get(at) == Some(&b':') {
            return true;
        }
        if digits > 4 || colons > 7 {
            return false;
        }
    }
    colons >= 6
}

fn read(kind: Kind, text: &[u8], range: &Range<usize>) -> Option<Found> {
    let inside = std::str::from_utf8(text.get(range.clone())?).ok()?;
    let before = range.start.checked_sub(1).and_then(|at| text.get(at));
    let behind = text.get(range.end);
    let alone = |continues: fn(&u8) -> bool| !before.is_some_and(continues) && !behind.is_some_and(continues);
    let (range, address) = match kind {
        Kind::V4 => (range.clone(), Address::V4(inside.parse().ok()?)),
        Kind::Dashed => {
            let digits = inside.strip_prefix("ip-")?;
            if !alone(u8::is_ascii_alphanumeric) {
                return None;
            }
            (range.start + 3..range.end, Address::V4(digits.replace('-', ".").parse().ok()?))
        }
        Kind::V6 => {
            if !alone(|byte| byte.is_ascii_alphanumeric() || *byte == b':') {
                return None;
            }
            (range.clone(), Address::V6(inside.parse().ok()?))
        }
        Kind::Mac => {
            if !alone(continues_mac) {
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

    /// Returns the addresses in a text as they are written.
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

    /// Does the same with the patterns alone, which search everywhere.
    fn by_patterns(finder: &Finder, text: &[u8], from: usize) -> Option<Found> {
        let mut at = from;
        while at <= text.len() {
            let found = finder.pattern.search(&Input::new(text).range(at..))?;
            let (kind, range) = (finder.kinds[found.pattern().as_usize()], found.range());
            if let Some(found) = read(kind, text, &range) {
                return Some(found);
            }
            let inside = &text[range.clone()];
            let separator = inside.iter().position(|byte| matches!(byte, b':' | b'-'));
            at = match kind {
                Kind::V4 => range.end,
                Kind::Dashed | Kind::V6 | Kind::Mac => range.start + separator.unwrap() + 1,
            };
        }
        None
    }

    #[test]
    fn nothing_is_overlooked_that_patterns_find_everywhere() {
        let mut state = 4_711_u64;
        let mut below = |most: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state % u64::try_from(most).unwrap()).unwrap()
        };
        let parts = [
            "1",
            "0",
            "25",
            "a",
            "f0",
            "1a2b",
            ":",
            ":",
            "::",
            ".",
            ".",
            "-",
            "ip-",
            " ",
            "x",
            "%",
            "10.0.0.",
            "00:11:22:33:44:",
        ];
        let sets: [&[Kind]; 4] = [
            &[Kind::V4],
            &[Kind::Mac],
            &[Kind::V6, Kind::V4, Kind::Dashed],
            &[Kind::Mac, Kind::V6, Kind::V4, Kind::Dashed],
        ];
        let finders = sets.map(|kinds| Finder::new(kinds).unwrap());
        let mut addresses = 0;
        for _ in 0..20_000 {
            let text: String = (0..=below(24)).map(|_| parts[below(parts.len())]).collect();
            let finder = &finders[below(finders.len())];
            let mut at = below(3);
            loop {
                let found = finder.find(text.as_bytes(), at);
                assert_eq!(found, by_patterns(finder, text.as_bytes(), at), "{text} from {at}");
                let Some(found) = found else { break };
                (at, addresses) = (found.range.end, addresses + 1);
            }
        }
        assert!(addresses > 1_000, "{addresses}");
    }

    #[test]
    fn bytes_that_are_no_text_hide_nothing() {
        let finder = Finder::new(&[Kind::V4]).unwrap();
        let found = finder.find(b"\xff\xfe10.0.0.1\xff", 0).unwrap();
        assert_eq!((found.range, found.address), (2..10, Address::V4(Ipv4Addr::new(10, 0, 0, 1))));
    }
}
