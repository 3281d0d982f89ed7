//! Defines the messages between a node and a supervisor: one JSON document per line.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What to run. It is sent over a socket, because environments contain secrets, and command lines are visible to all users.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::localnode) struct Order {
    pub(in crate::localnode) program: PathBuf,
    pub(in crate::localnode) args: Vec<String>,
    pub(in crate::localnode) env: Vec<(String, String)>,
    pub(in crate::localnode) folder: PathBuf,
    /// An empty folder, where the container's root is mounted.
    pub(in crate::localnode) root: PathBuf,
    /// A folder of programs that overlays this machine's files.
    pub(in crate::localnode) image: Option<PathBuf>,
    pub(in crate::localnode) mounts: Vec<Mount>,
    /// Additional environment variables if nothing can be mounted.
    pub(in crate::localnode) unmounted: Vec<(String, String)>,
    /// The control groups that enforce the container's limits.
    pub(in crate::localnode) doors: Vec<Door>,
}

/// A control group: writing to the one file moves a process into it, and writing to the other one back to its old group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::localnode) struct Door {
    pub(in crate::localnode) inside: PathBuf,
    pub(in crate::localnode) back: PathBuf,
}

/// A file or folder of this machine, and its path in the container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::localnode) struct Mount {
    pub(in crate::localnode) source: PathBuf,
    pub(in crate::localnode) target: PathBuf,
    pub(in crate::localnode) read_only: bool,
}

/// A later request of the node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::localnode) enum Word {
    /// Sends SIGTERM to the container's process group.
    Terminate,
    /// Sends SIGKILL to everything that the container started.
    Kill,
    /// Runs a program inside the container, in its environment.
    Run(Errand),
}

/// A program to run inside a container, for a probe or a hook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::localnode) struct Errand {
    /// The id in the report of its end.
    pub(in crate::localnode) id: u64,
    pub(in crate::localnode) program: PathBuf,
    pub(in crate::localnode) args: Vec<String>,
    /// The timeout, after which it is killed.
    pub(in crate::localnode) milliseconds: u64,
}

/// A report of the supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::localnode) enum Report {
    /// The program runs; with the reason if nothing could be mounted.
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
    /// A program inside the container has ended.
    Ran {
        id: u64,
        /// The exit code; None after a timeout.
        code: Option<i32>,
        /// The beginning of its output.
        output: String,
    },
}
