//! Formats values in CEL notation, shortened, for people who inspect an evaluation.

use std::fmt::{self, Write};

use admit_apimachinery::go::{duration, float};

use super::{List, Map, Opaque, Value};

/// Marks where the text was cut off.
const ELLIPSIS: char = '…';

impl Value<'_> {
    /// Formats the value as a CEL expression, cut off with `…` after `max` bytes. The time depends only on what is shown, however large
    /// the value.
    ///
    /// ```
    /// use admit_cel::{List, Value};
    ///
    /// let items = [Value::Uint(1), Value::String("a\"b"), Value::Optional(None)];
    /// assert_eq!(Value::List(List::Values(&items)).preview(80), r#"[1u, "a\"b", optional.none()]"#);
    /// assert_eq!(Value::String("twelve").preview(4), "\"twe…");
    /// ```
    #[must_use]
    pub fn preview(&self, max: usize) -> String {
        let mut out = Bounded { text: String::new(), max };
        // Writing fails when the text is full, and the ellipsis marks that.
        if write(&mut out, self).is_err() {
            out.text.push(ELLIPSIS);
        }
        out.text
    }
}

/// A text with a maximum length in bytes.
struct Bounded {
    text: String,
    max: usize,
}

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.max.saturating_sub(self.text.len());
        if text.len() <= room {
            self.text.push_str(text);
            return Ok(());
        }
        self.text.push_str(text.get(..text.floor_char_boundary(room)).unwrap_or_default());
        Err(fmt::Error)
    }
}

fn write(out: &mut Bounded, value: &Value<'_>) -> fmt::Result {
    match value {
        Value::Null => out.write_str("null"),
        Value::Bool(b) => write!(out, "{b}"),
        Value::Int(i) => write!(out, "{i}"),
        Value::Uint(u) => write!(out, "{u}u"),
        Value::Double(d) => double(out, *d),
        Value::String(text) => quoted(out, text),
        Value::Bytes(bytes) => {
            out.write_str("b\"")?;
            bytes.escape_ascii().try_for_each(|c| out.write_char(char::from(c)))?;
            out.write_char('"')
        }
        Value::Duration(span) => write!(out, "duration(\"{}\")", duration::format(span.0)),
        Value::Timestamp(instant) => write!(out, "timestamp(\"{}\")", instant),
        Value::List(list) => items(out, list),
        Value::Map(map) => entries(out, map),
        Value::Type(ty) => write!(out, "{ty}"),
        Value::Optional(None) => out.write_str("optional.none()"),
        Value::Optional(Some(inner)) => {
            out.write_str("optional.of(")?;
            write(out, inner)?;
            out.write_char(')')
        }
        Value::Opaque(opaque) => library_value(out, opaque),
    }
}

fn double(out: &mut Bounded, number: f64) -> fmt::Result {
    let text = float::general(number);
    let looks_whole = text.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    out.write_str(&text)?;
    out.write_str(if looks_whole { ".0" } else { "" })
}

fn quoted(out: &mut Bounded, text: &str) -> fmt::Result {
    out.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(out, "\\{c}")?,
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            c if c.is_control() => write!(out, "\\u{:04x}", u32::from(c))?,
            c => out.write_char(c)?,
        }
    }
    out.write_char('"')
}

fn items(out: &mut Bounded, list: &List<'_>) -> fmt::Result {
    out.write_char('[')?;
    for (at, item) in list.iter().enumerate() {
        if at > 0 {
            out.write_str(", ")?;
        }
        write(out, &item)?;
    }
    out.write_char(']')
}

fn entries(out: &mut Bounded, map: &Map<'_>) -> fmt::Result {
    // Looking at a host's fields would compute them.
    if let Map::Host(_) = map {
        return write!(out, "{{{ELLIPSIS}}}");
    }
    out.write_char('{')?;
    for (at, (key, value)) in map.iter().enumerate() {
        if at > 0 {
            out.write_str(", ")?;
        }
        write(out, &key)?;
        out.write_str(": ")?;
        write(out, &value)?;
    }
    out.write_char('}')
}

fn library_value(out: &mut Bounded, value: &Opaque<'_>) -> fmt::Result {
    match value {
        Opaque::Ip(address) => write!(out, "ip(\"{address}\")"),
        Opaque::Cidr(address, bits) => write!(out, "cidr(\"{address}/{bits}\")"),
        Opaque::Quantity(quantity) => write!(out, "quantity(\"{quantity}\")"),
        Opaque::Url(url) => call(out, "url", url.text),
        Opaque::Semver(version) => call(out, "semver", version.text),
        Opaque::Format(format) => write!(out, "format.{}()", format.name),
        Opaque::Empty => out.write_str("google.protobuf.Empty{}"),
        Opaque::Made(made) => write!(out, "{}{{…}}", made.type_name()),
        Opaque::Lost(lost) => write(out, lost),
        Opaque::Authorization(_) => {
            out.write_str(crate::value::runtime_type::name_of(&Value::Opaque(*value)))
        }
    }
}

fn call(out: &mut Bounded, function: &str, text: &str) -> fmt::Result {
    write!(out, "{function}(")?;
    quoted(out, text)?;
    out.write_char(')')
}
