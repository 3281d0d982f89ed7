//! Stores the entries of maps that are not from a document: searched linearly if few, by hash if many, so that neither building nor
//! querying a large map takes quadratic time.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use bumpalo::Bump;
use bumpalo::collections::Vec as ArenaVec;

use super::{EvalError, Map, Value};

/// Up to this many entries looking at each is faster than hashing.
const FEW: usize = 16;

/// Keyed at random, so that attackers cannot choose colliding keys.
static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// Entries with distinct keys, and their positions by the hashes of their keys.
///
/// ```
/// use admit_cel::{Bindings, Env, Evaluation, Map, Mode, Value, Version};
///
/// // Maps that expressions make are indexed.
/// let env = Env::kubernetes(Version(1, 36), Mode::New);
/// let program = env.program(&env.compile("[1, 2, 3].transformMap(i, n, n * n)")?)?;
/// let arena = bumpalo::Bump::new();
/// let value = program.eval(&Bindings::new(&program), &mut Evaluation::new(&arena))?;
/// if let Value::Map(Map::Indexed(map)) = value {
///     assert_eq!(map.entries().len(), 3);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Indexed<'a> {
    entries: &'a [(Value<'a>, Value<'a>)],
    slots: &'a [u32],
}

impl<'a> Indexed<'a> {
    /// Returns the entries in order of creation.
    #[must_use]
    pub const fn entries(&self) -> &'a [(Value<'a>, Value<'a>)] {
        self.entries
    }

    pub(super) fn find(&self, key: &Value<'_>) -> Option<Value<'a>> {
        let entry = |at: usize| self.entries.get(at);
        let agrees =
            |at: usize, is_it: &dyn Fn(&Value<'_>) -> bool| entry(at).is_some_and(|(known, _)| is_it(known));
        let at = key.seek(|is_it| probe(self.slots, key, |at| agrees(at, is_it)))?;
        entry(at).map(|(_, value)| *value)
    }
}

/// Positions by hash: open addressing, half of the places free. A place holds a position and one, or zero.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Slots(Box<[u32]>);

impl Slots {
    /// Builds an index for keys by position; None if there are few.
    pub(super) fn of<'k>(count: usize, key: impl Fn(usize) -> Option<Value<'k>>) -> Self {
        if count <= FEW {
            return Self::default();
        }
        let mut slots = Self::with_room_for(count);
        (0..count).for_each(|at| slots.insert(key(at).as_ref(), at));
        slots
    }

    fn with_room_for(count: usize) -> Self {
        Self(vec![0; count.saturating_mul(2).next_power_of_two()].into())
    }

    fn insert(&mut self, key: Option<&Value<'_>>, at: usize) {
        let Some(key) = key else { return };
        let position = u32::try_from(at.saturating_add(1)).unwrap_or_default();
        for place in places(self.0.len(), key) {
            match self.0.get_mut(place) {
                Some(slot) if *slot != 0 => {}
                Some(slot) => return *slot = position,
                None => return,
            }
        }
    }

    /// The first position that a key may have and `is_it` agrees to; of few keys every one.
    pub(super) fn find(&self, count: usize, key: &Value<'_>, is_it: impl Fn(usize) -> bool) -> Option<usize> {
        if self.0.is_empty() { (0..count).find(|at| is_it(*at)) } else { probe(&self.0, key, is_it) }
    }
}

fn probe(slots: &[u32], key: &Value<'_>, is_it: impl Fn(usize) -> bool) -> Option<usize> {
    for place in places(slots.len(), key) {
        let at = slots.get(place)?.checked_sub(1)?;
        if is_it(at as usize) {
            return Some(at as usize);
        }
    }
    None
}

/// Iterates over the slots that may contain a key, each once. INVARIANT: `count` is a power of two.
fn places(count: usize, key: &Value<'_>) -> impl Iterator<Item = usize> {
    let mask = count.wrapping_sub(1);
    let start = usize::try_from(hash(key) & mask as u64).unwrap_or_default();
    (0..count).map(move |step| start.wrapping_add(step) & mask)
}

/// Equal for values that are the same key: numbers by their value, others by it and their type.
fn hash(key: &Value<'_>) -> u64 {
    match (key, key.whole_number()) {
        (_, Some(whole)) => HASHER.hash_one(whole),
        (Value::String(text), _) => HASHER.hash_one(text),
        (Value::Bool(value), _) => HASHER.hash_one(value),
        (Value::Double(value), _) => HASHER.hash_one(value.to_bits()),
        (Value::Duration(span), _) => HASHER.hash_one(span),
        (Value::Timestamp(instant), _) => HASHER.hash_one((instant.seconds, instant.nanos)),
        // Literals may have constant keys of these types, which no map can look up.
        (Value::Bytes(bytes), _) => HASHER.hash_one(bytes),
        _ => 0,
    }
}

/// The entries of a map in the making.
pub(crate) struct Entries<'a> {
    arena: &'a Bump,
    entries: ArenaVec<'a, (Value<'a>, Value<'a>)>,
    slots: Slots,
}

impl<'a> Entries<'a> {
    pub(crate) fn new(arena: &'a Bump) -> Self {
        Self { arena, entries: ArenaVec::new_in(arena), slots: Slots::default() }
    }

    /// Makes room for so many entries.
    pub(crate) fn reserve(&mut self, count: usize) -> Result<(), EvalError> {
        self.entries.try_reserve_exact(count).map_err(|_| EvalError::MemoryLimitExceeded)
    }

    /// The position of a key, as `is_same` compares keys.
    pub(crate) fn position(
        &self,
        key: &Value<'_>,
        is_same: impl Fn(&Value<'_>, &Value<'_>) -> bool,
    ) -> Option<usize> {
        let is_it = |at: usize| self.entries.get(at).is_some_and(|(known, _)| is_same(known, key));
        self.slots.find(self.entries.len(), key, is_it)
    }

    /// Adds an entry whose key is not there.
    pub(crate) fn push(&mut self, key: Value<'a>, value: Value<'a>) -> Result<(), EvalError> {
        self.entries.try_reserve(1).map_err(|_| EvalError::MemoryLimitExceeded)?;
        self.entries.push((key, value));
        let count = self.entries.len();
        if count.saturating_mul(2) > self.slots.0.len() {
            self.index();
        } else {
            self.slots.insert(Some(&key), count.saturating_sub(1));
        }
        Ok(())
    }

    /// Gives the entry at a position another value.
    pub(crate) fn set(&mut self, at: usize, value: Value<'a>) {
        if let Some(entry) = self.entries.get_mut(at) {
            entry.1 = value;
        }
    }

    /// Takes the entry at a position out.
    pub(crate) fn remove(&mut self, at: usize) {
        self.entries.remove(at);
        self.index();
    }

    fn index(&mut self) {
        let entries = &self.entries;
        // Room to grow, so that pushing does not index again each time.
        let count = entries.len();
        if count <= FEW {
            self.slots = Slots::default();
            return;
        }
        let mut slots = Slots::with_room_for(count.saturating_mul(2));
        entries.iter().enumerate().for_each(|(at, (key, _))| slots.insert(Some(key), at));
        self.slots = slots;
    }

    pub(crate) fn finish(self) -> Result<Map<'a>, EvalError> {
        let Self { arena, entries, slots } = self;
        let entries = entries.into_bump_slice();
        if slots.0.is_empty() {
            return Ok(Map::Values(entries));
        }
        let full = |_| EvalError::MemoryLimitExceeded;
        let slots = arena.try_alloc_slice_copy(&slots.0).map_err(full)?;
        let indexed = arena.try_alloc(Indexed { entries, slots }).map_err(full)?;
        Ok(Map::Indexed(indexed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_keys_are_found_as_few_are() {
        let arena = Bump::new();
        for count in [3, FEW, FEW + 1, 1_000] {
            let mut entries = Entries::new(&arena);
            for i in 0..count {
                let i = i64::try_from(i).unwrap();
                entries.push(Value::Int(i), Value::Int(i * 10)).unwrap();
                entries.push(Value::String(arena.alloc_str(&i.to_string())), Value::Int(i)).unwrap();
            }
            let map = entries.finish().unwrap();
            assert_eq!(map.len(), count * 2);
            let last = u64::try_from(count - 1).unwrap();
            let found = |key: &Value<'_>| map.get(key).map(|value| value.preview(20));
            assert_eq!(found(&Value::Uint(last)), Some((last * 10).to_string()));
            assert_eq!(found(&Value::Double(2.0)), Some("20".to_owned()));
            assert_eq!(found(&Value::String("1")), Some("1".to_owned()));
            assert_eq!(found(&Value::String("x")), None);
            assert_eq!(found(&Value::Double(0.5)), None);
        }
    }

    #[test]
    fn entries_that_are_taken_out_are_found_no_more() {
        let arena = Bump::new();
        let mut entries = Entries::new(&arena);
        for i in 0..40_i64 {
            entries.push(Value::Int(i), Value::Null).unwrap();
        }
        entries.remove(7);
        assert_eq!(entries.position(&Value::Int(7), |a, b| a.is_found_by(b)), None);
        assert_eq!(entries.position(&Value::Int(8), |a, b| a.is_found_by(b)), Some(7));
    }
}
