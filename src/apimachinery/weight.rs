//! Estimates the memory of decoded values, and limits how much a text may require.
//!
//! Two bytes of text, `0,`, become a value of seventy bytes, and a request holds several copies of its object at a
//! time. So parsers count while they read, and stop before the memory is allocated.

use serde_json::Value;
use thiserror::Error;

/// The memory that the values of any text may take, whatever its length: enough for any text of 400 KiB.
pub const FREE: usize = 16 << 20;

/// The memory that the values of a text may take beyond [`FREE`], per byte of its length. The large CRDs of
/// OpenShift and of the Gateway API take one to four times their length; the densest objects in practice (network
/// policies with many addresses, managed fields) ten times, Roles with 20,000 rules twelve times. A request holds two
/// copies of its object at a time, or sets of its fields of the same size, within its limit of 64 MiB and 20 times its
/// length.
pub const PER_BYTE: usize = 8;

/// The memory of an element of a list. A list that was parsed has no spare capacity.
const ITEM: usize = size_of::<Value>();

/// The memory of an entry of a map: the value, the name, their hash, and the index in a table that is at most 7/8 full.
const MEMBER: usize = size_of::<Value>() + size_of::<String>() + 3 * size_of::<usize>();

/// The memory of the table of a map that is not empty.
const MAP: usize = 64;

/// The overhead of an allocation.
const ALLOCATION: usize = 16;

/// The error for a text whose values would take too much memory.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error(
    "more values than a text of {length} bytes may hold: they would take more than {limit} bytes of memory; divide \
     it into several objects"
)]
pub struct TooHeavy {
    /// The length of the text in bytes.
    pub length: usize,
    /// The limit for its values in bytes of memory.
    pub limit: usize,
}

/// The remaining memory budget for the values of one text.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    length: usize,
    limit: usize,
    left: usize,
}

impl Budget {
    /// No limit, for text that this program has written itself.
    pub const UNLIMITED: Self = Self { length: 0, limit: usize::MAX, left: usize::MAX };

    /// The budget for a text of `length` bytes: [`FREE`], and [`PER_BYTE`] for each of them.
    #[must_use]
    pub const fn of_text(length: usize) -> Self {
        Self::of(length, PER_BYTE)
    }

    /// The budget for a text of `length` bytes, with `per_byte` bytes of memory for each of them.
    #[must_use]
    pub const fn of(length: usize, per_byte: usize) -> Self {
        let limit = FREE.saturating_add(length.saturating_mul(per_byte));
        Self { length, limit, left: limit }
    }

    /// Takes `bytes` from the budget.
    ///
    /// # Errors
    /// When less is left.
    pub const fn take(&mut self, bytes: usize) -> Result<(), TooHeavy> {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(TooHeavy { length: self.length, limit: self.limit }),
        }
    }

    /// Returns the rest of the budget.
    ///
    /// ```
    /// let mut budget = admit_apimachinery::weight::Budget::of_text(0);
    /// let all = budget.left();
    /// budget.take(100).unwrap();
    /// assert_eq!((budget.left(), budget.spent()), (all - 100, 100));
    /// ```
    #[must_use]
    pub const fn left(&self) -> usize {
        self.left
    }

    /// Returns how much was taken from the budget. [`Self::left`] has an example.
    #[must_use]
    pub const fn spent(&self) -> usize {
        self.limit.saturating_sub(self.left)
    }

    /// Returns `bytes` to the budget, for a value that was dropped.
    pub const fn give_back(&mut self, bytes: usize) {
        self.left = self.left.saturating_add(bytes);
    }
}

/// The memory of a list element, without its contents.
#[must_use]
pub const fn of_item() -> usize {
    ITEM
}

/// The memory of a map entry and its key, without the value.
#[must_use]
pub const fn of_member(name: &str) -> usize {
    MEMBER.saturating_add(of_text(name.len()))
}

/// The memory of a map that is not empty, without its entries.
#[must_use]
pub const fn of_map() -> usize {
    MAP
}

/// The memory of a text of `length` bytes.
#[must_use]
pub const fn of_text(length: usize) -> usize {
    if length == 0 { 0 } else { length.saturating_add(ALLOCATION) }
}

/// The memory of everything that `value` holds. Recursive: the caller has bounded its depth.
#[must_use]
pub fn of(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => of_text(text.len()),
        Value::Array(items) => {
            items.iter().map(|item| ITEM.saturating_add(of(item))).fold(0, usize::saturating_add)
        }
        Value::Object(members) if members.is_empty() => 0,
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| of_member(name).saturating_add(of(value)))
            .fold(MAP, usize::saturating_add),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_budget_is_spent_and_refuses() {
        let mut budget = Budget::of_text(10);
        assert_eq!(budget.take(FREE), Ok(()));
        assert_eq!(budget.take(10 * PER_BYTE), Ok(()));
        let refused = budget.take(1).unwrap_err();
        assert_eq!(refused, TooHeavy { length: 10, limit: FREE + 10 * PER_BYTE });
        assert!(refused.to_string().contains("a text of 10 bytes"), "{refused}");
    }

    #[test]
    fn values_weigh_what_their_parts_weigh() {
        assert_eq!(of(&json!([null, "", {}, []])), 4 * ITEM);
        assert_eq!(of(&json!({"ab": ["c"]})), MAP + of_member("ab") + ITEM + of_text(1));
    }
}
