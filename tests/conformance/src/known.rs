//! Lists of known failures, `<corpus>.txt`: a case id, a tab, the reason. Lines that start with `#` are remarks.

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
        let mut known = HashMap::new();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let Some((id, reason)) = line.split_once('\t').filter(|(_, reason)| !reason.trim().is_empty())
            else {
                let problem = format!("a known failure needs a tab and a reason: {line}");
                return Err(CorpusError::Content { path, problem });
            };
            known.insert(id.to_owned(), reason.trim().to_owned());
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
