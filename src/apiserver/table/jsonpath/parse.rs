//! Parses a JSONPath.

use serde_json::Value;

use super::{Comparison, JsonPath, Operand, Step};

/// Most bytes of a path, and depth of nested filters: larger ones select nothing. Real paths have
/// some dozens of bytes, and one filter.
const MAX_LENGTH: usize = 1024;
const MAX_FILTERS: usize = 4;

const COMPARISONS: [(&str, Comparison); 6] = [
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

impl JsonPath {
    /// Parses a path; `None` if it is not in this subset.
    pub(in crate::table) fn parse(text: &str) -> Option<Self> {
        Self::parse_within(text, MAX_FILTERS)
    }

    fn parse_within(text: &str, filters: usize) -> Option<Self> {
        let mut rest = Some(text).filter(|text| text.len() <= MAX_LENGTH)?.trim();
        rest = rest.strip_prefix(['$', '@']).unwrap_or(rest);
        let mut steps = Vec::new();
        while !rest.is_empty() {
            let (step, after) = if let Some(after) = rest.strip_prefix("..") {
                (Step::Descend, if after.starts_with('[') { after } else { rest.get(1..)? })
            } else if let Some(after) = rest.strip_prefix('.') {
                if after.is_empty() || after.starts_with('[') {
                    rest = after;
                    continue;
                }
                member(after)
            } else if let Some(after) = rest.strip_prefix('[') {
                let end = closing_bracket(after)?;
                (bracket(after.get(..end)?, filters)?, after.get(end + 1..)?)
            } else {
                return None;
            };
            steps.push(step);
            rest = after;
        }
        Some(Self { steps })
    }
}

/// Reads a name up to the next unescaped `.` or `[`; `\.` is a dot in the name.
fn member(text: &str) -> (Step, &str) {
    let mut name = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => name.extend(characters.next().map(|(_, escaped)| escaped)),
            '.' | '[' => return (named(name), text.get(at..).unwrap_or_default()),
            other => name.push(other),
        }
    }
    (named(name), "")
}

fn named(name: String) -> Step {
    if name == "*" { Step::Wildcard } else { Step::Member(name) }
}

/// Returns the position of the bracket that closes the one before `text`, ignoring brackets in quotes and filters.
fn closing_bracket(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut quote = None;
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        match (quote, character) {
            _ if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), close) if open == close => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(character),
            (None, '[' | '(') => depth += 1,
            (None, ']') if depth == 0 => return Some(at),
            (None, ']' | ')') => depth = depth.checked_sub(1)?,
            (None, _) => {}
        }
    }
    None
}

fn bracket(text: &str, filters: usize) -> Option<Step> {
    let text = text.trim();
    if let Some(filter) = text.strip_prefix("?(").and_then(|rest| rest.strip_suffix(')')) {
        return parse_filter(filter, filters.checked_sub(1)?);
    }
    let parts = split_outside_quotes(text, ',');
    if parts.len() > 1 {
        return Some(Step::Union(
            parts.into_iter().map(|part| bracket(part, filters)).collect::<Option<_>>()?,
        ));
    }
    if text == "*" {
        return Some(Step::Wildcard);
    }
    if let Some(name) = quoted(text) {
        return Some(Step::Member(name));
    }
    let numbers: Vec<&str> = text.split(':').map(str::trim).collect();
    let number = |text: &str| if text.is_empty() { Some(None) } else { text.parse().ok().map(Some) };
    match numbers.as_slice() {
        [index] => Some(Step::Index(index.parse().ok()?)),
        [start, end] => Some(Step::Slice { start: number(start)?, end: number(end)?, step: 1 }),
        [start, end, step] => {
            Some(Step::Slice { start: number(start)?, end: number(end)?, step: step.parse().ok()? })
        }
        _ => None,
    }
}

fn parse_filter(text: &str, filters: usize) -> Option<Step> {
    for (symbol, comparison) in COMPARISONS {
        if let Some((left, right)) = text.split_once(symbol) {
            let comparison = Some((comparison, operand(right, filters)?));
            return Some(Step::Filter { left: operand(left, filters)?, comparison });
        }
    }
    Some(Step::Filter { left: operand(text, filters)?, comparison: None })
}

fn operand(text: &str, filters: usize) -> Option<Operand> {
    let text = text.trim();
    if text.starts_with(['@', '$']) {
        return Some(Operand::Path(JsonPath::parse_within(text, filters)?));
    }
    match quoted(text) {
        Some(text) => Some(Operand::Literal(Value::String(text))),
        None => serde_json::from_str(text).ok().map(Operand::Literal),
    }
}

fn quoted(text: &str) -> Option<String> {
    let inner = ['\'', '"'].iter().find_map(|quote| text.strip_prefix(*quote)?.strip_suffix(*quote))?;
    let mut name = String::new();
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        if character == '\\' {
            name.extend(characters.next());
        } else {
            name.push(character);
        }
    }
    Some(name)
}

fn split_outside_quotes(text: &str, separator: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut quote = None;
    let mut start = 0;
    for (at, character) in text.char_indices() {
        match quote {
            Some(open) if character == open => quote = None,
            None if character == '\'' || character == '"' => quote = Some(character),
            None if character == separator => {
                parts.extend(text.get(start..at));
                start = at + character.len_utf8();
            }
            _ => {}
        }
    }
    parts.extend(text.get(start..));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_paths_are_no_paths() {
        for path in ["spec", ".spec[", ".spec[x]", ".spec[?(@.a==)]"] {
            assert_eq!(JsonPath::parse(path), None, "{path}");
        }
        let nested = |depth| format!("{}.a{}", "[?(@".repeat(depth), ")]".repeat(depth));
        assert!(JsonPath::parse(&nested(MAX_FILTERS)).is_some());
        assert_eq!(JsonPath::parse(&nested(MAX_FILTERS + 1)), None);
        assert_eq!(JsonPath::parse(&nested(100_000)), None);
        assert_eq!(JsonPath::parse(&".a".repeat(MAX_LENGTH)), None);
    }
}
