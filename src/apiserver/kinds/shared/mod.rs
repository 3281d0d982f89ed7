//! Parts that several kinds have in common.
