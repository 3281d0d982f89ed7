//! What several subjects stand on.

pub(crate) mod cluster;
pub(crate) mod logs;
