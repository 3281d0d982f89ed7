//! Implements IP addresses and networks. IPv4-mapped IPv6 addresses and zones are rejected.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use admit_apimachinery::go::netip;
use admit_apimachinery::go::quote;

use crate::cost::{Bounds, CallEstimate, Operand, STRING_TRAVERSAL, scale};
use crate::library::{Overload, Version, cost, mismatch};
use crate::value::{EvalError, Opaque, Value};
use Value::{Bool, Int, String};

const SINCE: Version = Version(1, 30);

pub(super) const ADDRESS_ROWS: &[Overload] = &[
    Overload::new(
        "string_to_ip",
        "ip(string) -> net.IP",
        |_, args| match args {
            [String(text)] => address(text).map(ip_value),
            _ => mismatch(),
        },
        "Reads an IP address.",
    )
    .costs_by_name(cost::estimate_traverse_first, cost::traverse_first)
    .since(SINCE),
    Overload::new(
        "ip_family",
        "net.IP.family() -> int",
        |_, args| of_ip(args, |ip| Int(if ip.is_ipv4() { 4 } else { 6 })),
        "4 or 6.",
    )
    .since(SINCE),
    Overload::new(
        "ip_is_canonical",
        "ip.isCanonical(string) -> bool",
        |_, args| match args {
            [String(text)] => address(text).map(|ip| Bool(shown(ip) == *text)),
            _ => mismatch(),
        },
        "Whether an IP address is written in its canonical form.",
    )
    .costs_by_name(cost::estimate_traverse_first_twice, cost::traverse_first_twice)
    .since(SINCE),
    Overload::new(
        "ip_is_unspecified",
        "net.IP.isUnspecified() -> bool",
        |_, args| of_ip(args, |ip| Bool(ip.is_unspecified())),
        "Whether an address is 0.0.0.0 or ::.",
    )
    .since(SINCE),
    Overload::new(
        "ip_is_loopback",
        "net.IP.isLoopback() -> bool",
        |_, args| of_ip(args, |ip| Bool(ip.is_loopback())),
        "Whether an address is of the loopback interface.",
    )
    .since(SINCE),
    Overload::new(
        "ip_is_link_local_multicast",
        "net.IP.isLinkLocalMulticast() -> bool",
        |_, args| of_ip(args, |ip| Bool(is_link_local_multicast(ip))),
        "Whether an address is a multicast address of the local link.",
    )
    .since(SINCE),
    Overload::new(
        "ip_is_link_local_unicast",
        "net.IP.isLinkLocalUnicast() -> bool",
        |_, args| of_ip(args, |ip| Bool(is_link_local_unicast(ip))),
        "Whether an address is a unicast address of the local link.",
    )
    .since(SINCE),
    Overload::new(
        "ip_is_global_unicast",
        "net.IP.isGlobalUnicast() -> bool",
        |_, args| of_ip(args, |ip| Bool(is_global_unicast(ip))),
        "Whether an address is a unicast address beyond link and loopback, private ones included.",
    )
    .since(SINCE),
    Overload::new(
        "is_ip",
        "isIP(string) -> bool",
        |_, args| match args {
            [String(text)] => Ok(Bool(address(text).is_ok())),
            _ => mismatch(),
        },
        "Whether `ip` reads a string.",
    )
    .costs_by_name(cost::estimate_traverse_first, cost::traverse_first)
    .since(SINCE),
    Overload::new(
        "ip_to_string",
        "string(net.IP) -> string",
        |context, args| match args {
            [Value::Opaque(Opaque::Ip(ip))] => context.text(&shown(*ip)),
            _ => mismatch(),
        },
        "The canonical form of an address.",
    )
    .since(SINCE),
];

pub(super) const NETWORK_ROWS: &[Overload] = &[
    Overload::new(
        "string_to_cidr",
        "cidr(string) -> net.CIDR",
        |_, args| match args {
            [String(text)] => network(text),
            _ => mismatch(),
        },
        "Reads an address with a prefix length.",
    )
    .costs_by_name(cost::estimate_traverse_first, cost::traverse_first)
    .since(SINCE),
    Overload::new(
        "cidr_contains_ip_string",
        "net.CIDR.containsIP(string) -> bool",
        |_, args| match args {
            // A string that is not an address is a missing overload.
            [Value::Opaque(Opaque::Cidr(base, prefix)), String(text)] => address(text)
                .map(|ip| Bool(contains(*base, *prefix, ip)))
                .map_err(|_| EvalError::NoSuchOverload),
            _ => mismatch(),
        },
        "Whether a network has an address.",
    )
    .costs(|args| estimate_within(Bounds::ZERO, args, true), |args, _| within(args, 2, true))
    .costs_ambiguous(|args, _| within(args, 2, false))
    .since(SINCE),
    Overload::new(
        "cidr_contains_ip_ip",
        "net.CIDR.containsIP(net.IP) -> bool",
        |_, args| match args {
            [Value::Opaque(Opaque::Cidr(base, prefix)), Value::Opaque(Opaque::Ip(ip))] => {
                Ok(Bool(contains(*base, *prefix, *ip)))
            }
            _ => mismatch(),
        },
        "Whether a network has an address.",
    )
    .costs_by_name(|args| estimate_within(Bounds::ZERO, args, false), |args, _| within(args, 2, false))
    .since(SINCE),
    Overload::new(
        "cidr_contains_cidr_string",
        "net.CIDR.containsCIDR(string) -> bool",
        |_, args| match args {
            [outer, String(text)] => contains_network(outer, &network(text)?),
            _ => mismatch(),
        },
        "Whether a network has all of another.",
    )
    .costs(|args| estimate_within(MASKING, args, true), |args, _| within_masked(args, true))
    .costs_ambiguous(|args, _| within_masked(args, false))
    .since(SINCE),
    Overload::new(
        "cidr_contains_cidr",
        "net.CIDR.containsCIDR(net.CIDR) -> bool",
        |_, args| match args {
            [outer, inner] => contains_network(outer, inner),
            _ => mismatch(),
        },
        "Whether a network has all of another.",
    )
    .costs_by_name(|args| estimate_within(MASKING, args, false), |args, _| within_masked(args, false))
    .since(SINCE),
    Overload::new(
        "cidr_ip",
        "net.CIDR.ip() -> net.IP",
        |_, args| of_cidr(args, |ip, _| ip_value(ip)),
        "The address of a network.",
    )
    .costs_ambiguous(cost::traverse_first)
    .since(SINCE),
    Overload::new(
        "cidr_prefix_length",
        "net.CIDR.prefixLength() -> int",
        |_, args| of_cidr(args, |_, prefix| Int(i64::from(prefix))),
        "The prefix length of a network.",
    )
    .since(SINCE),
    Overload::new(
        "cidr_masked",
        "net.CIDR.masked() -> net.CIDR",
        |_, args| of_cidr(args, |ip, prefix| Value::Opaque(Opaque::Cidr(masked(ip, prefix), prefix))),
        "The network with all bits past its prefix cleared.",
    )
    .since(SINCE),
    Overload::new(
        "is_cidr",
        "isCIDR(string) -> bool",
        |_, args| match args {
            [String(text)] => Ok(Bool(network(text).is_ok())),
            _ => mismatch(),
        },
        "Whether `cidr` reads a string.",
    )
    .costs_by_name(cost::estimate_traverse_first, cost::traverse_first)
    .since(SINCE),
    Overload::new(
        "cidr_to_string",
        "string(net.CIDR) -> string",
        |context, args| match args {
            [Value::Opaque(Opaque::Cidr(ip, prefix))] => context.text(&format!("{}/{prefix}", shown(*ip))),
            _ => mismatch(),
        },
        "The canonical form of a network.",
    )
    .since(SINCE),
];

const fn ip_value<'a>(ip: IpAddr) -> Value<'a> {
    Value::Opaque(Opaque::Ip(ip))
}

fn of_ip<'a>(args: &[Value<'a>], body: fn(IpAddr) -> Value<'a>) -> Result<Value<'a>, EvalError> {
    match args {
        [Value::Opaque(Opaque::Ip(ip))] => Ok(body(*ip)),
        _ => mismatch(),
    }
}

fn of_cidr<'a>(args: &[Value<'a>], body: fn(IpAddr, u8) -> Value<'a>) -> Result<Value<'a>, EvalError> {
    match args {
        [Value::Opaque(Opaque::Cidr(ip, prefix))] => Ok(body(*ip, *prefix)),
        _ => mismatch(),
    }
}

fn address(text: &str) -> Result<IpAddr, EvalError> {
    let parsed = netip::parse_address(text).map_err(|cause| {
        let text = quote(text);
        EvalError::other(format!("IP Address {text} parse error during conversion from string: {cause}"))
    })?;
    if parsed.has_zone {
        return Err(EvalError::other(format!("IP address {} with zone value is not allowed", quote(text))));
    }
    if is_mapped(parsed.address) {
        return Err(EvalError::other(format!("IPv4-mapped IPv6 address {} is not allowed", quote(text))));
    }
    Ok(parsed.address)
}

fn network<'a>(text: &str) -> Result<Value<'a>, EvalError> {
    const PREFIX: &str = "network address parse error during conversion from string:";
    let (ip, prefix) =
        netip::parse_prefix(text).map_err(|cause| EvalError::other(format!("{PREFIX} {PREFIX} {cause}")))?;
    if is_mapped(ip) {
        let text = quote(text);
        return Err(EvalError::other(format!("{PREFIX} IPv4-mapped IPv6 address {text} is not allowed")));
    }
    Ok(Value::Opaque(Opaque::Cidr(ip, prefix)))
}

fn is_mapped(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some())
}

/// RFC 5952, as both Go and Rust write it for addresses that are not IPv4-mapped.
fn shown(ip: IpAddr) -> std::string::String {
    match ip {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => ip.to_string(),
    }
}

fn is_link_local_multicast(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => matches!(ip.octets(), [224, 0, 0, _]),
        IpAddr::V6(ip) => first_segment(ip) & 0xff0f == 0xff02,
    }
}

fn is_link_local_unicast(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => first_segment(ip) & 0xffc0 == 0xfe80,
    }
}

const fn first_segment(ip: Ipv6Addr) -> u16 {
    let [first, ..] = ip.segments();
    first
}

fn is_global_unicast(ip: IpAddr) -> bool {
    ip != IpAddr::V4(Ipv4Addr::BROADCAST)
        && !ip.is_unspecified()
        && !ip.is_loopback()
        && !ip.is_multicast()
        && !is_link_local_unicast(ip)
}

/// All bits past the prefix cleared.
fn masked(ip: IpAddr, prefix: u8) -> IpAddr {
    match ip {
        IpAddr::V4(ip) => {
            let host_bits = 32_u32.saturating_sub(u32::from(prefix));
            let mask = u32::MAX.checked_shl(host_bits).unwrap_or(0);
            Ipv4Addr::from_bits(ip.to_bits() & mask).into()
        }
        IpAddr::V6(ip) => {
            let host_bits = 128_u32.saturating_sub(u32::from(prefix));
            let mask = u128::MAX.checked_shl(host_bits).unwrap_or(0);
            Ipv6Addr::from_bits(ip.to_bits() & mask).into()
        }
    }
}

fn contains(base: IpAddr, prefix: u8, ip: IpAddr) -> bool {
    base.is_ipv4() == ip.is_ipv4() && masked(base, prefix) == masked(ip, prefix)
}

fn contains_network<'a>(outer: &Value<'a>, inner: &Value<'a>) -> Result<Value<'a>, EvalError> {
    match (outer, inner) {
        (Value::Opaque(Opaque::Cidr(base, prefix)), Value::Opaque(Opaque::Cidr(ip, length))) => {
            Ok(Bool(prefix <= length && contains(*base, *prefix, *ip)))
        }
        _ => mismatch(),
    }
}

/// Returns the cost of comparing the bytes of the prefix, `rounds` times, and of parsing the other side if it is a string.
fn within(args: &[Value<'_>], rounds: u64, reads: bool) -> u64 {
    let compared = scale(cost::size_of(args, 0).saturating_mul(rounds), STRING_TRAVERSAL);
    let read = if reads { scale(cost::size_of(args, 1), STRING_TRAVERSAL) } else { 0 };
    compared.saturating_add(read)
}

/// The same after masking the base, which looks at its bytes once more.
fn within_masked(args: &[Value<'_>], reads: bool) -> u64 {
    within(args, 2, reads).saturating_add(scale(cost::size_of(args, 0), STRING_TRAVERSAL)).saturating_add(1)
}

/// The bytes of an address of either family.
const BYTES: Bounds = Bounds::new(4, 16);
/// Masking an address and comparing the prefix lengths: a look at its 4 to 16 bytes, and one.
const MASKING: Bounds = Bounds::new(2, 3);

fn estimate_within(masking: Bounds, args: &[Operand<'_>], reads: bool) -> CallEstimate {
    let compared = BYTES.plus(BYTES).scaled(STRING_TRAVERSAL).plus(masking);
    let read = if reads { cost::bounds_of(args, 1).scaled(STRING_TRAVERSAL) } else { Bounds::ZERO };
    CallEstimate::of_cost(compared.plus(read))
}
