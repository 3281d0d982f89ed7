//! Detects changed files by polling several times a second. That works on every file system and with every editor's
//! way to save, and costs little for the few hundred files of suites and policies.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, SystemTime};

use crate::cli::load;
use crate::cli::process::Fault;

const PERIOD: Duration = Duration::from_millis(200);
/// The most files to poll: more would keep a processor busy.
const MAX_FILES: usize = 10_000;

/// The state of a folder: its files with their times and sizes. Deleted files are absent.
type Snapshot = BTreeMap<PathBuf, (Option<SystemTime>, u64)>;

/// The state of the files at `paths`, to be compared with later ones.
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
