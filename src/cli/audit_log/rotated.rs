//! Writes a log file with rotation: at its maximum size it is renamed to a name with the current time, and the log continues
//! in a new file. Old files are deleted by their number and age. Sizes, names and limits are those of kube-apiserver's
//! audit log.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// The format of the end time in the name of an old file, in UTC.
const ENDED: &str = "%Y-%m-%dT%H-%M-%S%.3f";
const DAY: i64 = 24 * 60 * 60;

/// The limits for the size and the number of files.
#[derive(Clone, Copy, Debug)]
pub(in crate::cli) struct Limits {
    /// The largest size of a file in bytes.
    pub(in crate::cli) size: u64,
    /// The most old files; 0 for any number.
    pub(in crate::cli) backups: usize,
    /// Days for which old files are kept; 0 for ever.
    pub(in crate::cli) days: u32,
}

/// The current log file, with its path.
#[derive(Debug)]
pub(super) struct Rotated {
    path: PathBuf,
    file: File,
    size: u64,
    limits: Limits,
}

impl Rotated {
    /// Opens the log, appending to an existing file.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(super) fn open(path: &Path, limits: Limits) -> io::Result<Self> {
        let file = open(path)?;
        let size = file.metadata()?.len();
        let log = Self { path: path.to_owned(), file, size, limits };
        log.tidy(Timestamp::now());
        Ok(log)
    }

    fn rotate(&mut self, now: Timestamp) -> io::Result<()> {
        fs::rename(&self.path, self.ended(now))?;
        self.file = open(&self.path)?;
        self.tidy(now);
        Ok(())
    }

    /// Returns the name of a file that ends now: `audit-2026-11-24T20-18-00.123.log`.
    fn ended(&self, now: Timestamp) -> PathBuf {
        let (stem, extension) = self.names();
        let mut at = now;
        loop {
            let path = self.path.with_file_name(format!("{stem}-{}{extension}", at.strftime(ENDED)));
            // A file that ended in the same millisecond is not overwritten.
            match at.checked_add(jiff::SignedDuration::from_millis(1)) {
                Ok(later) if path.exists() => at = later,
                _ => return path,
            }
        }
    }

    /// Returns the prefix and the suffix of the names of old files.
    fn names(&self) -> (String, String) {
        let text = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let extension = self.path.extension().map(|extension| format!(".{}", extension.to_string_lossy()));
        (text(self.path.file_stem()), extension.unwrap_or_default())
    }

    /// Deletes old files that are too many or too old.
    fn tidy(&self, now: Timestamp) {
        let (stem, extension) = self.names();
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let Ok(entries) = fs::read_dir(folder.unwrap_or(Path::new("."))) else { return };
        let ended = |name: &str| {
            let text = name.strip_prefix(&format!("{stem}-"))?.strip_suffix(extension.as_str())?;
            DateTime::strptime(ENDED, text).ok()?.to_zoned(TimeZone::UTC).ok().map(|at| at.timestamp())
        };
        let mut old: Vec<(Timestamp, PathBuf)> = entries
            .flatten()
            .filter_map(|entry| Some((ended(entry.file_name().to_str()?)?, entry.path())))
            .collect();
        old.sort_unstable();
        let Limits { backups, days, .. } = self.limits;
        let oldest = now.as_second().saturating_sub(DAY.saturating_mul(i64::from(days)));
        for (at, (ended, path)) in old.iter().rev().enumerate() {
            let too_many = backups > 0 && at >= backups;
            let too_old = days > 0 && ended.as_second() < oldest;
            if (too_many || too_old)
                && let Err(error) = fs::remove_file(path)
            {
                tracing::warn!(%error, file = %path.display(), "an old audit log cannot be removed");
            }
        }
    }
}

impl Write for Rotated {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if self.size > 0 && self.size.saturating_add(length) > self.limits.size {
            if let Err(error) = self.rotate(Timestamp::now()) {
                tracing::error!(%error, "the audit log cannot be rotated: it goes on in the same file");
            }
            self.size = 0;
        }
        let written = self.file.write(bytes)?;
        self.size = self.size.saturating_add(u64::try_from(written).unwrap_or(u64::MAX));
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn old(folder: &Path) -> Vec<String> {
        let names =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name != "a.log").collect();
        names.sort();
        names
    }

    #[test]
    fn a_full_file_is_put_aside_and_the_oldest_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        fs::write(folder.path().join("a-2020-01-02T03-04-05.678.log"), "old").unwrap();
        fs::write(folder.path().join("a-more.log"), "another's").unwrap();
        let limits = Limits { size: 10, backups: 2, days: 0 };
        let mut log = Rotated::open(&path, limits).unwrap();
        assert_eq!(old(folder.path()).len(), 2);
        // A line that is longer than the size limit has a file of its own.
        for line in ["12345\n", "678\n", "1\n", "123456789012345\n", "2\n"] {
            log.write_all(line.as_bytes()).unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "2\n");
        let left = old(folder.path());
        assert_eq!(left.len(), 3, "{left:?}");
        assert_eq!(left.last().map(String::as_str), Some("a-more.log"));
        let texts: Vec<String> =
            left.iter().take(2).map(|name| fs::read_to_string(folder.path().join(name)).unwrap()).collect();
        assert_eq!(texts, ["1\n", "123456789012345\n"]);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn old_files_go_by_their_age() {
        let folder = tempfile::tempdir().unwrap();
        let aside = folder.path().join("a-2020-01-02T03-04-05.678.log");
        fs::write(&aside, "old").unwrap();
        let path = folder.path().join("a.log");
        let log = Rotated::open(&path, Limits { size: 10, backups: 0, days: 0 }).unwrap();
        assert!(aside.exists());
        drop(log);
        Rotated::open(&path, Limits { size: 10, backups: 0, days: 7 }).unwrap();
        assert!(!aside.exists());
    }
}
