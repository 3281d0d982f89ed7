//! Resolves a path on the command line to files, and reads their text.
//!
//! A path on the command line is read whatever it is: shells pass pipes as paths, as in `admit check -f <(helm template
//! .)`. A file that is found in a folder may have been put there by somebody else, and is read only if it is a
//! regular file.

use std::fs::{self, Metadata};
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

use super::process::Fault;
use crate::outside::{self, Unreadable};

/// The largest size of a manifest in bytes.
const MAX_FILE: u64 = 16 * 1024 * 1024;
/// The largest size of a file that is read object by object, such as a dump of a cluster: a hundred thousand objects of 2.5 kB.
/// The whole text is in memory while it is read.
const MAX_LONG_FILE: u64 = 256 * 1024 * 1024;
/// The deepest nesting of folders.
const MAX_DEPTH: usize = 32;
/// The most folders below a path, counting each link: with links between folders, there are more paths than can be walked.
const MAX_FOLDERS: usize = 10_000;

/// A file to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) path: PathBuf,
    /// Whether it was named on the command line, not found in a folder.
    pub(super) named: bool,
}

impl Found {
    /// Reads its text, up to the size limit of manifests.
    ///
    /// # Errors
    /// When it cannot be read, is too large, or is not UTF-8.
    pub(super) fn text(&self) -> Result<String, Fault> {
        self.within(MAX_FILE)
    }

    /// Reads its text, up to the larger size limit of input that is read object by object.
    ///
    /// # Errors
    /// As [`Self::text`].
    pub(super) fn long_text(&self) -> Result<String, Fault> {
        self.within(MAX_LONG_FILE)
    }

    fn within(&self, most: u64) -> Result<String, Fault> {
        if self.named { text_within(&self.path, most) } else { self.regular(most).map(|(text, _)| text) }
    }

    /// Reads its text like [`Self::text`], only if it is a regular file, and returns the file's metadata as well.
    ///
    /// # Errors
    /// As [`Self::text`].
    pub(super) fn text_and_metadata(&self) -> Result<(String, Metadata), Fault> {
        self.regular(MAX_FILE)
    }

    fn regular(&self, most: u64) -> Result<(String, Metadata), Fault> {
        let (bytes, about) =
            outside::bytes(&self.path, most).map_err(|error| unreadable(&self.path, &error))?;
        Ok((utf8(&self.path, bytes)?, about))
    }
}

/// Returns `path` itself, or the manifests in that folder and below, by name. `./...` means `.`, as Go users write it.
///
/// # Errors
/// When there is no such path, or a folder cannot be read.
pub(super) fn files(path: &Path) -> Result<Vec<Found>, Fault> {
    let path = without_recursion(path);
    if is_stdin(path) || (path.exists() && !path.is_dir()) {
        return Ok(vec![Found { path: path.to_owned(), named: true }]);
    }
    let mut walk = Walk::default();
    walk.folder(path)?;
    walk.found.sort();
    Ok(walk.found.into_iter().map(|path| Found { path, named: false }).collect())
}

#[derive(Default)]
struct Walk {
    /// The canonical paths of the enclosing folders.
    above: Vec<PathBuf>,
    folders: usize,
    found: Vec<PathBuf>,
}

impl Walk {
    fn folder(&mut self, folder: &Path) -> Result<(), Fault> {
        let unreadable =
            |error: io::Error| Fault::usage(format!("cannot read `{}`: {error}", folder.display()));
        if self.above.len() > MAX_DEPTH {
            return Err(Fault::usage(format!(
                "`{}` is more than {MAX_DEPTH} folders deep",
                folder.display()
            )));
        }
        let own = folder.canonicalize().map_err(unreadable)?;
        // A link to an enclosing folder would repeat its files.
        if self.above.contains(&own) {
            return Ok(());
        }
        self.folders = self.folders.saturating_add(1);
        if self.folders > MAX_FOLDERS {
            return Err(Fault::usage(format!(
                "cannot read `{}`: more than {MAX_FOLDERS} folders are too many for manifests; take away the links there",
                folder.display()
            )));
        }
        self.above.push(own);
        for entry in fs::read_dir(folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            let hidden = path.file_name().unwrap_or_default().to_string_lossy().starts_with('.');
            if path.is_dir() {
                if !hidden {
                    self.folder(&path)?;
                }
            } else if is_manifest_name(&path) {
                self.found.push(path);
            }
        }
        self.above.pop();
        Ok(())
    }
}

/// Whether a file of that name in a folder is a manifest: YAML or JSON, neither hidden nor a kustomization.
pub(super) fn is_manifest_name(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let ends = path.extension().is_some_and(|end| end == "yaml" || end == "yml" || end == "json");
    ends && !name.starts_with('.') && !name.starts_with("kustomization.")
}

/// Whether a file of that name holds suites of test cases.
pub(super) fn is_suite_name(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.rsplit_once('.').map_or("", |(stem, _)| stem);
    [".suite", ".testsuite"].iter().any(|end| stem.ends_with(end))
}

/// Whether `path` is `-`, which means standard input.
pub(super) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Reads a path of the command line: a file, standard input or a pipe, up to the size limit of manifests.
///
/// # Errors
/// When it cannot be read, is too large, or is not UTF-8.
pub(super) fn text(file: &Path) -> Result<String, Fault> {
    text_within(file, MAX_FILE)
}

fn text_within(file: &Path, most: u64) -> Result<String, Fault> {
    let bytes = if is_stdin(file) { stdin(most) } else { outside::bytes_of_any(file, most) };
    utf8(file, bytes.map_err(|error| unreadable(file, &error))?)
}

fn stdin(most: u64) -> Result<Vec<u8>, Unreadable> {
    let mut bytes = Vec::new();
    io::stdin().take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).map_or(true, |size| size > most) {
        return Err(Unreadable::TooLarge(most));
    }
    Ok(bytes)
}

fn unreadable(file: &Path, error: &Unreadable) -> Fault {
    let shown = file.display();
    Fault::usage(match error {
        Unreadable::TooLarge(most) => {
            format!("cannot read `{shown}`: more than {most} bytes are too many for a manifest")
        }
        other => format!("cannot read `{shown}`: {other}"),
    })
}

fn utf8(file: &Path, bytes: Vec<u8>) -> Result<String, Fault> {
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
        let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
        let shown = file.display();
        Fault::usage(format!("{shown}:{line}: not UTF-8: manifests are read in no other encoding"))
    })
}

/// Returns the path without a trailing `/...`.
pub(super) fn without_recursion(path: &Path) -> &Path {
    match path.parent().filter(|_| path.ends_with("...")) {
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        None => path,
    }
}

/// Normalizes a path: removes `.`, and `..` that follow a folder, so that one file has one name.
pub(super) fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(normal.components().next_back(), Some(Component::Normal(_))) => {
                normal.pop();
            }
            Component::ParentDir | Component::Normal(_) | Component::RootDir | Component::Prefix(_) => {
                normal.push(part);
            }
        }
    }
    if normal.as_os_str().is_empty() { PathBuf::from(".") } else { normal }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use super::*;

    #[test]
    fn one_file_has_one_name() {
        for (path, expected) in
            [("a/../b", "b"), ("./a", "a"), ("../a", "../a"), ("/a/./b", "/a/b"), ("a/..", ".")]
        {
            assert_eq!(normal(Path::new(path)), Path::new(expected), "{path}");
        }
    }

    #[test]
    fn a_pipe_is_read_where_it_is_named_and_refused_where_it_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("a.yaml");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let found = files(folder.path()).unwrap();
        let said = found[0].text().unwrap_err().message;
        assert!(said.contains("a.yaml`: it is a named pipe"), "{said}");
        let named = files(&pipe).unwrap();
        let writing = std::thread::spawn(move || fs::write(pipe, "a: 1\n"));
        assert_eq!(named[0].text().unwrap(), "a: 1\n");
        writing.join().unwrap().unwrap();
    }

    #[test]
    fn links_from_each_folder_to_the_others_are_not_walked_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let names: Vec<String> = (0..12).map(|number| number.to_string()).collect();
        for name in &names {
            fs::create_dir(folder.path().join(name)).unwrap();
            for other in names.iter().filter(|other| *other != name) {
                symlink(format!("../{other}"), folder.path().join(name).join(other)).unwrap();
            }
        }
        let said = files(folder.path()).unwrap_err().message;
        assert!(said.contains("more than 10000 folders"), "{said}");
    }
}
