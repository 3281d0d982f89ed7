//! Parses image references: `registry.example.com:5000/path/name:tag@digest` (github.com/distribution/reference, and
//! pkg/util/parsers).

/// The registry of references without domain.
const DOMAIN: &str = "docker.io";
/// Most bytes of a repository's name, with its registry.
const LONGEST: usize = 255;
const LONGEST_TAG: usize = 128;
/// Least number of hexadecimal digits of a digest.
const SHORTEST_DIGEST: usize = 32;

/// Whether the reference is to the latest image: by the tag `latest`, or without tag and digest. False for invalid
/// references.
pub(crate) fn is_latest(image: &str) -> bool {
    parse(image).is_some_and(|(tag, digest)| tag == Some("latest") || (tag.is_none() && digest.is_none()))
}

/// Returns the tag and the digest of a reference; None if it is invalid.
fn parse(image: &str) -> Option<(Option<&str>, Option<&str>)> {
    let is_identifier =
        image.len() == 64 && image.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if is_identifier {
        return None;
    }
    let (named, digest) = match image.split_once('@') {
        Some((named, digest)) => (named, Some(digest)),
        None => (image, None),
    };
    // The part before the first slash is a domain if it looks like one.
    let looks_like_domain = |text: &str| {
        text.contains(['.', ':']) || text == "localhost" || text.bytes().any(|byte| byte.is_ascii_uppercase())
    };
    let (domain, rest) = match named.split_once('/') {
        Some((domain, rest)) if looks_like_domain(domain) => (Some(domain), rest),
        _ => (None, named),
    };
    let (path, tag) = match rest.split_once(':') {
        Some((path, tag)) => (path, Some(tag)),
        None => (rest, None),
    };
    // References without domain are in the default registry, and there without directory in `library`.
    let home = if domain.is_none() && !path.contains('/') { "library/" } else { "" };
    let is_reference = domain.is_none_or(is_domain)
        && domain.unwrap_or(DOMAIN).len() + 1 + home.len() + path.len() <= LONGEST
        && path.split('/').all(is_component)
        && tag.is_none_or(is_tag)
        && digest.is_none_or(is_digest);
    is_reference.then_some((tag, digest))
}

fn is_domain(domain: &str) -> bool {
    let (host, port) = match domain.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (domain, None),
    };
    let is_label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_host = match address {
        Some(address) => {
            !address.is_empty() && address.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b':')
        }
        None => host.split('.').all(is_label),
    };
    is_host && port.is_none_or(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Lower-case letters and digits, separated by one dot, up to two underscores or any number of dashes.
fn is_component(component: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let mut between = component.split(is_plain).filter(|between| !between.is_empty());
    component.starts_with(is_plain)
        && component.ends_with(is_plain)
        && between
            .all(|between| matches!(between, "." | "_" | "__") || between.bytes().all(|byte| byte == b'-'))
}

fn is_tag(tag: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (1..=LONGEST_TAG).contains(&tag.len())
        && tag.bytes().next().is_some_and(is_word)
        && tag.bytes().all(|byte| is_word(byte) || matches!(byte, b'.' | b'-'))
}

fn is_digest(digest: &str) -> bool {
    let Some((algorithm, digits)) = digest.split_once(':') else { return false };
    let is_part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic())
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    algorithm.split(['-', '_', '+', '.']).all(is_part)
        && digits.len() >= SHORTEST_DIGEST
        && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latest_is_what_says_nothing_else() {
        let digest = "0123456789abcdef0123456789abcdef";
        for (image, latest) in [
            ("nginx", true),
            ("nginx:latest", true),
            ("a.example.com:5000/b/c", true),
            ("localhost/c__d", true),
            ("Registry/c", true),
            ("[::1]:5000/c", true),
            ("nginx:1", false),
            ("a.example.com:5000/b/c:1", false),
            (&format!("nginx@sha256:{digest}"), false),
            (&format!("nginx:latest@sha256:{digest}"), true),
            ("Nginx", false),
            ("a b", false),
            ("150%", false),
            ("a//b", false),
            ("a___b", false),
            ("../..", false),
            ("", false),
            (&"x".repeat(256), false),
            (&"a".repeat(64), false),
        ] {
            assert_eq!(is_latest(image), latest, "{image}");
        }
    }
}
