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

/// Reads a text such as `metadata.name=a,spec.nodeName!=`.
///
/// # Errors
/// The sentence of Kubernetes' parser.
pub fn field_terms(text: &str) -> Result<Vec<FieldTerm>, String> {
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
            return Err(format!("invalid selector: '{text}'; can't understand '{part}'"));
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

fn unescaped(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(next @ ('\\' | ',' | '=')) => out.push(next),
                Some(other) => {
                    return Err(format!("invalid field selector: invalid escape sequence: \\{other}"));
                }
                None => return Err("invalid field selector: invalid escape sequence: \\".to_owned()),
            },
            ',' | '=' => {
                // Go prints the rune as the number that it is.
                let rune = u32::from(c);
                return Err(format!("invalid field selector: unescaped character in value: {rune}"));
            }
            other => out.push(other),
        }
    }
    Ok(out)
}
