//! Property names in expressions (apiserver `pkg/cel/escaping.go`).

use admit_cel::types::is_reserved;

/// The identifier that names a property in expressions; none where no identifier can.
#[must_use]
pub(super) fn escape(name: &str) -> Option<String> {
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
