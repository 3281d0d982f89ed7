//! Conflicts in subresources.

use super::Refusal;
use crate::resources::ResourceInfo;

impl Refusal {
    /// A conflict in a subresource, which the message and the details name behind the resource.
    #[must_use]
    pub(crate) fn conflict_below(info: &ResourceInfo, subresource: &str, name: &str, why: &str) -> Self {
        let below = ResourceInfo { plural: format!("{}/{subresource}", info.plural), ..info.clone() };
        Self::conflict(&below, name, why)
    }
}
