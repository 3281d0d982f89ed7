//! Validates keys and values of labels, and qualified names. Each check returns the messages that Kubernetes prints, none for a valid
//! text.

use crate::names::{LABEL_LENGTH, SUBDOMAIN_LENGTH, regex_problem, subdomain_form};

const NAME: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";

/// Validates a key of labels and annotations, or another qualified name: a name, optionally with a DNS subdomain and a slash before it.
#[must_use]
pub fn key(text: &str) -> Vec<String> {
    const PROBLEM: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                           alphanumeric character";
    const EXAMPLES: &str = "'MyName',  or 'my.name',  or '123-abc', ";
    let mut problems = Vec::new();
    let name = match text.split_once('/') {
        None => text,
        Some((_, name)) if name.contains('/') => {
            let problem = regex_problem(PROBLEM, NAME, EXAMPLES);
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
            at_most_bytes(prefix, SUBDOMAIN_LENGTH, &mut of_prefix);
            subdomain_form(prefix, &mut of_prefix);
            problems.extend(of_prefix.into_iter().map(|problem| format!("prefix part {problem}")));
            name
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_LENGTH {
        problems.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_label_name(name) {
        problems.push(format!("name part {}", regex_problem(PROBLEM, NAME, EXAMPLES)));
    }
    problems
}

/// Validates the value of a label: empty, or up to 63 characters like a name.
#[must_use]
pub fn value(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    at_most_bytes(text, LABEL_LENGTH, &mut problems);
    if !text.is_empty() && !is_label_name(text) {
        problems.push(regex_problem(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
             start and end with an alphanumeric character",
            &format!("({NAME})?"),
            "'MyValue',  or 'my_value',  or '12345', ",
        ));
    }
    problems
}

/// Joins the messages to one sentence, as selectors and updates report them; None if there are none.
#[must_use]
pub fn in_one(problems: &[String]) -> Option<String> {
    (!problems.is_empty()).then(|| problems.join("; "))
}

/// Adds the message for a text that is too long, which counts bytes in the newer checks of label keys and values.
fn at_most_bytes(text: &str, length: usize, problems: &mut Vec<String>) {
    if text.len() > length {
        problems.push(format!("must be no more than {length} bytes"));
    }
}

fn is_label_name(text: &str) -> bool {
    let bytes = || text.bytes();
    bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        && bytes().next().is_some_and(|b| b.is_ascii_alphanumeric())
        && bytes().next_back().is_some_and(|b| b.is_ascii_alphanumeric())
}
