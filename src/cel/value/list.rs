//! Implements lists: one interface over all their representations.

use bumpalo::Bump;

use super::{Constant, EvalError, ListNode, Value, room};
use crate::types::{DeclKind, DeclType, ListType, Type};

/// A list: computed, a constant of the program, or a view of a document's array through its declared type.
///
/// ```
/// use admit_cel::{List, ListType, Value};
///
/// let (arena, items) = (bumpalo::Bump::new(), [Value::Int(1), Value::Int(2)]);
/// let list = List::Values(&items);
/// assert_eq!((list.len(), list.is_empty(), list.list_type()), (2, false, &ListType::Atomic));
/// assert!(list.get(1).is_some_and(|item| item.equals(&Value::Int(2))));
/// assert!(list.try_get(&arena, 2)?.is_none());
/// assert_eq!(list.iter().count(), list.to_slice(&arena)?.len());
/// # Ok::<(), admit_cel::EvalError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum List<'a> {
    /// Computed items.
    Values(&'a [Value<'a>]),
    /// A constant of the program.
    Constant(&'a [Constant]),
    /// A document's array.
    Document {
        /// Its items.
        items: ListNode<'a>,
        /// The list's own type.
        decl: Option<&'a DeclType>,
    },
}

impl<'a> List<'a> {
    /// The list without items.
    pub const EMPTY: Self = Self::Values(&[]);

    /// The number of items.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self {
            Self::Values(items) => items.len(),
            Self::Constant(items) => items.len(),
            Self::Document { items, .. } => items.len(),
        }
    }

    /// Whether there are no items.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the item at `index`; None beyond the end. A document's item that does not have its declared type is read by its JSON
    /// form: functions get such lists only after decoding.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Value<'a>> {
        self.item(None, index).ok().flatten()
    }

    /// The items in order, as [`Self::get`] has them.
    pub fn iter(self) -> impl ExactSizeIterator<Item = Value<'a>> + Clone {
        (0..self.len()).map(move |index| self.get(index).unwrap_or(Value::Null))
    }

    /// The item at `index`, none beyond the end.
    ///
    /// # Errors
    ///
    /// When a document's item is not of its declared type.
    pub fn try_get(&self, arena: &'a Bump, index: usize) -> Result<Option<Value<'a>>, EvalError> {
        self.item(Some(arena), index)
    }

    pub(super) fn item(&self, arena: Option<&'a Bump>, index: usize) -> Result<Option<Value<'a>>, EvalError> {
        match self {
            Self::Values(items) => Ok(items.get(index).copied()),
            Self::Constant(items) => Ok(items.get(index).map(Constant::value)),
            Self::Document { items, decl } => {
                items.get(index).map(|node| Value::from_node_in(arena, node, items_of(*decl))).transpose()
            }
        }
    }

    /// The item as it is written, whatever its declared type.
    pub(crate) fn written(&self, index: usize) -> Option<Value<'a>> {
        match self {
            Self::Document { items, .. } => items.get(index).map(Value::untyped),
            Self::Values(_) | Self::Constant(_) => self.get(index),
        }
    }

    /// Whether items may fail to have their declared type although the document is valid: those whose string is decoded.
    pub(crate) fn may_fail(&self) -> bool {
        let Self::Document { decl: Some(decl), .. } = self else { return false };
        let DeclKind::List { items, .. } = &decl.kind else { return false };
        matches!(
            items.kind,
            DeclKind::Scalar(Type::Bytes | Type::Duration | Type::Timestamp) | DeclKind::Date
        )
    }

    /// The same list, with items that can fail to be of their declared type looked at once and for all.
    ///
    /// # Errors
    ///
    /// When a document's item is not of its declared type.
    pub(crate) fn settled(&self, arena: &'a Bump) -> Result<Self, EvalError> {
        match self {
            Self::Document { decl: Some(_), .. } => self.to_slice(arena).map(Self::Values),
            _ => Ok(*self),
        }
    }

    /// The items as a slice, copied where the list is not computed.
    ///
    /// # Errors
    ///
    /// When a document's item is not of its declared type.
    pub fn to_slice(&self, arena: &'a Bump) -> Result<&'a [Value<'a>], EvalError> {
        match self {
            Self::Values(items) => Ok(items),
            Self::Constant(_) | Self::Document { .. } => {
                let mut values = room(arena, self.len())?;
                for index in 0..self.len() {
                    values.extend(self.try_get(arena, index)?);
                }
                Ok(values.into_bump_slice())
            }
        }
    }

    /// Returns how the list is compared and how `+` joins it; atomic except for a document's sets and map lists.
    #[must_use]
    pub fn list_type(&self) -> &'a ListType {
        match self {
            Self::Document {
                decl: Some(DeclType { kind: DeclKind::List { list_type, .. }, .. }), ..
            } => list_type,
            _ => &ListType::Atomic,
        }
    }
}

/// The type of a list's items.
pub(super) fn items_of(decl: Option<&DeclType>) -> Option<&DeclType> {
    match decl {
        Some(DeclType { kind: DeclKind::List { items, .. }, .. }) => Some(items),
        _ => None,
    }
}
