//! Manages the file of a store: only its owner may read it, and it gets its final name only once it holds a
//! complete store.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use redb::StorageBackend;
use redb::backends::FileBackend;

/// Readable by the owner only: the store holds every Secret.
const MODE: u32 = 0o600;

/// Free space required before a store that failed to write is opened again: one change of the largest size
/// that requests may have, with the pages that lead to it. With less, the next change would fail again.
const ROOM: usize = 4 << 20;

/// Storage of a store's bytes, and how it is reopened after a failed write.
///
/// ```
/// use std::io;
///
/// use admit_apiserver::store::{Medium, Opened, RedbBackend, Store};
/// use redb::backends::InMemoryBackend;
///
/// /// Bytes in memory, new at each start.
/// struct Memory;
///
/// impl Medium for Memory {
///     type Storage = InMemoryBackend;
///
///     fn name(&self) -> String {
///         "memory".to_owned()
///     }
///
///     fn open(&self) -> io::Result<Opened<InMemoryBackend>> {
///         Ok(Opened { storage: InMemoryBackend::new(), fresh: true })
///     }
///
///     fn publish(&self) -> io::Result<()> {
///         Ok(())
///     }
///
///     fn room(&self) -> io::Result<()> {
///         Ok(())
///     }
/// }
///
/// let store = Store::open(Box::new(RedbBackend::over(Memory)?))?;
/// assert_eq!(store.takes_writes(), Some(true));
/// # Ok::<(), admit_apiserver::store::BackendError>(())
/// ```
pub trait Medium: Send {
    type Storage: StorageBackend;

    /// Names the medium in messages.
    fn name(&self) -> String;

    /// Opens the existing store, or begins a new one.
    ///
    /// # Errors
    /// When it cannot be opened, or is obviously not a store.
    fn open(&self) -> io::Result<Opened<Self::Storage>>;

    /// Gives a new store its final name, so that later calls of `open` find it.
    ///
    /// # Errors
    /// When a store of that name exists by now, or it cannot be named.
    fn publish(&self) -> io::Result<()>;

    /// Checks that there is space for a change.
    ///
    /// # Errors
    /// While there is none.
    fn room(&self) -> io::Result<()>;
}

/// An opened medium.
#[derive(Debug)]
pub struct Opened<S> {
    pub storage: S,
    /// Whether the store is new.
    pub fresh: bool,
}

/// A store in a file.
///
/// [`RedbBackend`](super::RedbBackend) has an example.
#[derive(Clone, Debug)]
pub struct StateFile {
    path: PathBuf,
}

impl StateFile {
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Path of a new store under construction. A file that a killed process left there may be removed.
    fn unfinished(&self) -> PathBuf {
        self.beside(".new")
    }

    fn beside(&self, ending: &str) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(ending);
        PathBuf::from(name)
    }

    fn folder(&self) -> &Path {
        self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }
}

impl Medium for StateFile {
    type Storage = FileBackend;

    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn open(&self) -> io::Result<Opened<FileBackend>> {
        remove(&self.unfinished())?;
        let (file, fresh) = match OpenOptions::new().read(true).write(true).open(&self.path) {
            Ok(file) => (file, false),
            Err(error) if error.kind() == io::ErrorKind::NotFound => (private(&self.unfinished())?, true),
            Err(error) => return Err(error),
        };
        let about = file.metadata()?;
        if !about.is_file() {
            return Err(io::Error::other("it is not a file"));
        }
        if !fresh && about.len() == 0 {
            return Err(io::Error::other(
                "it is empty, which no store is: what it held is lost; put a copy in its place, or delete it to begin \
                 with an empty cluster",
            ));
        }
        let storage = FileBackend::new(file).map_err(io::Error::other)?;
        Ok(Opened { storage, fresh })
    }

    /// Uses `link`, which fails if the name exists, where `rename` would replace the store of another process by an empty one.
    fn publish(&self) -> io::Result<()> {
        fs::hard_link(self.unfinished(), &self.path)?;
        fs::remove_file(self.unfinished())?;
        // A new name is durable only once its folder is synced.
        File::open(self.folder())?.sync_all()
    }

    fn room(&self) -> io::Result<()> {
        let path = self.beside(".room");
        remove(&path)?;
        let mut file = private(&path)?;
        let written = file.write_all(&vec![0; ROOM]).and_then(|()| file.sync_all());
        remove(&path)?;
        written
    }
}

/// Creates a new file that only its owner may read.
fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(MODE).open(path)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
