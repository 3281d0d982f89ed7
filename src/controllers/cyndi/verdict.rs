//! Decides the result of a validation: by counts first, then by ids; with thresholds and messages. Pure.

use super::merge::Difference;

/// The share of hosts by which the counts may differ at most before ids are compared: beyond that the table is wrong anyway.
const HOPELESS: f64 = 0.5;

/// The result of a validation.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    pub valid: bool,
    /// The number of selected hosts in the inventory, and of those in the table.
    pub inventory: u64,
    pub table: u64,
    /// The number of hosts on one side only.
    pub mismatches: u64,
    /// The number of mismatches as a percentage of the inventory's hosts.
    pub percent: f64,
    /// The tolerated percentage.
    pub threshold: i64,
    /// The ids on one side only, if they were compared.
    pub difference: Option<Difference>,
}

impl Verdict {
    /// Decides by the counts alone if they differ too much; otherwise None.
    #[must_use]
    pub fn by_counts(inventory: u64, table: u64, threshold: i64) -> Option<Self> {
        let mismatches = inventory.abs_diff(table);
        let percent = percent(mismatches, inventory);
        (percent > HOPELESS * 100.0).then_some(Self {
            valid: false,
            inventory,
            table,
            mismatches,
            percent,
            threshold,
            difference: None,
        })
    }

    /// Decides by the ids: the inventory is on the left, the table on the right.
    #[must_use]
    pub fn by_ids(difference: Difference, threshold: i64) -> Self {
        let (inventory, table) = (difference.left.count, difference.right.count);
        let mismatches = difference.left.only.saturating_add(difference.right.only);
        let percent = percent(mismatches, inventory);
        let valid = percent <= as_float(threshold.max(0).unsigned_abs());
        Self { valid, inventory, table, mismatches, percent, threshold, difference: Some(difference) }
    }

    /// Returns the message of the condition.
    #[must_use]
    pub fn message(&self) -> String {
        let (how, hosts, percent) =
            (if self.valid { "succeeded" } else { "failed" }, self.mismatches, self.percent);
        format!("Validation {how} - {hosts} hosts ({percent:.2}%) do not match")
    }
}

fn percent(mismatches: u64, of: u64) -> f64 {
    as_float(mismatches) / as_float(of.max(1)) * 100.0
}

/// Converts a count, limited to 32 bits, which is more than any number of hosts.
fn as_float(count: u64) -> f64 {
    u32::try_from(count).map_or(f64::from(u32::MAX), f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::cyndi::merge::Side;

    fn by_ids(inventory: u64, missing: u64, more: u64, threshold: i64) -> Verdict {
        let left = Side { count: inventory, only: missing, shown: vec![] };
        let right = Side { count: inventory - missing + more, only: more, shown: vec![] };
        Verdict::by_ids(Difference { left, right }, threshold)
    }

    #[test]
    fn cy_08_thresholds_and_words() {
        let cases = [
            (by_ids(3, 0, 0, 5), true, "Validation succeeded - 0 hosts (0.00%) do not match"),
            (by_ids(6, 1, 0, 20), true, "Validation succeeded - 1 hosts (16.67%) do not match"),
            (by_ids(6, 2, 0, 20), false, "Validation failed - 2 hosts (33.33%) do not match"),
            (by_ids(6, 1, 0, 5), false, "Validation failed - 1 hosts (16.67%) do not match"),
            (by_ids(20, 1, 0, 5), true, "Validation succeeded - 1 hosts (5.00%) do not match"),
            (by_ids(20, 1, 1, 5), false, "Validation failed - 2 hosts (10.00%) do not match"),
            (by_ids(0, 0, 0, 0), true, "Validation succeeded - 0 hosts (0.00%) do not match"),
            (by_ids(4, 1, 0, -1), false, "Validation failed - 1 hosts (25.00%) do not match"),
        ];
        for (verdict, valid, message) in cases {
            assert_eq!((verdict.valid, verdict.message().as_str()), (valid, message));
        }
    }

    #[test]
    fn cy_04_hopeless_counts_decide_alone() {
        let failed = Verdict::by_counts(3, 1, 5).unwrap();
        assert_eq!(failed.message(), "Validation failed - 2 hosts (66.67%) do not match");
        assert_eq!(Verdict::by_counts(4, 2, 5), None);
        assert!(Verdict::by_counts(0, 1, 5).is_some());
        assert_eq!(Verdict::by_counts(0, 0, 5), None);
        assert!(Verdict::by_counts(100, 151, 100).is_some_and(|it| !it.valid));
    }
}
