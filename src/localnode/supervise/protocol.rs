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
    /// An empty folder for the root that the container sees.
    pub(in crate::localnode) root: PathBuf,
    /// A folder of programs to lay over this machine's.
    pub(in crate::localnode) image: Option<PathBuf>,
    pub(in crate::localnode) mounts: Vec<Mount>,
    /// What the environment has as well where nothing can be mounted.
    pub(in crate::localnode) unmounted: Vec<(String, String)>,
    /// Into the groups that hold the container to its limits.
    pub(in crate::localnode) doors: Vec<Door>,
}

/// A control group: who writes into the one file is inside, and by the other where it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::localnode) struct Door {
    pub(in crate::localnode) inside: PathBuf,
    pub(in crate::localnode) back: PathBuf,
}

/// A file or folder of this machine, and where the container finds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::localnode) struct Mount {
    pub(in crate::localnode) source: PathBuf,
    pub(in crate::localnode) target: PathBuf,
    pub(in crate::localnode) read_only: bool,
}

/// What a node asks for later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::localnode) enum Word {
    /// SIGTERM to the container's process group.
    Terminate,
    /// SIGKILL to everything that the container started.
    Kill,
    /// To run a program beside the container's, in its environment.
    Run(Errand),
}

/// A program to run beside a container's: a probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::localnode) struct Errand {
    /// By which its end is told.
    pub(in crate::localnode) id: u64,
    pub(in crate::localnode) program: PathBuf,
    pub(in crate::localnode) args: Vec<String>,
    /// After which it is killed.
    pub(in crate::localnode) milliseconds: u64,
}

/// What became of an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::localnode) enum Report {
    /// Runs; with the reason, where nothing could be mounted.
    Started {
        pid: i32,
        unmounted: Option<String>,
    },
    Failed {
        message: String,
    },
    Ended {
        code: i32,
        signal: Option<i32>,
    },
    /// What became of an errand.
    Ran {
        id: u64,
        /// None where its time was over.
        code: Option<i32>,
        /// The beginning of what it wrote.
        output: String,
    },
}
