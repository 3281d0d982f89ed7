//! Detects files that are still being written when they are read.
//!
//! A manifest that is written in place is shorter for a moment, and if it happens to end between two documents, it
//! is a valid one with fewer policies: the missing ones would go out of force until the writer continues. So a file that
//! has shrunk and lost documents, or has disappeared, is accepted only after it did not change for a while. A
//! file that is renamed into place is never delayed for longer than that. Files also disappear for a moment if a
//! folder is exchanged for another while it is read, or if a tool removes a file before it writes the next
//! version.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use admit_policy::manifest::Document;
use tokio::time::Instant;

use super::stored::{Name, name_of};
use crate::cli::load;
use crate::cli::process::Fault;

/// How often a folder is read again that changed while it was read. The last reading may still mix two versions; the next
/// change event corrects that.
const READINGS: usize = 3;

/// How long a file that lost documents must not change. Writers that pause for longer are rare, and so are
/// policies that must be removed within a second.
const STABLE: Duration = Duration::from_secs(1);

/// A file as it was read.
#[derive(Clone, Debug)]
pub(in crate::cli) struct File {
    pub(in crate::cli) name: String,
    pub(in crate::cli) text: String,
    pub(in crate::cli) stamp: Stamp,
}

/// Metadata of a file that changes when it is written to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::cli) struct Stamp {
    size: u64,
    inode: u64,
    modified: (i64, i64),
}

/// The files of the policies in force, and those that have shrunk since.
#[derive(Debug, Default)]
pub(in crate::cli) struct Settling {
    in_force: BTreeMap<String, Contents>,
    /// When each version was first seen; deleted files have no stamp.
    shrunk: BTreeMap<String, (Option<Stamp>, Instant)>,
}

/// The documents of a file, with its metadata.
#[derive(Clone, Debug, Default)]
pub(in crate::cli) struct Contents {
    stamp: Stamp,
    documents: BTreeSet<Name>,
}

/// A file that may not be written completely.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::cli) struct Unsettled {
    pub(in crate::cli) file: String,
    /// A document that the file no longer has.
    pub(in crate::cli) lost: Name,
    /// When to read it again.
    pub(in crate::cli) until: Instant,
}

impl Stamp {
    fn of(about: &Metadata) -> Self {
        Self { size: about.size(), inode: about.ino(), modified: (about.mtime(), about.mtime_nsec()) }
    }
}

/// Reads the manifests at `path` as one consistent version; only regular files.
///
/// # Errors
/// When a file cannot be read.
pub(in crate::cli) fn read(path: &Path) -> Result<Vec<File>, Fault> {
    let mut files = read_once(path)?;
    for _ in 1..READINGS {
        if is_still(path, &files) {
            break;
        }
        files = read_once(path)?;
    }
    Ok(files)
}

fn read_once(path: &Path) -> Result<Vec<File>, Fault> {
    let read = |found: load::Found| {
        let (text, about) = found.text_and_metadata()?;
        Ok(File { name: found.path.display().to_string(), text, stamp: Stamp::of(&about) })
    };
    load::files(path)?.into_iter().map(read).collect()
}

/// Whether `path` still has the same files, all unchanged.
fn is_still(path: &Path, files: &[File]) -> bool {
    let stamp = |found: &load::Found| fs::metadata(&found.path).ok().map(|about| Stamp::of(&about));
    load::files(path).is_ok_and(|now| {
        now.len() == files.len()
            && now.iter().zip(files).all(|(found, file)| {
                found.path.display().to_string() == file.name && stamp(found) == Some(file.stamp)
            })
    })
}

/// Returns which of `documents` each of the `files` has.
pub(in crate::cli) fn contents(files: &[File], documents: &[Document]) -> BTreeMap<String, Contents> {
    let file = |file: &File| (file.name.clone(), Contents { stamp: file.stamp, ..Contents::default() });
    let mut contents: BTreeMap<String, Contents> = files.iter().map(file).collect();
    for document in documents {
        if let Some(contents) = contents.get_mut(&*document.file) {
            contents.documents.insert(name_of(&document.value));
        }
    }
    contents
}

impl Settling {
    /// Records that `files` are in force.
    pub(in crate::cli) fn put_in_force(&mut self, files: BTreeMap<String, Contents>) {
        *self = Self { in_force: files, shrunk: BTreeMap::new() };
    }

    /// Returns a file among `files` that may not be complete, if there is one.
    pub(in crate::cli) fn unsettled(
        &mut self,
        files: &BTreeMap<String, Contents>,
        now: Instant,
    ) -> Option<Unsettled> {
        let here: BTreeSet<&Name> = files.values().flat_map(|contents| &contents.documents).collect();
        let mut first: Option<Unsettled> = None;
        for (name, before) in &self.in_force {
            let stamp = files.get(name).map(|contents| contents.stamp);
            let shrunk = stamp.is_none_or(|stamp| stamp.size < before.stamp.size);
            let lost = before.documents.iter().find(|document| shrunk && !here.contains(document));
            let Some(lost) = lost else {
                self.shrunk.remove(name);
                continue;
            };
            let seen = self.shrunk.entry(name.clone()).or_insert((stamp, now));
            if seen.0 != stamp {
                *seen = (stamp, now);
            }
            let until = seen.1 + STABLE;
            if now < until && first.as_ref().is_none_or(|first| first.until < until) {
                first = Some(Unsettled { file: name.clone(), lost: lost.clone(), until });
            }
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Name {
        ("ValidatingAdmissionPolicy".to_owned(), name.to_owned())
    }

    fn file(file: &str, size: u64, documents: &[&str]) -> (String, Contents) {
        let documents = documents.iter().map(|name| named(name)).collect();
        (file.to_owned(), Contents { stamp: Stamp { size, ..Stamp::default() }, documents })
    }

    #[test]
    fn a_file_that_lost_documents_is_believed_when_it_has_been_left_alone() {
        let mut settling = Settling::default();
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        settling.put_in_force([file("a", 100, &["a", "b"]), file("b", 10, &["c"])].into());
        let torn = [file("a", 50, &["a"]), file("b", 10, &["c"])].into();
        let wait = settling.unsettled(&torn, at(0)).unwrap();
        assert_eq!((wait.file.as_str(), wait.lost, wait.until), ("a", named("b"), at(1_000)));
        assert_eq!(settling.unsettled(&torn, at(900)).unwrap().until, at(1_000));
        // The writer continues, but is not done.
        let longer = [file("a", 70, &["a"]), file("b", 10, &["c"])].into();
        assert_eq!(settling.unsettled(&longer, at(950)).unwrap().until, at(1_950));
        // The file is complete.
        let whole = [file("a", 100, &["a", "b"]), file("b", 10, &["c"])].into();
        assert_eq!(settling.unsettled(&whole, at(1_000)), None);
        // The removal is intended.
        assert!(settling.unsettled(&torn, at(2_000)).is_some());
        assert_eq!(settling.unsettled(&torn, at(3_000)), None);
    }

    #[test]
    fn a_file_that_is_gone_is_believed_when_it_has_stayed_away() {
        let mut settling = Settling::default();
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let whole: BTreeMap<_, _> = [file("a", 100, &["a", "b"]), file("b", 10, &["c"])].into();
        settling.put_in_force(whole.clone());
        let rest = [file("b", 10, &["c"])].into();
        let wait = settling.unsettled(&rest, at(0)).unwrap();
        assert_eq!((wait.file.as_str(), wait.lost, wait.until), ("a", named("a"), at(1_000)));
        // The file is back in time, and gone again.
        assert_eq!(settling.unsettled(&whole, at(500)), None);
        assert_eq!(settling.unsettled(&rest, at(900)).unwrap().until, at(1_900));
        assert_eq!(settling.unsettled(&rest, at(1_900)), None);
    }

    #[test]
    fn a_folder_that_changes_while_it_is_read_is_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("a.yaml"), "a: 1\n").unwrap();
        fs::write(path("b.yaml"), "b: 1\n").unwrap();
        let files = read(folder.path()).unwrap();
        assert!(is_still(folder.path(), &files));
        fs::write(path("c.yaml"), "c: 1\n").unwrap();
        assert!(!is_still(folder.path(), &files), "one more");
        fs::rename(path("c.yaml"), path("a.yaml")).unwrap();
        assert!(!is_still(folder.path(), &files), "another one of the name");
        fs::remove_file(path("a.yaml")).unwrap();
        assert!(!is_still(folder.path(), &files), "one is gone");
    }

    #[test]
    fn what_takes_away_no_protection_is_not_waited_for() {
        let mut settling = Settling::default();
        settling.put_in_force([file("a", 100, &["a", "b"]), file("b", 10, &["c"])].into());
        let now = Instant::now();
        for files in [
            // Shorter with all documents; one document moved; a file merged into another; longer without a document.
            vec![file("a", 90, &["a", "b"]), file("b", 10, &["c"])],
            vec![file("a", 50, &["a"]), file("b", 60, &["b", "c"])],
            vec![file("b", 110, &["a", "b", "c"])],
            vec![file("a", 110, &["a"]), file("b", 10, &["c"])],
        ] {
            assert_eq!(settling.unsettled(&files.into_iter().collect(), now), None);
        }
    }
}
