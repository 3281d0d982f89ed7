//! Defines paths into objects, sets of paths, and the `fieldsV1` format. Independent of schemas, managers and objects.

mod codec;
mod element;
mod operations;
mod parts;
mod set;

pub use codec::{CodecError, from_json, to_json, weight};
pub use element::{Element, Path, Scalar, path_text};
pub use parts::Parts;
pub use set::FieldSet;
