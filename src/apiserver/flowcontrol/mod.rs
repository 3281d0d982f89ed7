//! Limits what is done at a time, by user and in all: changes and long reads, the memory of answers, and watches.
//!
//! | file | limits |
//! |---|---|
//! | [`turns`] | changes and long reads: a thread each, a few at a time |
//! | [`answers`] | bytes of answers that wait to be sent |
//! | [`watchers`] | watches, and the bytes of theirs that wait to be sent |
//! | [`budget`] | bytes by user and in all, for both of these |
//! | [`hangup`] | how long a client may leave unread what it was sent |

pub(crate) mod answers;
pub(crate) mod budget;
pub(crate) mod hangup;
pub(crate) mod turns;
pub(crate) mod watchers;
