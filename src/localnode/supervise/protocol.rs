//! What a node and a supervisor say to each other: one JSON document on a line each.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What to run. Goes over a socket, because environments hold secrets and command lines can be read by everybody.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::localnode) struct Order {
    pub(in crate::localnode) program: PathBuf,
    pub(in crate::localnode) args: Vec<String>,
    pub(in crate::localnode) env: Vec<(String, String)>,
    pub(in crate::localnode) folder: PathBuf,
}

/// What a node asks for later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::localnode) enum Word {
    /// SIGTERM to the container's process group.
    Terminate,
    /// SIGKILL to everything that the container started.
    Kill,
}

/// What became of an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::localnode) enum Report {
    Started { pid: i32 },
    Failed { message: String },
    Ended { code: i32, signal: Option<i32> },
}
