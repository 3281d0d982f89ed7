//! Renders the results of `admit replay`: for people, and as JSON.

mod json;
mod text;

pub(in crate::cli) use self::json::json;
pub(in crate::cli) use self::text::text;
