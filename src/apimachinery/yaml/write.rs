//! Writes values as YAML: in block style, as go-yaml 2 does for kubectl and the API server, with long strings folded at its column.
//! The result is parsed to the same value, by this parser and by those of YAML 1.1 and 1.2.

use serde_json::{Map, Number, Value};

use super::scalar;
use crate::go;

/// The indentation of an entry below its collection.
const INDENT: usize = 2;
/// Strings are folded at the first blank after this column.
const WIDTH: usize = 80;
/// The longest key in bytes on the line of its value; a longer one has a line of its own.
const SHORT_KEY: usize = 128;

/// Writes `value` as a document, members in their order.
#[must_use]
pub fn write(value: &Value) -> String {
    document(value, false)
}

/// Writes `value` as a document, members sorted by name, as the API server does.
#[must_use]
pub fn write_sorted(value: &Value) -> String {
    document(value, true)
}

fn document(value: &Value, sorted: bool) -> String {
    let mut writer = Writer { out: String::new(), sorted };
    match value {
        Value::String(text) => {
            writer.text(text, None);
            writer.out.push('\n');
        }
        other => writer.node(other, 0),
    }
    writer.out
}

struct Writer {
    out: String,
    sorted: bool,
}

impl Writer {
    /// Writes a node after the beginning of its line; `inside` is the indentation of its further lines.
    fn node(&mut self, value: &Value, inside: usize) {
        match value {
            Value::Object(members) if !members.is_empty() => self.members(members, inside),
            Value::Array(items) if !items.is_empty() => {
                for (index, item) in items.iter().enumerate() {
                    self.entry(index == 0, '-', item, inside);
                }
            }
            Value::String(text) if style(text) == Style::Literal => self.literal(text, inside),
            Value::String(text) => {
                self.text(text, Some(inside));
                self.out.push('\n');
            }
            Value::Number(number) => {
                self.out.push_str(&written(number));
                self.out.push('\n');
            }
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                self.out.push_str(&value.to_string());
                self.out.push('\n');
            }
        }
    }

    fn members(&mut self, members: &Map<String, Value>, depth: usize) {
        let mut members: Vec<(&String, &Value)> = members.iter().collect();
        if self.sorted {
            members.sort_unstable_by_key(|(name, _)| *name);
        }
        for (index, (name, value)) in members.into_iter().enumerate() {
            if name.len() > SHORT_KEY || name.contains('\n') {
                self.entry(index == 0, '?', &Value::String(name.clone()), depth);
                self.entry(false, ':', value, depth);
                continue;
            }
            if index > 0 {
                self.indent(depth);
            }
            self.text(name, None);
            self.out.push(':');
            let inside = depth.saturating_add(INDENT);
            let below = match value {
                Value::Object(members) if !members.is_empty() => Some(inside),
                // Lists are not indented below their key.
                Value::Array(items) if !items.is_empty() => Some(depth),
                _ => None,
            };
            match below {
                Some(below) => {
                    self.out.push('\n');
                    self.indent(below);
                }
                None => self.out.push(' '),
            }
            self.node(value, below.unwrap_or(inside));
        }
    }

    /// Writes a node after its indicator. The `first` entry is on the line where the collection begins.
    fn entry(&mut self, first: bool, indicator: char, value: &Value, depth: usize) {
        if !first {
            self.indent(depth);
        }
        self.out.push(indicator);
        self.out.push(' ');
        self.node(value, depth.saturating_add(INDENT));
    }

    fn indent(&mut self, depth: usize) {
        self.out.extend(std::iter::repeat_n(' ', depth));
    }

    /// Writes a literal block. Its header has the indentation if the first line begins with a blank, and says how many line
    /// feeds end the text.
    fn literal(&mut self, text: &str, inside: usize) {
        self.out.push('|');
        if text.starts_with([' ', '\n']) {
            self.out.push_str(&INDENT.to_string());
        }
        let lines = text.strip_suffix('\n');
        match lines {
            None => self.out.push('-'),
            Some(lines) if lines.is_empty() || lines.ends_with('\n') => self.out.push('+'),
            Some(_) => {}
        }
        self.out.push('\n');
        for line in lines.unwrap_or(text).split('\n') {
            if !line.is_empty() {
                self.indent(inside);
            }
            self.out.push_str(line);
            self.out.push('\n');
        }
    }

    /// Writes a string on one line, or folded to lines with the indentation `inside`.
    fn text(&mut self, text: &str, inside: Option<usize>) {
        match style(text) {
            Style::Plain => self.folded(text, "", inside),
            Style::Single => self.folded(&text.replace('\'', "''"), "'", inside),
            Style::Double | Style::Literal => self.folded(&escaped(text), "\"", inside),
        }
    }

    fn folded(&mut self, text: &str, quote: &str, inside: Option<usize>) {
        let line = self.out.rfind('\n').map_or(0, |end| end.saturating_add(1));
        let mut column = self.out.get(line..).unwrap_or_default().chars().count().saturating_add(quote.len());
        self.out.push_str(quote);
        let mut words = text.split(' ').peekable();
        let mut before = None;
        while let Some(word) = words.next() {
            // A line break stands for one blank, which must not be next to another one unless that is escaped.
            let blanks = word.is_empty() && (quote != "\"" || words.peek().is_none());
            match (before, inside) {
                (None, _) => {}
                (Some(true), Some(inside)) if column > WIDTH && !blanks => {
                    self.out.push('\n');
                    self.indent(inside);
                    self.out.push_str(if word.is_empty() { "\\" } else { "" });
                    column = inside.saturating_add(usize::from(word.is_empty()));
                }
                (Some(_), _) => {
                    self.out.push(' ');
                    column = column.saturating_add(1);
                }
            }
            self.out.push_str(word);
            column = column.saturating_add(word.chars().count());
            before = Some(!word.is_empty());
        }
        self.out.push_str(quote);
    }
}

/// Formats an integer, or a double as Go does if its JSON has a fraction or an exponent.
fn written(number: &Number) -> String {
    let number = if number.is_f64() { &go::json::reread(number) } else { number };
    match number.as_f64() {
        Some(double) if number.is_f64() => go::float::general(double),
        _ => number.to_string(),
    }
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Style {
    Plain,
    Single,
    Double,
    Literal,
}

fn style(text: &str) -> Style {
    if !text.chars().all(|c| c == '\n' || is_printable(c)) {
        return Style::Double;
    }
    if text.contains('\n') {
        // Blanks at the end of a line are invisible, so they are quoted.
        return if text.ends_with(' ') || text.contains(" \n") { Style::Double } else { Style::Literal };
    }
    if scalar::is_mistaken(text) {
        return Style::Double;
    }
    let first = text.strip_prefix(['-', '?', ':']).map_or_else(
        || text.starts_with(|c: char| "#,[]{}&*!|>'\"%@` ".contains(c)),
        |rest| rest.is_empty() || rest.starts_with(' '),
    );
    let marks = text.starts_with("---") || text.starts_with("...");
    let ends = text.ends_with([' ', ':']) || text.contains(": ") || text.contains(" #");
    if first || marks || ends { Style::Single } else { Style::Plain }
}

/// Whether go-yaml writes the character unescaped; it does so also for line breaks other than the line feed, which parsers of
/// YAML 1.2 keep and others treat as breaks.
fn is_printable(c: char) -> bool {
    matches!(c, ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}')
        && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}')
}

fn escaped(text: &str) -> String {
    const ESCAPED: &str = "\0\u{7}\u{8}\t\n\u{b}\u{c}\r\u{1b}\"\\\u{85}\u{2028}\u{2029}";
    const SHORT: &str = "0abtnvfre\"\\NLP";
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let short = ESCAPED.chars().zip(SHORT.chars()).find(|(long, _)| *long == c);
        match (short, u32::from(c)) {
            (Some((_, short)), _) => out.extend(['\\', short]),
            (None, _) if is_printable(c) => out.push(c),
            (None, code @ ..=0xff) => out.push_str(&format!("\\x{code:02X}")),
            (None, code @ ..=0xffff) => out.push_str(&format!("\\u{code:04X}")),
            (None, code) => out.push_str(&format!("\\U{code:08X}")),
        }
    }
    out
}
