//! cel-go's extension libraries: in [`TABLES`] those that Kubernetes offers.

mod comprehensions;
pub(super) mod current;
pub(super) mod encoders;
pub(crate) mod format;
mod lists;
pub(super) mod math;
mod optional;
mod sets;
mod strings;

pub(crate) use comprehensions::already_there;

use super::Overload;

/// The rows whose costs Kubernetes itself defines (apiserver `pkg/cel/library/cost.go`), beside those of cel-go.
pub(super) const COUNTED_BY_KUBERNETES: &[Overload] = strings::ROWS;

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
