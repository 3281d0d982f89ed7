//! Finds corpora on disk and reads their rows.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize as _;
use serde_json::Value;
use thiserror::Error;

/// One corpus: a folder that holds `*.jsonl` files.
#[derive(Debug)]
pub(crate) struct Folder {
    /// The folder's own name.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    /// In order of name.
    pub(crate) files: Vec<RowFile>,
}

/// The rows of one `*.jsonl` file, which may be packed.
#[derive(Debug)]
pub(crate) struct RowFile {
    /// The file's name without its endings.
    pub(crate) name: String,
    pub(crate) rows: Vec<Value>,
}

/// A corpus that cannot be read.
#[derive(Debug, Error)]
pub(crate) enum CorpusError {
    #[error("{path}: {error}")]
    Io { path: PathBuf, error: io::Error },
    #[error("{path}:{line}: {error}")]
    Row { path: PathBuf, line: usize, error: serde_json::Error },
    #[error("{path}: {problem}")]
    Content { path: PathBuf, problem: String },
    #[error("{0}: no corpus here (a folder that holds *.jsonl files)")]
    Empty(PathBuf),
}

impl CorpusError {
    pub(crate) fn io(path: &Path, error: io::Error) -> Self {
        Self::Io { path: path.to_owned(), error }
    }
}

/// The corpora in `root`, in order of name; `root` itself if it is one. With names in `only`, just those.
pub(crate) fn find(root: &Path, only: &[String]) -> Result<Vec<Folder>, CorpusError> {
    let entries = sorted_entries(root)?;
    let own = row_files(&entries);
    let folders: Vec<PathBuf> = if own.is_empty() {
        entries.into_iter().filter(|path| path.is_dir()).collect()
    } else {
        vec![root.to_owned()]
    };
    let mut found = Vec::new();
    for path in folders {
        let name = path.canonicalize().unwrap_or_else(|_| path.clone());
        let name = name.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if only.is_empty() || only.contains(&name) {
            found.extend(read(&path, name)?);
        }
    }
    if found.is_empty() { Err(CorpusError::Empty(root.to_owned())) } else { Ok(found) }
}

/// The corpus in a folder; none where it holds no rows.
pub(crate) fn read(path: &Path, name: String) -> Result<Option<Folder>, CorpusError> {
    let files = row_files(&sorted_entries(path)?);
    if files.is_empty() {
        return Ok(None);
    }
    let files = files.iter().map(|file| read_rows(file)).collect::<Result<_, _>>()?;
    Ok(Some(Folder { name, files, path: path.to_owned() }))
}

impl Folder {
    /// Whether some row has all of `keys`: how a kind knows its corpora.
    pub(crate) fn has_row_with(&self, keys: &[&str]) -> bool {
        self.files.iter().any(|file| file.rows.first().is_some_and(|row| has_keys(row, keys)))
    }

    /// All rows that have all of `keys`.
    pub(crate) fn rows_with<'a>(&'a self, keys: &'a [&'a str]) -> impl Iterator<Item = &'a Value> {
        self.files.iter().flat_map(|file| &file.rows).filter(move |row| has_keys(row, keys))
    }

    /// The rows of one file.
    pub(crate) fn rows_of<'f>(&'f self, file: &str) -> impl Iterator<Item = &'f Value> + use<'f> {
        let found = self.files.iter().find(|rows| rows.name == file);
        found.into_iter().flat_map(|file| &file.rows)
    }

    /// The text of a file that rows refer to.
    pub(crate) fn text(&self, file: &str) -> Result<String, CorpusError> {
        let path = self.path.join(file);
        testing::recorded_text(&path).map_err(|error| CorpusError::io(&path, error))
    }
}

fn has_keys(row: &Value, keys: &[&str]) -> bool {
    keys.iter().all(|key| row.get(key).is_some())
}

fn sorted_entries(path: &Path) -> Result<Vec<PathBuf>, CorpusError> {
    let entries = fs::read_dir(path).map_err(|error| CorpusError::io(path, error))?;
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.map(|entry| entry.path()).map_err(|error| CorpusError::io(path, error)))
        .collect::<Result<_, _>>()?;
    paths.sort();
    Ok(paths)
}

fn row_files(paths: &[PathBuf]) -> Vec<PathBuf> {
    paths.iter().filter(|path| name_of(path).is_some()).cloned().collect()
}

/// The name of a file of rows without its endings.
fn name_of(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    name.strip_suffix(".gz").unwrap_or(name).strip_suffix(".jsonl").map(str::to_owned)
}

fn read_rows(path: &Path) -> Result<RowFile, CorpusError> {
    let text = testing::recorded_text(path).map_err(|error| CorpusError::io(path, error))?;
    let rows = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(index, line)| {
            parse(line).map_err(|error| CorpusError::Row { path: path.to_owned(), line: index + 1, error })
        })
        .collect::<Result<_, _>>()?;
    Ok(RowFile { name: name_of(path).unwrap_or_default(), rows })
}

/// Rows hold hostile nesting on purpose, so the usual bound does not apply.
fn parse(line: &str) -> Result<Value, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(line);
    reader.disable_recursion_limit();
    Value::deserialize(&mut reader)
}
