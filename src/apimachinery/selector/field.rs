//! Parses field selectors. Servers know which fields a resource can be selected by.

/// A condition on one field.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FieldTerm {
    /// The path of the field, `metadata.name`.
    pub path: String,
    /// The value without escapes.
    pub value: String,
    /// Whether the field must have the value, or must not.
    pub equal: bool,
}

/// Why a text is not a field selector, with the messages of Kubernetes' parser.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldSelectorError {
    /// A term has no operator.
    #[error("invalid selector: '{text}'; can't understand '{term}'")]
    Term {
        /// The whole text.
        text: String,
        /// The term without an operator.
        term: String,
    },
    /// A backslash precedes a character that needs none, or ends the text.
    #[error("invalid field selector: invalid escape sequence: \\{}", .0.map(String::from).unwrap_or_default())]
    Escape(Option<char>),
    /// A value contains a comma or an equals sign without a backslash. Go prints the rune as a number.
    #[error("invalid field selector: unescaped character in value: {}", u32::from(*.0))]
    Unescaped(char),
}

/// Parses a text such as `metadata.name=a,spec.nodeName!=`.
///
/// # Errors
/// When the text is not a field selector.
pub fn field_terms(text: &str) -> Result<Vec<FieldTerm>, FieldSelectorError> {
    let mut terms = Vec::new();
    for part in split_terms(text) {
        if part.is_empty() {
            continue;
        }
        let split = [("!=", false), ("==", true), ("=", true)]
            .into_iter()
            .filter_map(|(operator, equal)| part.find(operator).map(|at| (at, operator, equal)))
            .min_by_key(|(at, operator, _)| (*at, std::cmp::Reverse(operator.len())));
        let Some((at, operator, equal)) = split else {
            return Err(FieldSelectorError::Term { text: text.to_owned(), term: part });
        };
        let path = part.get(..at).unwrap_or_default().to_owned();
        let value = unescaped(part.get(at.saturating_add(operator.len())..).unwrap_or_default())?;
        // Upstream drops a term that is empty on both sides.
        if path.is_empty() && value.is_empty() {
            continue;
        }
        terms.push(FieldTerm { path, value, equal });
    }
    Ok(terms)
}

/// Splits at commas without a backslash.
fn split_terms(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut escaped = false;
    for c in text.chars() {
        if c == ',' && !escaped {
            parts.push(String::new());
        } else if let Some(part) = parts.last_mut() {
            part.push(c);
        }
        escaped = c == '\\' && !escaped;
    }
    parts
}

fn unescaped(text: &str) -> Result<String, FieldSelectorError> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(next @ ('\\' | ',' | '=')) => out.push(next),
                other => return Err(FieldSelectorError::Escape(other)),
            },
            ',' | '=' => return Err(FieldSelectorError::Unescaped(c)),
            other => out.push(other),
        }
    }
    Ok(out)
}
