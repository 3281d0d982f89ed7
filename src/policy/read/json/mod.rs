//! Parses JSON as an API server does: with the error texts of Go's `encoding/json` (clients print them), duplicate
//! members recorded with their paths, and bounds on nesting and on the memory of values. Iterative, so that no input
//! can exhaust the stack.
//!
//! A number without fraction and exponent is an integer if it fits 64 bits, `-0` is the integer zero; anything else is a double. The
//! meaning of values is left to callers.

mod error;
mod repeats;
mod scalar;

use std::fmt::Write as _;

use serde_json::map::Entry;
use serde_json::{Map, Value};

use admit_apimachinery::bounded::push_step;
use admit_apimachinery::weight::{self, Budget};

pub use self::error::{JsonError, SyntaxError};
pub use self::repeats::Repeats;

/// Deepest nesting that is read: everything behind the parser may then walk values recursively.
pub(crate) const MAX_DEPTH: usize = 512;

/// A parsed document.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    pub value: Value,
    /// Duplicate members of objects. The last value counts.
    pub duplicates: Repeats,
}

/// Parses exactly one value with white space around it. Invalid UTF-8 and lone surrogates become U+FFFD.
///
/// # Errors
/// The first syntax error, or values that take more memory than allowed for a text of this length.
///
/// ```
/// use admit_policy::json;
///
/// let read = json::parse(br#"{"a": 1, "a": 2.0}"#)?;
/// assert_eq!(read.value, serde_json::json!({"a": 2.0}));
/// let error = json::parse(b"{,}").unwrap_err();
/// assert_eq!(error.to_string(), "invalid character ',' looking for beginning of object key string");
/// # Ok::<(), json::JsonError>(())
/// ```
pub fn parse(bytes: &[u8]) -> Result<Document, JsonError> {
    let mut parser = Parser::of(bytes, Budget::of_text(bytes.len()), MAX_DEPTH);
    let value = parser.document()?;
    Ok(Document { value, duplicates: parser.repeats.in_order() })
}

/// Parses text that this program has written itself, without limits on depth and memory: whatever could be built can be read.
///
/// # Errors
/// If the text is damaged.
///
/// Otherwise as [`parse`], which has an example.
///
/// ```
/// use admit_policy::json;
///
/// assert_eq!(json::reread(b"[1]")?, serde_json::json!([1]));
/// # Ok::<(), json::JsonError>(())
/// ```
pub fn reread(bytes: &[u8]) -> Result<Value, JsonError> {
    Parser::of(bytes, Budget::UNLIMITED, usize::MAX).document()
}

struct Parser<'b> {
    bytes: &'b [u8],
    at: usize,
    open: Vec<Container>,
    /// Members of all open objects that are not yet in their maps, those of the innermost last.
    members: Vec<Member>,
    /// Items of all open lists that are not yet in them, those of the innermost last.
    items: Vec<Value>,
    repeats: Repeats,
    /// Spent on a value before it is kept.
    budget: Budget,
    /// So many containers may be open.
    deepest: usize,
}

enum Container {
    Array(List),
    Object(Object),
}

/// An open list. As with objects, its items are kept in the parser until it is closed: most lists are short, and spare capacity would
/// be most of the memory of many values.
#[derive(Default)]
struct List {
    items: Vec<Value>,
    waiting: usize,
}

/// An open object. Its members are kept in the parser until it is closed, so that its map is created once, with the right size; one
/// with very many members moves them to its map in between.
struct Object {
    map: Map<String, Value>,
    waiting: usize,
    key: Key,
}

struct Member {
    key: Key,
    value: Value,
}

/// The name of a member, and the offset of its end.
struct Key {
    text: String,
    at: usize,
}

/// Members of one object, or items of one list, that may wait.
const MAX_WAITING: usize = 64;

const VALUE: &str = "looking for beginning of value";
const KEY: &str = "looking for beginning of object key string";

impl<'b> Parser<'b> {
    fn of(bytes: &'b [u8], budget: Budget, deepest: usize) -> Self {
        let repeats = Repeats::default();
        let (open, members, items) = (Vec::new(), Vec::new(), Vec::new());
        Self { bytes, at: 0, open, members, items, repeats, budget, deepest }
    }

    fn document(&mut self) -> Result<Value, JsonError> {
        loop {
            // A value begins here: a scalar, an empty container, or a container that is entered.
            let Some(mut value) = self.value()? else { continue };
            // A finished value goes into the container around it, which may finish that one in turn.
            loop {
                let Some(container) = self.open.pop() else {
                    return match self.peek() {
                        None => Ok(value),
                        Some(byte) => Err(SyntaxError::at(byte, "after top-level value").into()),
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
    fn value(&mut self) -> Result<Option<Value>, JsonError> {
        let byte = self.peek().ok_or(SyntaxError::End)?;
        let value = match byte {
            b'{' => self.enter_object()?,
            b'[' => self.enter_array()?,
            b'"' => {
                let text = self.string()?;
                self.budget.take(weight::of_text(text.len()))?;
                Some(Value::String(text))
            }
            b'-' | b'0'..=b'9' => Some(self.number()?),
            b't' => self.literal("true", Value::Bool(true))?,
            b'f' => self.literal("false", Value::Bool(false))?,
            b'n' => self.literal("null", Value::Null)?,
            other => return Err(SyntaxError::at(other, VALUE).into()),
        };
        Ok(value)
    }

    fn enter_object(&mut self) -> Result<Option<Value>, JsonError> {
        self.deeper(b'{')?;
        match self.peek().ok_or(SyntaxError::End)? {
            b'}' => {
                self.bump();
                Ok(Some(Value::Object(Map::new())))
            }
            _ => {
                self.budget.take(weight::of_map())?;
                let key = self.key()?;
                self.open.push(Container::Object(Object { map: Map::new(), waiting: 0, key }));
                Ok(None)
            }
        }
    }

    fn enter_array(&mut self) -> Result<Option<Value>, JsonError> {
        self.deeper(b'[')?;
        if self.peek().ok_or(SyntaxError::End)? == b']' {
            self.bump();
            return Ok(Some(Value::Array(Vec::new())));
        }
        self.open.push(Container::Array(List::default()));
        Ok(None)
    }

    fn deeper(&mut self, byte: u8) -> Result<(), SyntaxError> {
        if self.open.len() >= self.deepest {
            return Err(SyntaxError::at(byte, "exceeded max depth"));
        }
        self.bump();
        Ok(())
    }

    /// Adds `value` to `container`; answers the container's value once it is closed.
    fn put(&mut self, container: Container, value: Value) -> Result<Option<Value>, JsonError> {
        match container {
            Container::Array(list) => self.put_item(list, value),
            Container::Object(object) => self.put_member(object, value),
        }
    }

    fn put_item(
        &mut self,
        List { mut items, waiting }: List,
        value: Value,
    ) -> Result<Option<Value>, JsonError> {
        self.budget.take(weight::of_item())?;
        self.items.push(value);
        let mut waiting = waiting.saturating_add(1);
        let first = self.items.len().saturating_sub(waiting);
        match self.peek().ok_or(SyntaxError::End)? {
            b',' => {
                self.bump();
                if waiting >= MAX_WAITING {
                    items.extend(self.items.drain(first..));
                    waiting = 0;
                }
                self.open.push(Container::Array(List { items, waiting }));
                Ok(None)
            }
            b']' => {
                self.bump();
                items.reserve_exact(waiting);
                items.extend(self.items.drain(first..));
                items.shrink_to_fit();
                Ok(Some(Value::Array(items)))
            }
            other => Err(SyntaxError::at(other, "after array element").into()),
        }
    }

    fn put_member(&mut self, object: Object, value: Value) -> Result<Option<Value>, JsonError> {
        let Object { mut map, waiting, key } = object;
        self.budget.take(weight::of_member(&key.text))?;
        self.members.push(Member { key, value });
        let mut waiting = waiting.saturating_add(1);
        match self.peek().ok_or(SyntaxError::End)? {
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
            other => Err(SyntaxError::at(other, "after object key:value pair").into()),
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
                    self.repeats.note(key.at, outermost(&self.open), || path(&self.open, entry.key()));
                    let again = weight::of_member(entry.key());
                    let before = entry.insert(value);
                    self.budget.give_back(again.saturating_add(weight::of(&before)));
                }
            }
        }
    }

    fn key(&mut self) -> Result<Key, SyntaxError> {
        match self.peek().ok_or(SyntaxError::End)? {
            b'"' => {}
            other => return Err(SyntaxError::at(other, KEY)),
        }
        let text = self.string()?;
        let at = self.at;
        match self.peek().ok_or(SyntaxError::End)? {
            b':' => {
                self.bump();
                Ok(Key { text, at })
            }
            other => Err(SyntaxError::at(other, "after object key")),
        }
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

/// Returns the path of a member of the innermost open container: `metadata.labels.a`, `spec.containers[0].name`.
fn path(open: &[Container], key: &str) -> String {
    let mut path = String::new();
    for container in open {
        match container {
            Container::Array(list) => {
                // Writing to a String cannot fail.
                let _ = write!(path, "[{}]", list.items.len().saturating_add(list.waiting));
            }
            Container::Object(object) => join(&mut path, &object.key.text),
        }
    }
    join(&mut path, key);
    path
}

/// Returns the names of the two outermost open members; empty if there is none, or for a list.
fn outermost(open: &[Container]) -> [&str; 2] {
    let name = |depth: usize| match open.get(depth) {
        Some(Container::Object(object)) => object.key.text.as_str(),
        Some(Container::Array(_)) | None => "",
    };
    [name(0), name(1)]
}

fn join(path: &mut String, key: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    push_step(path, key);
}
