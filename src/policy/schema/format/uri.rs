//! URIs as Go's `url.ParseRequestURI` reads them: absolute, or an absolute path; a fragment is no fragment here.

pub(super) fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|b| b < 0x20 || b == 0x7f) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let Some((scheme, rest)) = split_scheme(text) else { return false };
    let rest = rest.split_once('?').map_or(rest, |(before, _)| before);
    if !rest.starts_with('/') {
        // Opaque, as `mailto:x`; without a scheme it is relative.
        return !scheme.is_empty();
    }
    let path = match rest.strip_prefix("//").filter(|_| !scheme.is_empty()) {
        None => rest,
        Some(after) => {
            let end = after.find('/').unwrap_or(after.len());
            let (authority, path) = after.split_at_checked(end).unwrap_or_default();
            if !is_authority(authority) {
                return false;
            }
            path
        }
    };
    escapes_are_whole(path)
}

/// The scheme, empty where there is none; nothing when a colon stands where none may.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    for (i, c) in text.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if i > 0 => {}
            ':' if i == 0 => return None,
            ':' => return text.split_once(':'),
            _ => return Some(("", text)),
        }
    }
    Some(("", text))
}

fn is_authority(text: &str) -> bool {
    match text.rsplit_once('@') {
        None => is_host(text),
        Some((user, host)) => {
            let allowed = |b: u8| b.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&b);
            user.bytes().all(allowed) && escapes_are_whole(user) && is_host(host)
        }
    }
}

fn is_host(text: &str) -> bool {
    let is_port = |text: &str| {
        text.is_empty() || text.strip_prefix(':').is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit()))
    };
    if let Some(inner) = text.strip_prefix('[') {
        return inner
            .rsplit_once(']')
            .is_some_and(|(address, port)| is_port(port) && is_bracketed_address(address));
    }
    let port_at = text.rfind(':').unwrap_or(text.len());
    text.get(port_at..).is_some_and(is_port) && text.bytes().all(is_host_byte) && escapes_in_host(text)
}

fn is_bracketed_address(text: &str) -> bool {
    let address = text.split_once("%25").map_or(text, |(address, _)| address);
    address.parse::<std::net::Ipv6Addr>().is_ok()
}

const fn is_host_byte(b: u8) -> bool {
    b >= 0x80
        || b.is_ascii_alphanumeric()
        || matches!(
            b,
            b'-' | b'_'
                | b'.'
                | b'~'
                | b'!'
                | b'$'
                | b'&'
                | b'\''
                | b'('
                | b')'
                | b'*'
                | b'+'
                | b','
                | b';'
                | b'='
                | b':'
                | b'['
                | b']'
                | b'<'
                | b'>'
                | b'"'
                | b'%'
        )
}

/// In a host only bytes that are no ASCII may be escaped, and the percent sign itself.
fn escapes_in_host(text: &str) -> bool {
    escapes(text).all(|escape| {
        escape.is_some_and(|escape| escape == "25" || !escape.starts_with(|c: char| c.is_digit(8)))
    })
}

fn escapes_are_whole(text: &str) -> bool {
    escapes(text).all(|escape| escape.is_some())
}

/// The two hexadecimal digits after each percent sign; none where they are missing.
fn escapes(text: &str) -> impl Iterator<Item = Option<&str>> {
    text.split('%')
        .skip(1)
        .map(|after| after.get(..2).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit())))
}
