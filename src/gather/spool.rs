//! The records of an archive under construction: obfuscated, in one file on disk, in the order in which they came. In memory is where
//! each lies, and nothing of what it says.
//!
//! The limits of an archive are held here, so that neither the file nor the list of its records grows beyond them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use jiff::Timestamp;

use super::obfuscate::Obfuscator;
use super::record::Record;

/// Uncompressed bytes of records that one archive may hold.
pub const MAX_RECORDS: usize = 24 * 1024 * 1024;
/// Records that one archive may hold: each is a place in memory and half a kilobyte of the archive, however little it says.
pub const MAX_FILES: usize = 50_000;

#[derive(Debug)]
pub struct Spool {
    file: File,
    /// Bytes written.
    length: usize,
    entries: BTreeMap<String, Entry>,
    obfuscator: Option<Obfuscator>,
    /// The first write that failed; what was put here since is not complete.
    broken: Option<io::ErrorKind>,
}

/// Where a record lies.
#[derive(Clone, Copy, Debug)]
struct Entry {
    offset: usize,
    length: usize,
    captured: Timestamp,
}

/// What became of a record, by its path in the archive.
#[derive(Debug, PartialEq)]
pub enum Kept {
    New,
    /// In the place of one that says the same.
    Same(String),
    Overwrote(String),
    /// Left out, and why.
    TooLarge(String),
    /// The spool is closed already.
    Late,
}

impl Spool {
    /// An empty spool in `file`, which is read and written by nobody else.
    pub fn new(file: File, obfuscator: Option<Obfuscator>) -> Self {
        Self { file, length: 0, entries: BTreeMap::new(), obfuscator, broken: None }
    }

    /// Puts a record on disk.
    ///
    /// # Errors
    /// Whatever the file fails with; the spool cannot become an archive then.
    pub fn keep(&mut self, record: &Record) -> io::Result<Kept> {
        let path =
            self.obfuscator.as_ref().map_or_else(|| record.file_name(), |o| o.path(&record.file_name()));
        let text = record.text();
        // Obfuscation that makes a text longer does not make one of too many bytes fit.
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

    /// What all records say hidden in `text` as well.
    pub(super) fn obfuscated(&mut self, text: String) -> String {
        match &mut self.obfuscator {
            Some(obfuscator) => obfuscator.data(&text),
            None => text,
        }
    }

    pub(super) fn obfuscates(&self) -> bool {
        self.obfuscator.is_some()
    }

    /// Original address to stand-in, for the last time.
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

    /// Path and capture time of each record, by path.
    pub(super) fn records(&self) -> impl Iterator<Item = (&str, Timestamp)> {
        self.entries.iter().map(|(path, entry)| (path.as_str(), entry.captured))
    }

    /// The record at `path` and how long it is.
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

/// A part of the file.
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
