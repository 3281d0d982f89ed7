//! Finds recorded answers of a real kube-apiserver, as corpora: folders of rows.
//!
//! Those that were recorded for this project are in `tests/recorded`, one archive each, so that a clone can be tested.
//! Those whose questions come from others are beside the project, or in the folder `ADMIT_SHARED`, and may be absent. A corpus
//! that is in both places is read beside the project, where it may be newer.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use flate2::read::GzDecoder;
use tar::Archive;

use crate::{Need, skip};

/// Corpora that are never in `tests/recorded`.
pub const FOREIGN: &[&str] = &["cel-spec", "gatekeeper-cel", "openshift-api", "ratcheting"];

/// One folder of recorded answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corpus {
    pub name: String,
    pub folder: PathBuf,
}

/// Returns all available corpora by name.
///
/// # Errors
/// If an archive cannot be unpacked.
pub fn corpora() -> io::Result<Vec<Corpus>> {
    let mut found = BTreeMap::new();
    for path in entries(&archives())? {
        if let Some(name) =
            path.file_name().and_then(OsStr::to_str).and_then(|name| name.strip_suffix(ENDING))
        {
            found.insert(name.to_owned(), None);
        }
    }
    for path in entries(&beside())? {
        if let Some(name) = path.file_name().and_then(OsStr::to_str).filter(|_| path.is_dir()) {
            found.insert(name.to_owned(), Some(path.clone()));
        }
    }
    let corpus = |(name, beside): (String, Option<PathBuf>)| {
        let folder = beside.map_or_else(|| unpacked(&name), Ok)?;
        Ok(Corpus { name, folder })
    };
    found.into_iter().map(corpus).collect()
}

/// Returns the folder of a corpus; `None`, reported as a skipped test, if it is one of others and absent.
///
/// # Errors
/// If `tests/recorded` has none of this name either, or it cannot be unpacked.
///
/// # Panics
/// Like [`skip`].
pub fn corpus(name: &str) -> io::Result<Option<PathBuf>> {
    let beside = beside().join(name);
    if beside.is_dir() {
        return Ok(Some(beside));
    }
    if FOREIGN.contains(&name) {
        skip(
            Need::Corpora,
            &format!("no recorded answers at {} (ADMIT_SHARED says where)", beside.display()),
        );
        return Ok(None);
    }
    unpacked(name).map(Some)
}

/// Reads a file of a corpus, which may be compressed (`.gz`).
///
/// # Errors
/// If it cannot be read.
pub fn recorded_text(path: &Path) -> io::Result<String> {
    if path.extension().is_some_and(|ending| ending == "gz") {
        return io::read_to_string(GzDecoder::new(File::open(path)?));
    }
    fs::read_to_string(path)
}

const ENDING: &str = ".tar.gz";

fn archives() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../recorded")
}

fn beside() -> PathBuf {
    let shared = env::var_os("ADMIT_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    shared.join("corpora")
}

fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(named(folder, &error)),
    }
}

/// Unpacks an archive into the target folder, once for each content.
fn unpacked(name: &str) -> io::Result<PathBuf> {
    // Only one test of a process unpacks at a time.
    static UNPACKING: Mutex<()> = Mutex::new(());
    let _alone = UNPACKING.lock();
    let archive = archives().join(format!("{name}{ENDING}"));
    let packed = fs::read(&archive).map_err(|error| named(&archive, &error))?;
    let mut content = DefaultHasher::new();
    packed.hash(&mut content);
    let recorded = target().join("recorded");
    let folder = recorded.join(format!("{:016x}", content.finish())).join(name);
    if folder.is_dir() {
        return Ok(folder);
    }
    fs::create_dir_all(&recorded)?;
    // Another process may do the same: the first to rename wins.
    let working = tempfile::tempdir_in(&recorded)?;
    Archive::new(GzDecoder::new(File::open(&archive)?))
        .unpack(working.path())
        .map_err(|error| named(&archive, &error))?;
    fs::create_dir_all(folder.parent().unwrap_or(&recorded))?;
    match fs::rename(working.path().join(name), &folder) {
        Err(error) if !folder.is_dir() => Err(named(&archive, &error)),
        _ => Ok(folder),
    }
}

/// Returns Cargo's target folder, which holds this program, or else the folder of temporary files.
fn target() -> PathBuf {
    let program = env::current_exe().unwrap_or_default();
    let target = program.ancestors().find(|folder| folder.join("CACHEDIR.TAG").is_file());
    target.map_or_else(env::temp_dir, Path::to_path_buf)
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_hold_as_many_rows_as_their_table_says() {
        let table = fs::read_to_string(archives().join("README.md")).expect("the table of archives");
        let told = |name: &str| {
            let line =
                table.lines().find(|line| line.starts_with(&format!("| `{name}` |"))).unwrap_or_default();
            line.split('|').nth(2).and_then(|rows| rows.trim().replace(',', "").parse().ok())
        };
        let mut size = 0;
        for path in entries(&archives()).expect("archives") {
            let Some(name) =
                path.file_name().and_then(OsStr::to_str).and_then(|name| name.strip_suffix(ENDING))
            else {
                continue;
            };
            size += fs::metadata(&path).expect("an archive").len();
            assert_eq!(told(name), Some(rows(&unpacked(name).expect("an archive"))), "{name}");
        }
        assert!(size > 1 << 20, "{size} bytes are not all of them");
        assert!(size <= 6 << 20, "{size} bytes are more than a clone should take for them");
    }

    fn rows(folder: &Path) -> usize {
        let mut rows = 0;
        for path in entries(folder).expect("a corpus") {
            let name = path.to_string_lossy().into_owned();
            if path.is_dir() {
                continue;
            } else if name.ends_with(".jsonl.gz") {
                let text =
                    io::read_to_string(GzDecoder::new(File::open(&path).expect("rows"))).expect("rows");
                rows += text.lines().count();
            } else if name.ends_with(".jsonl") {
                rows += fs::read_to_string(&path).expect("rows").lines().count();
            }
        }
        rows
    }
}
