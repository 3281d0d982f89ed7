//! Lists the checks that apply to a CRD: all of them to a new one; on update, those that the stored one passes.

/// Rules that are waived where the stored definition breaks them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demands {
    /// Every version has a schema; else served ones alone need one.
    pub(super) schemas: bool,
    /// Types are OpenAPI's.
    pub(super) types: bool,
    pub(super) structural: bool,
    /// Defaults have no unknown fields.
    pub(super) pruned_defaults: bool,
    /// Items of sets are scalars or atomic.
    pub(super) atomic_set_items: bool,
    /// Items of sets and map lists are never null, keys of map lists always there.
    pub(super) sound_items: bool,
    /// A conversion webhook speaks a version that the server does.
    pub(super) review_versions: bool,
    /// The certificates of a conversion webhook can be read. Nobody asks before objects exist.
    pub(super) ca_bundle: bool,
    /// `preserveUnknownFields` may not be true.
    pub(super) pruning: bool,
}

impl Demands {
    /// Those of a creation.
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
