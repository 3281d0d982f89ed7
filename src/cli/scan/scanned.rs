//! Holds the results of a scan, for `render`.

use std::collections::BTreeMap;

use admit_analysis::scan::Report;

/// The results of a scan.
#[derive(Debug)]
pub(in crate::cli) struct Scanned {
    pub(in crate::cli) reports: BTreeMap<String, Report>,
    /// How many objects were not decided in time.
    pub(in crate::cli) late: usize,
    /// How many things could not be read.
    pub(in crate::cli) unread: usize,
}
