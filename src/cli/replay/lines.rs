//! Reads logs in pieces, on a thread of its own: plain or compressed files, pipes, standard input. What cannot be read is reported in
//! its place, and reading continues.

use std::fs::File;
use std::io::{self, Chain, Cursor, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use admit_analysis::replay::{MAX_LINE, Unread};
use flate2::read::MultiGzDecoder;

use crate::cli::load;
use crate::cli::process::Fault;

/// How many bytes are read at a time.
const CHUNK: usize = 1 << 20;
/// The first bytes of gzip files.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// A piece of a log.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) file: Arc<str>,
    /// The number of its first line.
    pub(super) line: u64,
    pub(super) content: Content,
}

#[derive(Debug)]
pub(super) enum Content {
    /// Whole lines, with one document each.
    Lines(Vec<u8>),
    /// Documents of several lines.
    Documents(Vec<u8>),
    Unread(Unread),
}

/// An open log.
#[derive(Debug)]
pub(super) struct Log {
    name: Arc<str>,
    source: Source,
}

#[derive(Debug)]
enum Source {
    File(File),
    Stdin,
}

impl Log {
    /// Opens all logs, so that missing ones are reported before any is read.
    ///
    /// # Errors
    /// For files that cannot be opened, folders, and a second standard input.
    pub(super) fn open_all(paths: &[PathBuf]) -> Result<Vec<Self>, Fault> {
        if paths.iter().filter(|path| load::is_stdin(path)).count() > 1 {
            return Err(Fault::usage("standard input can be read only once"));
        }
        paths.iter().map(|path| Self::open(path)).collect()
    }

    fn open(path: &Path) -> Result<Self, Fault> {
        let name = path.display().to_string().into();
        if load::is_stdin(path) {
            return Ok(Self { name, source: Source::Stdin });
        }
        let unreadable =
            |why: &dyn std::fmt::Display| Fault::usage(format!("cannot read `{}`: {why}", path.display()));
        let file = File::open(path).map_err(|error| unreadable(&error))?;
        if file.metadata().is_ok_and(|about| about.is_dir()) {
            return Err(unreadable(&"it is a folder: name the files, in the order of their rotation"));
        }
        Ok(Self { name, source: Source::File(file) })
    }

    /// Sends the whole log. Ends early if the receiver is gone.
    pub(super) fn send(self, to: &SyncSender<Piece>) {
        let Self { name, source } = self;
        let file = Arc::clone(&name);
        let mut send = |line, content| to.send(Piece { file: Arc::clone(&file), line, content }).is_ok();
        match source {
            Source::File(file) => read(file, &mut send),
            Source::Stdin => read(io::stdin().lock(), &mut send),
        }
    }
}

/// Sends the contents of `source` in pieces, each with the number of its first line.
fn read(mut source: impl Read, send: &mut dyn FnMut(u64, Content) -> bool) {
    let mut first = Vec::new();
    let begun = source.by_ref().take(2).read_to_end(&mut first);
    if begun.is_err() {
        send(1, Content::Unread(Unread::Torn));
        return;
    }
    let packed = first == GZIP;
    let whole: Chain<Cursor<Vec<u8>>, _> = Cursor::new(first).chain(source);
    if packed { plain(MultiGzDecoder::new(whole), send) } else { plain(whole, send) }
}

fn plain(mut source: impl Read, send: &mut dyn FnMut(u64, Content) -> bool) {
    let (mut pending, mut line, mut skipping) = (Vec::new(), 1_u64, false);
    let mut begins = true;
    loop {
        let read = more(&mut source, &mut pending);
        if std::mem::take(&mut begins) && spans_lines(&pending) {
            return documents(source, pending, send);
        }
        if skipping {
            let Some(end) = pending.iter().position(|byte| *byte == b'\n') else {
                pending.clear();
                if !matches!(read, Ok(1..)) {
                    return;
                }
                continue;
            };
            pending.drain(..=end);
            (line, skipping) = (line.saturating_add(1), false);
        }
        let ends = !matches!(read, Ok(1..));
        let whole = pending.iter().rposition(|byte| *byte == b'\n').map(|end| end.saturating_add(1));
        if let Some(end) = whole {
            let rest = pending.split_off(end);
            let lines = std::mem::replace(&mut pending, rest);
            let count = lines.iter().filter(|byte| **byte == b'\n').count();
            if !send(line, Content::Lines(lines)) {
                return;
            }
            line = line.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
        }
        if ends {
            match read {
                Ok(_) if pending.is_empty() => {}
                Ok(_) => drop(send(line, Content::Lines(pending))),
                // The last line is incomplete, and dropped.
                Err(_) => drop(send(line, Content::Unread(Unread::Torn))),
            }
            return;
        }
        if pending.len() > MAX_LINE {
            if !send(line, Content::Unread(Unread::TooLong)) {
                return;
            }
            pending.clear();
            skipping = true;
        }
    }
}

/// Appends the next bytes to `pending`; returns their number, 0 at the end.
fn more(source: &mut impl Read, pending: &mut Vec<u8>) -> io::Result<u64> {
    let most = u64::try_from(CHUNK).unwrap_or(u64::MAX);
    loop {
        let before = pending.len();
        match source.by_ref().take(most).read_to_end(pending) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
            Ok(_) => return Ok(u64::try_from(pending.len().saturating_sub(before)).unwrap_or(0)),
        }
    }
}

/// Whether the log has indented JSON documents, which span several lines.
fn spans_lines(start: &[u8]) -> bool {
    let mut lines = start.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    lines.find(|line| !line.is_empty()).is_some_and(|line| line == b"{")
}

/// Reads documents of several lines as a whole: no long log has this form.
fn documents(source: impl Read, mut pending: Vec<u8>, send: &mut dyn FnMut(u64, Content) -> bool) {
    let room = MAX_LINE.saturating_add(1).saturating_sub(pending.len());
    let read = source.take(u64::try_from(room).unwrap_or(0)).read_to_end(&mut pending);
    let content = match read {
        Err(_) => Content::Unread(Unread::Torn),
        Ok(_) if pending.len() > MAX_LINE => Content::Unread(Unread::TooLong),
        Ok(_) => Content::Documents(pending),
    };
    send(1, content);
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    /// Returns the lines of a log with their numbers, and what could not be read.
    fn lines(bytes: &[u8]) -> Vec<(u64, String)> {
        let mut found = Vec::new();
        read(bytes, &mut |first, content| {
            match content {
                Content::Lines(text) => {
                    let text = String::from_utf8(text).unwrap();
                    found.extend((first..).zip(text.lines().map(ToOwned::to_owned)));
                }
                Content::Documents(text) => found.push((first, String::from_utf8(text).unwrap())),
                Content::Unread(why) => found.push((first, format!("<{}>", why.as_str()))),
            }
            true
        });
        found
    }

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn lines_have_their_numbers_across_chunks() {
        let text: String = (1..=200_000).map(|number| format!("line {number}\n")).collect();
        let found = lines(text.as_bytes());
        assert_eq!(found.len(), 200_000);
        assert!(found.iter().all(|(number, line)| *line == format!("line {number}")));
        assert_eq!(lines(&packed(text.as_bytes())), found);
        assert_eq!(lines(b"a\n\nb"), [(1, "a".to_owned()), (2, String::new()), (3, "b".to_owned())]);
        assert_eq!(lines(b""), []);
    }

    #[test]
    fn a_line_that_is_too_long_is_told_and_the_next_is_read() {
        let mut text = b"a\n".to_vec();
        text.extend(std::iter::repeat_n(b'x', MAX_LINE + 3 * CHUNK));
        text.extend(b"\nb\n");
        assert_eq!(lines(&text), [(1, "a".to_owned()), (2, "<tooLong>".to_owned()), (3, "b".to_owned())]);
        text.truncate(MAX_LINE + 2 * CHUNK);
        assert_eq!(lines(&text), [(1, "a".to_owned()), (2, "<tooLong>".to_owned())]);
    }

    #[test]
    fn a_torn_archive_is_read_as_far_as_it_goes() {
        let text: String = (0..100_000).map(|number| format!("line {number}\n")).collect();
        let mut torn = packed(text.as_bytes());
        torn.truncate(torn.len() / 2);
        let found = lines(&torn);
        assert!(found.len() > 10_000, "{}", found.len());
        let (last, whole) = found.split_last().unwrap();
        assert_eq!(last.1, "<torn>");
        assert!(whole.iter().all(|(number, line)| *line == format!("line {}", number - 1)));
        // Several gzip members in a file are one log, as log rotation appends them.
        let both = [packed(b"a\n"), packed(b"b\n")].concat();
        assert_eq!(lines(&both), [(1, "a".to_owned()), (2, "b".to_owned())]);
    }

    #[test]
    fn indented_documents_are_read_whole() {
        let text = "\n{\n  \"kind\": \"AdmissionReview\"\n}\n{\n}\n";
        assert_eq!(lines(text.as_bytes()), [(1, text.to_owned())]);
        assert_eq!(lines(b"{\"a\": 1}\n{}\n").len(), 2);
    }
}
