//! Writes the records of a gathering as a gzip-compressed tar archive.
//!
//! It decides the layout: flat paths, mode 0640, modification time = capture time, newest first. Two files are included even if the
//! size limits are reached, because they say what is missing: `insights-operator/gathers.json` and the remote configuration.
//! The records are in a [`Spool`]; [`super::store`] decides where the archive is written.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::collect::{Row, Verdict};
use super::remote::{self, Remote};
use super::spool::Spool;

/// The path of the file with the result of each gatherer.
pub const GATHERS: &str = "insights-operator/gathers.json";

/// The files of one archive.
#[derive(Debug)]
pub struct Archive {
    spool: Spool,
    /// The files that are always included, by path.
    always: BTreeMap<&'static str, String>,
    /// Original addresses with their stand-ins; empty without obfuscation.
    pub translation: BTreeMap<String, String>,
    newest: Timestamp,
}

/// Facts in `gathers.json` about the process that gathered.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessFacts {
    pub memory_bytes: u64,
    pub uptime: Duration,
}

impl Archive {
    /// Creates the archive of the records in `spool`, with the results `rows` and the remote configuration `remote`.
    ///
    /// # Errors
    /// When a record could not be written to disk.
    pub fn new(
        mut spool: Spool,
        rows: &[Row],
        facts: ProcessFacts,
        remote: &Remote,
        now: Timestamp,
    ) -> io::Result<Self> {
        spool.check()?;
        let newest = spool.records().map(|(_, captured)| captured).max().unwrap_or(now);
        let gathers = gathers(rows, facts, spool.obfuscates()).to_string();
        let always = [(GATHERS, gathers), (remote::PATH, remote.text())];
        let always = always.map(|(path, text)| (path, spool.obfuscated(text))).into();
        let translation = spool.take_table();
        Ok(Self { spool, always, translation, newest })
    }

    /// Returns the number of records, without the files that are always included.
    pub fn records(&self) -> usize {
        self.spool.len()
    }

    /// Returns the capture time of the newest record, after which the archive is named.
    pub fn newest(&self) -> Timestamp {
        self.newest
    }

    /// Writes the archive as gzip-compressed tar.
    ///
    /// # Errors
    /// The errors of `out`, and of the file with the records.
    pub fn write(&self, out: impl Write) -> io::Result<()> {
        let mut tar = tar::Builder::new(GzEncoder::new(out, Compression::default()));
        let mut files: Vec<_> = self.spool.records().collect();
        files.extend(self.always.keys().map(|path| (*path, self.newest)));
        files.sort_by(|(path, captured), (other, of_other)| {
            of_other.cmp(captured).then_with(|| path.cmp(other))
        });
        for (path, captured) in files {
            match self.spool.read(path) {
                Some((record, size)) => append(&mut tar, path, captured, record, size)?,
                None => {
                    let text = self.always.get(path).map(String::as_bytes).unwrap_or_default();
                    append(&mut tar, path, captured, text, text.len() as u64)?;
                }
            }
        }
        tar.into_inner()?.finish()?.flush()
    }
}

fn append(
    tar: &mut tar::Builder<impl Write>,
    path: &str,
    captured: Timestamp,
    content: impl Read,
    size: u64,
) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o640);
    header.set_size(size);
    header.set_mtime(u64::try_from(captured.as_second()).unwrap_or(0));
    header.set_entry_type(tar::EntryType::Regular);
    tar.append_data(&mut header, path, content)
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
