//! Builds conflicts for subresources.

use super::Refusal;
use crate::resources::ResourceInfo;

impl Refusal {
    /// Builds a conflict whose message and details name the subresource after the resource.
    #[must_use]
    pub(crate) fn conflict_below(info: &ResourceInfo, subresource: &str, name: &str, why: &str) -> Self {
        let below = ResourceInfo { plural: format!("{}/{subresource}", info.plural), ..info.clone() };
        Self::conflict(&below, name, why)
    }
}
