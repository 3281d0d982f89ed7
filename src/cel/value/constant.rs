//! Represents values that a program owns. A program cannot hold [`Value`]s of its own text, since those borrow; it holds these and
//! lends them while it lives.

use super::entries::Slots;
use super::{Duration, List, Map, Timestamp, Value};
use crate::types::Type;

/// A value without borrows.
///
/// ```
/// use admit_cel::{Constant, Value};
///
/// let kept = Constant::of(&Value::String("a")).unwrap();
/// assert_eq!(kept, Constant::String("a".into()));
/// assert!(kept.value().equals(&Value::String("a")));
/// assert_eq!(Constant::of(&Value::Optional(None)), None);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Constant {
    /// `null`.
    Null,
    /// A truth value.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// A floating point number.
    Double(f64),
    /// Text.
    String(Box<str>),
    /// A byte sequence.
    Bytes(Box<[u8]>),
    /// A span of time.
    Duration(Duration),
    /// An instant.
    Timestamp(Timestamp),
    /// A list.
    List(Box<[Self]>),
    /// A map.
    Map(ConstantEntries),
    /// A type as a value.
    Type(Type),
}

/// The entries of a constant map; its keys are distinct.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConstantEntries {
    pub(crate) entries: Box<[(Constant, Constant)]>,
    slots: Slots,
}

impl ConstantEntries {
    /// A map of these entries; of several with one key the last counts.
    pub(crate) fn new(entries: &[(Constant, Constant)]) -> Self {
        let key = |at: usize| entries.get(at).map(|(key, _)| key);
        let slots = Slots::of(entries.len(), |at| key(at).map(Constant::value));
        let mut last: Vec<Option<Constant>> = vec![None; entries.len()];
        let mut firsts = Vec::with_capacity(entries.len());
        for (at, (wanted, value)) in entries.iter().enumerate() {
            let first = slots.find(entries.len(), &wanted.value(), |at| key(at) == Some(wanted));
            // A key that is not even equal to itself stays.
            let first = first.unwrap_or(at);
            if first == at {
                firsts.push(at);
            }
            if let Some(place) = last.get_mut(first) {
                *place = Some(value.clone());
            }
        }
        let distinct =
            firsts.into_iter().filter_map(|at| Some((key(at)?.clone(), last.get_mut(at)?.take()?)));
        Self::distinct(distinct.collect())
    }

    /// A map of entries whose keys are distinct.
    fn distinct(entries: Box<[(Constant, Constant)]>) -> Self {
        let slots = Slots::of(entries.len(), |at| entries.get(at).map(|(key, _)| key.value()));
        Self { entries, slots }
    }

    pub(super) fn find(&self, key: &Value<'_>) -> Option<Value<'_>> {
        let entry = |at: usize| self.entries.get(at);
        let at = key.seek(|is_it| {
            let agrees = |at: usize| entry(at).is_some_and(|(known, _)| is_it(&known.value()));
            self.slots.find(self.entries.len(), key, agrees)
        })?;
        entry(at).map(|(_, value)| value.value())
    }
}

impl Constant {
    /// The value, for as long as the constant lives.
    #[must_use]
    pub fn value(&self) -> Value<'_> {
        match self {
            Self::Null => Value::Null,
            Self::Bool(b) => Value::Bool(*b),
            Self::Int(i) => Value::Int(*i),
            Self::Uint(u) => Value::Uint(*u),
            Self::Double(d) => Value::Double(*d),
            Self::String(s) => Value::String(s),
            Self::Bytes(b) => Value::Bytes(b),
            Self::Duration(d) => Value::Duration(*d),
            Self::Timestamp(t) => Value::Timestamp(*t),
            Self::List(items) => Value::List(List::Constant(items)),
            Self::Map(entries) => Value::Map(Map::Constant(entries)),
            Self::Type(ty) => Value::Type(ty),
        }
    }

    /// A copy of a value; none for one that only an evaluation can hold (an optional, a library's value, a view of a
    /// document).
    #[must_use]
    pub fn of(value: &Value<'_>) -> Option<Self> {
        Some(match value {
            Value::Null => Self::Null,
            Value::Bool(b) => Self::Bool(*b),
            Value::Int(i) => Self::Int(*i),
            Value::Uint(u) => Self::Uint(*u),
            Value::Double(d) => Self::Double(*d),
            Value::String(s) => Self::String((*s).into()),
            Value::Bytes(b) => Self::Bytes((*b).into()),
            Value::Duration(d) => Self::Duration(*d),
            Value::Timestamp(t) => Self::Timestamp(*t),
            Value::List(List::Values(items)) => {
                Self::List(items.iter().map(Self::of).collect::<Option<_>>()?)
            }
            Value::List(List::Constant(items)) => Self::List((*items).into()),
            Value::Map(Map::Values(entries)) => Self::Map(constant_entries(entries)?),
            Value::Map(Map::Indexed(indexed)) => Self::Map(constant_entries(indexed.entries())?),
            Value::Map(Map::Constant(entries)) => Self::Map((*entries).clone()),
            Value::Type(ty) => Self::Type((*ty).clone()),
            Value::List(List::Document { .. })
            | Value::Map(Map::Document { .. } | Map::Host(_))
            | Value::Optional(_)
            | Value::Opaque(_) => return None,
        })
    }
}

fn constant_entries(entries: &[(Value<'_>, Value<'_>)]) -> Option<ConstantEntries> {
    let entries = entries.iter().map(|(k, v)| Some((Constant::of(k)?, Constant::of(v)?)));
    entries.collect::<Option<_>>().map(ConstantEntries::distinct)
}
