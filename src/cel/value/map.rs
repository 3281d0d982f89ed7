//! Implements maps and objects: one interface over all their representations.

use std::fmt;

use bumpalo::Bump;

use super::{ConstantEntries, EvalError, Indexed, MapNode, Node, Value};
use crate::document::Key;
use crate::types::{DeclField, DeclKind, DeclType, field_position};

/// A map or object: computed, a constant of the program, a view of a document's object through its declared type, or
/// the caller's own.
///
/// ```
/// use admit_cel::{Map, Value};
///
/// let (arena, entries) = (bumpalo::Bump::new(), [(Value::String("a"), Value::Int(1))]);
/// let map = Map::Values(&entries);
/// assert_eq!((map.len(), map.is_empty(), map.iter().count()), (1, false, 1));
/// assert!(map.get(&Value::String("a")).is_some());
/// assert!(map.try_get(&arena, &Value::String("b"))?.is_none());
/// # Ok::<(), admit_cel::EvalError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Map<'a> {
    /// Entries in order of creation; keys are distinct.
    Values(&'a [(Value<'a>, Value<'a>)]),
    /// The same for many entries.
    Indexed(&'a Indexed<'a>),
    /// A constant of the program.
    Constant(&'a ConstantEntries),
    /// A document's object.
    Document {
        /// Its properties.
        node: MapNode<'a>,
        /// The map's or object's own type.
        decl: Option<&'a DeclType>,
    },
    /// The caller's own object.
    Host(&'a dyn HostMap),
}

/// An object whose fields the caller computes on access (the `variables` of an admission policy).
///
/// ```
/// use admit_cel::{Bindings, Env, EvalError, Evaluation, HostMap, Map, Mode, Type, Value, Version};
///
/// /// Squares, made where they are looked at.
/// #[derive(Debug)]
/// struct Squares(Box<[Box<str>]>);
///
/// impl HostMap for Squares {
///     fn names(&self) -> &[Box<str>] {
///         &self.0
///     }
///
///     fn find<'a>(&'a self, name: &str) -> Option<Result<Value<'a>, EvalError>> {
///         let number: i64 = name.strip_prefix('n')?.parse().ok()?;
///         Some(Ok(Value::Int(number * number)))
///     }
/// }
///
/// let squares = Squares(["n2".into(), "n3".into()].into());
/// assert!(squares.holds("n4")? && !squares.holds("m")?);
/// let env = Env::kubernetes(Version(1, 36), Mode::New).with_variable("squares", Type::Dyn);
/// let program = env.program(&env.compile("squares.n3 + squares['n2']")?)?;
/// let arena = bumpalo::Bump::new();
/// let mut bindings = Bindings::new(&program);
/// bindings.set("squares", Value::Map(Map::Host(&squares)));
/// assert!(program.eval(&bindings, &mut Evaluation::new(&arena))?.equals(&Value::Int(13)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait HostMap: fmt::Debug {
    /// Returns the value of a field; None if it does not exist. An error becomes the result of the selection.
    fn find<'a>(&'a self, name: &str) -> Option<Result<Value<'a>, EvalError>>;

    /// The fields' names, in the order in which expressions walk them.
    fn names(&self) -> &[Box<str>];

    /// Whether `in` finds a field. Fewer are there where [`Self::find`] has a value for every name.
    ///
    /// # Errors
    /// Of looking, in place of an answer.
    fn holds(&self, name: &str) -> Result<bool, EvalError> {
        Ok(self.find(name).transpose()?.is_some())
    }
}

impl<'a> Map<'a> {
    /// The map without entries.
    pub const EMPTY: Self = Self::Values(&[]);

    /// Entries; in a document those count that the declared type does not show.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Values(entries) => entries.len(),
            Self::Indexed(indexed) => indexed.entries().len(),
            Self::Constant(constant) => constant.entries.len(),
            Self::Document { node, .. } => node.len(),
            Self::Host(host) => host.names().len(),
        }
    }

    /// Whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it is a view of a document.
    pub(crate) const fn is_document(&self) -> bool {
        matches!(self, Self::Document { .. } | Self::Host(_))
    }

    /// Returns the value of a key. An int, a uint and a whole double of equal value are the same key. A document's value that does not
    /// have its declared type is read by its JSON form; a host's value that fails is absent.
    #[must_use]
    pub fn get(&self, key: &Value<'_>) -> Option<Value<'a>> {
        self.find(None, key).ok().flatten()
    }

    /// Keys and values, as [`Self::get`] has them. Of an object of a declared type the declared fields that are
    /// present, under their escaped names.
    pub fn iter(self) -> impl Iterator<Item = (Value<'a>, Value<'a>)> + Clone {
        self.entries(None).filter_map(Result::ok)
    }

    /// Returns the value of a key.
    ///
    /// # Errors
    ///
    /// If a document's value does not have its declared type, the key of a declared map or object is not a string, or the host fails.
    pub fn try_get(&self, arena: &'a Bump, key: &Value<'_>) -> Result<Option<Value<'a>>, EvalError> {
        self.find(Some(arena), key)
    }

    pub(super) fn find(
        &self,
        arena: Option<&'a Bump>,
        key: &Value<'_>,
    ) -> Result<Option<Value<'a>>, EvalError> {
        match (self, key) {
            (Self::Values(entries), _) => {
                Ok(key.seek(|is_it| entries.iter().find(|(known, _)| is_it(known)).map(|(_, value)| *value)))
            }
            (Self::Constant(constant), _) => Ok(constant.find(key)),
            (Self::Indexed(indexed), _) => Ok(indexed.find(key)),
            (Self::Document { node, decl }, Value::String(name)) => document_value(arena, *node, *decl, name),
            (Self::Host(host), Value::String(name)) => host.find(name).transpose(),
            (Self::Document { decl: Some(_), .. }, _) => Err(EvalError::NoSuchOverload),
            (Self::Document { .. } | Self::Host(_), _) => Ok(None),
        }
    }
}

/// The field with this escaped name. INVARIANT: `fields` is sorted by it.
pub(crate) fn field_named<'d>(fields: &'d [DeclField], cel_name: &str) -> Option<&'d DeclField> {
    fields.get(field_position(fields, cel_name)?)
}

/// A declared field of an object: a null is an absent field, as for kube-apiserver.
pub(crate) fn object_field<'a>(
    arena: Option<&'a Bump>,
    node: MapNode<'a>,
    key: Key<'_>,
    decl: &'a DeclType,
) -> Result<Option<Value<'a>>, EvalError> {
    view(arena, node.find(key).filter(|node| !matches!(node, Node::Null)), Some(decl))
}

fn document_value<'a>(
    arena: Option<&'a Bump>,
    node: MapNode<'a>,
    decl: Option<&'a DeclType>,
    name: &str,
) -> Result<Option<Value<'a>>, EvalError> {
    match decl.map(|decl| &decl.kind) {
        Some(DeclKind::Object { fields, .. }) => match field_named(fields, name) {
            Some(field) => object_field(arena, node, Key::new(&field.name), &field.decl),
            None => Ok(None),
        },
        Some(DeclKind::Map { value, .. }) => view(arena, node.get(name), Some(value)),
        Some(DeclKind::Scalar(_) | DeclKind::Date | DeclKind::List { .. }) | None => {
            view(arena, node.get(name), None)
        }
    }
}

/// Returns the name of a property in expressions, and the type of its value; None where the declared type hides it.
pub(super) fn declared_name<'a>(
    name: &'a str,
    decl: Option<&'a DeclType>,
) -> Option<(&'a str, Option<&'a DeclType>)> {
    match decl.map(|decl| &decl.kind) {
        Some(DeclKind::Object { fields, .. }) => {
            let field = fields.iter().find(|field| *field.name == *name)?;
            Some((&field.cel_name, Some(&field.decl)))
        }
        Some(DeclKind::Map { value, .. }) => Some((name, Some(value))),
        Some(DeclKind::Scalar(_) | DeclKind::Date | DeclKind::List { .. }) | None => Some((name, None)),
    }
}

fn view<'a>(
    arena: Option<&'a Bump>,
    node: Option<Node<'a>>,
    decl: Option<&'a DeclType>,
) -> Result<Option<Value<'a>>, EvalError> {
    node.map(|node| Value::from_node_in(arena, node, decl)).transpose()
}
