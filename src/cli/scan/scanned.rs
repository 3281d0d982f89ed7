//! What a scan found, as it is drawn.

use std::collections::BTreeMap;

use admit_analysis::scan::Report;

/// What a scan found.
#[derive(Debug)]
pub(in crate::cli) struct Scanned {
    pub(in crate::cli) reports: BTreeMap<String, Report>,
    /// Objects that were not decided in time.
    pub(in crate::cli) late: usize,
    /// What could not be read.
    pub(in crate::cli) unread: usize,
}
