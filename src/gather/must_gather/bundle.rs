//! A folder as one gzip-compressed tar, written as it is read: of no file more than a buffer is ever in memory.
//!
//! What cannot be read is left out and named: gatherers leave private files of their tools behind, and one of them must not
//! cost all the others. Links are kept as links and never followed; what is neither file, folder nor link is left out.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

/// Files whose names are kept of those that were left out; the others are counted.
const MAX_NAMED: usize = 100;
/// A zip of logs gains nothing worth its time from more effort.
pub(super) const EFFORT: u32 = 5;

/// What an archive holds.
#[derive(Debug, Default, PartialEq)]
pub struct Bundled {
    pub files: u64,
    /// Of files, uncompressed.
    pub bytes: u64,
    /// The first files that were left out, or whose end could not be read, each with the reason.
    pub incomplete: Vec<String>,
    /// How many there were.
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
/// Whatever `out` fails with, or when `folder` is none.
pub fn bundle(folder: &Path, out: impl Write) -> io::Result<Bundled> {
    let folder = folder.canonicalize()?;
    let root = folder.file_name().map_or_else(|| PathBuf::from("must-gather"), PathBuf::from);
    let mut tar = Builder::new(GzEncoder::new(out, Compression::new(EFFORT)));
    let mut bundled = Bundled::default();
    // The folder itself must be readable: an archive of nothing would look like one of an empty cluster.
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

/// What stands in a folder, the last by name first, as it is taken from the end.
pub(super) fn below(path: &Path, name: &Path) -> io::Result<Vec<(PathBuf, PathBuf)>> {
    let names = fs::read_dir(path)?.map(|entry| Ok(entry?.file_name()));
    let mut names = names.collect::<io::Result<Vec<_>>>()?;
    names.sort_unstable_by(|a, b| b.cmp(a));
    Ok(names.into_iter().map(|entry| (path.join(&entry), name.join(&entry))).collect())
}

/// Nobody's: who unpacks it owns it.
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
    // Who unpacks it must be able to write into it.
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

/// Opens what was a file when it was looked at, and may be a link or a pipe by now.
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

/// As many bytes as the header says, whatever becomes of the file: what grows is cut, what shrinks or fails ends in zeros.
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
