//! Parses the values of literals: numbers, and strings without their quotes and escapes.

use super::ast::Literal;

pub(crate) fn int(text: &str) -> Result<Literal, &'static str> {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("-", digits));
    let value = match digits.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(&format!("{sign}{hex}"), 16),
        None => text.parse(),
    };
    value.map(Literal::Int).map_err(|_| "invalid int literal")
}

pub(crate) fn uint(text: &str) -> Result<Literal, &'static str> {
    let digits = text.trim_end_matches(['u', 'U']);
    let value = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => digits.parse(),
    };
    value.map(Literal::Uint).map_err(|_| "invalid uint literal")
}

pub(crate) fn double(text: &str) -> Result<Literal, &'static str> {
    // Go rejects numbers that round to infinity.
    let value = text.parse().ok().filter(|value: &f64| value.is_finite());
    value.map(Literal::Double).ok_or("invalid double literal")
}

pub(crate) fn string(text: &str) -> Result<Literal, &'static str> {
    let (body, raw) = unquote(text);
    let mut out = String::with_capacity(body.len());
    for unit in Units::new(&body, raw, false) {
        match unit? {
            Unit::Char(c) => out.push(c),
            Unit::Byte(byte) => out.push(char::from(byte)),
        }
    }
    Ok(Literal::String(out.into()))
}

/// A bytes literal, prefix and all.
pub(crate) fn bytes(text: &str) -> Result<Literal, &'static str> {
    let (body, raw) = unquote(text.strip_prefix(['b', 'B']).unwrap_or(text));
    let mut out = Vec::with_capacity(body.len());
    for unit in Units::new(&body, raw, true) {
        match unit? {
            Unit::Char(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            Unit::Byte(byte) => out.push(byte),
        }
    }
    Ok(Literal::Bytes(out.into()))
}

/// Returns the content between the quotes, with normalised line ends, and whether the string is raw.
fn unquote(text: &str) -> (String, bool) {
    let (text, raw) = text.strip_prefix(['r', 'R']).map_or((text, false), |text| (text, true));
    let inner = ["\"\"\"", "'''", "\"", "'"]
        .iter()
        .find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote))
        .unwrap_or(text);
    (inner.replace("\r\n", "\n").replace('\r', "\n"), raw)
}

enum Unit {
    Char(char),
    /// An escape in a bytes literal that denotes a byte, not a code point.
    Byte(u8),
}

/// Walks over the characters and escape sequences of a string's body.
struct Units<'t> {
    chars: std::str::Chars<'t>,
    raw: bool,
    bytes: bool,
}

impl<'t> Units<'t> {
    fn new(body: &'t str, raw: bool, bytes: bool) -> Self {
        Self { chars: body.chars(), raw, bytes }
    }

    fn escape(&mut self) -> Result<Unit, &'static str> {
        const BAD: &str = "unable to unescape string";
        Ok(Unit::Char(match self.chars.next().ok_or(BAD)? {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            c @ ('\\' | '\'' | '"' | '`' | '?') => c,
            'x' | 'X' => return self.code(0, 2, 16),
            'u' if !self.bytes => return self.code(0, 4, 16),
            'U' if !self.bytes => return self.code(0, 8, 16),
            c @ '0'..='3' => return self.code(c.to_digit(8).unwrap_or_default(), 2, 8),
            _ => return Err(BAD),
        }))
    }

    fn code(&mut self, first: u32, digits: u32, radix: u32) -> Result<Unit, &'static str> {
        let mut code = first;
        for _ in 0..digits {
            let digit =
                self.chars.next().and_then(|c| c.to_digit(radix)).ok_or("unable to unescape string")?;
            code = code.wrapping_mul(radix).wrapping_add(digit);
        }
        if self.bytes {
            return u8::try_from(code).map(Unit::Byte).map_err(|_| "unable to unescape string");
        }
        char::from_u32(code).map(Unit::Char).ok_or("invalid unicode code point")
    }
}

impl Iterator for Units<'_> {
    type Item = Result<Unit, &'static str>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.chars.next()? {
            '\\' if !self.raw => Some(self.escape()),
            c => Some(Ok(Unit::Char(c))),
        }
    }
}
