//! Contains the commands of a must-gather: collect, run a collecting command of another image, obfuscate, and upload the
//! archive.

pub(super) mod args;
pub(super) mod collect;
mod container;
pub(super) mod obfuscate;
pub(super) mod run;
pub(super) mod upload;
