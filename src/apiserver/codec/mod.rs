//! Decodes request bodies, from bytes to an object of the kind in the path.

mod decode;
mod document;
mod literal;
mod read;
mod registered;
mod yaml;

pub(crate) use decode::{
    Received, is_metadata, receive, receive_delete_options, receive_kind, recheck, recheck_kind,
    recheck_merged, scheme_of, strict_refusal, unknown_text, unlike_kind, unnamed,
};
pub(crate) use document::Unread;
pub(crate) use read::{Body, Format, MAX_BODY, parse};
pub(crate) use registered::is_registered;
pub(crate) use yaml::strict_text as yaml_strict_text;
