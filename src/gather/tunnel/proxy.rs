//! Selects the proxy for a server, if any: settings of several layers, each value separately, and the list of hosts that are
//! reached without one. What is sent to a proxy is decided by `connect`.

use std::fmt;
use std::net::IpAddr;

use super::reach::{Spelled, spelled};
use super::{Host, ProxyError};

/// The default ports of proxy URLs without TLS and with TLS.
type Ports = (u16, u16);
/// The defaults for uploads of must-gathers.
const SQUID: Ports = (3128, 3129);
/// The defaults of Go, in which the Insights operator is written.
const WEB: Ports = (80, 443);

/// Proxy settings as in environment variables; empty means unset. URLs may contain passwords, so `Debug` hides them.
#[derive(Clone, Default, Eq, PartialEq)]
pub struct Proxies {
    pub http: String,
    pub https: String,
    pub none: String,
}

impl fmt::Debug for Proxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxies").field("none", &self.none).finish_non_exhaustive()
    }
}

impl Proxies {
    /// Takes each value from the first of `layers` that has it.
    #[must_use]
    pub fn layered<'l>(layers: impl IntoIterator<Item = &'l Self>) -> Self {
        let mut found = Self::default();
        for Self { http, https, none } in layers {
            for (value, other) in
                [(&mut found.http, http), (&mut found.https, https), (&mut found.none, none)]
            {
                if value.is_empty() {
                    value.clone_from(other);
                }
            }
        }
        found
    }

    /// Reads the environment variables: in lower case, or else in upper case.
    #[must_use]
    pub fn environment(read: impl Fn(&str) -> Option<String>) -> Self {
        let of = |name: &str| {
            let set = |name: &str| read(name).filter(|value| !value.is_empty());
            set(name).or_else(|| set(&name.to_ascii_uppercase())).unwrap_or_default()
        };
        Self { http: of("http_proxy"), https: of("https_proxy"), none: of("no_proxy") }
    }

    /// Returns the proxy for the SFTP server `host`: that for HTTPS, or else that for HTTP; none for a listed host.
    ///
    /// # Errors
    /// [`ProxyError::NotAUrl`], which quotes nothing of the URL.
    pub fn to_sftp(&self, host: &Host) -> Result<Option<Proxy>, ProxyError> {
        let url = if self.https.is_empty() { &self.http } else { &self.https };
        self.by(url, host, SQUID)
    }

    /// Returns the proxy for `host` of an https URL (`secure`) or an http URL, as Go does: the one for the scheme, and none for a
    /// listed host or for this machine.
    ///
    /// # Errors
    /// [`ProxyError::NotAUrl`], which quotes nothing of the URL.
    pub fn to_web(&self, host: &Host, secure: bool) -> Result<Option<Proxy>, ProxyError> {
        if is_own_machine(host.name()) {
            return Ok(None);
        }
        self.by(if secure { &self.https } else { &self.http }, host, WEB)
    }

    fn by(&self, url: &str, host: &Host, ports: Ports) -> Result<Option<Proxy>, ProxyError> {
        if url.is_empty() || self.none.split(',').any(|entry| spares(entry.trim(), host)) {
            return Ok(None);
        }
        Proxy::parse(url, ports).map(Some).ok_or(ProxyError::NotAUrl)
    }
}

/// Whether a host is this machine: for a proxy the same name would mean the proxy itself.
fn is_own_machine(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let bare = lower.strip_suffix('.').unwrap_or(&lower);
    bare == "localhost"
        || bare.ends_with(".localhost")
        || matches!(spelled(bare), Spelled::Address(address) if address.is_loopback())
}

/// Whether an entry of the list matches `host`: `*`, an address, a network, a domain with its subdomains, or with a leading dot
/// only its subdomains; a port restricts the match.
fn spares(entry: &str, host: &Host) -> bool {
    let entry = entry.to_ascii_lowercase();
    let name = host.name().to_ascii_lowercase();
    if entry == "*" {
        return true;
    }
    if let Ok(address) = name.parse::<IpAddr>() {
        let bare = |text: &str| text.trim_matches(['[', ']']).parse::<IpAddr>() == Ok(address);
        return bare(&entry)
            || with_port(&entry, host.port()).is_some_and(bare)
            || in_network(&entry, address) == Some(true);
    }
    let domain = with_port(&entry, host.port()).unwrap_or(&entry);
    let below = domain.strip_prefix('*').unwrap_or(domain);
    match below.strip_prefix('.') {
        Some(domain) => !domain.is_empty() && name.ends_with(below),
        None if below.is_empty() => false,
        None => name == below || name.strip_suffix(below).is_some_and(|front| front.ends_with('.')),
    }
}

/// Returns the part before `:port`.
fn with_port(entry: &str, port: u16) -> Option<&str> {
    let (front, behind) = entry.rsplit_once(':')?;
    (behind.parse() == Ok(port)).then_some(front)
}

fn in_network(entry: &str, address: IpAddr) -> Option<bool> {
    let (network, prefix) = entry.split_once('/')?;
    let (network, prefix) = (network.parse::<IpAddr>().ok()?, prefix.parse::<u32>().ok()?);
    let (network, address, width): (u128, u128, u32) = match (network, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => {
            (u128::from(network.to_bits()), u128::from(address.to_bits()), 32)
        }
        (IpAddr::V6(network), IpAddr::V6(address)) => (network.to_bits(), address.to_bits(), 128),
        _ => return None,
    };
    let shift = width.checked_sub(prefix)?;
    let leading = |bits: u128| bits.checked_shr(shift).unwrap_or(0);
    Some(leading(network) == leading(address))
}

/// A proxy for `CONNECT` requests.
#[derive(Clone, Eq, PartialEq)]
pub struct Proxy {
    pub(super) tls: bool,
    pub(super) host: Host,
    /// User and password, percent-decoded.
    pub(super) login: Option<(String, String)>,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("tls", &self.tls).field("host", &self.host).finish_non_exhaustive()
    }
}

impl Proxy {
    /// Checks that a text is a proxy URL.
    ///
    /// # Errors
    /// [`ProxyError::NotAUrl`], which quotes nothing of the text.
    pub fn check(url: &str) -> Result<(), ProxyError> {
        Self::parse(url, WEB).map(drop).ok_or(ProxyError::NotAUrl)
    }

    /// Parses `[http[s]://][user[:password]@]host[:port][/]`. A password may contain characters that URLs should encode: the last `@`
    /// ends the login, and its first `:` ends the user.
    fn parse(url: &str, ports: Ports) -> Option<Self> {
        let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        let (login, place) =
            rest.rsplit_once('@').map_or((None, rest), |(login, place)| (Some(login), place));
        let place = place.trim_end_matches('/');
        let (plain, under_tls) = ports;
        let login = match login {
            None => None,
            Some(login) => {
                let (user, password) = login.split_once(':').unwrap_or((login, ""));
                Some((decoded(user)?, decoded(password)?))
            }
        };
        let host = Host::parse(place, if tls { under_tls } else { plain }).ok()?;
        Some(Self { tls, host, login })
    }
}

/// Percent-decodes a text; a `%` without a hexadecimal number stands for itself.
fn decoded(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, behind)) = rest.split_first() {
        let number = behind.get(..2).filter(|_| *byte == b'%').and_then(|digits| {
            let digits = std::str::from_utf8(digits).ok()?;
            digits
                .bytes()
                .all(|digit| digit.is_ascii_hexdigit())
                .then(|| u8::from_str_radix(digits, 16).ok())?
        });
        out.push(number.unwrap_or(*byte));
        rest = match number {
            Some(_) => behind.get(2..).unwrap_or_default(),
            None => behind,
        };
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> Host {
        Host::parse(text, 22).unwrap()
    }

    #[test]
    fn a_list_spares_hosts() {
        for (list, name, expected) in [
            ("*", "a.test", true),
            ("", "a.test", false),
            (" , ", "a.test", false),
            ("a.test", "A.test", true),
            ("test", "a.test", true),
            (".test", "a.test", true),
            (".a.test", "a.test", false),
            ("*.test", "a.test", true),
            ("b.test", "a.test", false),
            ("est", "a.test", false),
            ("x, a.test:22", "a.test", true),
            ("a.test:23", "a.test", false),
            ("192.0.2.1", "192.0.2.1", true),
            ("192.0.2.0/24", "192.0.2.200", true),
            ("192.0.2.0/25", "192.0.2.200", false),
            ("0.0.0.0/0", "192.0.2.200", true),
            ("2001:db8::/32", "2001:db8:1::2", true),
            ("2001:db8::1", "2001:db8::1", true),
            ("[2001:db8::1]:22", "2001:db8::1", true),
            ("192.0.2.0/33", "192.0.2.1", false),
        ] {
            let proxies =
                Proxies { http: "http://p".to_owned(), none: list.to_owned(), ..Proxies::default() };
            assert_eq!(proxies.to_sftp(&host(name)).unwrap().is_none(), expected, "`{list}` {name}");
        }
    }

    /// The cases are those of Go's `httpproxy`.
    #[test]
    fn a_scheme_has_its_proxy() {
        let proxies = Proxies {
            http: "plain.test".to_owned(),
            https: "https://u:p@tls.test".to_owned(),
            none: "10.0.0.0/8,.inner.test,one.test:8443".to_owned(),
        };
        for (text, secure, expected) in [
            ("a.test:443", true, "tls.test:443"),
            ("a.test:80", false, "plain.test:80"),
            ("10.1.2.3:443", true, ""),
            ("x.inner.test:443", true, ""),
            ("inner.test:443", true, "tls.test:443"),
            ("one.test:8443", true, ""),
            ("one.test:443", true, "tls.test:443"),
            ("localhost:443", true, ""),
            ("LOCALHOST.:443", true, ""),
            ("a.localhost:443", true, ""),
            ("127.0.0.1:443", true, ""),
            ("127.1:443", true, ""),
            ("2130706433:443", true, ""),
            ("[::1]:443", true, ""),
            ("[::ffff:127.0.0.1]:443", true, ""),
            ("128.0.0.1:443", true, "tls.test:443"),
        ] {
            let found = proxies.to_web(&host(text), secure).unwrap();
            let found = found.map(|proxy| proxy.host.to_string()).unwrap_or_default();
            assert_eq!(found, expected, "{text}");
        }
        let one = Proxies { http: "http://p".to_owned(), ..Proxies::default() };
        assert_eq!(one.to_web(&host("a.test:443"), true), Ok(None), "that for http leads to http alone");
        let wrong = Proxies { https: "socks5://u:secret@p".to_owned(), ..Proxies::default() };
        let error = wrong.to_web(&host("a.test:443"), true).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("secret"), "{error}");
    }

    #[test]
    fn urls_of_proxies() {
        let parse = |url: &str| {
            Proxy::parse(url, SQUID).map(|proxy| {
                let (user, password) = proxy.login.unwrap_or_default();
                format!("{} {} {user} {password}", proxy.tls, proxy.host)
            })
        };
        for (url, expected) in [
            ("http://p.test", "false p.test:3128  "),
            ("https://p.test/", "true p.test:3129  "),
            ("p.test:8080", "false p.test:8080  "),
            ("http://u:s3cret@p.test:80", "false p.test:80 u s3cret"),
            ("http://u%40x:a%3Ab%25@p.test:80", "false p.test:80 u@x a:b%"),
            ("http://u:a:b@c@p.test:80", "false p.test:80 u a:b@c"),
            ("http://u:100%@p.test:80", "false p.test:80 u 100%"),
            ("http://[::1]:80", "false [::1]:80  "),
            ("http://[::1]", "false [::1]:3128  "),
        ] {
            assert_eq!(parse(url).as_deref(), Some(expected), "{url}");
        }
        for url in ["socks5://p.test", "http://", "http://p.test:0", "http://a b"] {
            assert_eq!(parse(url), None, "{url}");
        }
    }

    #[test]
    fn each_value_comes_from_the_first_layer_that_has_it() {
        let of = |http: &str, https: &str, none: &str| Proxies {
            http: http.to_owned(),
            https: https.to_owned(),
            none: none.to_owned(),
        };
        let (own, cluster) = (of("", "", "own.test"), of("http://c", "", "cluster.test"));
        let layers = [own, cluster, of("http://e", "https://e", "e.test")];
        assert!(Proxies::layered(&layers) == of("http://c", "https://e", "own.test"));
        let read = |name: &str| match name {
            "HTTPS_PROXY" => Some("https://upper:secret@p".to_owned()),
            "https_proxy" => Some(String::new()),
            "no_proxy" => Some("a".to_owned()),
            "NO_PROXY" => Some("b".to_owned()),
            _ => None,
        };
        let environment = Proxies::environment(read);
        assert!(environment == of("", "https://upper:secret@p", "a"));
        assert!(!format!("{environment:?}").contains("secret"));
        assert!(!format!("{:?}", environment.to_sftp(&host("x.test"))).contains("secret"));
    }
}
