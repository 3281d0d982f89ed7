//! Finds PEM blocks as Go's `encoding/pem`: other text around them is ignored, and an invalid block is skipped.

use super::json;

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const DASHES: &str = "-----";

/// A decoded block.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Block {
    /// Its label: `CERTIFICATE`.
    pub kind: String,
    /// Whether headers (`name: value`) precede the contents.
    pub has_headers: bool,
    /// The decoded contents.
    pub bytes: Vec<u8>,
}

/// Returns the first block, and the text after it.
///
/// ```
/// use admit_apimachinery::go::pem;
///
/// let (block, rest) = pem::first("a\n-----BEGIN A-----\nYWJj\n-----END A-----\nb").unwrap();
/// assert_eq!((block.kind.as_str(), block.bytes.as_slice(), rest), ("A", b"abc".as_slice(), "b"));
/// ```
#[must_use]
pub fn first(text: &str) -> Option<(Block, &str)> {
    let mut lines = text;
    while !lines.is_empty() {
        let (line, rest) = split_line(lines);
        let kind = line.strip_prefix(BEGIN).and_then(|line| line.trim_end().strip_suffix(DASHES));
        if let Some(kind) = kind
            && let Some(found) = body(kind, rest)
        {
            return Some(found);
        }
        lines = rest;
    }
    None
}

fn split_line(text: &str) -> (&str, &str) {
    text.split_once('\n').unwrap_or((text, ""))
}

/// Parses the block of `kind` at the beginning of `text`, if it has an end before another block begins.
fn body<'t>(kind: &str, text: &'t str) -> Option<(Block, &'t str)> {
    let (mut lines, mut encoded, mut has_headers) = (text, String::new(), false);
    while !lines.is_empty() {
        let (line, rest) = split_line(lines);
        lines = rest;
        if let Some(end) = line.strip_prefix(END) {
            let is_own = end.trim_end().strip_suffix(DASHES) == Some(kind);
            let bytes = json::bytes(&encoded).ok().filter(|_| is_own)?;
            return Some((Block { kind: kind.to_owned(), has_headers, bytes }, lines));
        }
        if line.contains(':') && encoded.is_empty() {
            has_headers = true;
        } else if line.starts_with(BEGIN) {
            return None;
        } else {
            encoded.extend(line.chars().filter(|c| !c.is_ascii_whitespace()));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_blocks_are_passed_over() {
        let text = "x\n-----BEGIN A-----\nYWJj\n-----END B-----\n-----BEGIN C-----\nk: v\n\nYW\nJj\n-----END C-----\nrest";
        let (block, rest) = first(text).expect("a block");
        assert_eq!(block, Block { kind: "C".to_owned(), has_headers: true, bytes: b"abc".to_vec() });
        assert_eq!(rest, "rest");
        assert_eq!(first("-----BEGIN A-----\nYWJj"), None);
    }
}
