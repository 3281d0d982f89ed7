//! `admit supervise`: runs between `admit up` and a container's program. Internal; not for use by hand.

use clap::Args;

use super::Exit;
use super::process::{self, Fault};
use crate::localnode::supervise;

/// Arguments of `admit supervise`: all that it needs comes over its standard input.
#[derive(Debug, Args)]
pub(super) struct SuperviseArgs {}

impl SuperviseArgs {
    pub(super) fn run(self) -> Exit {
        let Self {} = self;
        match supervise::run() {
            Ok(()) => Exit::Expected,
            Err(error) => process::fail(&Fault::usage(error)),
        }
    }
}
