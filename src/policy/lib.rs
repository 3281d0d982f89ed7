//! Turns policy documents into a `PolicySet` and a request into a [`decision::Decision`]. Pure functions, no I/O.
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

pub mod decision;
mod decode;
pub mod host;
pub mod matching;
pub mod request;

pub use self::decode::DecodeError;
