//! Represents one value of a document: a tree in an arena, or a view of a `serde_json::Value`, which is read where expressions read it
//! and never copied.
//!
//! Objects keep the order of the text. Keys of parsed objects have a precomputed hash, so looking up a field whose name is a constant
//! of a program costs a few comparisons of numbers.

use std::hash::Hasher as _;
use std::slice;

use serde_json::Value as Json;

/// A JSON value. Integers keep 64 bits; every other number is a double, as Kubernetes decodes them.
///
/// ```
/// use admit_cel::Node;
///
/// let json = serde_json::json!({"spec": {"replicas": 3}});
/// let node = Node::from_json(&json);
/// assert!(matches!(node.get("spec").and_then(|spec| spec.get("replicas")), Some(Node::Int(3))));
/// assert_eq!(node.to_json(), json);
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Node<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer literal that fits.
    Int(i64),
    /// Any other number.
    Double(f64),
    /// Text, escapes resolved.
    String(&'a str),
    /// An array.
    List(ListNode<'a>),
    /// An object.
    Map(MapNode<'a>),
}

/// A JSON array.
///
/// ```
/// use admit_cel::{Node, ReadLimits, document};
///
/// let arena = bumpalo::Bump::new();
/// let Node::List(list) = document::parse(&arena, b"[1, true]", &ReadLimits::default())? else { panic!() };
/// assert_eq!((list.len(), list.is_empty(), list.iter().len()), (2, false, 2));
/// assert!(matches!(list.get(1), Some(Node::Bool(true))));
/// # Ok::<(), admit_cel::ReadError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ListNode<'a>(Items<'a>);

#[derive(Clone, Copy, Debug)]
enum Items<'a> {
    Read(&'a [Node<'a>]),
    Json(&'a [Json]),
}

/// A JSON object.
///
/// ```
/// use admit_cel::document::{self, Key};
/// use admit_cel::{Node, ReadLimits};
///
/// let arena = bumpalo::Bump::new();
/// let Node::Map(map) = document::parse(&arena, br#"{"b": 1, "a": 2}"#, &ReadLimits::default())? else { panic!() };
/// assert_eq!((map.len(), map.is_empty()), (2, false));
/// assert_eq!(map.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["b", "a"], "as in the text");
/// let a = Key::new("a");
/// assert!(map.get("a").is_some() && map.find(a).is_some());
/// # Ok::<(), admit_cel::ReadError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct MapNode<'a>(Members<'a>);

#[derive(Clone, Copy, Debug)]
enum Members<'a> {
    Read(&'a Object<'a>),
    Json(&'a serde_json::Map<String, Json>),
}

/// An object as the reader lays it out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Object<'a> {
    /// INVARIANT: no two entries have the same key.
    entries: &'a [(Key<'a>, Node<'a>)],
    /// Positions in `entries`, ordered by key; empty for small objects, which are scanned.
    index: &'a [u32],
}

/// A property name with its hash, for lookups.
///
/// ```
/// use admit_cel::document::Key;
///
/// assert_eq!(Key::new("replicas").name(), "replicas");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key<'a> {
    hash: u32,
    name: &'a str,
}

/// Objects up to this size are scanned: cheaper than a binary search over strings, or hashing for a table.
const SCANNED: usize = 24;

impl<'a> Node<'a> {
    /// Returns the value of a property; None if this is not an object, or lacks it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Self> {
        match self {
            Self::Map(map) => map.get(name),
            _ => None,
        }
    }

    /// The document that `json` holds.
    #[must_use]
    #[inline]
    pub fn from_json(json: &'a Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(b) => Self::Bool(*b),
            Json::Number(number) => match number.as_i64() {
                Some(int) => Self::Int(int),
                None => Self::Double(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Self::String(text),
            Json::Array(items) => Self::List(ListNode(Items::Json(items))),
            Json::Object(members) => Self::Map(MapNode(Members::Json(members))),
        }
    }
}

impl<'a> ListNode<'a> {
    /// An array of these items.
    pub(crate) const fn new(items: &'a [Node<'a>]) -> Self {
        Self(Items::Read(items))
    }

    /// The number of items.
    #[must_use]
    #[inline]
    pub const fn len(&self) -> usize {
        match self.0 {
            Items::Read(items) => items.len(),
            Items::Json(items) => items.len(),
        }
    }

    /// Whether there are no items.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The item at a position.
    #[must_use]
    #[inline]
    pub fn get(&self, at: usize) -> Option<Node<'a>> {
        match self.0 {
            Items::Read(items) => items.get(at).copied(),
            Items::Json(items) => items.get(at).map(Node::from_json),
        }
    }

    /// Items in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Node<'a>> + use<'a> {
        let list = *self;
        (0..self.len()).map(move |at| list.get(at).unwrap_or(Node::Null))
    }
}

impl<'a> MapNode<'a> {
    /// An object that was read.
    pub(super) const fn new(object: &'a Object<'a>) -> Self {
        Self(Members::Read(object))
    }

    /// The number of properties.
    #[must_use]
    pub fn len(&self) -> usize {
        match self.0 {
            Members::Read(object) => object.entries.len(),
            Members::Json(members) => members.len(),
        }
    }

    /// Whether there are no properties.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a property.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Node<'a>> {
        match self.0 {
            Members::Read(object) => object.find(Key::new(name)).copied(),
            Members::Json(members) => find(members, name).map(Node::from_json),
        }
    }

    /// The value of a property whose name has been hashed.
    #[must_use]
    #[inline(always)]
    pub fn find(&self, key: Key<'_>) -> Option<Node<'a>> {
        match self.0 {
            Members::Read(object) => object.find(key).copied(),
            Members::Json(members) => find(members, key.name).map(Node::from_json),
        }
    }

    /// Looks up a property by hashed name: None if it is absent, an inner None if its value is not an object.
    #[must_use]
    #[inline(always)]
    pub(crate) fn look(&self, key: Key<'_>) -> Option<Option<Self>> {
        Some(match self.0 {
            Members::Read(object) => match object.find(key)? {
                Node::Map(map) => Some(*map),
                _ => None,
            },
            Members::Json(members) => match find(members, key.name)? {
                Json::Object(members) => Some(Self(Members::Json(members))),
                _ => None,
            },
        })
    }

    /// Returns a copy in which `name` has another value, or is left out if that is None. The values of all others are shared.
    ///
    /// ```
    /// use admit_cel::{Node, ReadLimits, document};
    ///
    /// let arena = bumpalo::Bump::new();
    /// let Node::Map(map) = document::parse(&arena, br#"{"a": 1, "b": 2}"#, &ReadLimits::default())? else { panic!() };
    /// let other = map.with(&arena, "a", Some(Node::Bool(true)));
    /// assert_eq!(Node::Map(other).to_json(), serde_json::json!({"a": true, "b": 2}));
    /// assert_eq!(Node::Map(other.with(&arena, "a", None)).to_json(), serde_json::json!({"b": 2}));
    /// # Ok::<(), admit_cel::ReadError>(())
    /// ```
    #[must_use]
    pub fn with(&self, arena: &'a bumpalo::Bump, name: &'a str, value: Option<Node<'a>>) -> Self {
        let mut entries = bumpalo::collections::Vec::with_capacity_in(self.len().saturating_add(1), arena);
        let mut left = value;
        for (known, node) in self.iter() {
            let node = if known == name { left.take() } else { Some(node) };
            entries.extend(node.map(|node| (Key::new(known), node)));
        }
        entries.extend(left.map(|node| (Key::new(name), node)));
        Self::new(arena.alloc(Object::new(arena, entries.into_bump_slice())))
    }

    /// Iterates over properties in the order of the text.
    #[must_use]
    pub fn iter(&self) -> Entries<'a> {
        Entries(match self.0 {
            Members::Read(object) => Cursor::Read(object.entries.iter()),
            Members::Json(members) => Cursor::Json(members.iter()),
        })
    }
}

#[inline(never)]
fn find<'a>(members: &'a serde_json::Map<String, Json>, name: &str) -> Option<&'a Json> {
    if members.len() > SCANNED {
        return members.get(name);
    }
    members.iter().find(|(known, _)| is_same(known.as_bytes(), name.as_bytes())).map(|(_, value)| value)
}

/// Compares two names; those of usual length in two comparisons of words that overlap, which beats a call.
#[inline(always)]
fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len()
        && match a.len() {
            8..=16 => a.first_chunk::<8>() == b.first_chunk() && a.last_chunk::<8>() == b.last_chunk(),
            4..=7 => a.first_chunk::<4>() == b.first_chunk() && a.last_chunk::<4>() == b.last_chunk(),
            _ => a == b,
        }
}

/// The properties of an object, in the order of the text.
#[derive(Clone, Debug)]
pub struct Entries<'a>(Cursor<'a>);

#[derive(Clone, Debug)]
enum Cursor<'a> {
    Read(slice::Iter<'a, (Key<'a>, Node<'a>)>),
    Json(serde_json::map::Iter<'a>),
}

impl<'a> Iterator for Entries<'a> {
    type Item = (&'a str, Node<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            Cursor::Read(entries) => entries.next().map(|(key, node)| (key.name, *node)),
            Cursor::Json(members) => {
                members.next().map(|(name, value)| (name.as_str(), Node::from_json(value)))
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.0 {
            Cursor::Read(entries) => entries.size_hint(),
            Cursor::Json(members) => members.size_hint(),
        }
    }
}

impl ExactSizeIterator for Entries<'_> {}

impl<'a> Object<'a> {
    /// An object of these entries, whose keys are distinct.
    pub(super) fn new(arena: &'a bumpalo::Bump, entries: &'a [(Key<'a>, Node<'a>)]) -> Self {
        if entries.len() <= SCANNED {
            return Self { entries, index: &[] };
        }
        let count = u32::try_from(entries.len()).unwrap_or(u32::MAX);
        let index = arena.alloc_slice_fill_iter(0..count);
        index.sort_unstable_by_key(|&at| entries.get(at as usize).map(|(key, _)| (key.hash, key.name)));
        Self { entries, index }
    }

    #[inline]
    fn find(&self, key: Key<'_>) -> Option<&'a Node<'a>> {
        if self.index.is_empty() {
            return self
                .entries
                .iter()
                .find(|(k, _)| k.hash == key.hash && k.name == key.name)
                .map(|(_, node)| node);
        }
        let at = self.index.binary_search_by_key(&Some((key.hash, key.name)), |&at| {
            self.entries.get(at as usize).map(|(k, _)| (k.hash, k.name))
        });
        let at = at.ok().and_then(|found| self.index.get(found)).copied()?;
        self.entries.get(at as usize).map(|(_, node)| node)
    }
}

impl<'a> Key<'a> {
    /// Hashes a name.
    #[must_use]
    pub fn new(name: &'a str) -> Self {
        let mut hasher = Fnv::default();
        hasher.write(name.as_bytes());
        Self { hash: hasher.0, name }
    }

    /// Creates a key whose hash is known.
    #[inline]
    pub(crate) const fn with_hash(name: &'a str, hash: u32) -> Self {
        Self { hash, name }
    }

    /// The name.
    #[must_use]
    pub const fn name(&self) -> &'a str {
        self.name
    }

    pub(crate) const fn hash(&self) -> u32 {
        self.hash
    }
}

/// FNV-1a, 32 bits: short names, no need to resist chosen collisions, since equal hashes still compare the names.
struct Fnv(u32);

impl Default for Fnv {
    fn default() -> Self {
        Self(0x811c_9dc5)
    }
}

impl std::hash::Hasher for Fnv {
    fn finish(&self) -> u64 {
        u64::from(self.0)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
        }
    }
}
