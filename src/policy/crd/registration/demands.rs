//! Lists the checks that are waived in some cases: for a CRD that replaces one that already fails them.

/// Validation rules that are waived if the stored definition already violates them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demands {
    /// Every version needs a schema; else only served ones do.
    pub(super) schemas: bool,
    /// Types must be those of OpenAPI.
    pub(super) types: bool,
    pub(super) structural: bool,
    /// Defaults must have no unknown fields.
    pub(super) pruned_defaults: bool,
    /// Items of sets must be scalars or atomic.
    pub(super) atomic_set_items: bool,
    /// Items of sets and map lists must not be nullable, keys of map lists must be required or have a default.
    pub(super) sound_items: bool,
    /// A conversion webhook must support a review version that the server supports.
    pub(super) review_versions: bool,
    /// The CA bundle of a conversion webhook must be readable. Not checked on creation.
    pub(super) ca_bundle: bool,
    /// `preserveUnknownFields` must not be true.
    pub(super) pruning: bool,
}

impl Demands {
    /// The checks of a creation, which does not look at the CA bundle.
    pub(super) const ALL: Self = Self {
        schemas: true,
        types: true,
        structural: true,
        pruned_defaults: true,
        atomic_set_items: true,
        sound_items: true,
        review_versions: true,
        ca_bundle: false,
        pruning: true,
    };
}
