//! Reading a container's log: the part that is asked for, at the pace of whoever takes it, and on with what is yet to come.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use futures::Stream;
use jiff::Timestamp;
use tokio::sync::watch;

use super::{Stream as Of, aside};

/// What is handed on at a time.
const CHUNK: usize = 64 << 10;

/// What of a log is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Go on with what is yet to be written, until the container ends.
    pub follow: bool,
    /// The log of the start before this one.
    pub previous: bool,
    /// Each line after the time at which it was written.
    pub timestamps: bool,
    /// Nothing that is older.
    pub since: Option<Timestamp>,
    /// So many lines from the end.
    pub tail: Option<u64>,
    /// So many bytes.
    pub limit: Option<u64>,
    /// `Stdout` or `Stderr`; both where it is none.
    pub stream: Option<String>,
}

/// A log that is being read.
struct Reading {
    path: PathBuf,
    file: BufReader<File>,
    /// What was put aside is read first.
    is_aside: bool,
    wanted: Wanted,
    /// Lines that come before those that are asked for.
    skip: u64,
    left: u64,
    /// Whether the next piece begins a line.
    begins: bool,
}

/// The text of the log at `path`; `news` tells of what is written, and ends with the container.
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
                // Reading is work of the disk's.
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
    /// The next text; empty where there is none yet.
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

    /// The next line of the files; none where no whole one is there yet.
    fn line(&mut self, line: &mut Vec<u8>) -> io::Result<bool> {
        loop {
            let read = self.file.read_until(b'\n', line)?;
            if line.ends_with(b"\n") {
                return Ok(true);
            }
            // Half of a line that is being written is read again when it is whole.
            self.file.seek_relative(-i64::try_from(read).unwrap_or(0))?;
            line.clear();
            if !self.goes_on()? {
                return Ok(false);
            }
        }
    }

    /// Goes on with the file after this one, where there is one.
    fn goes_on(&mut self) -> io::Result<bool> {
        let next = match File::open(&self.path) {
            Ok(next) => next,
            // Between one name and the next.
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

/// A line of a log file, taken apart.
struct Line<'a> {
    at: &'a str,
    of: Of,
    /// Whether the text ends here.
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

/// The lines of a log, in all its files.
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
