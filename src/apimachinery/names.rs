//! Validates names by Kubernetes' common rules: DNS labels and subdomains, path segments. Each check returns the
//! messages that Kubernetes prints, none for a valid text.

const DNS_1123_LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const DNS_1123_SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const DNS_1035_LABEL: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";

/// The longest DNS label in bytes, also for the parts of labels.
pub(crate) const LABEL_LENGTH: usize = 63;
/// The longest DNS subdomain in bytes.
pub(crate) const SUBDOMAIN_LENGTH: usize = 253;

/// The rule for the names of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// `example.com`: the rule of most kinds.
    Subdomain,
    /// `my-name`: the rule of namespaces.
    Label,
    /// `my-name` with a letter at the beginning: the rule of services.
    Label1035,
    /// Any segment of a path: the rule of roles.
    PathSegment,
}

impl NameRule {
    /// Validates `name`; with `prefix` it is a generateName, whose trailing dash is followed by more.
    ///
    /// ```
    /// use admit_apimachinery::names::NameRule;
    ///
    /// assert!(NameRule::Subdomain.problems("a-", true).is_empty());
    /// assert_eq!(NameRule::Subdomain.problems("a-", false).len(), 1);
    /// ```
    #[must_use]
    pub fn problems(self, name: &str, prefix: bool) -> Vec<String> {
        let masked = prefix.then(|| mask_trailing_dash(name));
        let text = masked.as_deref().unwrap_or(name);
        match self {
            Self::Subdomain => dns1123_subdomain(text),
            Self::Label => dns1123_label(text),
            Self::Label1035 => dns1035_label(text),
            Self::PathSegment => path_segment(name, prefix),
        }
    }
}

/// Validates a DNS label by RFC 1123: up to 63 of `a-z0-9-`, no dash at either end.
#[must_use]
pub fn dns1123_label(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    at_most(text, LABEL_LENGTH, &mut problems);
    if !is_dns_label(text) {
        problems.push(if is_dns_subdomain(text) {
            "must not contain dots".to_owned()
        } else {
            regex_problem(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start \
                 and end with an alphanumeric character",
                DNS_1123_LABEL,
                "'my-name',  or '123-abc', ",
            )
        });
    }
    problems
}

/// Validates a DNS subdomain: labels joined by dots, up to 253 bytes.
#[must_use]
pub fn dns1123_subdomain(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    at_most(text, SUBDOMAIN_LENGTH, &mut problems);
    subdomain_form(text, &mut problems);
    problems
}

pub(crate) fn subdomain_form(text: &str, problems: &mut Vec<String>) {
    if !is_dns_subdomain(text) {
        problems.push(regex_problem(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
             start and end with an alphanumeric character",
            DNS_1123_SUBDOMAIN,
            "'example.com', ",
        ));
    }
}

/// Validates a DNS subdomain after `*.`.
#[must_use]
pub fn wildcard_subdomain(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    at_most(text, SUBDOMAIN_LENGTH, &mut problems);
    if !text.strip_prefix("*.").is_some_and(is_dns_subdomain) {
        problems.push(regex_problem(
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist \
             of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
            &format!(r"\*\.{DNS_1123_SUBDOMAIN}"),
            "'*.example.com', ",
        ));
    }
    problems
}

/// Validates a DNS label by RFC 1035, which starts with a letter.
#[must_use]
pub fn dns1035_label(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    at_most(text, LABEL_LENGTH, &mut problems);
    if !(is_dns_label(text) && text.starts_with(|c: char| c.is_ascii_lowercase())) {
        problems.push(regex_problem(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
             character, and end with an alphanumeric character",
            DNS_1035_LABEL,
            "'my-name',  or 'abc-123', ",
        ));
    }
    problems
}

/// Validates a domain with a path, `example.com/a/path`; returns each message with the part that it is about. Callers decide whether
/// the value is required.
///
/// ```
/// use admit_apimachinery::names::domain_prefixed_path;
///
/// assert_eq!(domain_prefixed_path("example.com/a"), []);
/// assert_eq!(domain_prefixed_path("a")[0].1, "must be a domain-prefixed path (such as \"acme.io/foo\")");
/// assert_eq!(domain_prefixed_path("example.com/a b")[0].0, "a b");
/// ```
#[must_use]
pub fn domain_prefixed_path(text: &str) -> Vec<(&str, String)> {
    const PATH: &str = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+";
    let is_of_path = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte);
    let parts = text.split_once('/').filter(|(domain, path)| !domain.is_empty() && !path.is_empty());
    let Some((domain, path)) = parts else {
        return vec![(text, "must be a domain-prefixed path (such as \"acme.io/foo\")".to_owned())];
    };
    let mut problems: Vec<_> =
        dns1123_subdomain(domain).into_iter().map(|problem| (domain, problem)).collect();
    if !path.bytes().all(is_of_path) {
        problems.push((path, format!("Invalid path (regex used for validation is '{PATH}')")));
    }
    problems
}

/// Validates a name as a segment of a URL's path, or with `prefix` as the beginning of one.
#[must_use]
pub fn path_segment(text: &str, prefix: bool) -> Vec<String> {
    if !prefix && (text == "." || text == "..") {
        return vec![format!("may not be '{text}'")];
    }
    let mut problems = Vec::new();
    for forbidden in ["/", "%"] {
        if text.contains(forbidden) {
            problems.push(format!("may not contain '{forbidden}'"));
        }
    }
    problems
}

/// Replaces the end of a name prefix as the API server does: an `a` instead of the dash and the byte before it, which is not
/// validated. A dash alone is kept.
#[must_use]
pub fn mask_trailing_dash(text: &str) -> String {
    match text.strip_suffix('-') {
        Some(before) if !before.is_empty() => {
            // A cut multi-byte character is invalid in names, like the whole one.
            let kept = before.len().checked_sub(1).and_then(|end| before.get(..end)).unwrap_or(before);
            format!("{kept}a")
        }
        _ => text.to_owned(),
    }
}

fn at_most(text: &str, length: usize, problems: &mut Vec<String>) {
    if text.len() > length {
        problems.push(format!("must be no more than {length} characters"));
    }
}

pub(crate) fn regex_problem(problem: &str, regex: &str, examples: &str) -> String {
    format!("{problem} (e.g. {examples}regex used for validation is '{regex}')")
}

/// Whether the text consists of RFC 1123 labels joined by dots; its length is not checked.
#[must_use]
pub fn is_dns_subdomain(text: &str) -> bool {
    text.split('.').all(is_dns_label)
}

fn is_dns_label(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    !text.is_empty()
        && text.bytes().all(|b| inner(b) || b == b'-')
        && text.bytes().next().is_some_and(inner)
        && text.bytes().next_back().is_some_and(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Prefixes are validated as upstream's mask shows them.
    #[test]
    fn prefixes_are_masked_as_upstream_masks_them() {
        for (prefix, masked) in
            [("", ""), ("-", "-"), ("a-", "a"), ("ab-", "aa"), ("ab_-", "aba"), ("é-", "éa"), ("a", "a")]
        {
            assert_eq!(mask_trailing_dash(prefix), masked);
        }
        for (rule, prefix, problems) in [
            (NameRule::Subdomain, "a-", 0),
            (NameRule::Label, "n-", 0),
            (NameRule::Label1035, "s-", 0),
            (NameRule::Subdomain, "ab_-", 0),
            (NameRule::Subdomain, "a_b-", 1),
            (NameRule::Subdomain, "-", 1),
            (NameRule::Subdomain, "A-", 0),
            (NameRule::PathSegment, "..", 0),
            (NameRule::PathSegment, "a/%", 2),
        ] {
            assert_eq!(rule.problems(prefix, true).len(), problems, "{rule:?} {prefix}");
        }
        let long = "a".repeat(254);
        assert_eq!(NameRule::Subdomain.problems(&long, true), ["must be no more than 253 characters"]);
        assert_eq!(NameRule::PathSegment.problems("..", false), ["may not be '..'"]);
    }
}
