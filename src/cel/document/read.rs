//! Parses JSON text to [`Node`]s. Unfinished containers are on an explicit stack, so nesting costs heap and is limited by the caller's
//! depth limit; strings without escapes borrow the text.

use bumpalo::Bump;

use super::error::{ReadError, ReadErrorKind};
use super::node::Object;
use super::scan::Scanner;
use super::{Key, ListNode, MapNode, Node};

/// What to do with an object that names a property twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DuplicateKeys {
    /// The last value counts, as for kube-apiserver's own decoder.
    #[default]
    LastWins,
    /// The document is rejected.
    Refuse,
}

/// Bounds of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadLimits {
    /// The maximum length of the text in bytes.
    pub max_bytes: usize,
    /// Lists and objects inside one another. Work over a document recurses this deep, so a thread's stack bounds it.
    pub max_depth: usize,
    /// Values, containers included.
    pub max_values: usize,
    /// What to do with a property named twice.
    pub duplicate_keys: DuplicateKeys,
}

impl Default for ReadLimits {
    /// The request size of kube-apiserver (3 MiB), and a depth that every walk over a document has the stack for.
    fn default() -> Self {
        Self {
            max_bytes: 3 << 20,
            max_depth: 500,
            max_values: 1 << 20,
            duplicate_keys: DuplicateKeys::default(),
        }
    }
}

/// Reads one JSON document. Bytes that are no UTF-8 read as U+FFFD, as in Go.
///
/// # Errors
///
/// The first violation of JSON or of a limit.
///
/// ```
/// use admit_cel::document::{self, ReadErrorKind};
/// use admit_cel::{Node, ReadLimits};
///
/// let arena = bumpalo::Bump::new();
/// let node = document::parse(&arena, br#"{"replicas": 3}"#, &ReadLimits::default())?;
/// assert!(matches!(node.get("replicas"), Some(Node::Int(3))));
/// let strict = ReadLimits { max_depth: 2, ..ReadLimits::default() };
/// let error = document::parse(&arena, b"[[[1]]]", &strict).unwrap_err();
/// assert!(matches!(error.kind, ReadErrorKind::TooDeep { limit: 2 }));
/// # Ok::<(), admit_cel::ReadError>(())
/// ```
pub fn parse<'a>(arena: &'a Bump, text: &'a [u8], limits: &ReadLimits) -> Result<Node<'a>, ReadError> {
    if text.len() > limits.max_bytes {
        return Err(ReadError {
            offset: limits.max_bytes,
            kind: ReadErrorKind::TooLong { limit: limits.max_bytes },
        });
    }
    // Nearly all text is valid UTF-8, and checking is faster than repairing.
    let text = match str::from_utf8(text) {
        Ok(text) => text,
        Err(_) => arena.alloc_str(&String::from_utf8_lossy(text)),
    };
    let mut reader = Reader {
        arena,
        limits,
        scan: Scanner::new(text),
        open: Vec::new(),
        items: Vec::new(),
        members: Vec::new(),
        count: 0,
    };
    let document = reader.document().map_err(|kind| ReadError { offset: reader.scan.offset(), kind })?;
    Ok(document)
}

/// A container whose end has not been read; its parts are the tail of [`Reader::items`] or [`Reader::members`].
enum Open<'a> {
    List {
        first: usize,
    },
    Map {
        first: usize,
        /// The key that waits for its value.
        key: Key<'a>,
    },
}

struct Reader<'a, 'l> {
    arena: &'a Bump,
    limits: &'l ReadLimits,
    scan: Scanner<'a>,
    open: Vec<Open<'a>>,
    /// The items of open lists, the outermost first.
    items: Vec<Node<'a>>,
    /// The members of open objects, the outermost first.
    members: Vec<(Key<'a>, Node<'a>)>,
    count: usize,
}

impl<'a> Reader<'a, '_> {
    fn document(&mut self) -> Result<Node<'a>, ReadErrorKind> {
        loop {
            let Some(mut value) = self.start_value()? else { continue };
            // A complete value ends every container that closes right after it.
            loop {
                let Some(open) = self.open.pop() else { return self.finish(value) };
                let Some(closed) = self.put(open, value)? else { break };
                value = closed;
            }
        }
    }

    /// Adds `value` to the innermost container: that container where it ends here.
    fn put(&mut self, open: Open<'a>, value: Node<'a>) -> Result<Option<Node<'a>>, ReadErrorKind> {
        let close = match open {
            Open::List { .. } => {
                self.items.push(value);
                b']'
            }
            Open::Map { key, .. } => {
                self.members.push((key, value));
                b'}'
            }
        };
        if self.scan.take(b',') {
            let open = match open {
                Open::List { .. } => open,
                Open::Map { first, .. } => Open::Map { first, key: self.key()? },
            };
            self.open.push(open);
            return Ok(None);
        }
        if !self.scan.take(close) {
            return Err(self.scan.unexpected("`,` or the end of the list or object"));
        }
        match open {
            Open::List { first } => Ok(Some(self.list(first))),
            Open::Map { first, .. } => self.map(first).map(Some),
        }
    }

    /// Reads a scalar or an empty container, or opens a container and returns none.
    fn start_value(&mut self) -> Result<Option<Node<'a>>, ReadErrorKind> {
        self.count = self.count.saturating_add(1);
        if self.count > self.limits.max_values {
            return Err(ReadErrorKind::TooManyValues { limit: self.limits.max_values });
        }
        match self.scan.peek() {
            Some(b'{') => self.open(true),
            Some(b'[') => self.open(false),
            Some(b'"') => self.scan.string(self.arena).map(|text| Some(Node::String(text))),
            Some(b'-' | b'0'..=b'9') => self.scan.number().map(Some),
            Some(b't') => self.scan.word("true", Node::Bool(true)).map(Some),
            Some(b'f') => self.scan.word("false", Node::Bool(false)).map(Some),
            Some(b'n') => self.scan.word("null", Node::Null).map(Some),
            _ => Err(self.scan.unexpected("a value")),
        }
    }

    fn open(&mut self, is_map: bool) -> Result<Option<Node<'a>>, ReadErrorKind> {
        if self.open.len() >= self.limits.max_depth {
            return Err(ReadErrorKind::TooDeep { limit: self.limits.max_depth });
        }
        self.scan.bump();
        let (items, members) = (self.items.len(), self.members.len());
        let open = match is_map {
            true if self.scan.take(b'}') => return self.map(members).map(Some),
            true => Open::Map { first: members, key: self.key()? },
            false if self.scan.take(b']') => return Ok(Some(self.list(items))),
            false => Open::List { first: items },
        };
        self.open.push(open);
        Ok(None)
    }

    fn key(&mut self) -> Result<Key<'a>, ReadErrorKind> {
        if self.scan.peek() != Some(b'"') {
            return Err(self.scan.unexpected("a property name in quotes"));
        }
        let name = self.scan.string(self.arena)?;
        if !self.scan.take(b':') {
            return Err(self.scan.unexpected("`:` after a property name"));
        }
        Ok(Key::new(name))
    }

    /// Lays a list out in the arena.
    fn list(&mut self, first: usize) -> Node<'a> {
        let items = self.items.drain(first.min(self.items.len())..);
        Node::List(ListNode::new(self.arena.alloc_slice_fill_iter(items)))
    }

    /// Lays an object out in the arena.
    fn map(&mut self, first: usize) -> Result<Node<'a>, ReadErrorKind> {
        let first = first.min(self.members.len());
        self.settle_duplicates(first)?;
        let entries = self.arena.alloc_slice_fill_iter(self.members.drain(first..));
        Ok(Node::Map(MapNode::new(self.arena.alloc(Object::new(self.arena, entries)))))
    }

    /// Leaves one entry per key: the place of the first, the value of the last.
    fn settle_duplicates(&mut self, first: usize) -> Result<(), ReadErrorKind> {
        let entries = self.members.get(first..).unwrap_or_default();
        if entries.len() <= FEW && !has_duplicates(entries) {
            return Ok(());
        }
        let mut order: Vec<(Key<'a>, usize)> =
            entries.iter().enumerate().map(|(at, (key, _))| (*key, at)).collect();
        order.sort_unstable_by_key(|(key, at)| (key.hash(), key.name(), *at));
        let mut entries: Vec<_> = self.members.drain(first..).map(Some).collect();
        let mut kept: Option<(Key<'a>, usize)> = None;
        for (key, at) in order {
            let Some((_, place)) = kept.filter(|(last, _)| *last == key) else {
                kept = Some((key, at));
                continue;
            };
            if self.limits.duplicate_keys == DuplicateKeys::Refuse {
                return Err(ReadErrorKind::DuplicateKey(key.name().into()));
            }
            let later = entries.get_mut(at).and_then(Option::take);
            if let Some(entry) = entries.get_mut(place) {
                *entry = later;
            }
        }
        self.members.extend(entries.into_iter().flatten());
        Ok(())
    }

    fn finish(&mut self, value: Node<'a>) -> Result<Node<'a>, ReadErrorKind> {
        if self.scan.peek().is_some() { Err(ReadErrorKind::TrailingText) } else { Ok(value) }
    }
}

/// Objects up to this size are compared pair by pair, which for distinct keys is cheaper than sorting.
const FEW: usize = 16;

fn has_duplicates(entries: &[(Key<'_>, Node<'_>)]) -> bool {
    entries
        .iter()
        .enumerate()
        .any(|(at, (key, _))| entries.iter().take(at).any(|(earlier, _)| earlier == key))
}
