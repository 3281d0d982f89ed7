//! Assigns stand-ins to addresses: finds the network of an address, and another host of it.

use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

/// An IPv4 network in CIDR notation; host bits are cleared when it is read.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Network {
    base: u32,
    prefix: u32,
}

#[derive(Debug, thiserror::Error, PartialEq)]
#[error("`{0}` is not an IPv4 network such as 10.0.0.0/8")]
pub struct ParseNetworkError(String);

impl Network {
    pub const LOOPBACK: Self = Self { base: 0x7f00_0000, prefix: 8 };

    fn mask(self) -> u32 {
        u32::MAX.checked_shl(32 - self.prefix).unwrap_or(0)
    }

    fn contains(self, address: Ipv4Addr) -> bool {
        u32::from(address) & self.mask() == self.base
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from(self.base), self.prefix)
    }
}

impl FromStr for Network {
    type Err = ParseNetworkError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parsed = text.split_once('/').and_then(|(address, prefix)| {
            let address: Ipv4Addr = address.parse().ok()?;
            let prefix: u32 = prefix.parse().ok().filter(|bits| *bits <= 32)?;
            let network = Self { base: 0, prefix };
            Some(Self { base: u32::from(address) & network.mask(), prefix })
        });
        parsed.ok_or_else(|| ParseNetworkError(text.to_owned()))
    }
}

/// The stand-ins assigned so far.
#[derive(Debug)]
pub struct Translation {
    /// Longest prefix first, so that the first match is the narrowest network with the address.
    pools: Vec<Pool>,
    table: BTreeMap<Ipv4Addr, Ipv4Addr>,
}

#[derive(Debug)]
struct Pool {
    network: Network,
    handed_out: u32,
}

impl Translation {
    pub fn new(networks: &[Network]) -> Self {
        let mut networks: Vec<_> = networks.iter().copied().chain([Network::LOOPBACK]).collect();
        networks.sort_by_key(|network| (std::cmp::Reverse(network.prefix), network.base));
        networks.dedup();
        let pools = networks.into_iter().map(|network| Pool { network, handed_out: 0 }).collect();
        Self { pools, table: BTreeMap::new() }
    }

    /// Returns the stand-in of an address: a network's own address stands for itself, an address of no known network
    /// becomes `0.0.0.0`.
    pub fn stand_in(&mut self, address: Ipv4Addr) -> Ipv4Addr {
        if let Some(known) = self.table.get(&address) {
            return *known;
        }
        let Some(pool) = self.pools.iter_mut().find(|pool| pool.network.contains(address)) else {
            return Ipv4Addr::UNSPECIFIED;
        };
        if u32::from(address) == pool.network.base {
            return address;
        }
        let stand_in = pool.next();
        self.table.insert(address, stand_in);
        stand_in
    }

    pub fn into_table(self) -> BTreeMap<String, String> {
        self.table.into_iter().map(|(from, to)| (from.to_string(), to.to_string())).collect()
    }
}

impl Pool {
    /// Returns the next host address; after the last one it starts again, so that two addresses may share a stand-in.
    fn next(&mut self) -> Ipv4Addr {
        self.handed_out = self.handed_out.wrapping_add(1) & !self.network.mask();
        Ipv4Addr::from(self.network.base | self.handed_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_read_strictly() {
        assert_eq!("10.1.2.3/8".parse::<Network>(), "10.0.0.0/8".parse());
        assert_eq!("10.1.2.3/8".parse::<Network>().unwrap().to_string(), "10.0.0.0/8");
        assert_eq!("0.0.0.0/0".parse::<Network>().unwrap().mask(), 0);
        assert_eq!("1.2.3.4/32".parse::<Network>().unwrap().mask(), u32::MAX);
        for text in ["10.0.0.0", "10.0.0.0/33", "10.0.0/8", "fd00::/8", "/8", ""] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }
}
