//! Converts counts of Pods for a Job's status.

pub(super) fn known(number: Option<i32>) -> usize {
    usize::try_from(number.unwrap_or(0)).unwrap_or(0)
}

pub(super) fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// Returns the count, or None for 0, which the status omits.
pub(super) fn shown(count: usize) -> Option<i32> {
    (count > 0).then(|| number(count))
}

pub(super) fn listed(uids: Option<&Vec<String>>) -> usize {
    uids.map_or(0, Vec::len)
}
