//! Holds the records of an archive under construction: obfuscated, in one file on disk, in the order of arrival. Only their
//! positions are in memory.
//!
//! It enforces the limits of an archive, so that neither the file nor the index grows beyond them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use jiff::Timestamp;

use super::obfuscate::Obfuscator;
use super::record::Record;

/// The most bytes of records in one archive, uncompressed.
pub const MAX_RECORDS: usize = 24 * 1024 * 1024;
/// The most records in one archive: each takes memory, and half a kilobyte of the archive, however short it is.
pub const MAX_FILES: usize = 50_000;

#[derive(Debug)]
pub struct Spool {
    file: File,
    /// The number of bytes written.
    length: usize,
    entries: BTreeMap<String, Entry>,
    obfuscator: Option<Obfuscator>,
    /// The first failed write; the file is incomplete since then.
    broken: Option<io::ErrorKind>,
}

/// The position of a record.
#[derive(Clone, Copy, Debug)]
struct Entry {
    offset: usize,
    length: usize,
    captured: Timestamp,
}

/// What happened to a record, with its path in the archive.
#[derive(Debug, PartialEq)]
pub enum Kept {
    New,
    /// It equals an earlier record of the same path.
    Same(String),
    Overwrote(String),
    /// It was left out, with the reason.
    TooLarge(String),
    /// The spool was closed before.
    Late,
}

impl Spool {
    /// Creates an empty spool in `file`, which nobody else reads or writes.
    pub fn new(file: File, obfuscator: Option<Obfuscator>) -> Self {
        Self { file, length: 0, entries: BTreeMap::new(), obfuscator, broken: None }
    }

    /// Writes a record to disk.
    ///
    /// # Errors
    /// The errors of the file; the spool cannot become an archive then.
    pub fn keep(&mut self, record: &Record) -> io::Result<Kept> {
        let path =
            self.obfuscator.as_ref().map_or_else(|| record.file_name(), |o| o.path(&record.file_name()));
        let text = record.text();
        // A text that is too long before obfuscation is rejected before that work is done.
        if self.length.saturating_add(text.len()) > MAX_RECORDS {
            return Ok(too_large(&path, text.len()));
        }
        let text = self.obfuscated(text);
        if self.length.saturating_add(text.len()) > MAX_RECORDS {
            return Ok(too_large(&path, text.len()));
        }
        let old = self.entries.get(&path).copied();
        if old.is_none() && self.entries.len() == MAX_FILES {
            return Ok(Kept::TooLarge(format!(
                "record {path} is beyond the {MAX_FILES} that an archive holds"
            )));
        }
        let same = old.map(|old| self.says(old, &text)).transpose();
        let written = same.and_then(|same| self.write(&text).map(|entry| (same, entry)));
        let (same, (offset, length)) = written.inspect_err(|error| self.broken = Some(error.kind()))?;
        self.entries.insert(path.clone(), Entry { offset, length, captured: record.captured() });
        Ok(match same {
            None => Kept::New,
            Some(true) => Kept::Same(path),
            Some(false) => Kept::Overwrote(path),
        })
    }

    /// Obfuscates `text` like the records.
    pub(super) fn obfuscated(&mut self, text: String) -> String {
        match &mut self.obfuscator {
            Some(obfuscator) => obfuscator.data(&text),
            None => text,
        }
    }

    pub(super) fn obfuscates(&self) -> bool {
        self.obfuscator.is_some()
    }

    /// Returns the original addresses with their stand-ins, and ends obfuscation.
    pub(super) fn take_table(&mut self) -> BTreeMap<String, String> {
        self.obfuscator.take().map(Obfuscator::into_table).unwrap_or_default()
    }

    /// # Errors
    /// When a record could not be written.
    pub(super) fn check(&self) -> io::Result<()> {
        self.broken.map_or(Ok(()), |kind| Err(kind.into()))
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns path and capture time of each record, sorted by path.
    pub(super) fn records(&self) -> impl Iterator<Item = (&str, Timestamp)> {
        self.entries.iter().map(|(path, entry)| (path.as_str(), entry.captured))
    }

    /// Returns a reader of the record at `path`, and its length.
    pub(super) fn read(&self, path: &str) -> Option<(Section<'_>, u64)> {
        let Entry { offset, length, captured: _ } = *self.entries.get(path)?;
        Some((Section { file: &self.file, offset: offset as u64, left: length }, length as u64))
    }

    fn says(&self, entry: Entry, text: &str) -> io::Result<bool> {
        let mut said = vec![0; entry.length];
        self.file.read_exact_at(&mut said, entry.offset as u64)?;
        Ok(said == text.as_bytes())
    }

    fn write(&mut self, text: &str) -> io::Result<(usize, usize)> {
        let offset = self.length;
        self.file.write_all_at(text.as_bytes(), offset as u64)?;
        self.length += text.len();
        Ok((offset, text.len()))
    }
}

fn too_large(path: &str, size: usize) -> Kept {
    Kept::TooLarge(format!("record {path} ({size} bytes) exceeds the archive size limit {MAX_RECORDS}"))
}

/// Reads a section of the file.
#[derive(Debug)]
pub(super) struct Section<'f> {
    file: &'f File,
    offset: u64,
    left: usize,
}

impl Read for Section<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = buffer.len().min(self.left);
        let read = self.file.read_at(buffer.get_mut(..wanted).unwrap_or_default(), self.offset)?;
        self.offset += read as u64;
        self.left -= read;
        Ok(read)
    }
}
