//! A decoded JSON document, in an arena. Objects keep the order of the text; looking a key up compares a hash that
//! the reader computed once, so that a field whose name is a constant of a program costs a few comparisons of numbers.

use std::hash::Hasher as _;

/// One JSON value. Integers keep 64 bits; every other number is a double, as Kubernetes decodes them.
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
    List(&'a [Self]),
    /// An object.
    Map(&'a MapNode<'a>),
}

/// A property name with its hash: what a lookup compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key<'a> {
    hash: u32,
    name: &'a str,
}

/// A JSON object.
#[derive(Clone, Copy, Debug)]
pub struct MapNode<'a> {
    /// INVARIANT: no two entries have the same key.
    entries: &'a [(Key<'a>, Node<'a>)],
    /// Positions in `entries`, ordered by key; empty for small objects, which are scanned.
    index: &'a [u32],
}

/// Objects up to this size are scanned: cheaper than a binary search over strings.
const SCANNED: usize = 24;

impl<'a> Key<'a> {
    /// Hashes a name.
    #[must_use]
    pub fn new(name: &'a str) -> Self {
        let mut hasher = Fnv::default();
        hasher.write(name.as_bytes());
        Self { hash: hasher.0, name }
    }

    /// A name whose hash is known.
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

impl<'a> MapNode<'a> {
    /// An object of these entries, whose keys are distinct.
    pub(crate) fn new(arena: &'a bumpalo::Bump, entries: &'a [(Key<'a>, Node<'a>)]) -> Self {
        if entries.len() <= SCANNED {
            return Self { entries, index: &[] };
        }
        let count = u32::try_from(entries.len()).unwrap_or(u32::MAX);
        let index = arena.alloc_slice_fill_iter(0..count);
        index.sort_unstable_by_key(|&at| entries.get(at as usize).map(|(key, _)| (key.hash, key.name)));
        Self { entries, index }
    }

    /// The number of properties.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no property.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The value of a property.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'a Node<'a>> {
        self.find(Key::new(name))
    }

    /// The value of a property whose name has been hashed.
    #[must_use]
    pub fn find(&self, key: Key<'_>) -> Option<&'a Node<'a>> {
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

    /// The property at a position of the text.
    #[must_use]
    pub fn entry(&self, at: usize) -> Option<(&'a str, &'a Node<'a>)> {
        self.entries.get(at).map(|(key, node)| (key.name, node))
    }

    /// Properties in the order of the text.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&'a str, &'a Node<'a>)> + use<'a> {
        self.entries.iter().map(|(key, node)| (key.name, node))
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
