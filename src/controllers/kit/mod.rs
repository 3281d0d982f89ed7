//! What every controller needs: resilient watches, the work queue and its error policy, supervised tasks, fenced
//! status writes, finalizers, conditions, events, leader election, and the manager of a set of controllers.
//!
//! Contains nothing about any kind of object. A controller itself consists of the pipeline fetch → plan → apply →
//! status.

pub mod cache;
pub mod client;
pub mod clock;
pub mod conditions;
pub mod conflict;
pub mod controller;
pub mod events;
pub mod fence;
pub mod finalizer;
pub mod key;
pub mod lease;
pub mod manager;
pub mod observe;
pub mod operator;
pub mod periodic;
pub mod pods;
pub mod retry;
pub mod status;
pub mod tasks;
pub mod wait;
pub mod watch;
