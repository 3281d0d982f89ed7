//! Numbers, times and texts exactly as Go's standard library reads and writes them, because Kubernetes' answers and
//! messages come from there.

pub(super) mod duration;
pub(super) mod float;
pub(super) mod integer;
pub(super) mod quote;
pub(super) mod timestamp;
pub(super) mod zone;
