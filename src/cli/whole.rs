//! Writes files atomically: a file has either its complete new contents or its old ones.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::process::Fault;

/// Writes a file that the user named; it may also be a pipe or a device.
///
/// # Errors
/// When it cannot be written; the old contents stay.
pub(super) fn write(path: &Path, text: &str) -> Result<(), Fault> {
    written(path, text).map_err(|error| Fault::usage(format!("cannot write `{}`: {error}", path.display())))
}

/// Does the same as [`write`], with an error that the caller completes.
pub(super) fn written(path: &Path, text: &str) -> io::Result<()> {
    let there = fs::metadata(path).ok();
    if there.as_ref().is_some_and(|there| !there.is_file()) {
        return fs::write(path, text);
    }
    // Symbolic links are followed, so that the target is replaced.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let done = replaced(&target, |beside| {
        let mut file = File::create_new(beside)?;
        if let Some(there) = &there {
            file.set_permissions(there.permissions())?;
        }
        file.write_all(text.as_bytes())
    });
    match done {
        // The file may be writable although its folder is not.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && there.is_some() => {
            fs::write(path, text)
        }
        done => done,
    }
}

/// Replaces the file at `path` by the one that `make` creates at the temporary path that it gets.
///
/// Each call has its own temporary path: several threads may write to the folder, and several containers, in which
/// processes have the same ids.
pub(super) fn replaced(path: &Path, make: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let mut beside = path.to_owned().into_os_string();
    beside.push(format!(".{}.new", Uuid::new_v4().simple()));
    let beside = PathBuf::from(beside);
    let done = make(&beside).and_then(|()| fs::rename(&beside, path));
    if done.is_err() {
        // The first error is reported: if this fails too, it has the same cause.
        removed(&beside).ok();
    }
    done
}

/// Removes a file, if it exists.
pub(super) fn removed(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn what_cannot_be_written_leaves_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.yaml");
        fs::write(&path, "old").unwrap();
        let full = |beside: &Path| {
            fs::write(beside, "ne")?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        };
        assert_eq!(replaced(&path, full).unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn a_file_keeps_its_mode_and_the_links_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("a.yaml"), folder.path().join("link.yaml"));
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("a.yaml", &link).unwrap();
        write(&link, "new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        write(&folder.path().join("b.yaml"), "b").unwrap();
        assert_eq!(fs::read_to_string(folder.path().join("b.yaml")).unwrap(), "b");
    }

    #[test]
    fn what_is_no_file_is_written_as_it_is() {
        assert!(write(Path::new("/dev/null"), "a").is_ok());
        let told = write(Path::new("/dev/full"), "a").unwrap_err().message;
        assert_eq!(told, "cannot write `/dev/full`: No space left on device (os error 28)");
        let told = write(Path::new("/no/such/folder"), "a").unwrap_err().message;
        assert_eq!(told, "cannot write `/no/such/folder`: No such file or directory (os error 2)");
    }
}
