//! Numbers, times and texts exactly as Go's standard library reads and writes them, because Kubernetes' answers and
//! messages come from there.

pub(crate) mod base64;
pub(crate) mod duration;
pub(crate) mod float;
pub(crate) mod integer;
pub(crate) mod layout;
pub(crate) mod netip;
pub(crate) mod print;
pub(crate) mod quote;
pub(crate) mod timestamp;
pub(crate) mod url;
pub(crate) mod zone;
