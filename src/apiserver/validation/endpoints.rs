//! Endpoints and EndpointSlices: their addresses and ports.
//!
//! Slices require addresses of one family in canonical form; the older Endpoints take any form of either family.

use admit_apimachinery::{go, labels, names::NameRule};
use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde_json::Value;

use super::{items, one_of, text};
use crate::status::{Cause, Causes};

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const MOST_PORTS: usize = 20_000;
const MOST_ENDPOINTS: usize = 1000;
const MOST_ADDRESSES: usize = 100;
const MOST_HINTS: usize = 8;
const NO_ADDRESS: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";

/// What is wrong with a slice, its `addressType` apart.
pub(super) fn slice(object: &Value) -> Causes {
    let mut causes = slice_ports(items(object, "ports"));
    let endpoints = items(object, "endpoints");
    if endpoints.len() > MOST_ENDPOINTS {
        causes.push(Cause::too_many("endpoints", endpoints.len(), MOST_ENDPOINTS));
        return causes;
    }
    let address_type = text(object, "addressType");
    for (at, endpoint) in endpoints.iter().enumerate() {
        causes.extend(slice_endpoint(endpoint, address_type, &format!("endpoints[{at}]")));
    }
    causes
}

pub(super) fn endpoints(object: &Value) -> Causes {
    let mut causes = Causes::default();
    for (at, subset) in items(object, "subsets").iter().enumerate() {
        let path = format!("subsets[{at}]");
        let lists = ["addresses", "notReadyAddresses"];
        if lists.iter().all(|list| items(subset, list).is_empty()) {
            causes.push(Cause::required(path.as_str(), "must specify `addresses` or `notReadyAddresses`"));
        }
        for list in lists {
            for (at, address) in items(subset, list).iter().enumerate() {
                causes.extend(old_address(address, &format!("{path}.{list}[{at}]")));
            }
        }
        let ports = items(subset, "ports");
        for (at, port) in ports.iter().enumerate() {
            causes.extend(old_port(port, ports.len() > 1, &format!("{path}.ports[{at}]")));
        }
    }
    causes
}

fn slice_ports(ports: &[Value]) -> Causes {
    if ports.len() > MOST_PORTS {
        return Causes::from(Cause::too_many("ports", ports.len(), MOST_PORTS));
    }
    let mut causes = Causes::default();
    let mut names = HashSet::new();
    for (at, port) in ports.iter().enumerate() {
        let path = format!("ports[{at}]");
        let name = text(port, "name");
        if !name.is_empty() {
            causes.extend(named(port, &path, "name", NameRule::Label));
        }
        if !names.insert(name) {
            causes.push(Cause::duplicate(format!("{path}.name"), &name.into()));
        }
        let protocol = port.get("protocol").filter(|protocol| protocol.as_str() == Some(""));
        causes.extend(protocol.map(|none| Cause::unsupported(format!("{path}.protocol"), none, &PROTOCOLS)));
        causes.extend(one_of(port, &path, "protocol", &PROTOCOLS));
        causes.extend(app_protocol(port, &path));
    }
    causes
}

fn slice_endpoint(endpoint: &Value, address_type: &str, path: &str) -> Causes {
    let at = format!("{path}.addresses");
    let addresses = items(endpoint, "addresses");
    let mut causes = Causes::default();
    match addresses.len() {
        0 => causes.push(Cause::required(at.as_str(), "must contain at least 1 address")),
        count if count > MOST_ADDRESSES => {
            causes.push(Cause::too_many(at.as_str(), count, MOST_ADDRESSES));
        }
        _ => {}
    }
    for (number, address) in addresses.iter().enumerate() {
        causes.extend(match address_type {
            "IPv4" | "IPv6" => canonical_address(address, address_type, &at, number),
            "FQDN" => domain(address, &format!("{at}[{number}]")).into_iter().collect(),
            _ => Causes::default(),
        });
    }
    causes.extend(named(endpoint, path, "nodeName", NameRule::Subdomain));
    causes.extend(named(endpoint, path, "hostname", NameRule::Label));
    causes.extend(endpoint.get("hints").map(|hints| self::hints(hints, path)).unwrap_or_default());
    causes
}

/// Where the topology wants the endpoint to be used.
fn hints(hints: &Value, path: &str) -> Causes {
    let mut causes = Causes::default();
    for list in ["forZones", "forNodes"] {
        let hinted = items(hints, list);
        let path = format!("{path}.hints.{list}");
        if hinted.len() > MOST_HINTS {
            causes.push(Cause::too_many(path, hinted.len(), MOST_HINTS));
            return causes;
        }
        for (at, hint) in hinted.iter().enumerate() {
            let name = text(hint, "name");
            let field = format!("{path}[{at}].name");
            let problems = match list {
                "forZones" => labels::value(name),
                _ => NameRule::Subdomain.problems(name, false),
            };
            causes.extend(problems.iter().map(|why| Cause::invalid(field.as_str(), &name.into(), why)));
            if hinted.iter().take(at).any(|earlier| text(earlier, "name") == name) {
                causes.push(Cause::duplicate(field, &name.into()));
            }
        }
    }
    causes
}

fn old_address(address: &Value, path: &str) -> Causes {
    let mut causes = match text(address, "hostname") {
        "" => Causes::default(),
        _ => named(address, path, "hostname", NameRule::Label),
    };
    causes.extend(named(address, path, "nodeName", NameRule::Subdomain));
    let field = format!("{path}.ip");
    let written = text(address, "ip");
    let parsed = parse(written);
    let problem = parsed.as_ref().err().copied().or_else(|| form_problem(written));
    let problem = problem.map(str::to_owned);
    let unusable = match parsed {
        Ok(ip) => unusable(ip, written),
        Err(_) => Some("must be a valid IP address".to_owned()),
    };
    let problems = problem.into_iter().chain(unusable);
    causes.extend(problems.map(|why| Cause::invalid(field.as_str(), &written.into(), &why)));
    causes
}

fn old_port(port: &Value, several: bool, path: &str) -> Causes {
    let mut causes = match text(port, "name") {
        "" if several => Causes::from(Cause::required(format!("{path}.name"), "")),
        "" => Causes::default(),
        _ => named(port, path, "name", NameRule::Label),
    };
    let number = port.get("port").and_then(Value::as_i64).unwrap_or(0);
    if !(1..=65_535).contains(&number) {
        let why = "must be between 1 and 65535, inclusive";
        causes.push(Cause::invalid(format!("{path}.port"), &number.into(), why));
    }
    causes.extend(one_of(port, path, "protocol", &PROTOCOLS));
    causes.extend(app_protocol(port, path));
    causes
}

fn app_protocol(port: &Value, path: &str) -> Causes {
    let Some(given) = port.get("appProtocol").filter(|given| given.is_string()) else {
        return Causes::default();
    };
    let problems = labels::key(given.as_str().unwrap_or_default());
    problems.iter().map(|why| Cause::invalid(format!("{path}.appProtocol"), given, why)).collect()
}

/// What is wrong with a name that is given, be it empty.
fn named(object: &Value, path: &str, field: &str, rule: NameRule) -> Causes {
    let Some(given) = object.get(field).filter(|given| given.is_string()) else { return Causes::default() };
    let problems = rule.problems(given.as_str().unwrap_or_default(), false);
    problems.iter().map(|why| Cause::invalid(format!("{path}.{field}"), given, why)).collect()
}

/// Kubernetes tells of another family at the list, and of all else at the address.
fn canonical_address(address: &Value, family: &str, list: &str, number: usize) -> Causes {
    let written = address.as_str().unwrap_or_default();
    let at = format!("{list}[{number}]");
    let ip = match parse(written).and_then(|ip| form_problem(written).map_or(Ok(ip), Err)) {
        Ok(ip) => ip,
        Err(why) => return Causes::from(Cause::invalid(at, address, why)),
    };
    let mut causes = Causes::default();
    if ip.is_ipv4() != (family == "IPv4") {
        causes.push(Cause::invalid(list, address, &format!("must be an {family} address")));
    } else if ip.to_string() != written {
        let why = format!("must be in canonical form ({})", go::quote(&ip.to_string()));
        return Causes::from(Cause::invalid(at, address, &why));
    }
    causes.extend(unusable(ip, written).map(|why| Cause::invalid(at, address, &why)));
    causes
}

fn domain(address: &Value, at: &str) -> Option<Cause> {
    let written = address.as_str().unwrap_or_default();
    if written.is_empty() {
        return Some(Cause::required(at, ""));
    }
    let name = written.strip_suffix('.').unwrap_or(written);
    let problem = |part: &str, rule: NameRule| {
        let problems = rule.problems(part, false).join(",");
        (!problems.is_empty()).then(|| Cause::invalid(at, &part.into(), &problems))
    };
    let too_short = || {
        let why = "should be a domain with at least two segments separated by dots";
        (!name.contains('.')).then(|| Cause::invalid(at, &name.into(), why))
    };
    problem(name, NameRule::Subdomain)
        .or_else(too_short)
        .or_else(|| name.split('.').find_map(|label| problem(label, NameRule::Label)))
}

/// Octets may begin with zeros, as they once might everywhere.
fn parse(written: &str) -> Result<IpAddr, &'static str> {
    if written.contains(':') {
        return written.parse::<Ipv6Addr>().map(IpAddr::V6).map_err(|_| NO_ADDRESS);
    }
    let octet = |digits: &str| match digits.trim_start_matches('0') {
        "" => (!digits.is_empty()).then_some(0),
        // A sign is no digit.
        rest => rest.parse::<u8>().ok().filter(|_| !rest.starts_with('+')),
    };
    let octets: Option<Vec<u8>> = written.split('.').map(octet).collect();
    let octets = octets.and_then(|octets| <[u8; 4]>::try_from(octets).ok());
    octets.map(|octets| IpAddr::V4(Ipv4Addr::from(octets))).ok_or(NO_ADDRESS)
}

/// What is wrong with how an address that can be read is written.
fn form_problem(written: &str) -> Option<&'static str> {
    match written.parse() {
        Err(_) => Some("must not have leading 0s"),
        Ok(IpAddr::V6(ip)) if ip.to_ipv4_mapped().is_some() => {
            Some("must not be an IPv4-mapped IPv6 address")
        }
        Ok(_) => None,
    }
}

/// Why nobody else can be sent to an address.
fn unusable(ip: IpAddr, written: &str) -> Option<String> {
    let ip = ip.to_canonical();
    let (is_link_local, is_link_local_multicast) = match ip {
        IpAddr::V4(ip) => (ip.is_link_local(), ip.octets().starts_with(&[224, 0, 0])),
        IpAddr::V6(ip) => (ip.is_unicast_link_local(), ip.segments()[0] & 0xff0f == 0xff02),
    };
    if ip.is_unspecified() {
        return Some(format!("may not be unspecified ({written})"));
    }
    let ranges = [
        (ip.is_loopback(), "loopback range (127.0.0.0/8, ::1/128)"),
        (is_link_local, "link-local range (169.254.0.0/16, fe80::/10)"),
        (is_link_local_multicast, "link-local multicast range (224.0.0.0/24, ff02::/10)"),
    ];
    ranges.into_iter().find(|(lies_in, _)| *lies_in).map(|(_, range)| format!("may not be in the {range}"))
}
