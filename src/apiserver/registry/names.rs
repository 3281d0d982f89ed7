//! The forms of names, label keys and label values, with the sentences Kubernetes answers when one is broken.

const LABEL_1123: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
    start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN_1123: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
    '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
    alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
    validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED_NAME_PART: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and \
    end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
    and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
    validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// The rule that the names of a kind follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// `example.com`: most kinds.
    Subdomain,
    /// `my-name`: namespaces.
    Label,
    /// `my-name`, beginning with a letter: services.
    Label1035,
    /// Anything that is one segment of a path: roles.
    PathSegment,
}

impl NameRule {
    /// What is wrong with `name`, in order. `prefix`: it is a generateName, whose trailing dash is followed by more.
    #[must_use]
    pub fn problems(self, name: &str, prefix: bool) -> Vec<String> {
        let masked;
        let name = match name.strip_suffix('-') {
            Some(head) if prefix && head.len() > 1 => {
                masked = format!("{head}a");
                masked.as_str()
            }
            _ => name,
        };
        match self {
            Self::Subdomain => bounded(name, 253, is_subdomain(name), SUBDOMAIN_1123),
            // A subdomain that is no label has dots.
            Self::Label if is_subdomain(name) => bounded(name, 63, is_label(name), "must not contain dots"),
            Self::Label => bounded(name, 63, false, LABEL_1123),
            Self::Label1035 => {
                let ok = is_label(name) && name.starts_with(|c: char| c.is_ascii_lowercase());
                bounded(name, 63, ok, LABEL_1035)
            }
            Self::PathSegment => path_segment_problems(name),
        }
    }
}

fn bounded(name: &str, limit: usize, ok: bool, why: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if name.len() > limit {
        problems.push(format!("must be no more than {limit} characters"));
    }
    if !ok {
        problems.push(why.to_owned());
    }
    problems
}

/// A name in a path: `..`, and names with `/` or `%`, would be other paths.
#[must_use]
pub fn path_segment_problems(name: &str) -> Vec<String> {
    if name == "." || name == ".." {
        return vec![format!("may not be '{name}'")];
    }
    ["/", "%"]
        .into_iter()
        .filter(|illegal| name.contains(illegal))
        .map(|illegal| format!("may not contain '{illegal}'"))
        .collect()
}

fn is_label(text: &str) -> bool {
    let inner = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    let edge = |c: Option<&u8>| c.is_some_and(|c| *c != b'-');
    let bytes = text.as_bytes();
    !bytes.is_empty() && bytes.iter().all(|c| inner(*c)) && edge(bytes.first()) && edge(bytes.last())
}

pub(crate) fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

/// `[A-Za-z0-9]` at both ends, and `-_.` between them.
fn is_name_part(text: &str) -> bool {
    let bytes = text.as_bytes();
    let edge = |c: Option<&u8>| c.is_some_and(u8::is_ascii_alphanumeric);
    bytes.iter().all(|c| c.is_ascii_alphanumeric() || b"-_.".contains(c))
        && edge(bytes.first())
        && edge(bytes.last())
}

/// What is wrong with a qualified name: `[PREFIX/]NAME`.
#[must_use]
pub fn qualified_name_problems(key: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let mut parts = key.split('/');
    let (first, second, more) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
    let name = match (second, more) {
        (None, _) => first,
        (Some(name), None) => {
            if first.is_empty() {
                problems.push("prefix part must be non-empty".to_owned());
            } else {
                let prefix = NameRule::Subdomain.problems(first, false);
                problems.extend(prefix.into_iter().map(|why| format!("prefix part {why}")));
            }
            name
        }
        (Some(_), Some(_)) => {
            return vec![
                "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with \
                 an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                 '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. \
                 'example.com/MyName')"
                    .to_owned(),
            ];
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        problems.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_name_part(name) {
        problems.push(QUALIFIED_NAME_PART.to_owned());
    }
    problems
}

/// The first problem of a label key.
#[must_use]
pub fn label_key_problem(key: &str) -> Option<String> {
    let problems = qualified_name_problems(key);
    (!problems.is_empty()).then(|| problems.join("; "))
}

/// All problems of a label value in one text.
#[must_use]
pub fn label_value_problem(value: &str) -> Option<String> {
    let mut problems = Vec::new();
    if value.len() > 63 {
        problems.push("must be no more than 63 bytes".to_owned());
    }
    if !value.is_empty() && !is_name_part(value) {
        problems.push(LABEL_VALUE.to_owned());
    }
    (!problems.is_empty()).then(|| problems.join("; "))
}
