//! Takes the items of a list out of its JSON text as the text comes, however it is cut, and holds one item at a time.
//!
//! It finds where items begin and end; whether they are JSON is seen by who reads them. What stands around the items is small and
//! is kept, because it says where the next page begins.

use serde::Deserialize;

/// Largest object: API servers take 3 MiB, and stores half of it.
const MAX_ITEM: usize = 8 * 1024 * 1024;
/// Largest text around the items. A token of a page is some hundred bytes.
const MAX_REST: usize = 64 * 1024;
/// Deepest nesting of an item, as deep as serde_json reads.
const MAX_DEPTH: u32 = 130;
/// Depth inside of the brackets of the list of items.
const IN_ITEMS: u32 = 2;

#[derive(Default)]
pub(super) struct Items {
    /// Brackets open.
    depth: u32,
    in_text: bool,
    /// The next byte is no quotation mark, whatever it is.
    escaped: bool,
    in_items: bool,
    /// The newest text that began at the depth of the list's own fields: at a bracket, the field's name.
    name: Vec<u8>,
    item: Vec<u8>,
    rest: Vec<u8>,
}

/// What stands around the items.
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
    /// Takes from the front of `text`: how much was taken, and the item that ends there.
    ///
    /// # Errors
    /// Text that is too large or no list.
    pub(super) fn take(&mut self, text: &[u8]) -> Result<(usize, Option<Vec<u8>>), String> {
        for (at, byte) in text.iter().enumerate() {
            let (was_in_items, was_deep) = (self.in_items, self.depth);
            self.step(*byte)?;
            if self.in_items && was_deep.max(self.depth) > IN_ITEMS {
                if self.item.len() == MAX_ITEM {
                    return Err(format!("an object of the list has more than {MAX_ITEM} bytes"));
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

    fn step(&mut self, byte: u8) -> Result<(), String> {
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
                    return Err("the list is nested too deeply".to_owned());
                }
            }
            b'}' | b']' => {
                self.depth = self.depth.checked_sub(1).ok_or("the list has a bracket too many")?;
                if self.depth < IN_ITEMS {
                    self.in_items = false;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn keep(&mut self, byte: u8) -> Result<(), String> {
        if self.rest.len() == MAX_REST {
            return Err(format!("the list has more than {MAX_REST} bytes beside its items"));
        }
        self.rest.push(byte);
        Ok(())
    }

    /// Where the list goes on, once its text has ended.
    ///
    /// # Errors
    /// When it has not, or was no list.
    pub(super) fn next_page(&self) -> Result<Option<String>, String> {
        let Rest { metadata } = serde_json::from_slice(&self.rest)
            .map_err(|error| format!("the list broke off or is none: {error}"))?;
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
                let (length, item) = items.take(piece)?;
                found.extend(item.map(|item| String::from_utf8(item).unwrap()));
                piece = &piece[length..];
            }
        }
        Ok((found, items.next_page()?))
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
