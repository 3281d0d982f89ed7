//! Writes a container's output with timestamps into files of bounded size: `<time> stdout|stderr F|P <text>`, the format of
//! container runtimes. `P` marks a partial line that continues.

mod read;
mod registry;

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::sync::watch;
use tracing::warn;

pub use self::read::Wanted;
pub(in crate::localnode) use self::registry::Writing;
pub use self::registry::{Logs, NoLog};

/// The size at which a file is rotated, replacing the previously rotated one: one run of a container keeps
/// twice as much at most.
const MAX_FILE: u64 = 10 << 20;
/// The longest part of a line.
const MAX_PIECE: usize = 16 << 10;

/// The output stream of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    Out,
    Err,
}

impl Stream {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Out => "stdout",
            Self::Err => "stderr",
        }
    }
}

/// The log of one run of a container.
#[derive(Clone, Debug)]
pub(super) struct Log {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    open: Mutex<Open>,
    /// Counts writes, for readers that follow.
    written: watch::Sender<u64>,
}

#[derive(Debug)]
struct Open {
    file: File,
    size: u64,
    limit: u64,
    failed: bool,
}

impl Log {
    /// Creates a log file at `path`.
    ///
    /// # Errors
    /// When the file cannot be created.
    fn create(path: &Path) -> io::Result<Self> {
        Self::bounded(path, MAX_FILE)
    }

    /// Returns a receiver that is notified of writes, until the writer is dropped.
    fn news(&self) -> watch::Receiver<u64> {
        self.inner.written.subscribe()
    }

    fn bounded(path: &Path, limit: u64) -> io::Result<Self> {
        let open = Open { file: new_file(path)?, size: 0, limit, failed: false };
        let inner = Inner { path: path.to_owned(), open: Mutex::new(open), written: watch::Sender::new(0) };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Writes everything from `from` until it ends. If the disk is full, output is dropped: the container must never be
    /// blocked by that.
    pub(super) async fn take(self, from: impl AsyncRead + Unpin, stream: Stream) {
        let mut from = BufReader::with_capacity(MAX_PIECE, from);
        loop {
            let chunk = match from.fill_buf().await {
                Ok([]) | Err(_) => return,
                Ok(chunk) => chunk,
            };
            let (piece, rest, used) = match chunk.iter().position(|byte| *byte == b'\n') {
                Some(end) => (&chunk[..end], 'F', end + 1),
                None => (chunk, 'P', chunk.len()),
            };
            self.keep(Timestamp::now(), stream, rest, piece);
            from.consume(used);
        }
    }

    fn keep(&self, at: Timestamp, stream: Stream, rest: char, piece: &[u8]) {
        let mut line = format!("{} {} {rest} ", at.strftime("%FT%T.%9fZ"), stream.name()).into_bytes();
        line.extend_from_slice(piece);
        line.push(b'\n');
        let mut open = self.inner.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = open.write(&self.inner.path, &line)
            && !open.failed
        {
            open.failed = true;
            warn!(path = %self.inner.path.display(), %error, "a container's output is not kept");
        }
        drop(open);
        self.inner.written.send_modify(|count| *count += 1);
    }
}

impl Open {
    fn write(&mut self, path: &Path, line: &[u8]) -> io::Result<()> {
        if self.size >= self.limit {
            std::fs::rename(path, aside(path))?;
            self.file = new_file(path)?;
            self.size = 0;
        }
        self.file.write_all(line)?;
        self.size += line.len() as u64;
        Ok(())
    }
}

/// Returns the name of the rotated file.
fn aside(path: &Path) -> PathBuf {
    path.with_extension("log.1")
}

fn new_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use futures::TryStreamExt as _;

    use super::*;

    async fn shown(path: &Path, wanted: Wanted) -> String {
        let chunks: Vec<_> = read::read(path, wanted, None).unwrap().try_collect().await.unwrap();
        String::from_utf8(chunks.concat()).unwrap()
    }

    #[tokio::test]
    async fn lines_are_kept_with_their_stream_and_their_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("0.log");
        let log = Log::create(&path).unwrap();
        let long = "x".repeat(2 * MAX_PIECE + 7);
        log.clone().take(format!("one\n\n{long}\nlast").as_bytes(), Stream::Out).await;
        log.take(&b"trouble\n"[..], Stream::Err).await;
        let of = |stream: &str| Wanted { stream: Some(stream.to_owned()), ..Wanted::default() };
        assert_eq!(shown(&path, of("Stdout")).await, format!("one\n\n{long}\nlast"));
        assert_eq!(shown(&path, of("Stderr")).await, "trouble\n");
        let bytes = Wanted { limit: Some(5), ..Wanted::default() };
        assert_eq!(shown(&path, bytes).await, "one\n\n");
        let since = Wanted { since: Some(Timestamp::MAX), ..Wanted::default() };
        assert_eq!(shown(&path, since).await, "");
        let stamped = shown(&path, Wanted { timestamps: true, tail: Some(1), ..Wanted::default() }).await;
        let (at, text) = stamped.split_once(' ').unwrap();
        assert!(at.parse::<Timestamp>().is_ok() && text == "trouble\n", "{stamped}");
    }

    #[tokio::test]
    async fn a_log_is_bounded_and_read_across_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("0.log");
        let limit = 1_000;
        let log = Log::bounded(&path, limit).unwrap();
        let lines: Vec<String> = (0..400).map(|number| format!("line {number}\n")).collect();
        log.take(lines.concat().as_bytes(), Stream::Out).await;
        let sizes = [&path, &aside(&path)].map(|file| std::fs::metadata(file).unwrap().len());
        assert!(sizes.iter().all(|size| *size <= limit + 64), "{sizes:?}");
        let all = shown(&path, Wanted::default()).await;
        assert!(all.ends_with("line 398\nline 399\n") && lines.concat().ends_with(&all));
        let tail = Wanted { tail: Some(30), ..Wanted::default() };
        assert_eq!(shown(&path, tail).await, lines[370..].concat());
    }

    #[tokio::test]
    async fn whoever_follows_gets_every_line_and_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("0.log");
        let log = Log::create(&path).unwrap();
        log.keep(Timestamp::now(), Stream::Out, 'F', b"first");
        let follow = Wanted { follow: true, ..Wanted::default() };
        let mut reading = Box::pin(read::read(&path, follow, Some(log.news())).unwrap());
        assert_eq!(reading.try_next().await.unwrap().unwrap(), "first\n");
        log.keep(Timestamp::now(), Stream::Out, 'F', b"second");
        assert_eq!(reading.try_next().await.unwrap().unwrap(), "second\n");
        log.keep(Timestamp::now(), Stream::Out, 'F', b"third");
        drop(log);
        assert_eq!(reading.try_next().await.unwrap().unwrap(), "third\n");
        assert_eq!(reading.try_next().await.unwrap(), None);
    }
}
