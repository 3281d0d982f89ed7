//! The forms of names in Kubernetes' API, with the words of its validation.

use super::matches;

const DNS_1123_LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const DNS_1123_SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const DNS_1035_LABEL: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const LABEL_KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";

const LABEL_LENGTH: usize = 63;
const SUBDOMAIN_LENGTH: usize = 253;

const SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
                              '.', and must start and end with an alphanumeric character";
const LABEL_KEY_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";

/// A label as in RFC 1123.
pub(crate) fn dns_1123_label(text: &str) -> Vec<String> {
    let mut problems = too_long(text, LABEL_LENGTH, "characters");
    if !is(DNS_1123_LABEL, text) {
        problems.push(if is(DNS_1123_SUBDOMAIN, text) {
            "must not contain dots".to_owned()
        } else {
            let rule = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
                        start and end with an alphanumeric character";
            explained(rule, DNS_1123_LABEL, &["my-name", "123-abc"])
        });
    }
    problems
}

/// A subdomain as in RFC 1123.
pub(crate) fn dns_1123_subdomain(text: &str) -> Vec<String> {
    subdomain(text, "characters")
}

fn subdomain(text: &str, unit: &str) -> Vec<String> {
    let mut problems = too_long(text, SUBDOMAIN_LENGTH, unit);
    if !is(DNS_1123_SUBDOMAIN, text) {
        problems.push(explained(SUBDOMAIN_RULE, DNS_1123_SUBDOMAIN, &["example.com"]));
    }
    problems
}

/// A label as in RFC 1035.
pub(super) fn dns_1035_label(text: &str) -> Vec<String> {
    let mut problems = too_long(text, LABEL_LENGTH, "characters");
    if !is(DNS_1035_LABEL, text) {
        let rule = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
                    alphabetic character, and end with an alphanumeric character";
        problems.push(explained(rule, DNS_1035_LABEL, &["my-name", "abc-123"]));
    }
    problems
}

/// A name with an optional subdomain in front: `example.com/MyName`.
pub(super) fn label_key(text: &str) -> Vec<String> {
    const EXAMPLES: [&str; 3] = ["MyName", "my.name", "123-abc"];
    let mut problems = Vec::new();
    let name = match text.split_once('/') {
        None => text,
        Some((_, name)) if name.contains('/') => {
            let rule = explained(LABEL_KEY_RULE, LABEL_KEY, &EXAMPLES);
            let prefix = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {rule} {prefix}")];
        }
        Some(("", name)) => {
            problems.push("prefix part must be non-empty".to_owned());
            name
        }
        Some((prefix, name)) => {
            problems
                .extend(subdomain(prefix, "bytes").iter().map(|problem| format!("prefix part {problem}")));
            name
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    }
    problems
        .extend(too_long(name, LABEL_LENGTH, "bytes").iter().map(|problem| format!("name part {problem}")));
    if !is(LABEL_KEY, name) {
        problems.push(format!("name part {}", explained(LABEL_KEY_RULE, LABEL_KEY, &EXAMPLES)));
    }
    problems
}

/// The value of a label, which may be empty.
pub(super) fn label_value(text: &str) -> Vec<String> {
    let mut problems = too_long(text, LABEL_LENGTH, "bytes");
    if !is(LABEL_VALUE, text) {
        let rule = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
                    must start and end with an alphanumeric character";
        problems.push(explained(rule, LABEL_VALUE, &["MyValue", "my_value", "12345"]));
    }
    problems
}

/// A prefix may end in a dash: for the check the dash and the character before it are replaced by a letter, as the
/// reference does.
pub(super) fn with_prefix_end(text: &str) -> String {
    match text.strip_suffix('-') {
        Some(before) if !before.is_empty() => {
            let mut chars = before.chars();
            let _ = chars.next_back();
            format!("{}a", chars.as_str())
        }
        _ => text.to_owned(),
    }
}

fn is(pattern: &str, text: &str) -> bool {
    matches(&format!("^{pattern}$"), text)
}

fn too_long(text: &str, limit: usize, unit: &str) -> Vec<String> {
    if text.len() > limit { vec![format!("must be no more than {limit} {unit}")] } else { Vec::new() }
}

/// Kubernetes' list of examples has a comma before each `or`.
fn explained(rule: &str, pattern: &str, examples: &[&str]) -> String {
    let examples: Vec<_> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{rule} (e.g. {}regex used for validation is '{pattern}')", examples.join(" or "))
}
