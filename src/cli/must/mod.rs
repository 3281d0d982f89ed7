//! The commands of a must-gather: what collects, what runs a command that collects, what hides, what sends the archive.

pub(super) mod args;
pub(super) mod collect;
pub(super) mod obfuscate;
pub(super) mod run;
pub(super) mod upload;
