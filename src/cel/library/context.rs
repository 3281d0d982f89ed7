//! Provides what an implementation may use beside its arguments: memory for its result, whose limit is an error and no abort.

use bumpalo::Bump;

use crate::value::{EvalError, Value};

/// Handed to every implementation.
#[derive(Debug)]
pub struct Context<'a> {
    /// Results that are not scalars live here.
    pub arena: &'a Bump,
}

impl<'a> Context<'a> {
    /// Returns a string value that is a copy of `text`.
    pub(crate) fn text(&self, text: &str) -> Result<Value<'a>, EvalError> {
        self.str(text).map(Value::String)
    }

    /// Copies `text` for as long as the result lives.
    pub(crate) fn str(&self, text: &str) -> Result<&'a str, EvalError> {
        self.arena.try_alloc_str(text).map(|text| &*text).map_err(|_| EvalError::MemoryLimitExceeded)
    }

    /// A string value of several parts in a row.
    pub(crate) fn joined(&self, parts: &[&str]) -> Result<Value<'a>, EvalError> {
        let bytes = self.concatenate(parts.iter().map(|part| part.as_bytes()))?;
        std::str::from_utf8(bytes).map(Value::String).map_err(|_| EvalError::NoSuchOverload)
    }

    /// A byte sequence of two parts in a row.
    pub(crate) fn joined_bytes(&self, first: &[u8], second: &[u8]) -> Result<Value<'a>, EvalError> {
        self.concatenate([first, second].into_iter()).map(Value::Bytes)
    }

    fn concatenate<'p>(&self, parts: impl Iterator<Item = &'p [u8]> + Clone) -> Result<&'a [u8], EvalError> {
        let size = parts.clone().fold(0_usize, |size, part| size.saturating_add(part.len()));
        let mut bytes = bumpalo::collections::Vec::new_in(self.arena);
        bytes.try_reserve_exact(size).map_err(|_| EvalError::MemoryLimitExceeded)?;
        for part in parts {
            bytes.extend_from_slice_copy(part);
        }
        Ok(bytes.into_bump_slice())
    }

    /// At most `length` items.
    pub(crate) fn slice<T>(
        &self,
        length: usize,
        items: impl Iterator<Item = T>,
    ) -> Result<&'a [T], EvalError> {
        let mut slice = bumpalo::collections::Vec::new_in(self.arena);
        slice.try_reserve_exact(length).map_err(|_| EvalError::MemoryLimitExceeded)?;
        slice.extend(items.take(length));
        Ok(slice.into_bump_slice())
    }

    /// Whether a string of `size` bytes fits the memory limit; called before it is built elsewhere.
    pub(crate) fn reserve(&self, size: usize) -> Result<(), EvalError> {
        let room =
            self.arena.allocation_limit().map(|limit| limit.saturating_sub(self.arena.allocated_bytes()));
        match room {
            Some(room) if size > room => Err(EvalError::MemoryLimitExceeded),
            _ => Ok(()),
        }
    }

    /// Stores a value for as long as the result lives.
    pub(crate) fn keep<T>(&self, value: T) -> Result<&'a T, EvalError> {
        self.arena.try_alloc(value).map(|value| &*value).map_err(|_| EvalError::MemoryLimitExceeded)
    }
}
