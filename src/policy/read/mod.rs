//! Parses text into values: JSON with Go's error messages, manifests with the position of every field, typed fields, and the paths of
//! fields in error messages.

pub(crate) mod decode;
pub mod json;
pub mod manifest;
pub(crate) mod object;
pub(crate) mod path;
pub(crate) mod webhook_client;
