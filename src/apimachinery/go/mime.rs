//! Reads media types as Go's `mime.ParseMediaType` does.

use std::collections::HashMap;

/// Returns the media type of a `Content-Type` in lower case, without its parameters; None if either is malformed, or a parameter is
/// given twice with different values.
///
/// ```
/// use admit_apimachinery::go::mime::media_type;
///
/// assert_eq!(media_type("Application/JSON; charset=utf-8").as_deref(), Some("application/json"));
/// assert_eq!(media_type("application/json; charset"), None);
/// ```
#[must_use]
pub fn media_type(text: &str) -> Option<String> {
    let (base, mut rest) = text.split_at(text.find(';').unwrap_or(text.len()));
    let media_type = base.trim().to_lowercase();
    let (kind, subtype) = token(&media_type);
    let is_whole = match subtype.strip_prefix('/').map(token) {
        Some((subtype, rest)) => !subtype.is_empty() && rest.is_empty(),
        None => subtype.is_empty(),
    };
    if kind.is_empty() || !is_whole {
        return None;
    }
    let mut parameters = HashMap::new();
    loop {
        rest = rest.trim_start();
        // A semicolon at the end is ignored.
        if rest.is_empty() || rest.trim_end() == ";" {
            return Some(media_type);
        }
        let (name, value, after) = parameter(rest)?;
        if parameters.insert(name, value.clone()).is_some_and(|before| before != value) {
            return None;
        }
        rest = after;
    }
}

/// Splits off `; name=value`.
fn parameter(text: &str) -> Option<(String, String, &str)> {
    let (name, rest) = token(text.strip_prefix(';')?.trim_start());
    let rest = rest.trim_start().strip_prefix('=')?.trim_start();
    let (value, rest) = match rest.strip_prefix('"') {
        Some(quoted) => unquoted(quoted)?,
        None => Some(token(rest))
            .filter(|(value, _)| !value.is_empty())
            .map(|(value, rest)| (value.to_owned(), rest))?,
    };
    (!name.is_empty()).then(|| (name.to_lowercase(), value, rest))
}

/// Returns the text up to the closing quote, and what follows it. Only special characters are escaped: a path of Windows keeps its
/// backslashes.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        match character {
            '"' => return Some((value, rest.as_str())),
            '\r' | '\n' => return None,
            '\\' => {
                let escaped = rest.as_str().chars().next().filter(|next| SPECIAL.contains(*next));
                value.push(escaped.unwrap_or(character));
                if escaped.is_some() {
                    rest.next();
                }
            }
            _ => value.push(character),
        }
    }
    None
}

/// The characters that tokens cannot hold.
const SPECIAL: &str = "()<>@,;:\\\"/[]?=";

/// Splits off the longest token that the text begins with.
fn token(text: &str) -> (&str, &str) {
    let ends = |character: char| !character.is_ascii_graphic() || SPECIAL.contains(character);
    text.split_at(text.find(ends).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_well_formed_types_are_read() {
        for good in ["a/b", " A/B ;", "a", "a/b; c=d; C=d", "a/b;c=\"x;\\\"y\"", "a/b ; c = d", "a/b;c=\"\""]
        {
            assert!(media_type(good).is_some(), "{good}");
        }
        for bad in [
            "",
            ";",
            "a/",
            "/b",
            "a b",
            "a/b/c",
            "a/b,c/d",
            "a/b;c",
            "a/b;;",
            "a/b;c=",
            "a/b;c=\"d",
            "a/b;c=d;c=e",
            "a/b c",
        ] {
            assert_eq!(media_type(bad), None, "{bad}");
        }
    }
}
