//! Converts the host of an SFTP server between the notations of users and of known_hosts.

use std::str::FromStr;

use super::SftpError;
use crate::gather::tunnel::{Host, HostError};

/// The port of SSH.
const SSH: u16 = 22;

/// Returns the notation of known_hosts: in brackets with the port, unless that is the port of SSH.
pub(super) fn known_as(host: &Host) -> String {
    let name = host.name().to_ascii_lowercase();
    if host.port() == SSH { name } else { format!("[{name}]:{}", host.port()) }
}

impl FromStr for Host {
    type Err = SftpError;

    /// Parses like [`Host::parse`], with the port of SSH as the default.
    fn from_str(text: &str) -> Result<Self, SftpError> {
        Self::parse(text, SSH).map_err(|HostError(text)| SftpError::Host(text))
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
            assert_eq!((host.to_string().as_str(), known_as(&host).as_str()), (shown, known));
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
