//! The location of a store: a file that only its owner may read, and that gets its final name only once it holds a
//! complete store.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use redb::StorageBackend;
use redb::backends::FileBackend;

/// For the owner alone: the store holds every Secret.
const MODE: u32 = 0o600;

/// How much room there has to be before a store that was refused a write is opened again: one change of the largest size
/// that requests may have, with the pages that lead to it. With less, the next change would fail as the last one did.
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

    /// For messages.
    fn name(&self) -> String;

    /// Opens what is there, or begins anew.
    ///
    /// # Errors
    /// When it cannot be opened, or is no store at first sight.
    fn open(&self) -> io::Result<Opened<Self::Storage>>;

    /// Makes a store that was begun anew the one that is opened from now on.
    ///
    /// # Errors
    /// When there is one by now, or it cannot be made.
    fn publish(&self) -> io::Result<()>;

    /// # Errors
    /// While there is no room for a change.
    fn room(&self) -> io::Result<()>;
}

/// An opened medium.
#[derive(Debug)]
pub struct Opened<S> {
    pub storage: S,
    /// Whether the store is new.
    pub fresh: bool,
}

/// A file.
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

    /// A new store under construction. What a process that was killed left under this name is nobody's.
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

    /// `link` refuses a name that is taken, where `rename` would put an empty store over the one of another process.
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

/// A new file of nobody else's.
fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(MODE).open(path)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
