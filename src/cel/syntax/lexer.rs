//! Splits text into tokens by longest match. As in cel-go, an invalid token reaches from its start to the character at which no token
//! could match any more.

use super::token::{Kind, Token};

/// The lexeme at a position of the source.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lexeme {
    Token(Token),
    /// Bytes that start no token; reading goes on behind them.
    Unrecognised {
        start: u32,
        end: u32,
    },
}

/// Reads one lexeme after another.
#[derive(Debug)]
pub(crate) struct Lexer<'s> {
    text: &'s str,
    at: usize,
}

/// The end of an attempt to read a token: the offset after it, or of the character that no token allows.
type Attempt = Result<usize, usize>;

impl<'s> Lexer<'s> {
    pub(crate) const fn new(text: &'s str) -> Self {
        Self { text, at: 0 }
    }

    /// Returns the next lexeme; at the end of the text always [`Kind::Eof`].
    pub(crate) fn next(&mut self) -> Lexeme {
        self.skip_hidden();
        let start = self.at;
        let Some(first) = self.byte(start) else {
            return Lexeme::Token(self.token(Kind::Eof, start));
        };
        match first {
            b'0'..=b'9' => self.number(start),
            b'.' if self.byte(plus(start, 1)).is_some_and(|b| b.is_ascii_digit()) => {
                let digits = self.digits(plus(start, 1));
                let end = self.exponent(digits).unwrap_or(digits);
                Lexeme::Token(self.token(Kind::Float, end))
            }
            b'"' | b'\'' => self.finish(Kind::String, self.quoted(start)),
            b'`' => self.finish(Kind::EscapedIdent, self.escaped_ident(start)),
            b'_' | b'a'..=b'z' | b'A'..=b'Z' => self.word(start),
            _ => self.operator(first),
        }
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    fn token(&mut self, kind: Kind, end: usize) -> Token {
        let start = offset(self.at);
        self.at = end;
        Token { kind, start, end: offset(end) }
    }

    /// A token, or everything up to and with the character that was in the way.
    fn finish(&mut self, kind: Kind, attempt: Attempt) -> Lexeme {
        match attempt {
            Ok(end) => Lexeme::Token(self.token(kind, end)),
            Err(end) => self.unrecognised(end),
        }
    }

    fn unrecognised(&mut self, culprit: usize) -> Lexeme {
        let start = offset(self.at);
        let width = self.text.get(culprit..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
        self.at = plus(culprit, width);
        Lexeme::Unrecognised { start, end: offset(self.at) }
    }

    /// White space and comments.
    fn skip_hidden(&mut self) {
        while let Some(byte) = self.byte(self.at) {
            match byte {
                b'\t' | b' ' | b'\r' | b'\n' | 0x0c => self.at = plus(self.at, 1),
                b'/' if self.byte(plus(self.at, 1)) == Some(b'/') => {
                    let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
                    let length = rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
                    self.at = plus(self.at, length);
                }
                _ => break,
            }
        }
    }

    fn run(&self, mut at: usize, accepts: impl Fn(u8) -> bool) -> usize {
        while self.byte(at).is_some_and(&accepts) {
            at = plus(at, 1);
        }
        at
    }

    fn digits(&self, at: usize) -> usize {
        self.run(at, |b| b.is_ascii_digit())
    }

    /// Returns the end of an exponent such as `e+10`, if there is one.
    fn exponent(&self, at: usize) -> Option<usize> {
        self.byte(at).filter(|b| matches!(b, b'e' | b'E'))?;
        let sign = usize::from(matches!(self.byte(plus(at, 1)), Some(b'+' | b'-')));
        let digits = plus(at, plus(1, sign));
        let end = self.digits(digits);
        (end > digits).then_some(end)
    }

    fn number(&mut self, start: usize) -> Lexeme {
        if self.byte(start) == Some(b'0') && self.byte(plus(start, 1)) == Some(b'x') {
            let digits = plus(start, 2);
            let end = self.run(digits, |b| b.is_ascii_hexdigit());
            if end > digits {
                return self.integer(end);
            }
        }
        let whole = self.digits(start);
        if self.byte(whole) == Some(b'.') {
            let end = self.digits(plus(whole, 1));
            if end > plus(whole, 1) {
                let end = self.exponent(end).unwrap_or(end);
                return Lexeme::Token(self.token(Kind::Float, end));
            }
        }
        match self.exponent(whole) {
            Some(end) => Lexeme::Token(self.token(Kind::Float, end)),
            None => self.integer(whole),
        }
    }

    fn integer(&mut self, end: usize) -> Lexeme {
        Lexeme::Token(match self.byte(end) {
            Some(b'u' | b'U') => self.token(Kind::Uint, plus(end, 1)),
            _ => self.token(Kind::Int, end),
        })
    }

    /// A name, a word of the language, or a string with a prefix, whichever is longest.
    fn word(&mut self, start: usize) -> Lexeme {
        let end = self.run(start, |b| b == b'_' || b.is_ascii_alphanumeric());
        let word = self.text.get(start..end).unwrap_or_default();
        let raw = word.ends_with(['r', 'R']);
        let kind = match word {
            "r" | "R" => Some(Kind::String),
            "b" | "B" | "br" | "bR" | "Br" | "BR" => Some(Kind::Bytes),
            _ => None,
        };
        if let (Some(kind), Some(b'"' | b'\'')) = (kind, self.byte(end)) {
            let attempt = if raw { self.raw_quoted(end) } else { self.quoted(end) };
            if let Ok(end) = attempt {
                return Lexeme::Token(self.token(kind, end));
            }
        }
        let kind = match word {
            "in" => Kind::In,
            "true" => Kind::True,
            "false" => Kind::False,
            "null" => Kind::Null,
            _ => Kind::Ident,
        };
        Lexeme::Token(self.token(kind, end))
    }

    /// The end of a string without prefix: three quotes open one that may span lines, else one quote does.
    fn quoted(&self, start: usize) -> Attempt {
        let quote = self.byte(start).unwrap_or_default();
        let one = self.until(plus(start, 1), &[quote], |s, at| s.character(at, false));
        if !self.has(start, &[quote; 3]) {
            return one;
        }
        match self.until(plus(start, 3), &[quote; 3], |s, at| s.character(at, true)) {
            Err(at) => one.map_err(|other| other.max(at)),
            end => end,
        }
    }

    fn raw_quoted(&self, start: usize) -> Attempt {
        let quote = self.byte(start).unwrap_or_default();
        let line = |s: &Self, at| match s.byte(at) {
            None | Some(b'\n' | b'\r') => Err(at),
            Some(_) => Ok(plus(at, 1)),
        };
        let one = self.until(plus(start, 1), &[quote], line);
        if !self.has(start, &[quote; 3]) {
            return one;
        }
        let any = |s: &Self, at| if s.byte(at).is_some() { Ok(plus(at, 1)) } else { Err(at) };
        self.until(plus(start, 3), &[quote; 3], any).or(one)
    }

    fn has(&self, at: usize, bytes: &[u8]) -> bool {
        self.text.as_bytes().get(at..).is_some_and(|rest| rest.starts_with(bytes))
    }

    /// Advances to the closing quotes.
    fn until(&self, mut at: usize, closing: &[u8], step: impl Fn(&Self, usize) -> Attempt) -> Attempt {
        while !self.has(at, closing) {
            at = step(self, at)?;
        }
        Ok(plus(at, closing.len()))
    }

    /// The end of one character of a string, which may be an escape sequence.
    fn character(&self, at: usize, many_lines: bool) -> Attempt {
        match self.byte(at) {
            None => Err(at),
            Some(b'\n' | b'\r') if !many_lines => Err(at),
            Some(b'\\') => self.escape(plus(at, 1)),
            Some(_) => Ok(plus(at, 1)),
        }
    }

    fn escape(&self, at: usize) -> Attempt {
        let hex = |b: u8| b.is_ascii_hexdigit();
        let octal = |b: u8| (b'0'..=b'7').contains(&b);
        match self.byte(at) {
            Some(b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v' | b'"' | b'\'' | b'\\' | b'?' | b'`') => {
                Ok(plus(at, 1))
            }
            Some(b'x' | b'X') => self.exactly(plus(at, 1), 2, hex),
            Some(b'u') => self.exactly(plus(at, 1), 4, hex),
            Some(b'U') => self.exactly(plus(at, 1), 8, hex),
            Some(b'0'..=b'3') => self.exactly(plus(at, 1), 2, octal),
            _ => Err(at),
        }
    }

    fn exactly(&self, at: usize, count: usize, accepts: impl Fn(u8) -> bool) -> Attempt {
        let end = plus(at, count);
        match (at..end).find(|at| !self.byte(*at).is_some_and(&accepts)) {
            Some(culprit) => Err(culprit),
            None => Ok(end),
        }
    }

    fn escaped_ident(&self, start: usize) -> Attempt {
        let inside = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-' | b'/' | b' ');
        let end = self.run(plus(start, 1), inside);
        if end > plus(start, 1) && self.byte(end) == Some(b'`') { Ok(plus(end, 1)) } else { Err(end) }
    }

    fn operator(&mut self, first: u8) -> Lexeme {
        let start = self.at;
        let second = self.byte(plus(start, 1));
        let (kind, length) = match (first, second) {
            (b'=', Some(b'=')) => (Kind::Equals, 2),
            (b'!', Some(b'=')) => (Kind::NotEquals, 2),
            (b'<', Some(b'=')) => (Kind::LessEquals, 2),
            (b'>', Some(b'=')) => (Kind::GreaterEquals, 2),
            (b'&', Some(b'&')) => (Kind::And, 2),
            (b'|', Some(b'|')) => (Kind::Or, 2),
            (b'=' | b'&' | b'|', _) => return self.unrecognised(plus(start, 1)),
            (b'<', _) => (Kind::Less, 1),
            (b'>', _) => (Kind::Greater, 1),
            (b'[', _) => (Kind::LeftBracket, 1),
            (b']', _) => (Kind::RightBracket, 1),
            (b'{', _) => (Kind::LeftBrace, 1),
            (b'}', _) => (Kind::RightBrace, 1),
            (b'(', _) => (Kind::LeftParen, 1),
            (b')', _) => (Kind::RightParen, 1),
            (b'.', _) => (Kind::Dot, 1),
            (b',', _) => (Kind::Comma, 1),
            (b'-', _) => (Kind::Minus, 1),
            (b'!', _) => (Kind::Not, 1),
            (b'?', _) => (Kind::Question, 1),
            (b':', _) => (Kind::Colon, 1),
            (b'+', _) => (Kind::Plus, 1),
            (b'*', _) => (Kind::Star, 1),
            (b'/', _) => (Kind::Slash, 1),
            (b'%', _) => (Kind::Percent, 1),
            _ => return self.unrecognised(start),
        };
        Lexeme::Token(self.token(kind, plus(start, length)))
    }
}

/// Offsets are far below the limit of the source, so the sum cannot overflow; saturating satisfies the lint.
const fn plus(at: usize, n: usize) -> usize {
    at.saturating_add(n)
}

fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
