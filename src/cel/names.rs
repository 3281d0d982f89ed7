//! Decides which names an expression may use, and how Kubernetes escapes the names of other properties (apiserver
//! `pkg/cel/escaping.go`).

/// Words that may follow a dot and name nothing else.
const RESERVED: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// Whether a word may name no variable and no function.
#[must_use]
pub(crate) fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word)
}

/// Whether a text is a valid variable name: a letter or `_`, then letters, digits and `_`, and no reserved word.
///
/// ```
/// use admit_cel::is_identifier;
///
/// assert!(is_identifier("replicas_2") && !is_identifier("2nd") && !is_identifier("in"));
/// ```
#[must_use]
pub fn is_identifier(text: &str) -> bool {
    text.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
        && !is_reserved(text)
}

/// Returns the identifier of a property in expressions; None where there is none.
///
/// ```
/// use admit_cel::escape_property;
///
/// assert_eq!(escape_property("my-field").as_deref(), Some("my__dash__field"));
/// assert_eq!(escape_property("namespace").as_deref(), Some("__namespace__"));
/// assert_eq!(escape_property("a b"), None);
/// ```
#[must_use]
pub fn escape_property(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if is_reserved(name) {
        return Some(format!("__{name}__"));
    }
    let mut escaped = String::with_capacity(name.len());
    let mut rest = name.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '_' if rest.next_if_eq(&'_').is_some() => escaped.push_str("__underscores__"),
            '.' => escaped.push_str("__dot__"),
            '-' => escaped.push_str("__dash__"),
            '/' => escaped.push_str("__slash__"),
            c if c.is_ascii_alphanumeric() || c == '_' => escaped.push(c),
            _ => return None,
        }
    }
    Some(escaped)
}

/// Returns the property of an identifier, the inverse of [`escape_property`]. None for an invalid escape; a text without escapes is the
/// name itself.
///
/// ```
/// use admit_cel::unescape_property;
///
/// assert_eq!(unescape_property("my__dash__field").as_deref(), Some("my-field"));
/// assert_eq!(unescape_property("__namespace__").as_deref(), Some("namespace"));
/// assert_eq!(unescape_property("plain").as_deref(), Some("plain"));
/// assert_eq!(unescape_property("a__b__c"), None);
/// ```
#[must_use]
pub fn unescape_property(name: &str) -> Option<String> {
    let mut unescaped = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find("__") {
        let (before, from) = rest.split_at(at);
        unescaped.push_str(before);
        let Some((word, behind)) = escaped_word(from) else {
            // The first of these underscores escapes nothing; the next may.
            unescaped.push('_');
            rest = from.strip_prefix('_').unwrap_or_default();
            continue;
        };
        unescaped.push_str(match word {
            "underscores" => "__",
            "dot" => ".",
            "dash" => "-",
            "slash" => "/",
            word if is_reserved(word) && word.len().saturating_add(4) == name.len() => word,
            _ => return None,
        });
        rest = behind;
    }
    unescaped.push_str(rest);
    Some(unescaped)
}

/// Returns the word between two pairs of underscores at the start of a text, and the rest.
fn escaped_word(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix("__")?;
    let end = inner.find('_').filter(|end| *end > 0)?;
    let (word, behind) = inner.split_at(end);
    Some((word, behind.strip_prefix("__")?))
}
