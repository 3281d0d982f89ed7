//! Implements Kubernetes' own CEL libraries.

mod authorizer;
mod format;
pub(super) mod jsonpatch;
mod lists;
mod network;
mod quantity;
mod regex;
mod semver;
mod url;

use super::Overload;

/// What the language's own suite has of these libraries.
pub(super) const NETWORK: &[&[Overload]] = &[network::ADDRESS_ROWS, network::NETWORK_ROWS];

pub(super) const TABLES: &[&[Overload]] = &[
    url::ROWS,
    regex::ROWS,
    lists::IS_SORTED,
    lists::SUM,
    lists::MAX,
    lists::MIN,
    lists::INDEX_OF,
    lists::INCLUDES,
    authorizer::ROWS,
    quantity::ROWS,
    network::ADDRESS_ROWS,
    network::NETWORK_ROWS,
    format::ROWS,
    semver::ROWS,
];
