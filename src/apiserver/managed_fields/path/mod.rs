//! Paths into objects, sets of them, and their form in `fieldsV1`. Knows nothing of schemas, managers or objects.

mod codec;
mod element;
mod operations;
mod parts;
mod set;

pub use codec::{CodecError, from_json, to_json, weight};
pub use element::{Element, Path, Scalar, path_text};
pub use parts::Parts;
pub use set::FieldSet;
