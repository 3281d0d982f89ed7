//! Reads lists of known failures, `<corpus>.txt`: groups divided by blank lines, each a heading `# reason` and case ids,
//! one a line.

use std::collections::HashMap;
use std::path::Path;
use std::{fs, io};

use crate::corpus::CorpusError;

/// The known failures of one corpus, with their reasons.
#[derive(Debug, Default)]
pub(crate) struct KnownFailures(HashMap<String, String>);

impl KnownFailures {
    /// Reads the list; a corpus without one has none.
    pub(crate) fn read(directory: &Path, corpus: &str) -> Result<Self, CorpusError> {
        let path = directory.join(format!("{corpus}.txt"));
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(CorpusError::Io { path, error }),
        };
        Self::parse(&text).map_err(|problem| CorpusError::Content { path, problem })
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut known = HashMap::new();
        let mut reason = String::new();
        for group in text.split("\n\n") {
            let (remarks, ids): (Vec<&str>, Vec<&str>) =
                group.lines().filter(|line| !line.is_empty()).partition(|line| line.starts_with('#'));
            if !remarks.is_empty() {
                reason = remarks
                    .iter()
                    .map(|line| line.trim_start_matches('#').trim())
                    .collect::<Vec<_>>()
                    .join(" ");
            }
            for id in ids {
                if reason.is_empty() {
                    return Err(format!("a known failure needs a heading `# reason`: {id}"));
                }
                if known.insert(id.trim().to_owned(), reason.clone()).is_some() {
                    return Err(format!("listed twice: {id}"));
                }
            }
            reason.clear();
        }
        Ok(Self(known))
    }

    pub(crate) fn contains(&self, id: &str) -> bool {
        self.0.contains_key(id)
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = &String> {
        self.0.keys()
    }
}
