//! Parses the name or address of a server, with its port.

use std::fmt;
use std::net::Ipv6Addr;

/// The longest DNS name.
const MAX_NAME: usize = 253;

/// A server: a name or an address without brackets, and the port.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Host {
    name: String,
    port: u16,
}

#[derive(Clone, Debug, thiserror::Error, PartialEq)]
#[error("`{0}` is no host: write a name or an address, with `:port` behind it where that is another")]
pub struct HostError(pub String);

impl Host {
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Parses `name`, `name:port`, `address`, `[address]:port` or a plain IPv6 address; `port` is the default port.
    ///
    /// # Errors
    /// [`HostError`] for anything else.
    pub fn parse(text: &str, port: u16) -> Result<Self, HostError> {
        let wrong = || HostError(text.to_owned());
        let (name, named) = if text.parse::<Ipv6Addr>().is_ok() {
            (text, None)
        } else if let Some(rest) = text.strip_prefix('[') {
            let (address, behind) = rest.split_once(']').ok_or_else(wrong)?;
            address.parse::<Ipv6Addr>().map_err(|_| wrong())?;
            match behind {
                "" => (address, None),
                behind => (address, Some(behind.strip_prefix(':').ok_or_else(wrong)?)),
            }
        } else {
            text.split_once(':').map_or((text, None), |(name, port)| (name, Some(port)))
        };
        let port = match named {
            Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
                port.parse().ok().filter(|port| *port != 0).ok_or_else(wrong)?
            }
            Some(_) => return Err(wrong()),
            None => port,
        };
        let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let plain = name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(legal);
        let address = name.parse::<Ipv6Addr>().is_ok();
        if name.len() > MAX_NAME || !(plain || address) {
            return Err(wrong());
        }
        Ok(Self { name: name.to_owned(), port })
    }
}

impl fmt::Display for Host {
    /// Formats the host as in the authority of a URL.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name.contains(':') {
            true => write!(f, "[{}]:{}", self.name, self.port),
            false => write!(f, "{}:{}", self.name, self.port),
        }
    }
}
