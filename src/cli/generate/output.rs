//! Writes generated files, or compares them with the existing ones.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use super::manifests::File;
use crate::cli::Exit;
use crate::cli::process::Fault;
use crate::cli::whole::{replaced, written};

/// Writes `files` below `folder`, which is created if it is missing. Each file is replaced atomically.
///
/// # Errors
/// When a file cannot be written.
pub(super) fn write(folder: &Path, files: &[File]) -> Result<Exit, Fault> {
    for file in files.iter().filter(|file| !file.is_there(folder)) {
        let path = folder.join(file.path());
        let write = || -> io::Result<()> {
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            match file {
                File::Text { text, .. } => written(&path, text),
                File::Link { target, .. } if path.is_symlink() => {
                    replaced(&path, |beside| symlink(target, beside))
                }
                File::Link { target, .. } => symlink(target, &path),
            }
        };
        write().map_err(|error| {
            let path = path.display();
            Fault::usage(format!("cannot write `{path}`: {error}; choose another folder with --out"))
        })?;
    }
    Ok(Exit::Expected)
}

/// Lists on standard error the files below `folder` that differ from `files`.
///
/// # Errors
/// Never: a file that cannot be read counts as different.
pub(super) fn check(folder: &Path, files: &[File]) -> Result<Exit, Fault> {
    let mut exit = Exit::Expected;
    for file in files.iter().filter(|file| !file.is_there(folder)) {
        let path = folder.join(file.path());
        // If the stream is closed, only the exit code reports it.
        let _ = writeln!(io::stderr(), "{} is not what `admit generate manifests` makes", path.display());
        exit = Exit::Differs;
    }
    Ok(exit)
}

/// Returns the relative path from `from`, which need not exist, to the folder `to`.
///
/// # Errors
/// When `to` does not exist, or there is no current folder.
pub(super) fn relative(from: &Path, to: &Path) -> Result<PathBuf, Fault> {
    let unusable =
        |path: &Path, error: io::Error| Fault::usage(format!("cannot use `{}`: {error}", path.display()));
    let to_absolute = fs::canonicalize(to).map_err(|error| unusable(to, error))?;
    if !to_absolute.is_dir() {
        return Err(Fault::usage(format!("`{}` is not a folder", to.display())));
    }
    let from_absolute = match fs::canonicalize(from) {
        Ok(path) => path,
        Err(_) => normal(&std::path::absolute(from).map_err(|error| unusable(from, error))?),
    };
    let shared = from_absolute.components().zip(to_absolute.components()).take_while(|(a, b)| a == b).count();
    let up = from_absolute.components().skip(shared).map(|_| Component::ParentDir);
    Ok(up.chain(to_absolute.components().skip(shared)).collect())
}

/// Resolves `..` lexically, for a path that does not exist yet.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        if component == Component::ParentDir {
            out.pop();
        } else {
            out.push(component);
        }
    }
    out
}

impl File {
    fn path(&self) -> &Path {
        match self {
            Self::Text { path, .. } | Self::Link { path, .. } => path,
        }
    }

    fn is_there(&self, folder: &Path) -> bool {
        let path = folder.join(self.path());
        match self {
            Self::Text { text, .. } => fs::read_to_string(&path).is_ok_and(|there| there == *text),
            Self::Link { target, .. } => fs::read_link(&path).is_ok_and(|there| there == *target),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hard link shows whether the old file was truncated before the new one was complete.
    #[test]
    fn what_is_written_takes_the_place_of_what_was_there() {
        let out = tempfile::tempdir().unwrap();
        let at = |name: &str| out.path().join(name);
        fs::create_dir(at("base")).unwrap();
        fs::write(at("base/a.yaml"), "old").unwrap();
        fs::hard_link(at("base/a.yaml"), at("kept")).unwrap();
        symlink("elsewhere", at("base/link")).unwrap();
        let files = [
            File::Text { path: "base/a.yaml".into(), text: "new".to_owned() },
            File::Text { path: "made/b.yaml".into(), text: "b".to_owned() },
            File::Link { path: "base/link".into(), target: "a.yaml".into() },
        ];
        assert_eq!(check(out.path(), &files).unwrap(), Exit::Differs);
        write(out.path(), &files).unwrap();
        assert_eq!(check(out.path(), &files).unwrap(), Exit::Expected);
        assert_eq!(fs::read_to_string(at("kept")).unwrap(), "old");
        let names = |folder: &str| fs::read_dir(at(folder)).unwrap().count();
        assert_eq!((names("base"), names("made")), (2, 1), "nothing is left beside them");
    }
}
