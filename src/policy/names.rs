//! The rules for names that Kubernetes applies everywhere: DNS labels and subdomains, label keys and values, path
//! segments. Each check gives the sentences that Kubernetes prints, none when the text is fine.

const DNS_1123_LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const DNS_1123_SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const DNS_1035_LABEL: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const LABEL_KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";

/// A DNS label as RFC 1123 has it: up to 63 of `a-z0-9-`, no dash at either end.
#[must_use]
pub fn dns1123_label(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    at_most(text, 63, &mut problems);
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

/// Labels joined by dots, up to 253 bytes.
#[must_use]
pub fn dns1123_subdomain(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    at_most(text, 253, &mut problems);
    subdomain_form(text, &mut problems);
    problems
}

fn subdomain_form(text: &str, problems: &mut Vec<String>) {
    if !is_dns_subdomain(text) {
        problems.push(regex_problem(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
             start and end with an alphanumeric character",
            DNS_1123_SUBDOMAIN,
            "'example.com', ",
        ));
    }
}

/// A DNS label as RFC 1035 has it: it starts with a letter.
#[must_use]
pub fn dns1035_label(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    at_most(text, 63, &mut problems);
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

/// A key of labels and annotations: a name, with a DNS subdomain and a slash before it or not.
#[must_use]
pub fn label_key(text: &str) -> Vec<String> {
    const PROBLEM: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                           alphanumeric character";
    const EXAMPLES: &str = "'MyName',  or 'my.name',  or '123-abc', ";
    let mut problems = Vec::new();
    let name = match text.split_once('/') {
        None => text,
        Some((_, name)) if name.contains('/') => {
            let problem = regex_problem(PROBLEM, LABEL_KEY, EXAMPLES);
            return vec![format!(
                "a valid label key {problem} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
        Some(("", name)) => {
            problems.push("prefix part must be non-empty".to_owned());
            name
        }
        Some((prefix, name)) => {
            let mut of_prefix = Vec::new();
            at_most_bytes(prefix, 253, &mut of_prefix);
            subdomain_form(prefix, &mut of_prefix);
            problems.extend(of_prefix.into_iter().map(|problem| format!("prefix part {problem}")));
            name
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        problems.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_label_name(name) {
        problems.push(format!("name part {}", regex_problem(PROBLEM, LABEL_KEY, EXAMPLES)));
    }
    problems
}

/// The value of a label: empty, or up to 63 characters of a label name.
#[must_use]
pub fn label_value(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    at_most_bytes(text, 63, &mut problems);
    if !text.is_empty() && !is_label_name(text) {
        problems.push(regex_problem(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
             start and end with an alphanumeric character",
            &format!("({LABEL_KEY})?"),
            "'MyValue',  or 'my_value',  or '12345', ",
        ));
    }
    problems
}

/// A name that can stand in a URL's path, or with `prefix` the beginning of one.
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

/// A DNS subdomain, or with `prefix` the beginning of one, whose last dash a generated end will follow.
#[must_use]
pub fn subdomain_name(text: &str, prefix: bool) -> Vec<String> {
    dns1123_subdomain(&if prefix { mask_trailing_dash(text) } else { text.to_owned() })
}

/// The API server puts an `a` in the place of the dash and of the character before it, which nobody looks at.
fn mask_trailing_dash(text: &str) -> String {
    match text.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => {
            let kept = rest.len().checked_sub(1).and_then(|length| rest.get(..length)).unwrap_or(rest);
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

/// The newer checks of label keys and values say what they count.
fn at_most_bytes(text: &str, length: usize, problems: &mut Vec<String>) {
    if text.len() > length {
        problems.push(format!("must be no more than {length} bytes"));
    }
}

fn regex_problem(problem: &str, regex: &str, examples: &str) -> String {
    format!("{problem} (e.g. {examples}regex used for validation is '{regex}')")
}

fn is_dns_label(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    !text.is_empty()
        && text.bytes().all(|b| inner(b) || b == b'-')
        && text.bytes().next().is_some_and(inner)
        && text.bytes().next_back().is_some_and(inner)
}

fn is_dns_subdomain(text: &str) -> bool {
    text.split('.').all(is_dns_label)
}

fn is_label_name(text: &str) -> bool {
    let bytes = || text.bytes();
    bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        && bytes().next().is_some_and(|b| b.is_ascii_alphanumeric())
        && bytes().next_back().is_some_and(|b| b.is_ascii_alphanumeric())
}
