//! Request bodies: from bytes to an object of the kind that the path names.

mod decode;
pub mod json;
mod yaml;

pub use decode::{Body, Format, Received, parse, receive, receive_scale, recheck, strict_refusal};
pub use yaml::to_yaml;
