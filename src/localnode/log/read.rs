//! Reads a container's log: the requested part, at the speed of the receiver, and following new output on request.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use futures::Stream;
use jiff::Timestamp;
use tokio::sync::watch;

use super::{Stream as Of, aside};

/// The size of a chunk.
const CHUNK: usize = 64 << 10;

/// The requested part of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Whether to follow new output until the container ends.
    pub follow: bool,
    /// Whether to read the log of the previous run.
    pub previous: bool,
    /// Whether to prefix each line with its time.
    pub timestamps: bool,
    /// Only lines from this time on.
    pub since: Option<Timestamp>,
    /// The number of lines from the end.
    pub tail: Option<u64>,
    /// The most bytes.
    pub limit: Option<u64>,
    /// `Stdout` or `Stderr`; None for both.
    pub stream: Option<String>,
}

/// The state of reading a log.
struct Reading {
    path: PathBuf,
    file: BufReader<File>,
    /// Whether the rotated file is being read, which comes first.
    is_aside: bool,
    wanted: Wanted,
    /// The number of lines to skip before the requested ones.
    skip: u64,
    left: u64,
    /// Whether the next part begins a line.
    begins: bool,
}

/// Reads the log at `path`; `news` is notified of writes, and ends with the container.
///
/// # Errors
/// When there is no such log.
pub(super) fn read(
    path: &Path,
    wanted: Wanted,
    news: Option<watch::Receiver<u64>>,
) -> io::Result<impl Stream<Item = io::Result<Bytes>> + Send + 'static> {
    let left = wanted.limit.unwrap_or(u64::MAX);
    let (file, is_aside) = open(path)?;
    let reading = Reading { path: path.to_owned(), file, is_aside, skip: 0, left, begins: true, wanted };
    let news = news.filter(|_| reading.wanted.follow);
    Ok(futures::stream::try_unfold(
        (Some(reading), news, false),
        |(reading, mut news, mut over)| async move {
            let Some(mut reading) = reading else { return Ok(None) };
            loop {
                if let Some(news) = &mut news {
                    news.borrow_and_update();
                }
                // File access blocks.
                let done = tokio::task::spawn_blocking(move || {
                    let chunk = reading.chunk();
                    (reading, chunk)
                });
                let chunk;
                (reading, chunk) = done.await.map_err(io::Error::other)?;
                let chunk = chunk?;
                if !chunk.is_empty() {
                    return Ok(Some((Bytes::from(chunk), (Some(reading), news, over))));
                }
                match &mut news {
                    Some(news) if !over && reading.left > 0 => over = news.changed().await.is_err(),
                    _ => return Ok(None),
                }
            }
        },
    ))
}

fn open(path: &Path) -> io::Result<(BufReader<File>, bool)> {
    match File::open(aside(path)) {
        Ok(file) => Ok((BufReader::with_capacity(CHUNK, file), true)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Ok((BufReader::with_capacity(CHUNK, File::open(path)?), false))
        }
        Err(error) => Err(error),
    }
}

impl Reading {
    /// Returns the next text; empty if there is none yet.
    fn chunk(&mut self) -> io::Result<Vec<u8>> {
        if let Some(tail) = self.wanted.tail.take() {
            self.skip = lines(&self.path)?.saturating_sub(tail);
        }
        let mut out = Vec::new();
        let mut line = Vec::new();
        while out.len() < CHUNK && self.left > 0 {
            line.clear();
            if !self.line(&mut line)? {
                break;
            }
            if self.skip > 0 {
                self.skip -= 1;
                continue;
            }
            self.show(&line, &mut out);
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX);
        out.truncate(most);
        self.left -= out.len() as u64;
        Ok(out)
    }

    /// Reads the next line; false if there is no complete one yet.
    fn line(&mut self, line: &mut Vec<u8>) -> io::Result<bool> {
        loop {
            let read = self.file.read_until(b'\n', line)?;
            if line.ends_with(b"\n") {
                return Ok(true);
            }
            // A partially written line is read again when it is complete.
            self.file.seek_relative(-i64::try_from(read).unwrap_or(0))?;
            line.clear();
            if !self.goes_on()? {
                return Ok(false);
            }
        }
    }

    /// Opens the next file, if there is one.
    fn goes_on(&mut self) -> io::Result<bool> {
        let next = match File::open(&self.path) {
            Ok(next) => next,
            // In the middle of a rotation.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        let (old, new) = (self.file.get_ref().metadata()?, next.metadata()?);
        if old.ino() == new.ino() && !self.is_aside {
            return Ok(false);
        }
        self.is_aside = false;
        self.file = BufReader::with_capacity(CHUNK, next);
        Ok(true)
    }

    fn show(&mut self, line: &[u8], out: &mut Vec<u8>) {
        let Some(Line { at, of, whole, text }) = Line::parse(line) else { return };
        let asked = self.wanted.stream.as_deref();
        let other = match of {
            Of::Out => asked == Some("Stderr"),
            Of::Err => asked == Some("Stdout"),
        };
        let old =
            || self.wanted.since.is_some_and(|since| at.parse::<Timestamp>().is_ok_and(|at| at < since));
        if other || old() {
            return;
        }
        if self.wanted.timestamps && self.begins {
            out.extend_from_slice(at.as_bytes());
            out.push(b' ');
        }
        out.extend_from_slice(text);
        if whole {
            out.push(b'\n');
        }
        self.begins = whole;
    }
}

/// A parsed line of a log file.
struct Line<'a> {
    at: &'a str,
    of: Of,
    /// Whether the line ends here.
    whole: bool,
    text: &'a [u8],
}

impl<'a> Line<'a> {
    fn parse(line: &'a [u8]) -> Option<Self> {
        let line = line.strip_suffix(b"\n")?;
        let mut parts = line.splitn(4, |byte| *byte == b' ');
        let at = std::str::from_utf8(parts.next()?).ok()?;
        let of = if parts.next()? == b"stderr" { Of::Err } else { Of::Out };
        let whole = parts.next()? == b"F";
        Some(Self { at, of, whole, text: parts.next()? })
    }
}

/// Counts the lines of a log in all its files.
fn lines(path: &Path) -> io::Result<u64> {
    let (mut file, is_aside) = open(path)?;
    let mut count = newlines(&mut file)?;
    if is_aside {
        count += newlines(&mut BufReader::with_capacity(CHUNK, File::open(path)?))?;
    }
    Ok(count)
}

fn newlines(file: &mut BufReader<File>) -> io::Result<u64> {
    let mut count = 0;
    loop {
        let chunk = file.fill_buf()?;
        if chunk.is_empty() {
            return Ok(count);
        }
        count += chunk.iter().filter(|byte| **byte == b'\n').count() as u64;
        let used = chunk.len();
        file.consume(used);
    }
}
