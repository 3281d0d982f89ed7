//! The kit of the controllers: leadership and supervision, on a clock that stands still.

mod lease;
mod tasks;
