//! Which server: a name or an address, and a port.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use super::SftpError;

/// The port of SSH.
const SSH: u16 = 22;
/// Longest name that DNS knows.
const MAX_NAME: usize = 253;

/// Where an SFTP server is: a name or an address without brackets, and the port.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Host {
    name: String,
    port: u16,
}

impl Host {
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// As known_hosts has it: the port only where it is not that of SSH, and the name in brackets then.
    pub(super) fn known_as(&self) -> String {
        let name = self.name.to_ascii_lowercase();
        if self.port == SSH { name } else { format!("[{name}]:{}", self.port) }
    }
}

impl FromStr for Host {
    type Err = SftpError;

    /// `name`, `name:port`, `address`, `[address]:port` or an address of IPv6 as it is.
    fn from_str(text: &str) -> Result<Self, SftpError> {
        let wrong = || SftpError::Host(text.to_owned());
        let (name, port) = if text.parse::<Ipv6Addr>().is_ok() {
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
        let port = match port {
            Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
                port.parse().ok().filter(|port| *port != 0).ok_or_else(wrong)?
            }
            Some(_) => return Err(wrong()),
            None => SSH,
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
    /// As in the authority of a URL.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name.contains(':') {
            true => write!(f, "[{}]:{}", self.name, self.port),
            false => write!(f, "{}:{}", self.name, self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_addresses_and_ports() {
        let cases = [
            ("sftp.example.com", "sftp.example.com:22", "sftp.example.com"),
            ("SFTP.example.com:2222", "SFTP.example.com:2222", "[sftp.example.com]:2222"),
            ("192.0.2.1:22", "192.0.2.1:22", "192.0.2.1"),
            ("2001:db8::1", "[2001:db8::1]:22", "2001:db8::1"),
            ("[2001:db8::1]", "[2001:db8::1]:22", "2001:db8::1"),
            ("[::1]:2222", "[::1]:2222", "[::1]:2222"),
        ];
        for (text, shown, known) in cases {
            let host: Host = text.parse().unwrap();
            assert_eq!((host.to_string().as_str(), host.known_as().as_str()), (shown, known));
            assert_eq!(host.to_string().parse::<Host>().unwrap(), host);
        }
        for text in [
            "",
            "-oProxyCommand=x",
            "a b",
            "a:0",
            "a:65536",
            "a:+1",
            "a:",
            "[::1",
            "[a]:1",
            "[::1]22",
            "a@b",
            "a/b",
        ] {
            assert!(matches!(text.parse::<Host>(), Err(SftpError::Host(_))), "{text}");
        }
    }
}
