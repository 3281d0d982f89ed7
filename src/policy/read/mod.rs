//! Reads texts into values: JSON with the messages of Go, manifests with the position of every field, typed fields of what
//! was read, and the paths by which mistakes in them are named.

pub(crate) mod decode;
pub mod json;
pub mod manifest;
pub mod object;
pub mod path;
pub(crate) mod webhook_client;
