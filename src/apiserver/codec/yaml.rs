//! Parses YAML as Kubernetes reads manifests (one document, JSON's types), and writes values as YAML.

use std::fmt::Write as _;

use admit_apimachinery::go;
use admit_policy::manifest;
use serde_json::Value;

use super::read::{Document, Unread};

/// Reads the first document. A member that stands twice is noted as a whole sentence, and the last one counts.
///
/// # Errors
/// What is wrong with the text, with `yaml: ` before it.
pub(super) fn parse(bytes: &[u8]) -> Result<Document, Unread> {
    let text = String::from_utf8_lossy(bytes);
    if text.trim_start_matches(' ').starts_with('\t') {
        return Err(Unread::Mistake("yaml: found character that cannot start any token".to_owned()));
    }
    let trees = manifest::parse_values(&text).map_err(|error| {
        if error.too_much {
            return Unread::TooMuch(error.message);
        }
        // Such a number is read, and then cannot be written as JSON.
        if let Some(number) = error.message.strip_suffix(" is no JSON value") {
            return Unread::Mistake(format!("json: unsupported value: {}", go_number(number)));
        }
        Unread::Mistake(format!("yaml: {}", wording(&error, &text)))
    })?;
    let Some(tree) = trees.into_iter().next() else {
        return Ok(Document { value: Value::Null, duplicates: Vec::new() });
    };
    let sentence = |duplicate: manifest::Duplicate| {
        format!("line {}: key {} already set in map", duplicate.position.line, go::quote(&duplicate.key))
    };
    let mut duplicates: Vec<String> = tree.duplicates.into_iter().map(sentence).collect();
    if let (1.., Some(last)) = (tree.more_duplicates, duplicates.last_mut()) {
        let _ = write!(last, ", and {} more keys", tree.more_duplicates);
    }
    Ok(Document { value: tree.value, duplicates })
}

/// A number that is none, as Go prints it; written in backquotes.
fn go_number(written: &str) -> &'static str {
    if written.contains("nan") || written.contains("NaN") || written.contains("NAN") {
        "NaN"
    } else if written.contains('-') {
        "-Inf"
    } else {
        "+Inf"
    }
}

/// A mistake as Go's reader words it: without what was being read, and with the line where that is not the first.
fn wording(error: &manifest::YamlError, text: &str) -> String {
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
        "tabs disallowed within this context (block indentation)" => {
            "found character that cannot start any token"
        }
        other => other,
    };
    // Its parser counts from zero, but takes the end of the text for a line of its own; its scanner counts from one.
    let at_end = error.position.line >= lines;
    let line = match (context.starts_with("while parsing"), error.position.line) {
        (true, line) if at_end => line.min(lines),
        (true, line) => line.saturating_sub(1),
        (false, 1) => 0,
        (false, line) => line,
    };
    if line == 0 { mistake.to_owned() } else { format!("line {line}: {mistake}") }
}

/// What Go's reader misses at the end of a text in which `bracket` is open: a value, or what may follow one.
fn unclosed(bracket: &str, text: &str) -> &'static str {
    match text.trim_end().chars().next_back() {
        Some('[' | '{' | ',' | ':') | None => "did not find expected node content",
        Some(_) if bracket.starts_with('{') => "did not find expected ',' or '}'",
        Some(_) => "did not find expected ',' or ']'",
    }
}

/// Objections of strict validation, as the YAML reader words them together.
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

/// The document as YAML: block style, members in order of name, as the API server writes it.
#[must_use]
pub(crate) fn to_yaml(document: &Value) -> String {
    let mut out = String::new();
    match document {
        Value::Object(_) | Value::Array(_) => block(document, 0, &mut out),
        scalar => {
            out.push_str(&scalar_text(scalar, 0, 0));
            out.push('\n');
        }
    }
    out
}

fn block(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Object(members) if members.is_empty() => out.push_str("{}\n"),
        Value::Object(members) => {
            let mut names: Vec<&String> = members.keys().collect();
            names.sort_unstable();
            for name in names {
                let _ = write!(out, "{:depth$}{}:", "", key_text(name));
                member(&members[name], depth, name.chars().count() + 2, out);
            }
        }
        Value::Array(items) if items.is_empty() => out.push_str("[]\n"),
        Value::Array(items) => items.iter().for_each(|item| entry(item, depth, out)),
        scalar => {
            let _ = writeln!(out, "{}", scalar_text(scalar, depth, depth + 2));
        }
    }
}

/// What stands behind `name:`. Lists are not indented below their name.
fn member(value: &Value, depth: usize, start: usize, out: &mut String) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            out.push('\n');
            block(value, depth + 2, out);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            block(value, depth, out);
        }
        Value::Object(_) | Value::Array(_) => {
            out.push(' ');
            block(value, depth, out);
        }
        scalar => {
            let _ = writeln!(out, " {}", scalar_text(scalar, depth, depth + start));
        }
    }
}

fn entry(item: &Value, depth: usize, out: &mut String) {
    let nested = match item {
        Value::Object(members) => !members.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    };
    let _ = write!(out, "{:depth$}- ", "");
    if !nested {
        block(item, depth, out);
        return;
    }
    // The first line of the item stands beside the dash.
    let mut inner = String::new();
    block(item, depth + 2, &mut inner);
    out.push_str(inner.trim_start_matches(' '));
}

fn key_text(name: &str) -> String {
    scalar_text(&Value::String(name.to_owned()), 0, 0)
}

/// Longer plain texts are folded by the API server's writer at this column.
const WIDTH: usize = 80;

/// `column` is where the text begins.
fn scalar_text(value: &Value, depth: usize, column: usize) -> String {
    match value {
        Value::String(text) if text.contains('\n') && printable(text) => literal(text, depth),
        Value::String(text) if is_plain(text) => folded(text, depth, column),
        // Texts that would be read as something else have double quotes, those that would not be read at all single ones.
        Value::String(text) if is_mistaken(text) => value.to_string(),
        Value::String(text) if printable(text) => {
            folded(&format!("'{}'", text.replace('\'', "''")), depth, column)
        }
        // JSON's quoted form is one of YAML's.
        other => other.to_string(),
    }
}

fn literal(text: &str, depth: usize) -> String {
    let (chomp, body) = match text.strip_suffix('\n') {
        Some(rest) if rest.ends_with('\n') => ("+", rest),
        Some(rest) => ("", rest),
        None => ("-", text),
    };
    let indent = depth + 2;
    let lines = body
        .split('\n')
        .map(|line| if line.is_empty() { "\n".to_owned() } else { format!("\n{:indent$}{line}", "") });
    format!("|{chomp}{}", lines.collect::<String>())
}

fn folded(text: &str, depth: usize, mut column: usize) -> String {
    let mut out = String::new();
    let indent = depth + 2;
    for (index, word) in text.split(' ').enumerate() {
        if index > 0 {
            if column > WIDTH && !word.is_empty() {
                let _ = write!(out, "\n{:indent$}", "");
                column = indent;
            } else {
                out.push(' ');
                column += 1;
            }
        }
        out.push_str(word);
        column += word.chars().count();
    }
    out
}

fn printable(text: &str) -> bool {
    text.chars().all(|c| c == '\n' || !c.is_control())
}

/// Whether a text can stand without quotes and still be read as a text.
fn is_plain(text: &str) -> bool {
    let first = text.chars().next().unwrap_or(' ');
    let indicator = "!&*|>'\"%@`#,[]{}?:-".contains(first);
    !is_mistaken(text)
        && text != "="
        && !(indicator && !(first == '-' && text.len() > 1 && !text.starts_with("- ")))
        && !text.starts_with(' ')
        && !text.ends_with(' ')
        && !text.ends_with(':')
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.contains('\n')
        && printable(text)
}

/// Whether a text without quotes would be read as a null, a boolean, a number or a time.
fn is_mistaken(text: &str) -> bool {
    const WORDS: [&str; 21] = [
        "", "~", "null", "Null", "NULL", "true", "True", "TRUE", "false", "False", "FALSE", "y", "Y", "yes",
        "Yes", "n", "N", "no", "No", "on", "off",
    ];
    let looks_like_number = text.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first));
    WORDS.contains(&text) || looks_like_number && (text.parse::<f64>().is_ok() || is_time(text))
}

/// Dates and times are types of their own in YAML 1.1.
fn is_time(text: &str) -> bool {
    let digits = |range: std::ops::Range<usize>| {
        text.get(range).is_some_and(|part| part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    digits(0..4) && text.as_bytes().get(4) == Some(&b'-') && digits(5..7)
}
