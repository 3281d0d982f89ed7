//! An AdmissionReview of `admission.k8s.io`: text to an envelope, which is decoded, and the objects in it, which are not.
//!
//! A text is read into an arena by the engine's own reader, whose nodes expressions walk. What that reader does not take is
//! read again by [`json`], which has kube-apiserver's words for what is wrong and tells which fields are repeated: so
//! the quick reader need only be right about what it takes.

use admit_cel::document::{DuplicateKeys, parse};
use admit_cel::{Node, ReadLimits};
use bumpalo::Bump;
use serde_json::{Map, Value};

use crate::json;
use crate::object::Object;

/// Where a text is laid out, gone with everything that was read into it.
#[derive(Debug, Default)]
pub struct Arena(Bump);

impl Arena {
    /// Room for so many bytes is taken at once: what more is needed, a large text takes as it goes.
    const MOST_AT_ONCE: usize = 64 * 1024;

    /// An arena with room for a text of `length` bytes, laid out: about thrice as many.
    #[must_use]
    pub fn for_text(length: usize) -> Self {
        Self(Bump::with_capacity(length.saturating_mul(3).min(Self::MOST_AT_ONCE)))
    }
}

/// A review with its objects apart.
#[derive(Clone, Debug)]
pub struct Review<'d> {
    /// The document without the objects of its request.
    pub envelope: Value,
    pub object: Option<Object<'d>>,
    pub old_object: Option<Object<'d>>,
    pub options: Option<Object<'d>>,
}

/// Why a text is no review.
#[derive(Clone, Debug, PartialEq)]
pub enum NoReview {
    /// In the words of Go's `encoding/json`.
    Syntax(String),
    /// Paths of fields that stand twice or more in one object; at least one.
    Duplicates(Vec<String>),
}

impl<'d> Review<'d> {
    /// Reads `text`.
    ///
    /// # Errors
    /// For text that is not JSON, nests too deep or repeats a field.
    pub fn read(arena: &'d Arena, text: &'d [u8]) -> Result<Self, NoReview> {
        let limits = ReadLimits {
            // Whoever received it has bounded its length, and with it all that is in it.
            max_bytes: text.len(),
            max_values: text.len(),
            duplicate_keys: DuplicateKeys::Refuse,
            ..ReadLimits::default()
        };
        match parse(&arena.0, text, &limits) {
            Ok(document) => Ok(Self::laid_out(document)),
            Err(_) => Self::again(text),
        }
    }

    fn again(text: &[u8]) -> Result<Self, NoReview> {
        let document = json::parse(text).map_err(NoReview::Syntax)?;
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

    fn laid_out(document: Node<'d>) -> Self {
        let mut review = Self { envelope: Value::Null, object: None, old_object: None, options: None };
        let Node::Map(fields) = document else { return Self { envelope: document.to_json(), ..review } };
        let mut envelope = Map::with_capacity(fields.len());
        for (name, node) in fields.iter() {
            let value = match (name, node) {
                ("request", Node::Map(_)) => review.laid_out_request(node),
                _ => node.to_json(),
            };
            envelope.insert(name.to_owned(), value);
        }
        review.envelope = Value::Object(envelope);
        review
    }

    /// The request without its objects.
    fn laid_out_request(&mut self, request: Node<'d>) -> Value {
        let Node::Map(fields) = request else { return request.to_json() };
        let mut rest = Map::with_capacity(fields.len());
        for (name, node) in fields.iter() {
            let place = match name {
                "object" => &mut self.object,
                "oldObject" => &mut self.old_object,
                "options" => &mut self.options,
                _ => {
                    rest.insert(name.to_owned(), node.to_json());
                    continue;
                }
            };
            *place = (!matches!(node, Node::Null)).then_some(Object::Seen(node));
        }
        Value::Object(rest)
    }
}
