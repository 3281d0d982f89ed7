//! Parses and formats numbers, times, strings and addresses exactly as Go's standard library, which the responses and messages of
//! Kubernetes depend on.
//!
//! | part | Go |
//! |---|---|
//! | [`quote`](mod@quote), [`integer`], [`float`] | `strconv`, `unicode.IsPrint` |
//! | [`duration`], [`layout`], [`instant`], [`zone`] | `time` |
//! | [`netip`], [`url`] | `net/netip`, `net/url` |
//! | [`mime`] | `mime` |
//! | [`value`](mod@value) | `fmt`, of decoded JSON |
//! | [`base64`], [`hex`], [`json`], [`pem`] | `encoding/base64`, `encoding/hex`, `encoding/json`, `encoding/pem` |

pub mod base64;
pub mod duration;
pub mod float;
pub mod hex;
pub mod instant;
pub mod integer;
pub mod json;
pub mod layout;
pub mod mime;
pub mod netip;
pub mod pem;
pub mod quote;
pub mod url;
pub mod value;
pub mod zone;

pub use instant::Timestamp;
pub use layout::Layout;
pub use quote::quote;
