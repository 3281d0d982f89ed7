//! From outcomes to the files of one archive, and from these to a gzip-compressed tar stream.
//!
//! Decides the layout: flat paths, mode 0640, modification time = capture time, newest first; obfuscation per
//! record; the size limit; and `insights-operator/gathers.json`, which is kept even when the limit is reached
//! because it says what is missing. Where the bytes go is [`super::store`]'s business.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::collect::{Outcome, Verdict};
use super::obfuscate::Obfuscator;
use super::record::Record;

/// Uncompressed bytes of records that one archive may hold.
pub const MAX_RECORDS: usize = 24 * 1024 * 1024;
/// Path of the file that tells how each gatherer fared.
pub const GATHERS: &str = "insights-operator/gathers.json";

/// The files of one archive.
#[derive(Debug)]
pub struct Archive {
    files: Vec<File>,
    /// How each gatherer fared, assembling included: a dropped record is an error of its gatherer.
    pub rows: Vec<Row>,
    /// Original address to stand-in; empty without obfuscation.
    pub translation: BTreeMap<String, String>,
    newest: Timestamp,
}

#[derive(Debug)]
struct File {
    path: String,
    text: String,
    captured: Timestamp,
}

/// How one gatherer fared.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub id: String,
    pub duration: Duration,
    pub verdict: Verdict,
    pub warnings: Vec<String>,
}

/// What `gathers.json` says about the process that gathered.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessFacts {
    pub memory_bytes: u64,
    pub uptime: Duration,
}

impl Archive {
    /// Puts the records of `outcomes` together, through `obfuscator` where there is one.
    pub fn assemble(
        outcomes: Vec<Outcome>,
        facts: ProcessFacts,
        obfuscator: Option<Obfuscator>,
        now: Timestamp,
    ) -> Self {
        let mut assembly = Assembly { files: BTreeMap::new(), size: 0, obfuscator };
        let rows: Vec<_> = outcomes.into_iter().map(|outcome| assembly.add(outcome)).collect();
        let Assembly { files, size: _, mut obfuscator } = assembly;

        let newest = files.values().map(|(_, captured)| *captured).max().unwrap_or(now);
        let mut gathers = gathers(&rows, facts, obfuscator.is_some()).to_string();
        if let Some(obfuscator) = &mut obfuscator {
            gathers = obfuscator.data(&gathers);
        }
        let mut files: Vec<_> =
            files.into_iter().map(|(path, (text, captured))| File { path, text, captured }).collect();
        files.push(File { path: GATHERS.to_owned(), text: gathers, captured: newest });
        files.sort_by(|a, b| b.captured.cmp(&a.captured).then_with(|| a.path.cmp(&b.path)));
        let translation = obfuscator.map(Obfuscator::into_table).unwrap_or_default();
        Self { files, rows, translation, newest }
    }

    /// Records kept, `gathers.json` not counted.
    pub fn records(&self) -> usize {
        self.files.len().saturating_sub(1)
    }

    /// Capture time of the newest record; the archive is named after it.
    pub fn newest(&self) -> Timestamp {
        self.newest
    }

    /// Writes the archive as gzip-compressed tar.
    ///
    /// # Errors
    /// Whatever `out` fails with.
    pub fn write(&self, out: impl Write) -> io::Result<()> {
        let mut tar = tar::Builder::new(GzEncoder::new(out, Compression::default()));
        for File { path, text, captured } in &self.files {
            let mut header = tar::Header::new_gnu();
            header.set_mode(0o640);
            header.set_size(text.len() as u64);
            header.set_mtime(u64::try_from(captured.as_second()).unwrap_or(0));
            header.set_entry_type(tar::EntryType::Regular);
            tar.append_data(&mut header, path, text.as_bytes())?;
        }
        tar.into_inner()?.finish()?.flush()
    }
}

struct Assembly {
    files: BTreeMap<String, (String, Timestamp)>,
    size: usize,
    obfuscator: Option<Obfuscator>,
}

impl Assembly {
    fn add(&mut self, outcome: Outcome) -> Row {
        let Outcome { id, duration, verdict, records, mut warnings } = outcome;
        let total = records.len();
        let mut dropped = 0;
        let mut errors = Vec::new();
        for record in &records {
            match self.insert(record) {
                Insert::New => {}
                Insert::Same(path) => {
                    warnings.push(format!("record {path} was stored twice with the same content"))
                }
                Insert::Overwrote(path) => {
                    errors.push(format!("record {path} overwrote another of that name"))
                }
                Insert::TooLarge(path, size) => {
                    dropped += 1;
                    errors.push(format!(
                        "record {path} ({size} bytes) exceeds the archive size limit {MAX_RECORDS}"
                    ));
                }
            }
        }
        Row { id, duration, verdict: worse(verdict, total - dropped, errors), warnings }
    }

    fn insert(&mut self, record: &Record) -> Insert {
        let (path, text) = match &mut self.obfuscator {
            Some(obfuscator) => (obfuscator.path(&record.file_name()), obfuscator.data(&record.text())),
            None => (record.file_name(), record.text()),
        };
        let replaced = self.files.get(&path).map_or(0, |(old, _)| old.len());
        let size = self.size - replaced + text.len();
        if size > MAX_RECORDS {
            return Insert::TooLarge(path, text.len());
        }
        self.size = size;
        let same = self.files.get(&path).map(|(old, _)| *old == text);
        self.files.insert(path.clone(), (text, record.captured()));
        match same {
            None => Insert::New,
            Some(true) => Insert::Same(path),
            Some(false) => Insert::Overwrote(path),
        }
    }
}

enum Insert {
    New,
    Same(String),
    Overwrote(String),
    TooLarge(String, usize),
}

fn worse(verdict: Verdict, records: usize, more: Vec<String>) -> Verdict {
    if more.is_empty() {
        return verdict;
    }
    match verdict {
        Verdict::Gathered { records: _ } => Verdict::GatheredWithErrors { records, errors: more },
        Verdict::GatheredWithErrors { records: _, mut errors } => {
            errors.extend(more);
            Verdict::GatheredWithErrors { records, errors }
        }
        Verdict::NoData(_) | Verdict::Failed(_) | Verdict::Panicked(_) => verdict,
    }
}

fn gathers(rows: &[Row], facts: ProcessFacts, obfuscated: bool) -> Value {
    let ProcessFacts { memory_bytes, uptime } = facts;
    json!({
        "status_reports": rows.iter().map(status_report).collect::<Vec<_>>(),
        "container_memory_bytes_usage": memory_bytes,
        "uptime_seconds": uptime.as_secs(),
        "is_global_obfuscation_enabled": obfuscated,
    })
}

fn status_report(row: &Row) -> Value {
    let Row { id, duration, verdict, warnings } = row;
    let (records, errors, panic) = match verdict {
        Verdict::Gathered { records } => (*records, Vec::new(), Value::Null),
        Verdict::GatheredWithErrors { records, errors } => (*records, errors.clone(), Value::Null),
        Verdict::NoData(reason) | Verdict::Failed(reason) => (0, vec![reason.clone()], Value::Null),
        Verdict::Panicked(message) => (0, Vec::new(), Value::String(message.clone())),
    };
    json!({
        "name": id,
        "duration_in_ms": u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
        "records_count": records,
        "errors": errors,
        "warnings": warnings,
        "panic": panic,
    })
}
