//! Request bodies: from bytes to an object of the kind that the path names.

mod decode;
pub mod json;
mod yaml;

pub use decode::{Body, Format, Received, parse, receive, recheck};
