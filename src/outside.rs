//! Files from outside: what somebody else writes, mounts or names, and this process only reads.
//!
//! A path says nothing about what stands behind it: a named pipe that nobody writes to, a device without an end, a file
//! system that does not answer. So a file is opened without waiting, looked at once it is open, and read up to a bound; and
//! where others wait for the process, it is read apart from them, for a limited time.

use std::fs::{self, File, FileType, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::Duration;

use thiserror::Error;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Bytes of a certificate, a key or a token with all that may go with it: a bundle of all public authorities has a quarter.
pub(crate) const MAX_PEM: u64 = 1024 * 1024;

/// How long others wait for files to be read. A folder of thousands of files takes a second from a slow disk; a file system
/// that needs longer does not answer at all.
const PATIENCE: Duration = Duration::from_secs(15);
/// Reads that nobody waits for any more, because the system never ended them. Each holds a thread; with so many there is
/// none for another read until one of them ends.
const MAX_STUCK: usize = 16;

static FREE: Semaphore = Semaphore::const_new(MAX_STUCK);

/// Why a file is not read.
#[derive(Debug, Error)]
pub(crate) enum Unreadable {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("it is {0}, and only regular files are read here; put a file in its place")]
    NoFile(&'static str),
    #[error("more than {0} bytes are too many; put the right file in its place")]
    TooLarge(u64),
    #[error("not UTF-8")]
    NotText,
    #[error("it was not read within {} s; see whether the file system that it is on answers", PATIENCE.as_secs())]
    TooSlow,
    #[error("the process ends")]
    Ended,
}

impl Unreadable {
    /// Whether there is no such file.
    #[must_use]
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::NotFound)
    }

    /// The same for who knows errors of the system only.
    pub(crate) fn into_io(self) -> io::Error {
        match self {
            Self::Io(error) => error,
            other => io::Error::other(other.to_string()),
        }
    }
}

/// The bytes of a regular file of `most` bytes or less, with what the system says about it. Never waits for another process.
///
/// # Errors
/// Pipes, devices, sockets, folders and what the kernel makes up are refused by name.
pub(crate) fn bytes(path: &Path, most: u64) -> Result<(Vec<u8>, Metadata), Unreadable> {
    // Some devices do something when they are opened. Only a look at the handle is proof, though: a path may change.
    regular(&fs::metadata(path)?)?;
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    let about = file.metadata()?;
    regular(&about)?;
    if about.len() > most {
        return Err(Unreadable::TooLarge(most));
    }
    Ok((whole(file, most)?, about))
}

/// The same of whatever `path` is, for what is named on a command line: a pipe of a shell, a terminal. Waits for it.
///
/// # Errors
/// When it cannot be read, or is larger.
pub(crate) fn bytes_of_any(path: &Path, most: u64) -> Result<Vec<u8>, Unreadable> {
    whole(File::open(path)?, most)
}

/// The text of a regular file of `most` bytes or less.
///
/// # Errors
/// As [`bytes`], and when it is no text.
pub(crate) fn text(path: &Path, most: u64) -> Result<String, Unreadable> {
    let (bytes, _) = bytes(path, most)?;
    String::from_utf8(bytes).map_err(|_| Unreadable::NotText)
}

/// What `read` finds, on a thread that nobody waits for longer than files take. What it begun with then goes on without us.
///
/// # Errors
/// When it takes longer, or too many others do.
pub(crate) async fn in_time<T: Send + 'static>(
    read: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Unreadable> {
    within(PATIENCE, read).await
}

async fn within<T: Send + 'static>(
    patience: Duration,
    read: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Unreadable> {
    let reading = async {
        let permit = FREE.acquire().await.map_err(io::Error::other)?;
        let reading = tokio::task::spawn_blocking(move || {
            let _held = permit;
            read()
        });
        // A runtime that ends takes what it has not begun with away.
        reading.await.map_err(|error| {
            if error.is_cancelled() { Unreadable::Ended } else { io::Error::other(error).into() }
        })
    };
    timeout(patience, reading).await.unwrap_or(Err(Unreadable::TooSlow))
}

fn whole(file: File, most: u64) -> Result<Vec<u8>, Unreadable> {
    let mut bytes = Vec::new();
    // One that grows while it is read is read no further.
    let read = file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if u64::try_from(read).map_or(true, |read| read > most) {
        Err(Unreadable::TooLarge(most))
    } else {
        Ok(bytes)
    }
}

fn regular(about: &Metadata) -> Result<(), Unreadable> {
    if !about.is_file() {
        return Err(Unreadable::NoFile(name(about.file_type())));
    }
    // They say that they are regular; to read them may block, never end, or do something.
    let of_kernel = ["/proc", "/sys"].iter().any(|mount| {
        fs::metadata(mount).is_ok_and(|mount| mount.dev() == about.dev() && mount.dev() != root_device())
    });
    if of_kernel { Err(Unreadable::NoFile("made up by the kernel")) } else { Ok(()) }
}

/// Of the file system that `/proc` and `/sys` are folders of where nothing is mounted on them.
fn root_device() -> u64 {
    fs::metadata("/").map_or(0, |root| root.dev())
}

fn name(kind: FileType) -> &'static str {
    if kind.is_dir() {
        "a directory"
    } else if kind.is_fifo() {
        "a named pipe"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_char_device() || kind.is_block_device() {
        "a device"
    } else {
        "no file"
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use std::process::Command;
    use std::sync::mpsc;

    use super::*;

    fn refusal(path: &Path) -> String {
        bytes(path, 8).unwrap_err().to_string()
    }

    #[test]
    fn what_is_no_file_is_refused_by_name_and_without_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "12345678").unwrap();
        assert_eq!(text(&at("file"), 8).unwrap(), "12345678");
        assert!(matches!(text(&at("file"), 7), Err(Unreadable::TooLarge(7))));

        assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        let _socket = UnixListener::bind(at("socket")).unwrap();
        symlink(at("link"), at("link")).unwrap();
        symlink("/dev/zero", at("zero")).unwrap();
        File::create(at("sparse")).unwrap().set_len(1 << 40).unwrap();
        for (name, expected) in [
            ("pipe", "a named pipe"),
            ("socket", "a socket"),
            ("zero", "a device"),
            (".", "a directory"),
            ("sparse", "too many"),
            ("link", "symbolic links"),
        ] {
            let said = refusal(&at(name));
            assert!(said.contains(expected), "{name}: {said}");
        }
        for made_up in ["/proc/self/environ", "/proc/kmsg", "/sys/kernel/uevent_seqnum"] {
            if Path::new(made_up).exists() {
                assert!(refusal(Path::new(made_up)).contains("by the kernel"), "{made_up}");
            }
        }
        assert!(bytes(&at("none"), 8).unwrap_err().is_missing());
    }

    #[tokio::test]
    async fn who_waits_waits_no_longer_than_files_take() {
        let (end, wait) = mpsc::channel::<()>();
        let stuck = within(Duration::from_millis(1), move || wait.recv()).await;
        assert!(matches!(stuck, Err(Unreadable::TooSlow)));
        assert_eq!(in_time(|| 1).await.unwrap(), 1, "others are read meanwhile");
        end.send(()).unwrap();
    }
}
