//! Writes a folder as one gzip-compressed tar while reading it: only a buffer of a file is in memory at a time.
//!
//! Files that cannot be read are left out and listed: gathering tools leave private files behind, and one of them must not
//! prevent the archive. Links are kept as links and never followed; special files are left out.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

/// The most names of left-out files that are listed; the others are counted.
const MAX_NAMED: usize = 100;
/// The gzip level: higher ones gain little for logs.
pub(super) const EFFORT: u32 = 5;

/// The contents of an archive.
#[derive(Debug, Default, PartialEq)]
pub struct Bundled {
    pub files: u64,
    /// The total size of the files, uncompressed.
    pub bytes: u64,
    /// The first files that were left out or truncated, each with the reason.
    pub incomplete: Vec<String>,
    /// The number of these files.
    pub incomplete_count: u64,
}

impl Bundled {
    fn lacks(&mut self, path: &Path, reason: impl std::fmt::Display) {
        self.incomplete_count += 1;
        if self.incomplete.len() < MAX_NAMED {
            self.incomplete.push(format!("{}: {reason}", path.display()));
        }
    }
}

/// Writes `folder` to `out`, under its own name.
///
/// # Errors
/// The errors of `out`; and when `folder` is not a folder.
pub fn bundle(folder: &Path, out: impl Write) -> io::Result<Bundled> {
    let folder = folder.canonicalize()?;
    let root = folder.file_name().map_or_else(|| PathBuf::from("must-gather"), PathBuf::from);
    let mut tar = Builder::new(GzEncoder::new(out, Compression::new(EFFORT)));
    let mut bundled = Bundled::default();
    // The folder itself must be readable: an empty archive would look like one of an empty cluster.
    fs::read_dir(&folder)?;
    let mut left = vec![(folder, root)];
    while let Some((path, name)) = left.pop() {
        let known = match fs::symlink_metadata(&path) {
            Ok(known) => known,
            Err(error) => {
                bundled.lacks(&name, error);
                continue;
            }
        };
        if known.is_dir() {
            append_folder(&mut tar, &known, &name)?;
            match below(&path, &name) {
                Ok(entries) => left.extend(entries),
                Err(error) => bundled.lacks(&name, error),
            }
        } else if known.is_symlink() {
            append_link(&mut tar, &known, &path, &name, &mut bundled)?;
        } else if known.is_file() {
            append_file(&mut tar, &path, &name, &mut bundled)?;
        } else {
            bundled.lacks(&name, "neither file, folder nor link");
        }
    }
    tar.into_inner()?.finish()?.flush()?;
    Ok(bundled)
}

/// Returns the entries of a folder, the last by name first, as they are taken from the end.
pub(super) fn below(path: &Path, name: &Path) -> io::Result<Vec<(PathBuf, PathBuf)>> {
    let names = fs::read_dir(path)?.map(|entry| Ok(entry?.file_name()));
    let mut names = names.collect::<io::Result<Vec<_>>>()?;
    names.sort_unstable_by(|a, b| b.cmp(a));
    Ok(names.into_iter().map(|entry| (path.join(&entry), name.join(&entry))).collect())
}

/// Creates a tar header without an owner: whoever unpacks the file owns it.
pub(super) fn header(known: &Metadata, kind: EntryType) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(known.mode() & 0o777);
    header.set_mtime(u64::try_from(known.mtime()).unwrap_or(0));
    header.set_size(0);
    header
}

fn append_folder(tar: &mut Builder<impl Write>, known: &Metadata, name: &Path) -> io::Result<()> {
    let mut header = header(known, EntryType::Directory);
    // The owner must be able to write into the folder when unpacking.
    header.set_mode(known.mode() & 0o777 | 0o700);
    tar.append_data(&mut header, name, io::empty())
}

fn append_link(
    tar: &mut Builder<impl Write>,
    known: &Metadata,
    path: &Path,
    name: &Path,
    bundled: &mut Bundled,
) -> io::Result<()> {
    match fs::read_link(path) {
        Ok(target) => tar.append_link(&mut header(known, EntryType::Symlink), name, target),
        Err(error) => {
            bundled.lacks(name, error);
            Ok(())
        }
    }
}

/// Opens a regular file, which may have been replaced by a link or a pipe since it was listed.
pub(super) fn open(path: &Path) -> io::Result<(File, Metadata)> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    let known = file.metadata()?;
    if known.is_file() {
        Ok((file, known))
    } else {
        Err(io::Error::other("it was replaced while it was read"))
    }
}

fn append_file(
    tar: &mut Builder<impl Write>,
    path: &Path,
    name: &Path,
    bundled: &mut Bundled,
) -> io::Result<()> {
    let (file, known) = match open(path) {
        Ok(opened) => opened,
        Err(error) => {
            bundled.lacks(name, error);
            return Ok(());
        }
    };
    let mut header = header(&known, EntryType::Regular);
    header.set_size(known.len());
    let mut exactly = Exactly { file, left: known.len(), short: None };
    tar.append_data(&mut header, name, &mut exactly)?;
    bundled.files += 1;
    bundled.bytes += known.len();
    if let Some(reason) = exactly.short {
        bundled.lacks(name, reason);
    }
    Ok(())
}

/// Reads exactly as many bytes as the header says: files that grow are cut, and those that shrink or fail are filled with zeros.
struct Exactly {
    file: File,
    left: u64,
    short: Option<String>,
}

impl Read for Exactly {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let Some(room) = buffer.get_mut(..most).filter(|room| !room.is_empty()) else { return Ok(0) };
        let read = match &self.short {
            Some(_) => 0,
            None => match self.file.read(room) {
                Ok(0) => {
                    self.short = Some("it became shorter while it was read".to_owned());
                    0
                }
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
                Err(error) => {
                    self.short = Some(error.to_string());
                    0
                }
            },
        };
        let given = if read == 0 {
            room.fill(0);
            room.len()
        } else {
            read
        };
        self.left -= given as u64;
        Ok(given)
    }
}

#[cfg(test)]
mod tests;
