//! Detects the form of files, and processes their text in chunks.

use std::io::{self, Read, Write};

use crate::gather::obfuscate::replace::Replacer;

/// How many bytes are read to detect the form of a file.
const HEAD: usize = 8 * 1024;
/// The size of a chunk in bytes.
const CHUNK: usize = 1024 * 1024;

/// The forms of files that can be inspected.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Form {
    Text,
    Gzip,
}

/// The first bytes of a file.
pub(super) struct Head(Vec<u8>);

impl Head {
    pub(super) fn read(from: &mut impl Read) -> io::Result<Self> {
        let mut head = Vec::with_capacity(HEAD);
        from.take(HEAD as u64).read_to_end(&mut head)?;
        Ok(Self(head))
    }

    /// Returns the form of the file, or why it cannot be inspected.
    pub(super) fn form(&self) -> Result<Form, &'static str> {
        let begins = |magic: &[u8]| self.0.starts_with(magic);
        let tar = self.0.get(257..262) == Some(b"ustar");
        let archives: [&[u8]; 5] =
            [b"PK\x03\x04", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"BZh", b"7z\xbc\xaf\x27\x1c"];
        if begins(b"\x1f\x8b") {
            Ok(Form::Gzip)
        } else if tar || archives.iter().any(|magic| begins(magic)) {
            Err("an archive, which is not looked into")
        } else if self.0.contains(&0) {
            Err("no text, which is not looked into")
        } else {
            Ok(Form::Text)
        }
    }
}

/// Copies `from` to `to` with the replacements of `replacer`. Returns the read error that ended it early; all before was written.
///
/// # Errors
/// The errors of `to`.
pub(super) fn rewrite(
    mut from: impl Read,
    to: &mut impl Write,
    replacer: &mut Replacer,
) -> io::Result<Option<io::Error>> {
    let mut text = Vec::new();
    loop {
        let before = text.len();
        let room = CHUNK.saturating_sub(before).max(CHUNK / 4) as u64;
        let read = from.by_ref().take(room).read_to_end(&mut text);
        let ended = match &read {
            Ok(0) | Err(_) => true,
            Ok(_) => false,
        };
        let rest = if ended { Vec::new() } else { text.split_off(seam(&text)) };
        to.write_all(&replacer.contents(text))?;
        text = rest;
        if ended {
            return Ok(read.err());
        }
    }
}

/// Returns where `text` can be cut without cutting a match: after a line, or else after a character that is not part of an address,
/// domain or word, or else at its end.
fn seam(text: &[u8]) -> usize {
    let behind = |at: usize| at + 1;
    let line = text.iter().rposition(|byte| *byte == b'\n').map(behind);
    let word = || {
        let ends = |byte: &u8| byte.is_ascii_whitespace() || b",;\"'{}()<>=".contains(byte);
        text.iter().rposition(ends).map(behind)
    };
    line.or_else(word).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gather::obfuscate::rules::Ruleset;

    fn rewritten(text: &[u8]) -> Vec<u8> {
        let mut replacer = Replacer::new(&Ruleset::usual().replace, &[]).unwrap();
        let mut out = Vec::new();
        assert!(rewrite(text, &mut out, &mut replacer).unwrap().is_none());
        out
    }

    /// Addresses at every position relative to the chunks, with and without lines.
    #[test]
    fn no_address_is_cut_in_two() {
        for separator in ["\n", ","] {
            for shift in [0, 1, 6] {
                let unit = format!("10.0.0.1{separator}");
                let text = "a".repeat(shift) + separator + &unit.repeat(CHUNK / unit.len() + 10);
                let out = rewritten(text.as_bytes());
                assert!(!out.windows(5).any(|bytes| bytes == b"0.0.1"), "{shift}");
            }
        }
        assert_eq!(rewritten(b""), b"");
        assert_eq!(rewritten(b"x 10.0.0.1"), b"x x-ipv4-0000000001-x");
        let long = "b".repeat(3 * CHUNK);
        assert_eq!(rewritten(long.as_bytes()), long.as_bytes());
    }

    #[test]
    fn what_is_read_until_it_breaks_off_is_written() {
        struct Broken(bool);
        impl Read for Broken {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                if std::mem::replace(&mut self.0, true) {
                    return Err(io::Error::other("broken"));
                }
                buffer[..3].copy_from_slice(b"abc");
                Ok(3)
            }
        }
        let mut replacer = Replacer::new(&[], &[]).unwrap();
        let mut out = Vec::new();
        let broken = rewrite(Broken(false), &mut out, &mut replacer).unwrap().unwrap();
        assert_eq!((out.as_slice(), broken.to_string()), (b"abc".as_slice(), "broken".to_owned()));
    }
}
