//! Limits concurrent work per user and in total: changes and long reads, the memory of responses, and watches.
//!
//! | file | limits |
//! |---|---|
//! | [`turns`] | changes and long reads: each on a thread, a few at a time |
//! | [`answers`] | bytes of responses that wait to be sent |
//! | [`watchers`] | watches, and their bytes that wait to be sent |
//! | [`budget`] | bytes per user and in total, for both of these |
//! | [`hangup`] | how long a client may leave unread what was sent to it |

pub(crate) mod answers;
pub(crate) mod budget;
pub(crate) mod hangup;
pub(crate) mod turns;
pub(crate) mod watchers;
