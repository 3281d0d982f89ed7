//! Checks the formats of IP addresses, networks, MAC addresses, host names and URIs.

use std::net::Ipv6Addr;
use std::sync::LazyLock;

use regex_automata::meta::Regex;

use super::{Constant, is_match};

static HOSTNAME: Constant = LazyLock::new(|| {
    const CHARS: &str = r"a-zA-Z0-9\p{S}\p{L}";
    Regex::new(&format!(
        r"^([{CHARS}]((-?[{CHARS}]{{0,62}})?)|([{CHARS}](([\-{CHARS}]{{0,61}}[{CHARS}])?)(\.)){{1,}}([a-zA-Z\p{{L}}]){{2,63}})$"
    ))
    .ok()
});

pub(super) fn is_hostname(text: &str) -> bool {
    is_match(&HOSTNAME, text) && text.len() <= 255 && text.split('.').all(|label| label.len() <= 63)
}

/// Leading zeros are tolerated, as Go did before 1.17; an IPv4 address in IPv6 form counts.
pub(super) fn is_ipv4(text: &str) -> bool {
    is_dotted_quad(text) || (text.contains('.') && text.parse::<Ipv6Addr>().is_ok())
}

fn is_dotted_quad(text: &str) -> bool {
    let part = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|b| b.is_ascii_digit())
            && part.trim_start_matches('0').len() <= 3
            && part.parse::<u32>().is_ok_and(|number| number <= 255)
    };
    text.split('.').count() == 4 && text.split('.').all(part)
}

pub(super) fn is_ipv6(text: &str) -> bool {
    text.parse::<Ipv6Addr>().is_ok()
}

pub(super) fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let max = if is_dotted_quad(address) {
        32
    } else if address.parse::<Ipv6Addr>().is_ok() {
        128
    } else {
        return false;
    };
    !bits.is_empty()
        && bits.bytes().all(|b| b.is_ascii_digit())
        && bits.parse::<u32>().is_ok_and(|bits| bits <= max)
}

/// 6, 8 or 20 bytes: pairs of digits with colons or dashes between, or groups of four with dots.
pub(super) fn is_mac(text: &str) -> bool {
    let is_hex =
        |group: &str, length: usize| group.len() == length && group.bytes().all(|b| b.is_ascii_hexdigit());
    let grouped = |separator: char, length: usize, counts: [usize; 3]| {
        counts.contains(&text.split(separator).count())
            && text.split(separator).all(|group| is_hex(group, length))
    };
    grouped(':', 2, [6, 8, 20]) || grouped('-', 2, [6, 8, 20]) || grouped('.', 4, [3, 4, 10])
}
