//! Defines where an obfuscated folder is written: into an archive, or into another folder.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read as _, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType};

use super::super::bundle::{EFFORT, header};

/// Receives the contents of a folder one after the other; paths are relative to its root, which comes first.
pub trait Sink {
    /// # Errors
    /// The errors of the output.
    fn folder(&mut self, path: &Path, known: &Metadata) -> io::Result<()>;
    /// Returns false, and writes nothing, if the link would stand below another one.
    ///
    /// # Errors
    /// The errors of the output.
    fn link(&mut self, path: &Path, known: &Metadata, target: &Path) -> io::Result<bool>;
    /// # Errors
    /// The errors of the output.
    fn file(&mut self, path: &Path, known: &Metadata, contents: &mut File, length: u64) -> io::Result<()>;
    /// # Errors
    /// The errors of the output.
    fn finish(&mut self) -> io::Result<()>;
}

/// Writes a gzip-compressed tar with a folder as its root.
pub struct Archive<W: Write> {
    tar: Builder<GzEncoder<W>>,
    root: PathBuf,
}

impl<W: Write> std::fmt::Debug for Archive<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Archive").field("root", &self.root).finish_non_exhaustive()
    }
}

impl<W: Write> Archive<W> {
    pub fn new(out: W, root: &Path) -> Self {
        Self { tar: Builder::new(GzEncoder::new(out, Compression::new(EFFORT))), root: root.to_owned() }
    }
}

impl<W: Write> Sink for Archive<W> {
    fn folder(&mut self, path: &Path, known: &Metadata) -> io::Result<()> {
        let mut header = header(known, EntryType::Directory);
        // The owner must be able to write into the folder when unpacking.
        header.set_mode(known.permissions().mode() & 0o777 | 0o700);
        self.tar.append_data(&mut header, self.root.join(path), io::empty())
    }

    fn link(&mut self, path: &Path, known: &Metadata, target: &Path) -> io::Result<bool> {
        self.tar.append_link(&mut header(known, EntryType::Symlink), self.root.join(path), target)?;
        Ok(true)
    }

    fn file(&mut self, path: &Path, known: &Metadata, contents: &mut File, length: u64) -> io::Result<()> {
        let mut header = header(known, EntryType::Regular);
        header.set_size(length);
        self.tar.append_data(&mut header, self.root.join(path), contents.take(length))
    }

    fn finish(&mut self) -> io::Result<()> {
        self.tar.finish()?;
        self.tar.get_mut().try_finish()?;
        self.tar.get_mut().get_mut().flush()
    }
}

/// Writes a new folder, which must not exist yet.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }
}

impl Sink for Folder {
    fn folder(&mut self, path: &Path, _known: &Metadata) -> io::Result<()> {
        match DirBuilder::new().recursive(true).mode(0o700).create(self.0.join(path)) {
            // Two folders may have the same obfuscated path.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made,
        }
    }

    fn link(&mut self, path: &Path, _known: &Metadata, target: &Path) -> io::Result<bool> {
        let above = path.parent().unwrap_or(Path::new(""));
        let path = self.made(path)?;
        // Below another link, the steps upwards of this one would start elsewhere.
        let is_below_folders =
            path.parent().map(Path::canonicalize).transpose()? == Some(self.0.canonicalize()?.join(above));
        if is_below_folders {
            symlink(target, path)?;
        }
        Ok(is_below_folders)
    }

    fn file(&mut self, path: &Path, _known: &Metadata, contents: &mut File, length: u64) -> io::Result<()> {
        let path = self.made(path)?;
        let mut out = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(path)?;
        io::copy(&mut contents.take(length), &mut out)?;
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        File::open(&self.0)?.sync_all()
    }
}

impl Folder {
    /// Returns the path after creating its parent folders: a replacement may contain slashes.
    fn made(&self, path: &Path) -> io::Result<PathBuf> {
        let path = self.0.join(path);
        if let Some(above) = path.parent() {
            fs::create_dir_all(above)?;
        }
        Ok(path)
    }
}
