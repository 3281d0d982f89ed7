//! Kubernetes' own libraries.

mod lists;
mod network;
pub mod quantity;
mod regex;
pub mod url;

use super::Overload;

pub(super) const TABLES: &[&[Overload]] =
    &[regex::ROWS, lists::IS_SORTED, lists::SUM, lists::MAX, lists::MIN, lists::INDEX_OF, quantity::ROWS];
