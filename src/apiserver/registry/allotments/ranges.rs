//! Defines address ranges of services, from ServiceCIDRs (pkg/registry/core/service/ipallocator).

use std::net::{IpAddr, Ipv4Addr};

use admit_apimachinery::pointer;
use serde_json::Value;

use crate::object;

/// The name of the ServiceCIDR that the server creates.
pub(super) const DEFAULT: &str = "kubernetes";

/// A range of IPv4 addresses, without the network and broadcast addresses.
///
/// ```
/// use admit_apiserver::ServiceRange;
///
/// let range: ServiceRange = "10.43.0.0/16".parse()?;
/// assert_eq!(range.first().to_string(), "10.43.0.1", "what pods call the API server by");
/// # Ok::<(), admit_apiserver::ServiceRangeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceRange {
    network: Ipv4Addr,
    bits: u32,
}

/// The address range of services, and the endpoint at which clients reach the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceNetwork {
    /// The range of service addresses; the first address is that of the Service `kubernetes`.
    pub range: ServiceRange,
    /// The address of the endpoint of `kubernetes`. It has no endpoints without an address, or with a loopback address, which
    /// pods would take for their own.
    pub address: Option<IpAddr>,
    /// The port of that endpoint.
    pub port: u16,
}

impl Default for ServiceNetwork {
    /// Returns the default of kube-apiserver.
    fn default() -> Self {
        Self { range: ServiceRange::default(), address: None, port: 6443 }
    }
}

/// Says why a text is not a valid range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServiceRangeError {
    /// The text is not a network with a prefix length.
    #[error("a range of addresses of services is written as 10.0.0.0/24")]
    Form,
    /// The range is IPv6.
    #[error("services of IPv6 are not supported: name a range of IPv4, as 10.0.0.0/24")]
    Ipv6,
    /// The range is larger or smaller than kube-apiserver allows.
    #[error("a range of addresses of services has a prefix of 12 to 30 bits, as 10.0.0.0/24")]
    Length,
}

impl Default for ServiceRange {
    /// Returns the default of kube-apiserver.
    fn default() -> Self {
        Self { network: Ipv4Addr::new(10, 0, 0, 0), bits: 24 }
    }
}

impl std::fmt::Display for ServiceRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.network, self.bits)
    }
}

impl std::str::FromStr for ServiceRange {
    type Err = ServiceRangeError;

    /// Parses a range in CIDR notation; bits beyond the prefix are dropped.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let range = Self::read(text)?;
        // kube-apiserver allows 2^20 addresses at most, and a service must fit in beside `kubernetes`.
        if (12..=30).contains(&range.bits) { Ok(range) } else { Err(ServiceRangeError::Length) }
    }
}

impl ServiceRange {
    fn read(text: &str) -> Result<Self, ServiceRangeError> {
        let (network, bits) = text.split_once('/').ok_or(ServiceRangeError::Form)?;
        let network: IpAddr = network.parse().map_err(|_| ServiceRangeError::Form)?;
        let IpAddr::V4(network) = network else { return Err(ServiceRangeError::Ipv6) };
        let bits: u32 = bits.parse().map_err(|_| ServiceRangeError::Form)?;
        let hosts = 32_u32.checked_sub(bits).ok_or(ServiceRangeError::Form)?;
        let mask = u32::MAX.checked_shl(hosts).unwrap_or(0);
        Ok(Self { network: Ipv4Addr::from(network.to_bits() & mask), bits })
    }

    /// Returns the number of addresses.
    fn size(self) -> u32 {
        let hosts = 32_u32.saturating_sub(self.bits);
        let all = 1_u32.checked_shl(hosts).unwrap_or(u32::MAX);
        all.saturating_sub(2)
    }

    /// Returns the address that a dry run shows.
    pub(super) fn shown(self) -> IpAddr {
        self.network.into()
    }

    /// Returns the address of the Service `kubernetes`.
    #[must_use]
    pub fn first(self) -> IpAddr {
        self.at(0)
    }

    fn at(self, place: u32) -> IpAddr {
        Ipv4Addr::from(self.network.to_bits().saturating_add(1).saturating_add(place)).into()
    }

    pub(super) fn contains(self, address: IpAddr) -> bool {
        let IpAddr::V4(address) = address else { return false };
        let place = address.to_bits().checked_sub(self.network.to_bits().saturating_add(1));
        place.is_some_and(|place| place < self.size())
    }

    /// Returns all addresses in the order of allocation from a start: those of the upper part first, since services request
    /// addresses of the lower part explicitly.
    pub(super) fn drawn(self, start: u32) -> impl Iterator<Item = IpAddr> {
        let size = self.size();
        let asked_for = if size < 16 { 0 } else { (size / 16).clamp(16, 256).min(size) };
        let around = move |first: u32, count: u32| {
            let start = start.checked_rem(count).unwrap_or(0);
            (0..count).map(move |step| {
                let place = (u64::from(start) + u64::from(step)) % u64::from(count.max(1));
                self.at(first.saturating_add(u32::try_from(place).unwrap_or(0)))
            })
        };
        around(asked_for, size.saturating_sub(asked_for)).chain(around(0, asked_for))
    }
}

/// Returns the ranges of a ServiceCIDR from which addresses can be allocated.
pub(super) fn of(cidr: &Value) -> Vec<ServiceRange> {
    let conditions = pointer::items(cidr, "/status/conditions");
    let ready = conditions.iter().find(|condition| condition["type"] == "Ready");
    if object::is_terminating(cidr) || ready.is_some_and(|ready| ready["status"] != "True") {
        return Vec::new();
    }
    let texts = cidr.pointer("/spec/cidrs").and_then(Value::as_array);
    let texts = texts.into_iter().flatten().filter_map(Value::as_str);
    texts.filter_map(|text| ServiceRange::read(text).ok()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn ranges_are_read_and_bounded() {
        let read = |text: &str| text.parse::<ServiceRange>();
        assert_eq!(read("10.96.1.7/12").unwrap().to_string(), "10.96.0.0/12");
        assert_eq!(read("10.0.0.0/24"), Ok(ServiceRange::default()));
        assert_eq!(read("10.0.0.0/8"), Err(ServiceRangeError::Length));
        assert_eq!(read("10.0.0.0/31"), Err(ServiceRangeError::Length));
        assert_eq!(read("10.0.0.0/33"), Err(ServiceRangeError::Form));
        assert_eq!(read("10.0.0.0"), Err(ServiceRangeError::Form));
        assert_eq!(read("fd00::/108"), Err(ServiceRangeError::Ipv6));
    }

    #[test]
    fn neither_the_network_nor_all_its_hosts_are_given() {
        let range = ServiceRange::default();
        assert_eq!(range.first(), address("10.0.0.1"));
        for (text, given) in [
            ("10.0.0.0", false),
            ("10.0.0.1", true),
            ("10.0.0.254", true),
            ("10.0.0.255", false),
            ("::1", false),
        ] {
            assert_eq!(range.contains(address(text)), given, "{text}");
        }
    }

    #[test]
    fn each_address_is_drawn_once_the_lower_ones_last() {
        let drawn: Vec<_> = ServiceRange::default().drawn(1_000_007).collect();
        let mut apart = drawn.clone();
        apart.sort();
        apart.dedup();
        assert_eq!((drawn.len(), apart.len()), (254, 254));
        assert!(drawn.iter().all(|address| ServiceRange::default().contains(*address)));
        assert!(drawn[..238].iter().all(|own| *own > address("10.0.0.16")));
        let small: ServiceRange = "10.0.0.0/30".parse().unwrap();
        assert_eq!(small.drawn(u32::MAX).count(), 2);
    }

    #[test]
    fn ranges_that_go_or_are_not_ready_give_nothing() {
        let cidr = |status: &str| {
            json!({"spec": {"cidrs": ["10.0.0.0/24", "fd00::/112"]},
            "status": {"conditions": [{"type": "Ready", "status": status}]}})
        };
        assert_eq!(of(&cidr("True")), [ServiceRange::default()]);
        assert_eq!(of(&cidr("False")), []);
        let mut going = cidr("True");
        going["metadata"] = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
        assert_eq!(of(&going), []);
        assert_eq!(of(&json!({"spec": {"cidrs": ["10.0.0.0/24"]}})), [ServiceRange::default()]);
    }
}
