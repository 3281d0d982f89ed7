//! The kit of the controllers: watches, queue, leadership and supervision, on a clock that stands still.

mod controller;
mod lease;
mod tasks;
mod watch;
