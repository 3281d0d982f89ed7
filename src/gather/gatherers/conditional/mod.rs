//! What the remote configuration asks for: lines of logs at once, and more under conditions, which are told and not followed.

mod lines;
pub(super) mod logs;
pub(super) mod rules;
