//! Parses YAML as Kubernetes reads manifests (one document, JSON's types), and writes values as YAML.

use std::fmt::Write as _;

use admit_apimachinery::go;
use admit_apimachinery::yaml::{Duplicate, YamlError, parse_first, unread_escape};
use serde_json::Value;

use super::document::{Document, Unread};

/// Reads the first document. A duplicate member is reported as a whole sentence, and the last one counts.
///
/// # Errors
/// The parser's message, with `yaml: ` before it.
pub(super) fn parse(bytes: &[u8]) -> Result<Document, Unread> {
    let text = String::from_utf8_lossy(bytes);
    if text.trim_start_matches(' ').starts_with('\t') {
        return Err(Unread::Mistake("yaml: found character that cannot start any token".to_owned()));
    }
    if text.chars().any(|character| !is_readable(character)) {
        return Err(Unread::Mistake("yaml: control characters are not allowed".to_owned()));
    }
    let first = parse_first(&text).map_err(|error| {
        if error.too_much {
            return Unread::TooMuch(error.message);
        }
        // Such a number can be read, but not written as JSON.
        if let Some(number) = error.message.strip_suffix(" is no JSON value") {
            return Unread::Mistake(format!("json: unsupported value: {}", go_number(number)));
        }
        Unread::Mistake(format!("yaml: {}", wording(&error, &text)))
    })?;
    if let Some(error) = unread_escape(&text) {
        return Err(Unread::Mistake(format!("yaml: {}", wording(&error, &text))));
    }
    let Some(tree) = first else {
        return Ok(Document { value: Value::Null, duplicates: Vec::new() });
    };
    let sentence = |duplicate: Duplicate| {
        format!("line {}: key {} already set in map", duplicate.position.line, go::quote(&duplicate.key))
    };
    let mut duplicates: Vec<String> = tree.duplicates.into_iter().map(sentence).collect();
    if let (1.., Some(last)) = (tree.more_duplicates, duplicates.last_mut()) {
        let _ = write!(last, ", and {} more keys", tree.more_duplicates);
    }
    Ok(Document { value: tree.value, duplicates })
}

/// Whether YAML allows the character.
fn is_readable(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..)
}

/// Formats NaN or infinity, which the error has in backquotes, as Go prints it.
fn go_number(written: &str) -> &'static str {
    if written.contains("nan") || written.contains("NaN") || written.contains("NAN") {
        "NaN"
    } else if written.contains('-') {
        "-Inf"
    } else {
        "+Inf"
    }
}

/// Words an error as Go's reader does: without the context, and with the line unless it is the first.
fn wording(error: &YamlError, text: &str) -> String {
    let message = error.message.strip_prefix("not YAML: ").unwrap_or(&error.message);
    let lines = text.lines().count();
    if let Some(bracket) = message.strip_prefix("unclosed bracket '") {
        return format!("line {lines}: {}", unclosed(bracket, text));
    }
    let (context, mistake) = match message.split_once(", ") {
        Some((context, mistake)) if context.starts_with("while ") => (context, mistake),
        _ => ("", message),
    };
    let mistake = match mistake {
        "did not find expected hexadecimal number" => "did not find expected hexdecimal number",
        "found high surrogate without following low surrogate"
        | "found unpaired low surrogate"
        | "found invalid low surrogate"
        | "did not find expected hexadecimal number for low surrogate" => {
            "found invalid Unicode character escape code"
        }
        "tabs disallowed within this context (block indentation)" => {
            "found character that cannot start any token"
        }
        other => other,
    };
    // Go's parser counts lines from zero, but counts the end of the text as a line; its scanner counts from one.
    let at_end = error.position.line >= lines;
    let is_parsers = context.starts_with("while parsing") && context != "while parsing a quoted scalar";
    let line = match (is_parsers, error.position.line) {
        (true, line) if at_end => line.min(lines),
        (true, line) => line.saturating_sub(1),
        (false, 1) => 0,
        (false, line) => line,
    };
    if line == 0 { mistake.to_owned() } else { format!("line {line}: {mistake}") }
}

/// Returns what Go's reader expects at the end of a text in which `bracket` is open: a value, or a separator.
fn unclosed(bracket: &str, text: &str) -> &'static str {
    match text.trim_end().chars().next_back() {
        Some('[' | '{' | ',' | ':') | None => "did not find expected node content",
        Some(_) if bracket.starts_with('{') => "did not find expected ',' or '}'",
        Some(_) => "did not find expected ',' or ']'",
    }
}

/// Formats errors of strict validation as the YAML reader does.
pub(crate) fn strict_text(objections: &[String]) -> String {
    let (duplicates, others): (Vec<&String>, Vec<&String>) =
        objections.iter().partition(|text| text.starts_with("line "));
    let mut parts: Vec<String> = Vec::new();
    if !duplicates.is_empty() {
        let lines: String = duplicates.iter().map(|text| format!("\n  {text}")).collect();
        parts.push(format!("yaml: unmarshal errors:{lines}"));
    }
    parts.extend(others.into_iter().cloned());
    parts.join(", ")
}
