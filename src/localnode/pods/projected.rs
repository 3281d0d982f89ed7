//! Updates the files of a volume with the contents of a Secret, a ConfigMap or fields of the Pod atomically.
//!
//! The layout is that of a kubelet: files in a folder of their own, `..data` as a link to that folder, and a link through `..data` for
//! each name at the top. Readers see either all old files or all new ones, and a change of `..data` shows that they changed.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};

use jiff::Timestamp;

use crate::private;

/// The link that is switched from one folder of files to the next.
const DATA: &str = "..data";
/// The temporary name of the new link.
const NEXT: &str = "..data_tmp";

/// A file of a volume, with its path there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) path: String,
    pub(super) bytes: Vec<u8>,
    pub(super) mode: i32,
}

impl Piece {
    fn bits(&self) -> u32 {
        u32::try_from(self.mode).unwrap_or(0o644) & 0o777
    }
}

/// Returns a path below a folder; None if it leads out of it.
pub(super) fn inside(folder: &Path, path: &str) -> Option<PathBuf> {
    let below =
        Path::new(path).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    (below && !path.is_empty()).then(|| folder.join(path))
}

/// Makes `pieces` the contents of `volume`; returns whether that changed anything. Of pieces with the same path, the last one counts.
///
/// # Errors
/// For a path that leads out of the volume, and file system errors; the volume is then unchanged.
pub(super) fn publish(volume: &Path, pieces: &[Piece]) -> io::Result<bool> {
    let wanted: BTreeMap<&str, &Piece> = pieces.iter().map(|piece| (piece.path.as_str(), piece)).collect();
    let old = fs::read_link(volume.join(DATA)).ok();
    if old.as_ref().is_some_and(|old| holds(&volume.join(old), &wanted)) {
        return Ok(false);
    }
    let name = format!("..{}", Timestamp::now().strftime("%Y_%m_%d_%H_%M_%S.%9f"));
    let next = volume.join(&name);
    if let Err(error) = fs::create_dir(&next).and_then(|()| fill(&next, &wanted)) {
        let _ = fs::remove_dir_all(&next);
        return Err(error);
    }
    let _ = fs::remove_file(volume.join(NEXT));
    symlink(&name, volume.join(NEXT))?;
    fs::rename(volume.join(NEXT), volume.join(DATA))?;
    link(volume, &wanted)?;
    if let Some(old) = old {
        fs::remove_dir_all(volume.join(old))?;
    }
    Ok(true)
}

/// Whether a folder has exactly these files, with these contents.
fn holds(folder: &Path, wanted: &BTreeMap<&str, &Piece>) -> bool {
    let mut found = BTreeSet::new();
    let mut left = vec![folder.to_owned()];
    while let Some(at) = left.pop() {
        let Ok(entries) = fs::read_dir(&at) else { return false };
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                left.push(path);
            } else {
                found.insert(path);
            }
        }
    }
    let is_there = |piece: &&Piece| {
        let Some(path) = inside(folder, &piece.path) else { return false };
        let mode = fs::metadata(&path).map(|known| known.permissions().mode() & 0o777);
        mode.is_ok_and(|mode| mode == piece.bits()) && fs::read(&path).is_ok_and(|bytes| bytes == piece.bytes)
    };
    found.len() == wanted.len() && wanted.values().all(is_there)
}

fn fill(folder: &Path, wanted: &BTreeMap<&str, &Piece>) -> io::Result<()> {
    for piece in wanted.values() {
        let path = inside(folder, &piece.path)
            .ok_or_else(|| io::Error::other(format!("{:?} leads out of the volume", piece.path)))?;
        if let Some(above) = path.parent() {
            fs::create_dir_all(above)?;
        }
        private::new_file(&path).and_then(|mut file| io::Write::write_all(&mut file, &piece.bytes))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(piece.bits()))?;
    }
    Ok(())
}

/// Creates the links at the top, and removes those without a target.
fn link(volume: &Path, wanted: &BTreeMap<&str, &Piece>) -> io::Result<()> {
    let top = |path: &str| {
        Path::new(path).components().find_map(|part| match part {
            Component::Normal(name) => Some(name.to_owned()),
            _ => None,
        })
    };
    let names: BTreeSet<OsString> = wanted.keys().filter_map(|path| top(path)).collect();
    for entry in fs::read_dir(volume)?.flatten() {
        let is_ours = fs::read_link(entry.path()).is_ok_and(|to| to.starts_with(DATA));
        if is_ours && !names.contains(&entry.file_name()) {
            fs::remove_file(entry.path())?;
        }
    }
    for name in names {
        let at = volume.join(&name);
        if at.symlink_metadata().is_err() {
            symlink(Path::new(DATA).join(&name), at)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(path: &str, text: &str) -> Piece {
        Piece { path: path.to_owned(), bytes: text.as_bytes().to_vec(), mode: 0o640 }
    }

    #[test]
    fn paths_stay_in_their_volume() {
        let folder = Path::new("/v");
        assert_eq!(inside(folder, "a/b"), Some("/v/a/b".into()));
        for out in ["../a", "a/../../b", "/etc", ""] {
            assert_eq!(inside(folder, out), None, "{out}");
        }
    }

    #[test]
    fn files_change_all_at_once_and_only_where_they_differ() {
        let folder = tempfile::tempdir().unwrap();
        let volume = folder.path();
        let read = |path: &str| fs::read_to_string(volume.join(path));
        assert!(publish(volume, &[piece("a", "1"), piece("deep/b", "2")]).unwrap());
        assert_eq!((read("a").unwrap(), read("deep/b").unwrap()), ("1".to_owned(), "2".to_owned()));
        assert_eq!(fs::metadata(volume.join("a")).unwrap().permissions().mode() & 0o777, 0o640);
        let first = fs::read_link(volume.join(DATA)).unwrap();
        assert!(!publish(volume, &[piece("deep/b", "2"), piece("a", "1")]).unwrap());
        assert_eq!(fs::read_link(volume.join(DATA)).unwrap(), first);

        let open = fs::File::open(volume.join("a")).unwrap();
        assert!(publish(volume, &[piece("a", "new"), piece("c", "3")]).unwrap());
        assert_eq!((read("a").unwrap(), read("c").unwrap()), ("new".to_owned(), "3".to_owned()));
        assert!(read("deep/b").is_err() && !volume.join(first).exists());
        // Open files keep their old contents.
        assert_eq!(io::read_to_string(open).unwrap(), "1");
        assert!(publish(volume, &[piece("a", "new")]).unwrap());
        assert_eq!(fs::read_dir(volume).unwrap().count(), 3);
        assert!(publish(volume, &[Piece { mode: 0o600, ..piece("a", "new") }]).unwrap());
    }

    #[test]
    fn what_leads_out_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        publish(folder.path(), &[piece("a", "1")]).unwrap();
        assert!(publish(folder.path(), &[piece("a", "2"), piece("../b", "x")]).is_err());
        assert_eq!(fs::read_to_string(folder.path().join("a")).unwrap(), "1");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
    }
}
