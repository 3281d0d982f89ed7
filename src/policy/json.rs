//! JSON text to a value as an API server reads it: with the error texts of Go's `encoding/json` (clients print them),
//! duplicate members noted with their paths, and a bound on nesting. Iterative, so that no input can exhaust the stack.
//!
//! A number without fraction and exponent is an integer where 64 bits hold it, `-0` the integer zero; anything else is a
//! double. What the value means is left to others.

use serde_json::map::Entry;
use serde_json::{Map, Number, Value};

/// Deepest nesting that is read: everything behind the parser may then walk values recursively.
const MAX_DEPTH: usize = 512;

/// A parsed document.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    pub value: Value,
    /// Paths of members that stood twice or more in one object, in order of appearance. The last one counts.
    pub duplicates: Vec<String>,
}

/// Parses exactly one value with white space around it. Bytes that are no UTF-8 and lone surrogates become U+FFFD.
///
/// # Errors
/// Go's wording of the first syntax error: `invalid character '}' looking for beginning of value`.
pub fn parse(bytes: &[u8]) -> Result<Document, String> {
    let mut parser = Parser { bytes, at: 0, open: Vec::new(), members: Vec::new(), duplicates: Vec::new() };
    let value = parser.document()?;
    // Objects are put together when they are whole, inner ones before what stands before them.
    parser.duplicates.sort_by_key(|(at, _)| *at);
    Ok(Document { value, duplicates: parser.duplicates.into_iter().map(|(_, path)| path).collect() })
}

struct Parser<'b> {
    bytes: &'b [u8],
    at: usize,
    open: Vec<Container>,
    /// Members of all open objects that are not yet in their maps, those of the innermost last.
    members: Vec<Member>,
    /// With their places in the text.
    duplicates: Vec<(usize, String)>,
}

enum Container {
    Array(Vec<Value>),
    Object(Object),
}

/// An open object. Its members wait in the parser until it is closed, so that its map is made once and of the right
/// size; one with very many has them moved to its map in between.
struct Object {
    map: Map<String, Value>,
    waiting: usize,
    key: Key,
}

struct Member {
    key: Key,
    value: Value,
}

/// The name of a member, and where in the text it ends.
struct Key {
    text: String,
    at: usize,
}

/// Members of one object that may wait.
const MAX_WAITING: usize = 64;

const END: &str = "unexpected end of JSON input";
const VALUE: &str = "looking for beginning of value";
const KEY: &str = "looking for beginning of object key string";

impl<'b> Parser<'b> {
    fn document(&mut self) -> Result<Value, String> {
        loop {
            // One value begins here: a scalar, an empty container, or a container that is entered.
            let Some(mut value) = self.value()? else { continue };
            // A finished value goes into the container around it, which may finish that one in turn.
            loop {
                let Some(container) = self.open.pop() else {
                    return match self.peek() {
                        None => Ok(value),
                        Some(byte) => Err(unexpected(byte, "after top-level value")),
                    };
                };
                match self.put(container, value)? {
                    Some(finished) => value = finished,
                    None => break,
                }
            }
        }
    }

    /// A whole value, or None when a container was entered whose first value follows.
    fn value(&mut self) -> Result<Option<Value>, String> {
        let byte = self.peek().ok_or(END)?;
        match byte {
            b'{' => self.enter_object(),
            b'[' => self.enter_array(),
            b'"' => self.string().map(|text| Some(Value::String(text))),
            b'-' | b'0'..=b'9' => self.number().map(Some),
            b't' => self.literal("true", Value::Bool(true)),
            b'f' => self.literal("false", Value::Bool(false)),
            b'n' => self.literal("null", Value::Null),
            other => Err(unexpected(other, VALUE)),
        }
    }

    fn enter_object(&mut self) -> Result<Option<Value>, String> {
        self.deeper(b'{')?;
        match self.peek().ok_or(END)? {
            b'}' => {
                self.bump();
                Ok(Some(Value::Object(Map::new())))
            }
            _ => {
                let key = self.key()?;
                self.open.push(Container::Object(Object { map: Map::new(), waiting: 0, key }));
                Ok(None)
            }
        }
    }

    fn enter_array(&mut self) -> Result<Option<Value>, String> {
        self.deeper(b'[')?;
        if self.peek().ok_or(END)? == b']' {
            self.bump();
            return Ok(Some(Value::Array(Vec::new())));
        }
        self.open.push(Container::Array(Vec::new()));
        Ok(None)
    }

    fn deeper(&mut self, byte: u8) -> Result<(), String> {
        if self.open.len() >= MAX_DEPTH {
            return Err(unexpected(byte, "exceeded max depth"));
        }
        self.bump();
        Ok(())
    }

    /// Adds `value` to `container`; answers the container's value once it is closed.
    fn put(&mut self, container: Container, value: Value) -> Result<Option<Value>, String> {
        match container {
            Container::Array(mut items) => {
                items.push(value);
                match self.peek().ok_or(END)? {
                    b',' => {
                        self.bump();
                        self.open.push(Container::Array(items));
                        Ok(None)
                    }
                    b']' => {
                        self.bump();
                        Ok(Some(Value::Array(items)))
                    }
                    other => Err(unexpected(other, "after array element")),
                }
            }
            Container::Object(Object { mut map, waiting, key }) => {
                self.members.push(Member { key, value });
                let mut waiting = waiting.saturating_add(1);
                match self.peek().ok_or(END)? {
                    b',' => {
                        self.bump();
                        if waiting >= MAX_WAITING {
                            self.settle(&mut map, waiting);
                            waiting = 0;
                        }
                        let key = self.key()?;
                        self.open.push(Container::Object(Object { map, waiting, key }));
                        Ok(None)
                    }
                    b'}' => {
                        self.bump();
                        self.settle(&mut map, waiting);
                        Ok(Some(Value::Object(map)))
                    }
                    other => Err(unexpected(other, "after object key:value pair")),
                }
            }
        }
    }

    /// Moves the last `count` members to the map of their object.
    fn settle(&mut self, map: &mut Map<String, Value>, count: usize) {
        if map.is_empty() {
            *map = Map::with_capacity(count);
        }
        let first = self.members.len().saturating_sub(count);
        for Member { key, value } in self.members.drain(first..) {
            match map.entry(key.text) {
                Entry::Vacant(entry) => {
                    entry.insert(value);
                }
                Entry::Occupied(mut entry) => {
                    self.duplicates.push((key.at, path(&self.open, entry.key())));
                    entry.insert(value);
                }
            }
        }
    }

    fn key(&mut self) -> Result<Key, String> {
        match self.peek().ok_or(END)? {
            b'"' => {}
            other => return Err(unexpected(other, KEY)),
        }
        let text = self.string()?;
        let at = self.at;
        match self.peek().ok_or(END)? {
            b':' => {
                self.bump();
                Ok(Key { text, at })
            }
            other => Err(unexpected(other, "after object key")),
        }
    }

    fn literal(&mut self, word: &'static str, value: Value) -> Result<Option<Value>, String> {
        for expected in word.bytes() {
            match self.byte() {
                None => return Err(END.to_owned()),
                Some(found) if found == expected => self.bump(),
                Some(found) => {
                    let expected = char::from(expected);
                    return Err(unexpected(found, &format!("in literal {word} (expecting '{expected}')")));
                }
            }
        }
        Ok(Some(value))
    }

    fn number(&mut self) -> Result<Value, String> {
        let start = self.at;
        if self.byte() == Some(b'-') {
            self.bump();
        }
        match self.byte().ok_or(END)? {
            b'0' => self.bump(),
            b'1'..=b'9' => self.digits(),
            other => return Err(unexpected(other, "in numeric literal")),
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

    fn some_digits(&mut self, place: &str) -> Result<(), String> {
        match self.byte().ok_or(END)? {
            b'0'..=b'9' => {
                self.digits();
                Ok(())
            }
            other => Err(unexpected(other, place)),
        }
    }

    fn string(&mut self) -> Result<String, String> {
        self.bump();
        let run = self.run();
        if self.byte() == Some(b'"') {
            self.bump();
            return Ok(text(run));
        }
        let mut out = run.to_vec();
        loop {
            match self.byte().ok_or(END)? {
                b'"' => {
                    self.bump();
                    return Ok(text(&out));
                }
                b'\\' => {
                    self.bump();
                    self.escape(&mut out)?;
                }
                control @ 0..=0x1f => return Err(unexpected(control, "in string literal")),
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

    fn escape(&mut self, out: &mut Vec<u8>) -> Result<(), String> {
        let byte = self.byte().ok_or(END)?;
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
            other => return Err(unexpected(other, "in string escape code")),
        };
        out.push(plain);
        Ok(())
    }

    fn code_point(&mut self) -> Result<char, String> {
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

    fn hex4(&mut self) -> Result<u16, String> {
        let mut value = 0_u16;
        for _ in 0..4 {
            let byte = self.byte().ok_or(END)?;
            let digit = char::from(byte).to_digit(16).and_then(|digit| u16::try_from(digit).ok());
            let digit = digit.ok_or_else(|| unexpected(byte, "in \\u hexadecimal character escape"))?;
            value = (value << 4) | digit;
            self.bump();
        }
        Ok(value)
    }

    /// The next byte that is no white space.
    fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.byte() {
            self.bump();
        }
        self.byte()
    }

    fn byte(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn bump(&mut self) {
        self.at = self.at.saturating_add(1);
    }
}

/// Of a member in the innermost of `open`: `metadata.labels.a`, `spec.containers[0].name`.
fn path(open: &[Container], key: &str) -> String {
    let mut path = String::new();
    for container in open {
        match container {
            Container::Array(items) => path.push_str(&format!("[{}]", items.len())),
            Container::Object(object) => join(&mut path, &object.key.text),
        }
    }
    join(&mut path, key);
    path
}

fn join(path: &mut String, key: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(key);
}

fn text(bytes: &[u8]) -> String {
    // Nearly all text is UTF-8, which is sooner found out than mended.
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => String::from_utf8_lossy(bytes).into_owned(),
    }
}

fn parsed_number(text: &str, whole: bool) -> Result<Value, String> {
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
        .ok_or_else(|| format!("json: cannot unmarshal number {text} into Go value of type float64"))
}

fn unexpected(byte: u8, place: &str) -> String {
    let shown = match byte {
        b'\'' => "'\\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        b'\\' => "'\\\\'".to_owned(),
        b'\n' => "'\\n'".to_owned(),
        b'\r' => "'\\r'".to_owned(),
        b'\t' => "'\\t'".to_owned(),
        0..=0x1f | 0x7f => format!("'\\x{byte:02x}'"),
        0x80..=0x9f => format!("'\\u{byte:04x}'"),
        other => format!("'{}'", char::from(other)),
    };
    format!("invalid character {shown} {place}")
}
