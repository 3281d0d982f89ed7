//! Detects changed files by polling several times a second, which works on every file system and with every editor's
//! way to save, and costs little for the few hundred files of suites and policies.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, SystemTime};

use crate::cli::load;
use crate::cli::process::Fault;

const PERIOD: Duration = Duration::from_millis(200);
/// More files than this would keep a processor busy.
const MAX_FILES: usize = 10_000;

/// What a folder looks like: its files with their times and sizes. A file that is gone is not in it.
type Snapshot = BTreeMap<PathBuf, (Option<SystemTime>, u64)>;

/// The files at `paths` as they were, to be compared with what they become.
#[derive(Debug)]
pub(super) struct Watch {
    paths: Vec<PathBuf>,
    seen: Snapshot,
}

impl Watch {
    /// # Errors
    /// When there are more files than can be looked at all the time.
    pub(super) fn new(paths: Vec<PathBuf>) -> Result<Self, Fault> {
        let seen = snapshot(&paths);
        if seen.len() > MAX_FILES {
            let problem =
                format!("--watch: {} files are more than {MAX_FILES}; name the folders", seen.len());
            return Err(Fault::usage(problem));
        }
        Ok(Self { paths, seen })
    }

    /// Waits until a file is new, changed or gone.
    pub(super) fn wait(self) {
        while snapshot(&self.paths) == self.seen {
            thread::sleep(PERIOD);
        }
    }
}

fn snapshot(paths: &[PathBuf]) -> Snapshot {
    // A path that cannot be read now may be there the next time.
    let files = paths.iter().flat_map(|path| load::files(path).unwrap_or_default());
    let looked_at = files.filter_map(|file| {
        let metadata = fs::metadata(&file.path).ok()?;
        Some((file.path, (metadata.modified().ok(), metadata.len())))
    });
    looked_at.collect()
}
