//! Where a cleaned folder goes: into an archive, or into another folder.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read as _, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType};

use super::super::bundle::{EFFORT, header};

/// Takes what a folder holds, one after the other; paths are below its root, which comes first.
pub trait Sink {
    /// # Errors
    /// Whatever it writes to fails with.
    fn folder(&mut self, path: &Path, known: &Metadata) -> io::Result<()>;
    /// # Errors
    /// Whatever it writes to fails with.
    fn link(&mut self, path: &Path, known: &Metadata, target: &Path) -> io::Result<()>;
    /// # Errors
    /// Whatever it writes to fails with.
    fn file(&mut self, path: &Path, known: &Metadata, contents: &mut File, length: u64) -> io::Result<()>;
    /// # Errors
    /// Whatever it writes to fails with.
    fn finish(&mut self) -> io::Result<()>;
}

/// A gzip-compressed tar with a folder as its root.
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
        // Who unpacks it must be able to write into it.
        header.set_mode(known.permissions().mode() & 0o777 | 0o700);
        self.tar.append_data(&mut header, self.root.join(path), io::empty())
    }

    fn link(&mut self, path: &Path, known: &Metadata, target: &Path) -> io::Result<()> {
        self.tar.append_link(&mut header(known, EntryType::Symlink), self.root.join(path), target)
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

/// A folder that is made here, and that must not be there yet.
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
            // Two folders may be shown under one path.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made,
        }
    }

    fn link(&mut self, path: &Path, _known: &Metadata, target: &Path) -> io::Result<()> {
        // A link to where nothing of the folder is would let a later file be written elsewhere.
        let climbs =
            target.components().filter(|part| matches!(part, std::path::Component::ParentDir)).count();
        let deep = path.components().count().saturating_sub(1);
        if climbs > deep { Ok(()) } else { symlink(target, self.made(path)?) }
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
    /// The path, with the folders above it: a rule may have made one part several.
    fn made(&self, path: &Path) -> io::Result<PathBuf> {
        let path = self.0.join(path);
        if let Some(above) = path.parent() {
            fs::create_dir_all(above)?;
        }
        Ok(path)
    }
}
