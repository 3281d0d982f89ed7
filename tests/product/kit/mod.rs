//! The kit of the controllers: watches, queue, leadership and supervision, on a clock that stands still.

mod controller;
mod cuts;
mod events;
mod finalizer;
mod lease;
mod libraries;
mod manager;
mod observe;
mod operator;
mod quiet;
mod second;
mod tasks;
mod watch;
