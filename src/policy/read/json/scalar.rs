//! Parses JSON literals, numbers and strings.

use serde_json::{Number, Value};

use super::{Parser, SyntaxError};

impl<'b> Parser<'b> {
    pub(super) fn literal(&mut self, word: &'static str, value: Value) -> Result<Option<Value>, SyntaxError> {
        for expected in word.bytes() {
            match self.byte() {
                None => return Err(SyntaxError::End),
                Some(found) if found == expected => self.bump(),
                Some(byte) => {
                    let expected = char::from(expected);
                    return Err(SyntaxError::Literal { byte, literal: word, expected });
                }
            }
        }
        Ok(Some(value))
    }

    pub(super) fn number(&mut self) -> Result<Value, SyntaxError> {
        let start = self.at;
        if self.byte() == Some(b'-') {
            self.bump();
        }
        match self.byte().ok_or(SyntaxError::End)? {
            b'0' => self.bump(),
            b'1'..=b'9' => self.digits(),
            other => return Err(SyntaxError::at(other, "in numeric literal")),
        }
        let mut whole = true;
        if self.byte() == Some(b'.') {
            whole = false;
            self.bump();
            self.some_digits("after decimal point in numeric literal")?;
        }
        if let Some(b'e' | b'E') = self.byte() {
            whole = false;
            self.bump();
            if let Some(b'+' | b'-') = self.byte() {
                self.bump();
            }
            self.some_digits("in exponent of numeric literal")?;
        }
        let text =
            std::str::from_utf8(self.bytes.get(start..self.at).unwrap_or_default()).unwrap_or_default();
        parsed_number(text, whole)
    }

    fn digits(&mut self) {
        while self.byte().is_some_and(|byte| byte.is_ascii_digit()) {
            self.bump();
        }
    }

    fn some_digits(&mut self, place: &'static str) -> Result<(), SyntaxError> {
        match self.byte().ok_or(SyntaxError::End)? {
            b'0'..=b'9' => {
                self.digits();
                Ok(())
            }
            other => Err(SyntaxError::at(other, place)),
        }
    }

    pub(super) fn string(&mut self) -> Result<String, SyntaxError> {
        self.bump();
        let run = self.run();
        if self.byte() == Some(b'"') {
            self.bump();
            return Ok(text(run));
        }
        let mut out = run.to_vec();
        loop {
            match self.byte().ok_or(SyntaxError::End)? {
                b'"' => {
                    self.bump();
                    return Ok(text(&out));
                }
                b'\\' => {
                    self.bump();
                    self.escape(&mut out)?;
                }
                control @ 0..=0x1f => return Err(SyntaxError::at(control, "in string literal")),
                _ => out.extend_from_slice(self.run()),
            }
        }
    }

    /// The bytes up to the next one that means something in a string.
    fn run(&mut self) -> &'b [u8] {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let ends = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..=0x1f);
        let length = rest.iter().position(ends).unwrap_or(rest.len());
        self.at = self.at.saturating_add(length);
        rest.get(..length).unwrap_or_default()
    }

    fn escape(&mut self, out: &mut Vec<u8>) -> Result<(), SyntaxError> {
        let byte = self.byte().ok_or(SyntaxError::End)?;
        self.bump();
        let plain = match byte {
            b'"' | b'\\' | b'/' => byte,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let c = self.code_point()?;
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(());
            }
            other => return Err(SyntaxError::at(other, "in string escape code")),
        };
        out.push(plain);
        Ok(())
    }

    fn code_point(&mut self) -> Result<char, SyntaxError> {
        let high = self.hex4()?;
        if let Some(c) = char::from_u32(u32::from(high)) {
            return Ok(c);
        }
        let follows = self.bytes.get(self.at..).is_some_and(|rest| rest.starts_with(b"\\u"));
        if follows {
            let back = self.at;
            self.at = self.at.saturating_add(2);
            let low = self.hex4()?;
            if let Some(Ok(c)) = char::decode_utf16([high, low]).next() {
                return Ok(c);
            }
            self.at = back;
        }
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn hex4(&mut self) -> Result<u16, SyntaxError> {
        let mut value = 0_u16;
        for _ in 0..4 {
            let byte = self.byte().ok_or(SyntaxError::End)?;
            let digit = char::from(byte).to_digit(16).and_then(|digit| u16::try_from(digit).ok());
            let digit = digit.ok_or_else(|| SyntaxError::at(byte, "in \\u hexadecimal character escape"))?;
            value = (value << 4) | digit;
            self.bump();
        }
        Ok(value)
    }
}

fn text(bytes: &[u8]) -> String {
    // Nearly all text is valid UTF-8, and checking is faster than repairing.
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => String::from_utf8_lossy(bytes).into_owned(),
    }
}

fn parsed_number(text: &str, whole: bool) -> Result<Value, SyntaxError> {
    if whole {
        if let Ok(number) = text.parse::<i64>() {
            return Ok(number.into());
        }
        if let Ok(number) = text.parse::<u64>() {
            return Ok(number.into());
        }
    }
    text.parse::<f64>()
        .ok()
        .and_then(Number::from_f64)
        .map(Value::Number)
        .ok_or_else(|| SyntaxError::Number(text.to_owned()))
}
