//! Applies the six operations of a JSON patch.

use json_patch::jsonptr::{Pointer, Token};
use json_patch::{PatchOperation, ReplaceOperation};
use serde_json::Value;

use super::node::Node;
use super::{PatchErrorKind, Replacing};
use crate::read::json::MAX_DEPTH;

/// The maximum size of all copies in one patch, as upstream's `AccumulatedCopySizeLimit`: a copy of the whole object doubles it, and 40
/// of them would exhaust the memory.
const MAX_COPIED: usize = 3 << 20;

/// A document that a patch is applied to.
#[derive(Debug)]
pub(super) struct Document {
    root: Node,
    /// The root is no deeper than this.
    height: usize,
    /// The bytes that were copied, as JSON.
    copied: usize,
}

impl Document {
    pub(super) fn new(value: Value) -> Self {
        let mut document = Self { root: Node::Closed(value), height: usize::MAX, copied: 0 };
        document.height = document.root.height(usize::MAX, 0);
        document
    }

    pub(super) fn into_value(self) -> Value {
        self.root.into_value()
    }

    /// # Errors
    /// Why the operation cannot be applied. The document may have lost something then.
    pub(super) fn apply(
        &mut self,
        operation: &PatchOperation,
        replacing: Replacing,
    ) -> Result<(), PatchErrorKind> {
        match operation {
            PatchOperation::Add(add) => self.add(&add.path, Node::Closed(add.value.clone()), usize::MAX),
            PatchOperation::Remove(remove) => self.remove(&remove.path).map(drop),
            PatchOperation::Replace(replace) => self.replace(replace, replacing),
            PatchOperation::Move(moved) => self.moved(&moved.from, &moved.path),
            // The API server's library treats an absent member as null.
            PatchOperation::Copy(copy) if replacing == Replacing::OrAdding && self.is_absent(&copy.from) => {
                self.add(&copy.path, Node::Closed(Value::Null), usize::MAX)
            }
            PatchOperation::Copy(copy) => {
                let source = self.find(&copy.from).ok_or(PatchErrorKind::InvalidFromPointer)?;
                let length = source.text_len();
                // Counted before the copy is made.
                self.copied = self.copied.saturating_add(length);
                if self.copied > MAX_COPIED {
                    let copied = self.copied;
                    return Err(PatchErrorKind::CopiesTooLarge { copied, limit: MAX_COPIED });
                }
                // The containers on the way to its place are opened before, also those in it.
                if let Some(parent) = copy.path.parent() {
                    let _ = self.container(parent, None);
                }
                let copied = self.find(&copy.from).map(|source| source.to_value()).unwrap_or_default();
                self.add(&copy.path, Node::Closed(copied), usize::MAX)
            }
            PatchOperation::Test(test) => {
                let matches = self.find(&test.path).map(|found| {
                    let matches = found.is(&test.value);
                    if matches {
                        found.sort();
                    }
                    matches
                });
                match matches {
                    Some(true) => Ok(()),
                    Some(false) => Err(PatchErrorKind::TestFailed),
                    None if lenient(replacing, &test.value) && self.is_absent(&test.path) => Ok(()),
                    None => Err(PatchErrorKind::InvalidPointer),
                }
            }
        }
    }

    /// Whether `path` names a member that an object has not.
    fn is_absent(&mut self, path: &Pointer) -> bool {
        let Some((parent, last)) = path.split_back() else { return false };
        match self.container(parent, None) {
            Some(Node::Object(_, members)) => !members.contains_key(last.decoded().as_ref()),
            _ => false,
        }
    }

    fn moved(&mut self, from: &Pointer, path: &Pointer) -> Result<(), PatchErrorKind> {
        if path.starts_with(from) && path.len() != from.len() {
            return Err(PatchErrorKind::CannotMoveInsideItself);
        }
        let (node, most) = self.remove(from).map_err(|kind| match kind {
            PatchErrorKind::InvalidPointer => PatchErrorKind::InvalidFromPointer,
            other => other,
        })?;
        self.add(path, node, most)
    }

    /// Adds a node that is no deeper than `most`.
    fn add(&mut self, path: &Pointer, mut node: Node, most: usize) -> Result<(), PatchErrorKind> {
        let enough = MAX_DEPTH.checked_sub(path.count()).ok_or(PatchErrorKind::TooDeep)?;
        let height = node.height(most, enough);
        if height > enough {
            return Err(PatchErrorKind::TooDeep);
        }
        let Some((parent, last)) = path.split_back() else {
            (self.root, self.height) = (node, height);
            return Ok(());
        };
        match self.container(parent, Some(height)).ok_or(PatchErrorKind::InvalidPointer)? {
            Node::Object(_, members) => {
                members.insert(last.decoded().into_owned(), node);
            }
            Node::List(_, items) => {
                let length = items.len();
                let index = match &*last.decoded() {
                    "-" => Some(length),
                    index => place(index, length.saturating_add(1)),
                };
                let index = index.ok_or(PatchErrorKind::InvalidPointer)?;
                items.insert(index, node);
            }
            Node::Closed(_) | Node::Measured(..) => return Err(PatchErrorKind::InvalidPointer),
        }
        Ok(())
    }

    /// The node that was there, and how deep it is at most.
    fn remove(&mut self, path: &Pointer) -> Result<(Node, usize), PatchErrorKind> {
        let (parent, last) = path.split_back().ok_or(PatchErrorKind::InvalidPointer)?;
        let container = self.container(parent, None).ok_or(PatchErrorKind::InvalidPointer)?;
        let (removed, most) = match container {
            Node::Object(height, members) => (members.remove(last.decoded().as_ref()), *height),
            Node::List(height, items) => {
                (place(&last.decoded(), items.len()).and_then(|index| items.remove(index)), *height)
            }
            Node::Closed(_) | Node::Measured(..) => (None, 0),
        };
        Ok((removed.ok_or(PatchErrorKind::InvalidPointer)?, most.saturating_sub(1)))
    }

    fn replace(&mut self, replace: &ReplaceOperation, replacing: Replacing) -> Result<(), PatchErrorKind> {
        let ReplaceOperation { path, value } = replace;
        if replacing == Replacing::OrAdding && path.is_root() && !(value.is_object() || value.is_array()) {
            return Err(PatchErrorKind::ScalarDocument);
        }
        let exists = self.find(path).is_some();
        let parent = path.parent().and_then(|parent| self.container(parent, None));
        match parent {
            Some(Node::Object(..)) if exists || replacing == Replacing::OrAdding => {}
            Some(_) if exists => drop(self.remove(path)?),
            None if exists => {}
            _ => return Err(PatchErrorKind::InvalidPointer),
        }
        self.add(path, Node::Closed(value.clone()), usize::MAX)
    }

    fn find(&mut self, path: &Pointer) -> Option<&mut Node> {
        match path.split_back() {
            None => Some(&mut self.root),
            Some((parent, last)) => inner(self.container(parent, None)?, &last),
        }
    }

    /// The node at `path`, open as all those on the way. They learn that they hold something of the height `inserted`.
    fn container(&mut self, path: &Pointer, inserted: Option<usize>) -> Option<&mut Node> {
        let mut below = path.count();
        let mut node = self.root.opened(self.height);
        for token in path.tokens() {
            node.hold(inserted.map(|inserted| inserted.saturating_add(below)));
            let most = node.height(usize::MAX, usize::MAX).saturating_sub(1);
            node = inner(node, &token)?.opened(most);
            below = below.saturating_sub(1);
        }
        node.hold(inserted);
        Some(node)
    }
}

/// A member or an item of an open node.
fn inner<'n>(node: &'n mut Node, token: &Token<'_>) -> Option<&'n mut Node> {
    match node {
        Node::Object(_, members) => members.get_mut(token.decoded().as_ref()),
        Node::List(_, items) => items.get_mut(place(&token.decoded(), items.len())?),
        Node::Closed(_) | Node::Measured(..) => None,
    }
}

/// The place that an index names among `places`: a number as Go reads one, those below zero counted from the end.
pub(super) fn place(index: &str, places: usize) -> Option<usize> {
    let index: i64 = index.parse().ok()?;
    let place = if index < 0 {
        places.checked_sub(usize::try_from(index.unsigned_abs()).ok()?)?
    } else {
        usize::try_from(index).ok()?
    };
    (place < places).then_some(place)
}

/// The API server's library treats an absent member as null, which clients use to ensure that nobody added it.
fn lenient(replacing: Replacing, wanted: &Value) -> bool {
    replacing == Replacing::OrAdding && wanted.is_null()
}
