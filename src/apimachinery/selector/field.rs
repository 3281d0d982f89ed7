//! Field selectors, as texts have them. Which fields a resource is selected by is a server's knowledge.

/// One condition on one field.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FieldTerm {
    /// `metadata.name`.
    pub path: String,
    /// Without escapes.
    pub value: String,
    /// Whether the field must have the value, or must not.
    pub equal: bool,
}

/// Why a text is no field selector, in the words of Kubernetes' parser.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldSelectorError {
    /// A term has no operator.
    #[error("invalid selector: '{text}'; can't understand '{term}'")]
    Term {
        /// All of it.
        text: String,
        /// The part without an operator.
        term: String,
    },
    /// A backslash stands before a character that needs none, or at the end.
    #[error("invalid field selector: invalid escape sequence: \\{}", .0.map(String::from).unwrap_or_default())]
    Escape(Option<char>),
    /// A comma or an equals sign stands in a value without a backslash. Go prints the rune as the number that it is.
    #[error("invalid field selector: unescaped character in value: {}", u32::from(*.0))]
    Unescaped(char),
}

/// Reads a text such as `metadata.name=a,spec.nodeName!=`.
///
/// # Errors
/// The text is no field selector.
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
        // Upstream drops a term that says nothing on either side.
        if path.is_empty() && value.is_empty() {
            continue;
        }
        terms.push(FieldTerm { path, value, equal });
    }
    Ok(terms)
}

/// Parts between commas that no backslash escapes.
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
