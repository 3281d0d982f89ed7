//! Obfuscates network facts in an archive: the cluster's domain names become placeholders, and IPv4 addresses
//! become others of the same network, the same one for the same address throughout an archive.
//!
//! Order per record: literal names in data and in the record's path, then addresses in data only. Text that only
//! looks like an address (a version such as `1.2.3.4`) is rewritten too: nothing in an archive says which it is.
//! IPv6 addresses and CIDR notations (`10.0.0.0/8`) are left alone.
//!
//! Archives of must-gathers are obfuscated by rules that users may provide ([`rules`]): there, addresses of every kind are replaced by
//! labels ([`replace`]). Both find addresses with [`find`].

pub mod find;
mod networks;
pub mod replace;
pub mod rules;

use std::collections::BTreeMap;

use find::{Address, Finder, Found, Kind};

pub use networks::{Network, ParseNetworkError, Translation};

/// What to hide; known before a gathering starts.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// The networks of the cluster; loopback is always added.
    pub networks: Vec<Network>,
    pub base_domains: Vec<String>,
    pub api_hosts: Vec<String>,
}

/// The obfuscator of one archive. Each archive has its own, so that no table is shared between archives.
#[derive(Debug)]
pub struct Obfuscator {
    literals: Vec<(String, &'static str)>,
    addresses: Finder,
    translation: Translation,
}

#[derive(Debug, thiserror::Error)]
#[error("the pattern cannot be used: {0}")]
pub struct PatternError(String);

impl PatternError {
    pub(super) fn of(reason: &impl std::fmt::Display) -> Self {
        Self(reason.to_string())
    }
}

impl Obfuscator {
    /// # Errors
    /// [`PatternError`] when the address pattern does not compile, which would be a bug of this program.
    pub fn new(rules: &Rules) -> Result<Self, PatternError> {
        let Rules { networks, base_domains, api_hosts } = rules;
        let named = |names: &[String], stand_in| {
            let names = names.iter().filter(|name| !name.is_empty());
            names.map(|name| (name.clone(), stand_in)).collect::<Vec<_>>()
        };
        let mut literals = named(api_hosts, "<CLUSTER_DOMAIN_HOST>");
        literals.extend(named(base_domains, "<CLUSTER_BASE_DOMAIN>"));
        // The base domain is usually a suffix of the API host: the longer literal must be found first.
        literals.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        Ok(Self { literals, addresses: Finder::new(&[Kind::V4])?, translation: Translation::new(networks) })
    }

    /// Replaces the literal names in a record's path.
    pub fn path(&self, path: &str) -> String {
        self.literals.iter().fold(path.to_owned(), |path, (name, stand_in)| path.replace(name, stand_in))
    }

    /// Replaces names and addresses in a record's data.
    pub fn data(&mut self, data: &str) -> String {
        let named = self.path(data);
        let mut out = String::with_capacity(named.len());
        let mut done = 0;
        // Octets over 255 or with leading zeros are not addresses, and stay.
        while let Some(Found { range, address }) = self.addresses.find(named.as_bytes(), done) {
            let behind = named.as_bytes().get(range.end..).unwrap_or_default();
            let network = matches!(behind, [b'/', digit, ..] if digit.is_ascii_digit());
            out.push_str(&named[done..range.start]);
            match address {
                Address::V4(address) if !network => {
                    out.push_str(&self.translation.stand_in(address).to_string());
                }
                _ => out.push_str(&named[range.clone()]),
            }
            done = range.end;
        }
        out.push_str(&named[done..]);
        out
    }

    /// Returns the original addresses with their stand-ins, for the cluster's own administrators.
    pub fn into_table(self) -> BTreeMap<String, String> {
        self.translation.into_table()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn obfuscator(networks: &[&str]) -> Obfuscator {
        Obfuscator::new(&Rules {
            networks: networks.iter().map(|text| text.parse().unwrap()).collect(),
            base_domains: vec!["corp.example".to_owned()],
            api_hosts: vec!["api.corp.example".to_owned()],
        })
        .unwrap()
    }

    #[test]
    fn addresses_become_the_next_free_host_of_their_network() {
        let mut obfuscator = obfuscator(&["192.168.0.0/16"]);
        for (given, expected) in [
            ("127.0.0.1", "127.0.0.1"),
            ("127.0.0.128", "127.0.0.2"),
            ("192.168.1.15", "192.168.0.1"),
            ("192.168.1.5", "192.168.0.2"),
            ("192.168.1.15", "192.168.0.1"),
            ("192.169.1.255", "0.0.0.0"),
            ("192.168.0.0", "192.168.0.0"),
        ] {
            assert_eq!(obfuscator.data(given), expected, "{given}");
        }
    }

    #[test]
    fn the_256th_host_of_a_wide_network_carries_into_the_third_octet() {
        let mut obfuscator = obfuscator(&["192.168.0.0/16"]);
        let stand_ins: Vec<_> =
            (1..=256).map(|n| obfuscator.data(&format!("192.168.{}.{}", 100 + n / 200, n % 200))).collect();
        assert_eq!(stand_ins[254], "192.168.0.255");
        assert_eq!(stand_ins[255], "192.168.1.0");
    }

    #[test]
    fn dg_08_03_the_longest_prefix_wins_whatever_the_order() {
        let mut obfuscator = obfuscator(&["10.0.0.0/8", "10.128.0.0/14", "10.128.4.0/23"]);
        assert_eq!(obfuscator.data("10.128.5.9 10.129.0.1 10.1.1.1"), "10.128.4.1 10.128.0.1 10.0.0.1");
    }

    #[test]
    fn a_full_network_wraps_inside_itself() {
        let mut obfuscator = obfuscator(&["10.0.0.0/30"]);
        assert_eq!(obfuscator.data("10.0.0.3 10.0.0.2 10.0.0.1"), "10.0.0.1 10.0.0.2 10.0.0.3");
        assert_eq!(obfuscator.data("10.0.0.3,10.0.0.0"), "10.0.0.1,10.0.0.0");
    }

    #[test]
    fn what_is_no_plain_address_stays() {
        let mut obfuscator = obfuscator(&["10.0.0.0/8"]);
        for text in ["10.0.0.0/8", "10.01.2.3", "10.2.3", "10.300.1.1", "fe80::1", "v1.36"] {
            assert_eq!(obfuscator.data(text), text);
        }
        assert_eq!(obfuscator.data(r#"{"ip":"10.9.9.9"}"#), r#"{"ip":"10.0.0.1"}"#);
    }

    #[test]
    fn names_are_replaced_in_paths_and_data_but_addresses_only_in_data() {
        let mut obfuscator = obfuscator(&[]);
        assert_eq!(obfuscator.path("config/node/n1.corp.example"), "config/node/n1.<CLUSTER_BASE_DOMAIN>");
        assert_eq!(obfuscator.path("config/node/ip-10.1.1.1"), "config/node/ip-10.1.1.1");
        assert_eq!(
            obfuscator.data("https://api.corp.example:6443 x.corp.example"),
            "https://<CLUSTER_DOMAIN_HOST>:6443 x.<CLUSTER_BASE_DOMAIN>"
        );
    }

    #[test]
    fn dg_08_04_two_obfuscators_do_not_share_a_table() {
        let (mut first, mut second) = (obfuscator(&["10.0.0.0/8"]), obfuscator(&["10.0.0.0/8"]));
        assert_eq!(first.data("10.9.0.1"), "10.0.0.1");
        assert_eq!(second.data("10.9.0.2"), "10.0.0.1");
        assert_eq!(
            second.into_table().into_iter().collect::<Vec<_>>(),
            [("10.9.0.2".to_owned(), "10.0.0.1".to_owned())]
        );
    }
}
