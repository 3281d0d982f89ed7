//! Ports, addresses and networks (staging/src/k8s.io/apimachinery/pkg/util/validation/{validation,ip}.go).
//!
//! Fields that are older than the strict rules take any spelling of an address or a network; newer ones take only the
//! canonical one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::go;

use crate::kinds::field::Field;

const NO_ADDRESS: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
const NO_NETWORK: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

/// The number of a port, which has to be there.
pub(crate) fn port_number(port: &Field<'_>, errors: &mut FieldErrors) {
    let number = port.integer().unwrap_or(0);
    if !(1..=65_535).contains(&number) {
        errors.add(|| port.invalid_as(number, "must be between 1 and 65535, inclusive"));
    }
}

/// The name that a container gives a port.
pub(crate) fn port_name(port: &Field<'_>, errors: &mut FieldErrors) {
    let name = port.text();
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let rules = [
        (name.len() > 15, "must be no more than 15 characters"),
        (
            name.is_empty() || !name.chars().all(plain),
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        ),
        (!name.contains(|c: char| c.is_ascii_lowercase()), "must contain at least one letter (a-z)"),
        (name.contains("--"), "must not contain consecutive hyphens"),
        (name.starts_with('-') || name.ends_with('-'), "must not begin or end with a hyphen"),
    ];
    for (_, why) in rules.into_iter().filter(|(broken, _)| *broken) {
        errors.add(|| port.invalid(why));
    }
}

/// An address in any spelling that means one thing everywhere.
pub(crate) fn legacy_address(field: &Field<'_>, errors: &mut FieldErrors) {
    for problem in address_problems(field.text(), Spelling::Any) {
        errors.add(|| field.invalid(problem));
    }
}

/// How an address may be written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Spelling {
    Any,
    Canonical,
}

/// What is wrong with a text that should be an address.
pub(crate) fn address_problems(text: &str, spelling: Spelling) -> Vec<String> {
    let Some(address) = parse_address(text) else { return vec![NO_ADDRESS.to_owned()] };
    let strict = text.parse::<IpAddr>();
    if strict.is_err() {
        return vec!["must not have leading 0s".to_owned()];
    }
    if is_mapped(address) {
        return vec!["must not be an IPv4-mapped IPv6 address".to_owned()];
    }
    let canonical = address.to_string();
    let is_odd = spelling == Spelling::Canonical && canonical != text;
    is_odd.then(|| format!("must be in canonical form ({})", go::quote(&canonical))).into_iter().collect()
}

/// A network in any spelling that means one thing everywhere.
pub(crate) fn legacy_network(field: &Field<'_>, errors: &mut FieldErrors) {
    if let Some(problem) = network_problem(field.text()) {
        errors.add(|| field.invalid(problem));
    }
}

/// A network in its canonical spelling.
pub(crate) fn network(field: &Field<'_>, errors: &mut FieldErrors) {
    if let Some(problem) = network_problem(field.text()) {
        return errors.add(|| field.invalid(problem));
    }
    let canonical = Network::parse(field.text()).map(|network| network.to_string()).unwrap_or_default();
    if canonical != field.text() {
        errors.add(|| field.invalid(format!("must be in canonical form ({})", go::quote(&canonical))));
    }
}

fn network_problem(text: &str) -> Option<&'static str> {
    let Some(network) = Network::parse(text) else { return Some(NO_NETWORK) };
    if go::netip::parse_prefix(text).is_err() {
        return Some("must not have leading 0s in IP or prefix length");
    }
    if is_mapped(network.written) {
        return Some("must not have an IPv4-mapped IPv6 address");
    }
    (network.written != network.first).then_some("must not have bits set beyond the prefix length")
}

/// A warning about a network that is not written as it should be.
pub(crate) fn network_warning(field: &Field<'_>) -> Option<String> {
    let text = field.text();
    let network = Network::parse(text)?;
    let (shown, canonical) = (go::quote(text), go::quote(&network.to_string()));
    if network.written != network.first {
        let single = format!("{}/{}", network.written, network.bits());
        return Some(format!(
            "{field}: CIDR value {shown} is ambiguous in this context (should be {canonical} or {}?)",
            go::quote(&single)
        ));
    }
    if go::netip::parse_prefix(text).is_err() || is_mapped(network.written) {
        return Some(format!(
            "{field}: non-standard CIDR value {shown} will be considered invalid in a future Kubernetes release: use \
             {canonical}"
        ));
    }
    let is_odd = network.written.is_ipv6() && shown != canonical;
    is_odd.then(|| {
        format!("{field}: IPv6 CIDR value {shown} should be in RFC 5952 canonical format ({canonical})")
    })
}

/// Warnings about the addresses of balancers in a status.
pub(crate) fn balancer_warnings(object: &serde_json::Value) -> Vec<String> {
    let ingress = Field::root(object).get("status").get("loadBalancer").get("ingress");
    // What is named is the item, and not its address.
    let warning = |item: Field<'_>| address_warning(&item.with(item.get("ip").value()));
    ingress.items().filter_map(warning).collect()
}

/// A warning about an address that is not written as it should be.
pub(crate) fn address_warning(field: &Field<'_>) -> Option<String> {
    let text = field.text();
    let address = parse_address(text)?;
    let (shown, canonical) = (go::quote(text), go::quote(&address.to_canonical().to_string()));
    if text.parse::<IpAddr>().is_err() || is_mapped(address) {
        return Some(format!(
            "{field}: non-standard IP address {shown} will be considered invalid in a future Kubernetes release: use \
             {canonical}"
        ));
    }
    let is_odd = address.is_ipv6() && shown != canonical;
    is_odd.then(|| {
        format!("{field}: IPv6 address {shown} should be in RFC 5952 canonical format ({canonical})")
    })
}

fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some())
}

/// Why nobody else can be sent to an address.
pub(crate) fn unusable(address: IpAddr, written: &str) -> Option<String> {
    let address = address.to_canonical();
    let (is_link_local, is_link_local_multicast) = match address {
        IpAddr::V4(address) => (address.is_link_local(), address.octets().starts_with(&[224, 0, 0])),
        IpAddr::V6(address) => (address.is_unicast_link_local(), address.segments()[0] & 0xff0f == 0xff02),
    };
    if address.is_unspecified() {
        return Some(format!("may not be unspecified ({written})"));
    }
    let ranges = [
        (address.is_loopback(), "loopback range (127.0.0.0/8, ::1/128)"),
        (is_link_local, "link-local range (169.254.0.0/16, fe80::/10)"),
        (is_link_local_multicast, "link-local multicast range (224.0.0.0/24, ff02::/10)"),
    ];
    ranges.into_iter().find(|(lies_in, _)| *lies_in).map(|(_, range)| format!("may not be in the {range}"))
}

/// Reads an address as Go did once: octets may begin with zeros.
pub(crate) fn parse_address(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        return text.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    }
    let octet = |digits: &str| match digits.trim_start_matches('0') {
        "" => (!digits.is_empty()).then_some(0),
        // A sign is no digit.
        rest => rest.parse::<u8>().ok().filter(|_| !rest.starts_with('+')),
    };
    let octets: Option<Vec<u8>> = text.split('.').map(octet).collect();
    let octets = octets.and_then(|octets| <[u8; 4]>::try_from(octets).ok());
    octets.map(|octets| IpAddr::V4(Ipv4Addr::from(octets)))
}

/// An address, and how many of its bits name the network.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Network {
    written: IpAddr,
    first: IpAddr,
    length: u8,
}

impl Network {
    /// Reads a network as Go did once: numbers may begin with zeros, bits past the prefix may be set.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (address, length) = text.split_once('/')?;
        let written = parse_address(address)?;
        let digits = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
        let length = if digits { length.trim_start_matches('0') } else { return None };
        let length = if length.is_empty() { 0 } else { length.parse::<u8>().ok()? };
        let mut network = Self { written, first: written, length };
        if length > network.bits() {
            return None;
        }
        network.first = network.first_of(written);
        Some(network)
    }

    pub(crate) const fn is_v4(&self) -> bool {
        self.first.is_ipv4()
    }

    const fn bits(&self) -> u8 {
        if self.written.is_ipv4() { 32 } else { 128 }
    }

    fn first_of(&self, address: IpAddr) -> IpAddr {
        let shift = u32::from(self.bits().saturating_sub(self.length));
        match address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(shift).unwrap_or(0);
                Ipv4Addr::from(u32::from(address) & mask).into()
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(shift).unwrap_or(0);
                Ipv6Addr::from(u128::from(address) & mask).into()
            }
        }
    }

    /// Whether the other one is a part of this, and smaller.
    pub(crate) fn holds(&self, other: &Self) -> bool {
        self.is_v4() == other.is_v4()
            && self.first_of(other.first) == self.first
            && self.length < other.length
    }
}

impl std::fmt::Display for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.first, self.length)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn networks_are_told_by_their_first_address() {
        let told = |text: &str| {
            let value = json!(text);
            let mut errors = FieldErrors::default();
            network(&Field::root(&value), &mut errors);
            errors.into_iter().map(|error| error.detail).collect::<Vec<_>>().join("; ")
        };
        for (text, detail) in [
            ("10.0.0.0/8", ""),
            ("2001:db8::/64", ""),
            ("10.0.0.0", NO_NETWORK),
            ("10.0.0.0/33", NO_NETWORK),
            ("10.0.0.1/8", "must not have bits set beyond the prefix length"),
            ("010.0.0.0/8", "must not have leading 0s in IP or prefix length"),
            ("10.0.0.0/08", "must not have leading 0s in IP or prefix length"),
            ("::ffff:10.0.0.0/104", "must not have an IPv4-mapped IPv6 address"),
            ("2001:DB8::/64", "must be in canonical form (\"2001:db8::/64\")"),
        ] {
            assert_eq!(told(text), detail, "{text}");
        }
        let holds = |one: &str, other: &str| {
            Network::parse(one).zip(Network::parse(other)).is_some_and(|(one, other)| one.holds(&other))
        };
        assert!(holds("10.0.0.0/8", "10.1.0.0/16") && holds("0.0.0.0/0", "1.0.0.0/8"));
        assert!(!holds("10.0.0.0/8", "10.0.0.0/8") && !holds("10.0.0.0/8", "11.0.0.0/16"));
        assert!(!holds("::/0", "10.0.0.0/8"));
    }

    #[test]
    fn odd_networks_are_warned_of() {
        let told = |text: &str| {
            let value = json!({"cidr": text});
            network_warning(&Field::root(&value).get("cidr")).unwrap_or_default()
        };
        assert_eq!(told("10.0.0.0/8"), "");
        assert_eq!(
            told("10.0.0.1/8"),
            "cidr: CIDR value \"10.0.0.1/8\" is ambiguous in this context (should be \"10.0.0.0/8\" or \
             \"10.0.0.1/32\"?)"
        );
        assert_eq!(
            told("2001:0db8::/64"),
            "cidr: IPv6 CIDR value \"2001:0db8::/64\" should be in RFC 5952 canonical format (\"2001:db8::/64\")"
        );
    }
}
