//! `admit envtest`: replaces the binaries that test harnesses start by this program.
//!
//! ```text
//! KUBEBUILDER_ASSETS=$(admit envtest)
//!     etcd ───────────── its data directory ──┐ where the objects are: told over HTTP
//!     kube-apiserver ── asks etcd for it ◄────┘ and holds them; the pair ends one after the other, and begins again alike
//!     kubectl ─────────── the one on the PATH
//! ```
//!
//! The folder has links to this program, which acts as the program whose name it is called by. It accepts the flags that
//! harnesses pass, and exits with a message for flags that are not implemented.

mod assets;
mod etcd;
mod flags;
mod handover;
mod keys;
mod kube_apiserver;
mod serving_pair;
mod users;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use admit_apiserver::Controllers;
use clap::Args;

use super::Exit;
use super::process::{self, Fault};
use super::render;

/// Arguments of `admit envtest`.
#[derive(Debug, Args)]
#[command(after_help = "\
The folder contains `etcd` and `kube-apiserver`, which are this program, and `kubectl` if there is one on the PATH. \
Like kube-apiserver alone, it does not collect garbage or finish the deletion of namespaces unless --controllers \
enables that.

Examples:
  admit envtest
  admit envtest --controllers namespace,garbage-collector,serviceaccount")]
pub(super) struct EnvtestArgs {
    /// Controllers of kube-controller-manager, by their names there, that the API server runs itself; `*` for all that are
    /// implemented
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    controllers: Vec<String>,

    /// Folder to create the links in, accessible to its owner only [default: one in the user's cache folder]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl EnvtestArgs {
    pub(super) fn run(self) -> Exit {
        match self.folder() {
            Ok(folder) => {
                let line = [folder.as_os_str().as_bytes(), b"\n"].concat();
                render::print_bytes(&line);
                Exit::Expected
            }
            Err(fault) => process::fail(&fault),
        }
    }

    fn folder(&self) -> Result<PathBuf, Fault> {
        let controllers = Controllers::named(&self.controllers)
            .map_err(|error| Fault::usage(format!("--controllers: {error}")))?;
        assets::folder(self.dir.as_deref(), &controllers)
    }
}

/// Runs as the program that it is called by, if that is one that it replaces.
pub(super) fn called_as(args: &[OsString]) -> Option<Exit> {
    let (program, rest) = args.split_first()?;
    let path = Path::new(program);
    let run: fn(&Path, &[OsString]) -> Exit = match path.file_name().and_then(OsStr::to_str)? {
        assets::KUBE_APISERVER => kube_apiserver::run,
        assets::ETCD => etcd::run,
        _ => return None,
    };
    Some(run(path, rest))
}
