//! Splits the JSON text of a list into items while it arrives in chunks, holding one item at a time.
//!
//! It finds where items begin and end; whether they are valid JSON is checked by the caller. The text around the items is small and
//! is kept, because it has the token of the next page.

use serde::Deserialize;

/// The largest object in bytes: API servers accept 3 MiB, and stores half of that.
const MAX_ITEM: usize = 8 * 1024 * 1024;
/// The largest text around the items in bytes. The token of a page has some hundred bytes.
const MAX_REST: usize = 64 * 1024;
/// The deepest nesting of an item, that of serde_json.
const MAX_DEPTH: u32 = 130;
/// The nesting depth within the list of items.
const IN_ITEMS: u32 = 2;

#[derive(Default)]
pub(super) struct Items {
    /// The number of open brackets.
    depth: u32,
    in_text: bool,
    /// The next byte is escaped by a backslash.
    escaped: bool,
    in_items: bool,
    /// The last string that began at the depth of the list's own fields; at a bracket, it is the field's name.
    name: Vec<u8>,
    item: Vec<u8>,
    rest: Vec<u8>,
}

/// Why no further item can be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum ListError {
    #[error("an object of the list has more than {MAX_ITEM} bytes")]
    TooLargeItem,
    #[error("the list has more than {MAX_REST} bytes beside its items")]
    TooLargeRest,
    #[error("the list is nested too deeply")]
    TooDeep,
    #[error("the list has a bracket too many")]
    Unbalanced,
    #[error("the list broke off or is none: {0}")]
    NoList(serde_json::Error),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// The text around the items.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Rest {
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    #[serde(rename = "continue")]
    token: String,
}

impl Items {
    /// Consumes the front of `text`; returns how many bytes, and the item that ends there, if any.
    ///
    /// # Errors
    /// When the text is too large, or not a list.
    pub(super) fn take(&mut self, text: &[u8]) -> Result<(usize, Option<Vec<u8>>), ListError> {
        for (at, byte) in text.iter().enumerate() {
            let (was_in_items, was_deep) = (self.in_items, self.depth);
            self.step(*byte)?;
            if self.in_items && was_deep.max(self.depth) > IN_ITEMS {
                if self.item.len() == MAX_ITEM {
                    return Err(ListError::TooLargeItem);
                }
                self.item.push(*byte);
                if self.depth == IN_ITEMS {
                    return Ok((at + 1, Some(std::mem::take(&mut self.item))));
                }
            } else if !(was_in_items && self.in_items) {
                self.keep(*byte)?;
            }
        }
        Ok((text.len(), None))
    }

    fn step(&mut self, byte: u8) -> Result<(), ListError> {
        if self.in_text {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_text = false,
                _ if self.depth == 1 && self.name.len() < MAX_REST => self.name.push(byte),
                _ => {}
            }
            return Ok(());
        }
        match byte {
            b'"' => {
                self.in_text = true;
                if self.depth == 1 {
                    self.name.clear();
                }
            }
            b'{' | b'[' => {
                self.depth += 1;
                if byte == b'[' && self.depth == IN_ITEMS && self.name == b"items" {
                    self.in_items = true;
                }
                if self.depth > MAX_DEPTH {
                    return Err(ListError::TooDeep);
                }
            }
            b'}' | b']' => {
                self.depth = self.depth.checked_sub(1).ok_or(ListError::Unbalanced)?;
                if self.depth < IN_ITEMS {
                    self.in_items = false;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn keep(&mut self, byte: u8) -> Result<(), ListError> {
        if self.rest.len() == MAX_REST {
            return Err(ListError::TooLargeRest);
        }
        self.rest.push(byte);
        Ok(())
    }

    /// Returns the token of the next page, after the text has ended.
    ///
    /// # Errors
    /// When the text is incomplete, or not a list.
    pub(super) fn next_page(&self) -> Result<Option<String>, ListError> {
        let Rest { metadata } = serde_json::from_slice(&self.rest).map_err(ListError::NoList)?;
        Ok(Some(metadata.token).filter(|token| !token.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(text: &str, piece: usize) -> Result<(Vec<String>, Option<String>), String> {
        let (mut items, mut found) = (Items::default(), Vec::new());
        for mut piece in text.as_bytes().chunks(piece) {
            while !piece.is_empty() {
                let (length, item) = items.take(piece).map_err(|error| error.to_string())?;
                found.extend(item.map(|item| String::from_utf8(item).unwrap()));
                piece = &piece[length..];
            }
        }
        Ok((found, items.next_page().map_err(|error| error.to_string())?))
    }

    #[test]
    fn items_come_out_whole_however_the_text_is_cut() {
        let first = r#"{"metadata":{"name":"a \" ]}","items":[1,{}]},"items":[{"x":"\\"}]}"#;
        let text = format!(
            r#"{{"kind":"L","odd":["items"],"metadata":{{"continue":"t\"1","items":[]}}, "items" : [ {first} ,{{}}] ,"more":1}}"#
        );
        for piece in 1..=text.len() {
            let (found, next) = taken(&text, piece).unwrap();
            assert_eq!(found, [first, "{}"], "{piece}");
            assert_eq!(next.as_deref(), Some("t\"1"), "{piece}");
        }
        assert_eq!(taken(r#"{"items":null,"metadata":{"continue":""}}"#, 3), Ok((vec![], None)));
        assert_eq!(taken(r#"{"items":[]}"#, 3), Ok((vec![], None)));
    }

    #[test]
    fn what_is_no_list_is_refused_and_nothing_grows() {
        for text in [r#"{"items":[{}"#, "", "<html>", r#"{"a":1}}"#] {
            assert!(taken(text, 5).is_err(), "{text}");
        }
        let huge = format!(r#"{{"items":[{{"a":"{}"}}]}}"#, "x".repeat(MAX_ITEM));
        assert!(taken(&huge, 65_536).unwrap_err().contains("more than"));
        assert!(
            taken(&format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_REST)), 65_536).unwrap_err().contains("beside")
        );
        assert!(taken(&"[".repeat(200), 65_536).unwrap_err().contains("deeply"));
    }
}
