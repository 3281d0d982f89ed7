//! Parses an AdmissionReview of `admission.k8s.io`: its envelope is decoded, the objects in it are not.
//!
//! The text is parsed into an arena by the CEL engine's own reader, whose nodes expressions walk. What that reader
//! rejects is parsed again by [`json`], which produces kube-apiserver's error messages and reports duplicate fields:
//! so the fast reader need only be right about what it accepts.

use admit_cel::document::{DuplicateKeys, parse};
use admit_cel::{Node, ReadLimits};
use bumpalo::Bump;
use serde_json::{Map, Value};

use crate::read::json::{self, JsonError, Repeats, SyntaxError};
use crate::read::object::Object;

/// The memory into which a text is parsed, freed together with everything parsed into it.
///
/// [`Request`](crate::Request) shows how a review is read into it.
#[derive(Debug, Default)]
pub struct Arena(Bump);

impl Arena {
    /// The maximum initial allocation in bytes; larger texts allocate more as needed.
    const MOST_AT_ONCE: usize = 64 * 1024;

    /// Creates an arena for a text of `length` bytes; parsed, it takes about three times as much.
    #[must_use]
    pub fn for_text(length: usize) -> Self {
        Self(Bump::with_capacity(length.saturating_mul(3).min(Self::MOST_AT_ONCE)))
    }

    /// Parses a JSON text; None if it is none, nests too deep, or would take more memory than is allowed for its length. Of a
    /// repeated field the last value counts.
    ///
    /// ```
    /// use admit_policy::Arena;
    /// use serde_json::json;
    ///
    /// let arena = Arena::default();
    /// let pod = arena.object(r#"{"kind": "Pod", "metadata": {"resourceVersion": "7"}}"#).unwrap();
    /// let other = arena.with_version(&pod, Some("3")).unwrap();
    /// assert_eq!(*other.value(), json!({"kind": "Pod", "metadata": {"resourceVersion": "3"}}));
    /// assert_eq!(*arena.with_version(&other, None).unwrap().value(), json!({"kind": "Pod", "metadata": {}}));
    /// assert!(arena.object("{").is_none());
    /// ```
    #[must_use]
    pub fn object<'d>(&'d self, text: &'d str) -> Option<Object<'d>> {
        // Many small values take many times their text here: the other reader weighs them, and refuses what is too heavy.
        let most = ReadLimits::default().max_values;
        let limits = limits(text.len(), DuplicateKeys::LastWins);
        let limits = ReadLimits { max_values: limits.max_values.min(most), ..limits };
        match parse(&self.0, text.as_bytes(), &limits) {
            Ok(document) => Some(Object::Seen(document)),
            Err(_) => json::parse(text.as_bytes()).ok().map(|document| Object::from(document.value)),
        }
    }

    /// Returns the object with another resourceVersion, or with none; None if it has no metadata.
    #[must_use]
    pub fn with_version<'d>(&'d self, object: &Object<'d>, version: Option<&str>) -> Option<Object<'d>> {
        const FIELD: &str = "resourceVersion";
        match object {
            Object::Seen(node) => {
                let (Node::Map(fields), Some(Node::Map(metadata))) = (*node, node.get("metadata")) else {
                    return None;
                };
                let version = version.map(|version| Node::String(self.0.alloc_str(version)));
                let metadata = metadata.with(&self.0, FIELD, version);
                Some(Object::Seen(Node::Map(fields.with(&self.0, "metadata", Some(Node::Map(metadata))))))
            }
            Object::Shared(value) => {
                let mut value = Value::clone(value);
                let metadata = value.get_mut("metadata")?.as_object_mut()?;
                match version {
                    Some(version) => drop(metadata.insert(FIELD.to_owned(), version.into())),
                    None => drop(metadata.shift_remove(FIELD)),
                }
                Some(Object::from(value))
            }
        }
    }
}

/// A review with its objects apart.
///
/// ```
/// use admit_policy::{Arena, NoReview, Review};
/// use serde_json::json;
///
/// let review = Review::of(json!({"request": {"uid": "1", "object": {"kind": "Pod"}}}));
/// assert_eq!(review.envelope, json!({"request": {"uid": "1"}}));
/// assert_eq!(*review.object.unwrap().value(), json!({"kind": "Pod"}));
/// assert!(matches!(Review::read(&Arena::default(), b"{"), Err(NoReview::Syntax(_))));
/// ```
#[derive(Clone, Debug)]
pub struct Review<'d> {
    /// The document without the objects of its request.
    pub envelope: Value,
    pub object: Option<Object<'d>>,
    pub old_object: Option<Object<'d>>,
    pub options: Option<Object<'d>>,
}

/// Why a text is not an AdmissionReview.
#[derive(Clone, Debug, PartialEq)]
pub enum NoReview {
    /// A syntax error, in the words of Go's `encoding/json`.
    Syntax(SyntaxError),
    /// It may be sound, and holds more than is taken.
    TooMuch(String),
    /// Duplicate fields; at least one.
    Duplicates(Repeats),
}

impl<'d> Review<'d> {
    /// Parses `text`.
    ///
    /// # Errors
    /// If it is not JSON, nests too deep or repeats a field.
    pub fn read(arena: &'d Arena, text: &'d [u8]) -> Result<Self, NoReview> {
        match parse(&arena.0, text, &limits(text.len(), DuplicateKeys::Refuse)) {
            Ok(document) => Self::laid_out(document),
            Err(_) => Self::again(text),
        }
    }

    fn again(text: &[u8]) -> Result<Self, NoReview> {
        let document = json::parse(text).map_err(|error| match error {
            JsonError::Syntax(why) => NoReview::Syntax(why),
            JsonError::TooHeavy(limit) => NoReview::TooMuch(limit.to_string()),
        })?;
        if document.duplicates.is_empty() {
            Ok(Self::of(document.value))
        } else {
            Err(NoReview::Duplicates(document.duplicates))
        }
    }

    /// A decoded review. Its objects are moved, not copied.
    pub fn of(mut review: Value) -> Self {
        let mut take = |key: &str| {
            let taken = review.get_mut("request")?.as_object_mut()?.remove(key)?;
            (!taken.is_null()).then(|| Object::from(taken))
        };
        let (object, old_object, options) = (take("object"), take("oldObject"), take("options"));
        Self { envelope: review, object, old_object, options }
    }

    fn laid_out(document: Node<'d>) -> Result<Self, NoReview> {
        let mut review = Self { envelope: Value::Null, object: None, old_object: None, options: None };
        let mut left = MAX_ENVELOPE;
        let Node::Map(fields) = document else {
            return Ok(Self { envelope: copied(document, &mut left)?, ..review });
        };
        let mut envelope = Map::with_capacity(fields.len().min(MAX_ENVELOPE));
        for (name, node) in fields.iter() {
            let value = match (name, node) {
                ("request", Node::Map(_)) => review.laid_out_request(node, &mut left)?,
                _ => copied(node, &mut left)?,
            };
            envelope.insert(name.to_owned(), value);
        }
        review.envelope = Value::Object(envelope);
        Ok(review)
    }

    /// The request without its objects.
    fn laid_out_request(&mut self, request: Node<'d>, left: &mut usize) -> Result<Value, NoReview> {
        let Node::Map(fields) = request else { return copied(request, left) };
        let mut rest = Map::with_capacity(fields.len().min(MAX_ENVELOPE));
        for (name, node) in fields.iter() {
            let place = match name {
                "object" => &mut self.object,
                "oldObject" => &mut self.old_object,
                "options" => &mut self.options,
                _ => {
                    rest.insert(name.to_owned(), copied(node, left)?);
                    continue;
                }
            };
            *place = (!matches!(node, Node::Null)).then_some(Object::Seen(node));
        }
        Ok(Value::Object(rest))
    }
}

/// Limits for a text of that length: the receiver has bounded it, and so everything in it.
fn limits(length: usize, duplicate_keys: DuplicateKeys) -> ReadLimits {
    ReadLimits { max_bytes: length, max_values: length, duplicate_keys, ..ReadLimits::default() }
}

/// The maximum number of values of a review outside of its objects, which are copied out of the arena. An API server sends a few dozen,
/// plus the user's groups and extra data.
const MAX_ENVELOPE: usize = 100_000;

/// `node` as a value of its own, if there are no more values in it than are left.
fn copied(node: Node<'_>, left: &mut usize) -> Result<Value, NoReview> {
    if counted(node, left) {
        return Ok(node.to_json());
    }
    let why = format!("the review holds more than {MAX_ENVELOPE} values outside of its objects");
    Err(NoReview::TooMuch(why))
}

/// Subtracts the values of `node` from the budget. The parser limits its depth.
fn counted(node: Node<'_>, left: &mut usize) -> bool {
    let Some(rest) = left.checked_sub(1) else { return false };
    *left = rest;
    match node {
        Node::List(items) => items.iter().all(|item| counted(item, left)),
        Node::Map(fields) => fields.iter().all(|(_, node)| counted(node, left)),
        _ => true,
    }
}
