//! Turns policy documents into a `PolicySet` and a request into a [`decision::Decision`]. Pure functions, no I/O.
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

pub mod crd;
pub mod decision;
mod decode;
pub mod error;
pub mod go_text;
pub mod host;
pub mod matching;
pub mod names;
pub mod path;
pub mod request;
pub mod schema;

pub use self::decode::DecodeError;
