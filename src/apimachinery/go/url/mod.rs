//! Parses and formats URLs as Go's `net/url`.

mod escape;

use escape::{Mode, escape, is_sub_delimiter, should_escape, unescape};

use super::netip::{self, AddressError};
use super::quote;

/// A parsed URL. Unescaped parts are bytes, since escapes may encode any.
#[derive(Clone, Debug, Default)]
pub struct Url {
    /// The scheme in lower case; empty if there is none.
    pub scheme: String,
    opaque: String,
    user: Option<User>,
    host: Vec<u8>,
    path: Vec<u8>,
    /// The path as written, if escaping it again would give another text.
    raw_path: Option<String>,
    omits_host: bool,
    force_query: bool,
    raw_query: String,
    fragment: Vec<u8>,
    raw_fragment: Option<String>,
}

#[derive(Clone, Debug)]
struct User {
    name: Vec<u8>,
    password: Option<Vec<u8>>,
}

/// Why a text is not a URL, with Go's message: `parse "a": invalid URI for request`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("parse {}: {cause}", quote(.text))]
pub struct UrlError {
    text: String,
    /// The cause.
    #[source]
    pub cause: UrlProblem,
}

impl UrlError {
    fn new(text: &str, cause: UrlProblem) -> Self {
        Self { text: text.to_owned(), cause }
    }
}

/// Why a URL is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlProblem {
    /// It contains a control character.
    #[error("net/url: invalid control character in URL")]
    ControlCharacter,
    /// It is empty, but must be that of a request.
    #[error("empty url")]
    Empty,
    /// It is relative, but must be that of a request.
    #[error("invalid URI for request")]
    NotForRequest,
    /// Its path would be parsed as a scheme.
    #[error("first path segment in URL cannot contain colon")]
    ColonInFirstSegment,
    /// It begins with a colon.
    #[error("missing protocol scheme")]
    NoScheme,
    /// The user name or the password contains a character that must be escaped.
    #[error("net/url: invalid userinfo")]
    User,
    /// The text in brackets is not an IPv6 address.
    #[error("invalid IP-literal")]
    IpLiteral,
    /// A bracket is not closed.
    #[error("missing ']' in host")]
    OpenBracket,
    /// The text in brackets is not an address.
    #[error("invalid host: {0}")]
    Host(AddressError),
    /// The text after the host, from the colon on, is not a port.
    #[error("invalid port {} after host", quote(.0))]
    Port(String),
    /// An escape is malformed, or not allowed in its part.
    #[error("invalid URL escape {}", quote(.0))]
    Escape(String),
    /// The host contains an invalid character.
    #[error("invalid character {} in host name", quote(.0.encode_utf8(&mut [0; 4])))]
    HostCharacter(char),
}

/// Checks the URL of an HTTP request: absolute, or an absolute path; a fragment is not recognised.
///
/// # Errors
/// When the text is not such a URL.
pub fn check_request(text: &str) -> Result<(), UrlError> {
    parse_parts(text, true).map(|_| ()).map_err(|cause| UrlError::new(text, cause))
}

/// Parses a URL, which may be relative.
///
/// # Errors
/// When the text is not a URL.
pub fn parse(text: &str) -> Result<Url, UrlError> {
    let (before, fragment) = text.split_once('#').unwrap_or((text, ""));
    let mut url = parse_parts(before, false).map_err(|cause| UrlError::new(before, cause))?;
    if !fragment.is_empty() {
        url.fragment = unescape(fragment, Mode::Fragment).map_err(|cause| UrlError::new(text, cause))?;
        url.raw_fragment = (escape(&url.fragment, Mode::Fragment) != fragment).then(|| fragment.to_owned());
    }
    Ok(url)
}

fn parse_parts(text: &str, for_request: bool) -> Result<Url, UrlProblem> {
    if text.bytes().any(|b| b < b' ' || b == 0x7f) {
        return Err(UrlProblem::ControlCharacter);
    }
    if text.is_empty() && for_request {
        return Err(UrlProblem::Empty);
    }
    let mut url = Url::default();
    if text == "*" {
        url.path = b"*".to_vec();
        return Ok(url);
    }
    let (scheme, mut rest) = split_scheme(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    if let Some(before) = rest.strip_suffix('?').filter(|before| !before.contains('?')) {
        url.force_query = true;
        rest = before;
    } else if let Some((before, query)) = rest.split_once('?') {
        url.raw_query = query.to_owned();
        rest = before;
    }
    if !rest.starts_with('/') {
        if !url.scheme.is_empty() {
            url.opaque = rest.to_owned();
            return Ok(url);
        }
        if for_request {
            return Err(UrlProblem::NotForRequest);
        }
        if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
            return Err(UrlProblem::ColonInFirstSegment);
        }
    }
    let has_authority = !url.scheme.is_empty() || (!for_request && !rest.starts_with("///"));
    if let Some(authority) = rest.strip_prefix("//").filter(|_| has_authority) {
        let end = authority.find('/').unwrap_or(authority.len());
        let (authority, after) = authority.split_at_checked(end).unwrap_or((authority, ""));
        (url.user, url.host) = parse_authority(&url.scheme, authority)?;
        rest = after;
    } else {
        url.omits_host = !url.scheme.is_empty() && rest.starts_with('/');
    }
    url.path = unescape(rest, Mode::Path)?;
    url.raw_path = (escape(&url.path, Mode::Path) != rest).then(|| rest.to_owned());
    Ok(url)
}

/// Splits off the scheme; it is empty if the text does not start with one.
fn split_scheme(text: &str) -> Result<(&str, &str), UrlProblem> {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.')));
    let Some((scheme, rest)) = end.and_then(|end| text.split_at_checked(end)) else { return Ok(("", text)) };
    match rest.strip_prefix(':') {
        Some(_) if scheme.is_empty() => Err(UrlProblem::NoScheme),
        Some(rest) if scheme.starts_with(|c: char| c.is_ascii_alphabetic()) => Ok((scheme, rest)),
        _ => Ok(("", text)),
    }
}

type Authority = (Option<User>, Vec<u8>);

fn parse_authority(scheme: &str, text: &str) -> Result<Authority, UrlProblem> {
    let Some((user, host)) = text.rsplit_once('@') else { return Ok((None, parse_host(scheme, text)?)) };
    let host = parse_host(scheme, host)?;
    if !user.bytes().all(is_user_byte) {
        return Err(UrlProblem::User);
    }
    let (name, password) = match user.split_once(':') {
        Some((name, password)) => (name, Some(password)),
        None => (user, None),
    };
    let name = unescape(name, Mode::User)?;
    let password = password.map(|password| unescape(password, Mode::User)).transpose()?;
    Ok((Some(User { name, password }), host))
}

const fn is_user_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || is_sub_delimiter(byte)
        || matches!(byte, b'-' | b'.' | b'_' | b':' | b'~' | b'%' | b'@')
}

fn parse_host(scheme: &str, text: &str) -> Result<Vec<u8>, UrlProblem> {
    match text.rfind('[') {
        Some(0) => return parse_ip_literal(text),
        Some(_) => return Err(UrlProblem::IpLiteral),
        None => {}
    }
    // Other schemes (databases) often have lists of hosts with ports, these two do not.
    let colon = if matches!(scheme, "http" | "https") { text.find(':') } else { text.rfind(':') };
    let port = colon.and_then(|colon| text.get(colon..)).unwrap_or_default();
    check_port(port)?;
    unescape(text, Mode::Host)
}

/// Parses an address in brackets: `[::1%25eth0]:80`.
fn parse_ip_literal(text: &str) -> Result<Vec<u8>, UrlProblem> {
    let inner = text.strip_prefix('[').unwrap_or(text);
    let (address, port) = inner.rsplit_once(']').ok_or(UrlProblem::OpenBracket)?;
    check_port(port)?;
    let unescaped = match address.find("%25").and_then(|zone| address.split_at_checked(zone)) {
        Some((address, zone)) => {
            let mut unescaped = unescape(address, Mode::Host)?;
            unescaped.extend(unescape(zone, Mode::Zone)?);
            unescaped
        }
        None => unescape(address, Mode::Host)?,
    };
    let parsed = netip::parse_address(&String::from_utf8_lossy(&unescaped));
    let parsed = parsed.map_err(UrlProblem::Host)?;
    if parsed.address.is_ipv4() {
        return Err(UrlProblem::IpLiteral);
    }
    Ok([b"[", &*unescaped, b"]", port.as_bytes()].concat())
}

fn check_port(port: &str) -> Result<(), UrlProblem> {
    if is_optional_port(port.as_bytes()) { Ok(()) } else { Err(UrlProblem::Port(port.to_owned())) }
}

/// Whether a port is empty, or a colon and digits.
fn is_optional_port(port: &[u8]) -> bool {
    port.is_empty() || port.strip_prefix(b":").is_some_and(|digits| digits.iter().all(u8::is_ascii_digit))
}

impl Url {
    /// Returns the host with the port; invalid UTF-8 is replaced, since strings cannot contain it.
    #[must_use]
    pub fn host(&self) -> String {
        text(&self.host)
    }

    /// Returns the host without the port and without the brackets of an IPv6 address.
    #[must_use]
    pub fn hostname(&self) -> String {
        let (host, _) = self.split_host();
        let bare = host.strip_prefix(b"[").and_then(|host| host.strip_suffix(b"]"));
        text(bare.unwrap_or(host))
    }

    /// Returns the port; empty if there is no numeric one.
    #[must_use]
    pub fn port(&self) -> String {
        let (_, port) = self.split_host();
        text(port)
    }

    fn split_host(&self) -> (&[u8], &[u8]) {
        let colon = self.host.iter().rposition(|b| *b == b':');
        match colon.and_then(|colon| self.host.split_at_checked(colon)) {
            Some((host, port)) if is_optional_port(port) => (host, port.strip_prefix(b":").unwrap_or(port)),
            _ => (&self.host, &[]),
        }
    }

    /// Returns the path as it was written, if that is a valid encoding.
    #[must_use]
    pub fn escaped_path(&self) -> String {
        match &self.raw_path {
            Some(raw) if is_valid_encoding(raw, Mode::Path) => raw.clone(),
            _ if self.path == b"*" => "*".to_owned(),
            _ => escape(&self.path, Mode::Path),
        }
    }

    /// Returns the keys in ascending order, each with its values in the order of the query; malformed pairs are left out.
    #[must_use]
    pub fn query(&self) -> Vec<(String, Vec<String>)> {
        let mut entries: std::collections::BTreeMap<String, Vec<String>> = std::collections::BTreeMap::new();
        for pair in self.raw_query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            if let (Ok(key), Ok(value)) = (unescape(key, Mode::Query), unescape(value, Mode::Query)) {
                entries.entry(text(&key)).or_default().push(text(&value));
            }
        }
        entries.into_iter().collect()
    }

    fn write_authority(&self, out: &mut String) {
        if self.scheme.is_empty() && self.host.is_empty() && self.user.is_none() {
            return;
        }
        if self.omits_host && self.host.is_empty() && self.user.is_none() {
            return;
        }
        if !self.host.is_empty() || !self.path.is_empty() || self.user.is_some() {
            out.push_str("//");
        }
        if let Some(user) = &self.user {
            out.push_str(&escape(&user.name, Mode::User));
            if let Some(password) = &user.password {
                out.push(':');
                out.push_str(&escape(password, Mode::User));
            }
            out.push('@');
        }
        out.push_str(&escape(&self.host, Mode::Host));
    }
}

impl std::fmt::Display for Url {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = String::new();
        if !self.scheme.is_empty() {
            out.push_str(&self.scheme);
            out.push(':');
        }
        if self.opaque.is_empty() {
            self.write_authority(&mut out);
            let path = self.escaped_path();
            if !path.is_empty() && !path.starts_with('/') && !self.host.is_empty() {
                out.push('/');
            }
            if out.is_empty() && path.split('/').next().is_some_and(|segment| segment.contains(':')) {
                out.push_str("./");
            }
            out.push_str(&path);
        } else {
            out.push_str(&self.opaque);
        }
        if self.force_query || !self.raw_query.is_empty() {
            out.push('?');
            out.push_str(&self.raw_query);
        }
        if !self.fragment.is_empty() {
            out.push('#');
            match &self.raw_fragment {
                Some(raw) if is_valid_encoding(raw, Mode::Fragment) => out.push_str(raw),
                _ => out.push_str(&escape(&self.fragment, Mode::Fragment)),
            }
        }
        f.write_str(&out)
    }
}

/// Whether a text needs no further escaping.
fn is_valid_encoding(text: &str, mode: Mode) -> bool {
    text.bytes().all(|byte| {
        is_sub_delimiter(byte)
            || matches!(byte, b':' | b'@' | b'[' | b']' | b'%')
            || !should_escape(byte, mode)
    })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_texts() {
        for (text, host, name, port, path, written) in [
            ("https://a.b:80/c%2Fd?x=1#f", "a.b:80", "a.b", "80", "/c%2Fd", "https://a.b:80/c%2Fd?x=1#f"),
            ("https://[::1%25eth0]:1/", "[::1%eth0]:1", "::1%eth0", "1", "/", "https://[::1%25eth0]:1/"),
            ("HTTP://u:p@h/a b", "h", "h", "", "/a%20b", "http://u:p@h/a%20b"),
            ("mailto:a@b", "", "", "", "", "mailto:a@b"),
            ("file:/x", "", "", "", "/x", "file:/x"),
            ("//h/p", "h", "h", "", "/p", "//h/p"),
            ("/p?", "", "", "", "/p", "/p?"),
            ("*", "", "", "", "*", "*"),
        ] {
            let url = parse(text).unwrap();
            assert_eq!((&*url.host(), &*url.hostname(), &*url.port()), (host, name, port), "{text}");
            assert_eq!((&*url.escaped_path(), &*url.to_string()), (path, written), "{text}");
        }
    }

    #[test]
    fn errors_in_go_s_words() {
        for (text, error) in [
            ("", r#"parse "": empty url"#),
            ("a", r#"parse "a": invalid URI for request"#),
            ("::bad", r#"parse "::bad": missing protocol scheme"#),
            ("http://h:x/", r#"parse "http://h:x/": invalid port ":x" after host"#),
            ("http://a:1:2/", r#"parse "http://a:1:2/": invalid port ":1:2" after host"#),
            ("http://%41/", r#"parse "http://%41/": invalid URL escape "%41""#),
            ("http://a/%zz", r#"parse "http://a/%zz": invalid URL escape "%zz""#),
            ("http://[::1", r#"parse "http://[::1": missing ']' in host"#),
            ("http://a\n/", r#"parse "http://a\n/": net/url: invalid control character in URL"#),
        ] {
            assert_eq!(check_request(text).unwrap_err().to_string(), error);
        }
    }
}
