//! Decides which addresses uploads may go to: public ones, and those that were allowed, in any notation.
//!
//! Otherwise, anybody who may configure an upload or a proxy, or who controls a DNS name, could have the token and an archive sent to
//! services that only this machine or its proxy can reach: metadata services, other Pods, itself.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use std::sync::Arc;

use super::{Host, TunnelError};

/// Addresses that uploads may go to although they are not public: a network, or one address.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Reach {
    base: IpAddr,
    prefix: u32,
}

#[derive(Debug, thiserror::Error)]
#[error("it is an address or a network such as 10.0.0.0/8")]
pub struct ParseReachError;

impl FromStr for Reach {
    type Err = ParseReachError;

    fn from_str(text: &str) -> Result<Self, ParseReachError> {
        let (base, prefix) = text.split_once('/').map_or((text, None), |(base, prefix)| (base, Some(prefix)));
        let base: IpAddr = base.parse().map_err(|_| ParseReachError)?;
        let width = if base.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.map_or(Ok(width), str::parse).map_err(|_| ParseReachError)?;
        if prefix > width { Err(ParseReachError) } else { Ok(Self { base, prefix }) }
    }
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.prefix)
    }
}

impl Reach {
    pub(super) fn contains(self, address: IpAddr) -> bool {
        let leading = |bits: u128, width: u32| bits.checked_shr(width - self.prefix).unwrap_or(0);
        match (self.base, address) {
            (IpAddr::V4(base), IpAddr::V4(address)) => {
                leading(base.to_bits().into(), 32) == leading(address.to_bits().into(), 32)
            }
            (IpAddr::V6(base), IpAddr::V6(address)) => {
                leading(base.to_bits(), 128) == leading(address.to_bits(), 128)
            }
            _ => false,
        }
    }
}

/// Which addresses may be reached.
#[derive(Clone, Debug)]
pub enum Addresses {
    /// All addresses: the server was named by a trusted user.
    All,
    /// Public addresses, and these.
    PublicAnd(Arc<[Reach]>),
}

impl Addresses {
    pub(super) fn hold(&self, address: IpAddr) -> bool {
        match self {
            Self::All => true,
            Self::PublicAnd(allowed) => {
                is_public(address) || allowed.iter().any(|reach| reach.contains(address))
            }
        }
    }

    /// Whether a proxy may be asked for `host`: an address must be permitted. Names are resolved by the proxy alone.
    pub(super) fn let_a_proxy_reach(&self, host: &Host) -> Result<(), TunnelError> {
        let Self::PublicAnd(_) = self else { return Ok(()) };
        let name = host.name().to_owned();
        match spelled(&name) {
            Spelled::Name => Ok(()),
            Spelled::Address(address) if self.hold(address) => Ok(()),
            Spelled::Address(address) => Err(TunnelError::Forbidden { host: name, address }),
            Spelled::Nothing => {
                Err(TunnelError::Dns { host: name, reason: "it is neither a name nor an address".to_owned() })
            }
        }
    }
}

/// How a host is written.
pub(super) enum Spelled {
    Name,
    Address(IpAddr),
    /// It ends in a number, so it is no name, but it is not a valid address either.
    Nothing,
}

/// Parses addresses like C libraries, as a proxy may: `127.1`, `2130706433`, `0x7f.0.0.1` and `0177.0.0.1` are 127.0.0.1.
pub(super) fn spelled(host: &str) -> Spelled {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Spelled::Address(address.to_canonical());
    }
    let parts: Vec<&str> = host.strip_suffix('.').unwrap_or(host).split('.').collect();
    let numeric = parts.last().is_some_and(|last| {
        number(last).is_some() || !last.is_empty() && last.bytes().all(|b| b.is_ascii_digit())
    });
    if !numeric {
        return Spelled::Name;
    }
    let numbers = parts.iter().map(|part| number(part)).collect::<Option<Vec<u32>>>();
    let address = numbers.as_deref().and_then(|numbers| {
        let (last, front) = numbers.split_last()?;
        let left = 4_usize.checked_sub(front.len()).filter(|left| *left > 0)?;
        let widest = u32::MAX.checked_shr(u32::try_from((4 - left) * 8).ok()?)?;
        let front = front.iter().enumerate().try_fold(0_u32, |bits, (at, byte)| {
            let shift = u32::try_from((3 - at) * 8).ok()?;
            (*byte <= 255).then(|| bits | byte << shift)
        })?;
        (*last <= widest).then(|| Ipv4Addr::from_bits(front | last))
    });
    address.map_or(Spelled::Nothing, |address| Spelled::Address(address.into()))
}

/// Parses a hexadecimal, octal or decimal number, as in C.
fn number(text: &str) -> Option<u32> {
    let lower = text.to_ascii_lowercase();
    let (digits, radix) = match lower.strip_prefix("0x") {
        Some("") => return Some(0),
        Some(digits) => (digits, 16),
        None => match lower.strip_prefix('0') {
            Some(digits) if !digits.is_empty() => (digits, 8),
            _ => (lower.as_str(), 10),
        },
    };
    let plain = digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
    plain.then(|| u32::from_str_radix(digits, radix).ok()).flatten()
}

/// Whether an address is on the public internet.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let kept_back = match address.octets() {
        // This network, protocol assignments, benchmarks, reserved and broadcast; carriers' networks follow.
        [0, ..] | [192, 0, 0, _] | [198, 18 | 19, ..] | [240..=255, ..] => true,
        [100, second, ..] => (64..128).contains(&second),
        _ => false,
    };
    !(kept_back
        || address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_multicast())
}

/// Whether an IPv6 address is public; one that embeds an IPv4 address is public if that is.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let of = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => is_public_v4(of(high, low)),
        // Global unicast, except Teredo, which embeds addresses in another form.
        [0x2001, 0, ..] => false,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_public() {
        for text in
            ["8.8.8.8", "100.63.0.1", "100.128.0.1", "2606:4700::1111", "64:ff9b::808:808", "2002:808:808::1"]
        {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
        for text in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "127.0.0.1",
            "127.255.255.255",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.168.1.1",
            "198.18.0.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "fe80::1",
            "fec0::1",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::",
            "2001:0:1::1",
        ] {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
        let mapped: IpAddr = "::ffff:169.254.169.254".parse().unwrap();
        assert!(!is_public(mapped.to_canonical()));
    }

    #[test]
    fn however_an_address_is_spelled() {
        let of = |host: &str| match spelled(host) {
            Spelled::Name => "a name".to_owned(),
            Spelled::Address(address) => address.to_string(),
            Spelled::Nothing => "nothing".to_owned(),
        };
        for (host, expected) in [
            ("a.test", "a name"),
            ("0x7f.test", "a name"),
            ("a1", "a name"),
            ("a-1.b2.", "a name"),
            ("127.0.0.1", "127.0.0.1"),
            ("127.0.0.1.", "127.0.0.1"),
            ("127.1", "127.0.0.1"),
            ("127.0.1", "127.0.0.1"),
            ("10.1.256", "10.1.1.0"),
            ("2130706433", "127.0.0.1"),
            ("0x7f000001", "127.0.0.1"),
            ("0X7F.1", "127.0.0.1"),
            ("0177.0.0.1", "127.0.0.1"),
            ("017700000001", "127.0.0.1"),
            ("2852039166", "169.254.169.254"),
            ("0", "0.0.0.0"),
            ("0x", "0.0.0.0"),
            ("::ffff:10.0.0.1", "10.0.0.1"),
            ("::1", "::1"),
            ("4294967295", "255.255.255.255"),
            ("4294967296", "nothing"),
            ("256.0.0.1", "nothing"),
            ("1.2.3.256", "nothing"),
            ("1.2.3.4.5", "nothing"),
            ("a.1", "nothing"),
            ("1.2.3.09", "nothing"),
        ] {
            assert_eq!(of(host), expected, "{host}");
        }
    }

    #[test]
    fn what_is_allowed() {
        let reach = |text: &str| text.parse::<Reach>().unwrap();
        let holds = |network: &str, address: &str| reach(network).contains(address.parse().unwrap());
        assert!(holds("10.0.0.0/8", "10.255.0.1") && !holds("10.0.0.0/8", "11.0.0.1"));
        assert!(holds("127.0.0.1", "127.0.0.1") && !holds("127.0.0.1", "127.0.0.2"));
        assert!(holds("fd00::/8", "fdff::1") && !holds("fd00::/8", "10.0.0.1"));
        assert!(holds("0.0.0.0/0", "192.168.0.1") && !holds("0.0.0.0/0", "::1"));
        assert_eq!(reach("10.0.0.0/8").to_string(), "10.0.0.0/8");
        for text in ["", "10.0.0.0/33", "::/129", "a/8", "10.0.0.0/-1", "10.0.0.0/"] {
            assert!(text.parse::<Reach>().is_err(), "{text}");
        }
    }
}
