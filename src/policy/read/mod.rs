//! Reads texts into values: JSON with the messages of Go, manifests with the position of every field, typed fields of what
//! was read, and the paths by which mistakes in them are named.

pub(crate) mod decode;
pub mod json;
pub mod manifest;
pub(crate) mod object;
pub(crate) mod path;
pub(crate) mod webhook_client;
