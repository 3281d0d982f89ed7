//! Parses lists of a Job's indexes, such as `1,3-5`.

use admit_apimachinery::go;
use admit_apimachinery::go::integer::atoi;
use thiserror::Error;

use crate::interrupt;

/// Why a string is not a list of indexes, in the words of Kubernetes.
#[derive(Debug, Error, PartialEq)]
pub(super) enum IndexError {
    #[error("non-increasing order, previous: {previous}, current: {current}")]
    Order { previous: i64, current: i64 },
    #[error("cannot convert string to integer for index: {}", go::quote(.0))]
    Malformed(String),
    #[error("too large index: {}", go::quote(.0))]
    TooLarge(String),
    #[error(
        "the fragment {} violates the requirement that an index interval can have at most two parts separated by '-'",
        go::quote(.0)
    )]
    TooManyParts(String),
}

/// Counts the indexes in a list; all must be below `completions`.
///
/// # Errors
/// [`IndexError`]
pub(super) fn count(text: &str, completions: i64) -> Result<i64, IndexError> {
    if text.is_empty() {
        return Ok(0);
    }
    let (mut total, mut last) = (0_i64, None);
    for part in text.split(',') {
        interrupt::checkpoint();
        let (first, end) = interval(part, completions)?;
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(IndexError::Order { previous: last, current: first });
        }
        total = total.saturating_add(end.saturating_sub(first).saturating_add(1));
        last = Some(end);
    }
    Ok(total)
}

/// Returns the first and the last index of one part of the list.
fn interval(part: &str, completions: i64) -> Result<(i64, i64), IndexError> {
    let limits: Vec<&str> = part.split('-').collect();
    let index = |text: &str| match atoi(text) {
        Err(_) => Err(IndexError::Malformed(text.to_owned())),
        Ok(index) if index >= completions => Err(IndexError::TooLarge(text.to_owned())),
        Ok(index) => Ok(index),
    };
    match limits.as_slice() {
        [] => Err(IndexError::Malformed(part.to_owned())),
        [one] => index(one).map(|index| (index, index)),
        [first, last] => {
            let (first, last) = (index(first)?, index(last)?);
            if first >= last {
                return Err(IndexError::Order { previous: first, current: last });
            }
            Ok((first, last))
        }
        _ => Err(IndexError::TooManyParts(part.to_owned())),
    }
}

/// Returns the first index in both lists. Invalid parts are ignored, since they are reported elsewhere.
pub(super) fn overlap(completed: &str, failed: &str, completions: i64) -> Option<i64> {
    let parts = |text: &str| -> Vec<(i64, i64)> {
        text.split(',').filter_map(|part| interval(part, completions).ok()).collect()
    };
    let (completed, failed) = (parts(completed), parts(failed));
    let (mut one, mut other) = (completed.iter().peekable(), failed.iter().peekable());
    while let (Some((first, last)), Some((failed_first, failed_last))) = (one.peek(), other.peek()) {
        interrupt::checkpoint();
        if first <= failed_last && failed_first <= last {
            return Some(*first.max(failed_first));
        }
        if first <= failed_first {
            one.next()
        } else {
            other.next()
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_counted() {
        for (text, told) in [
            ("", Ok(0)),
            ("0", Ok(1)),
            ("0,2-4", Ok(4)),
            ("2,1", Err("non-increasing order, previous: 2, current: 1")),
            ("3-3", Err("non-increasing order, previous: 3, current: 3")),
            ("5", Err("too large index: \"5\"")),
            ("1-9", Err("too large index: \"9\"")),
            ("1,", Err("cannot convert string to integer for index: \"\"")),
            (
                "1-2-3",
                Err(
                    "the fragment \"1-2-3\" violates the requirement that an index interval can have at most two parts \
                     separated by '-'",
                ),
            ),
        ] {
            assert_eq!(
                count(text, 5).map_err(|error| error.to_string()),
                told.map_err(str::to_owned),
                "{text}"
            );
        }
        assert_eq!(overlap("0,2-3", "1,3-4", 5), Some(3));
        assert_eq!(overlap("0,2", "1,x,3-4", 5), None);
    }
}
