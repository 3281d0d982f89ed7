//! Holds the results of `admit states`, for `render`.

use admit_analysis::states::{Difference, Picture};

use crate::cli::Exit;

/// All pictures, and where the expected one differs.
#[derive(Debug)]
pub(in crate::cli) struct Drawn {
    pub(in crate::cli) pictures: Vec<Picture>,
    pub(in crate::cli) differences: Vec<Difference>,
}

impl Drawn {
    pub(in crate::cli) fn exit(&self) -> Exit {
        let differs = self.differences.iter().any(|difference| !difference.is_undecided());
        if differs {
            Exit::Differs
        } else if self.differences.is_empty() && self.pictures.iter().all(Picture::is_decided) {
            Exit::Expected
        } else {
            Exit::Undecided
        }
    }
}
