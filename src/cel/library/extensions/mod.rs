//! cel-go's extension libraries that Kubernetes offers.

mod comprehensions;
pub(crate) mod format;
mod lists;
mod optional;
mod sets;
mod strings;

use super::Overload;

pub(super) const TABLES: &[&[Overload]] = &[
    optional::ROWS,
    strings::ROWS,
    format::ROWS,
    sets::ROWS,
    comprehensions::ROWS,
    lists::ROWS,
    lists::SORT,
    lists::SORT_BY,
];
