//! Supports commands that run as containers of a Job: reads variables, waits for the gathering, and reports the outcome.

use std::fs;
use std::path::Path;

use tracing::{info, warn};

use crate::cli::Exit;
use crate::cli::process::Fault;
use crate::gather::must_gather::mark;
use crate::localnode;

pub(super) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Waits until the gathering has ended; returns whether it ran out of time.
pub(super) async fn wait(folder: &Path) -> Result<bool, Fault> {
    info!(folder = %folder.display(), "waiting for the gathering to end");
    let ended = mark::ended(folder).await.map_err(Fault::internal)?;
    if !ended.is_kept() {
        let message = format!("the gathering failed with exit status {}: nothing is sent", ended.code);
        return Err(Fault { exit: Exit::Differs, ..Fault::usage(message) });
    }
    Ok(ended.is_out_of_time())
}

/// Returns `outcome`, and also writes it to the file.
pub(super) fn told(file: Option<&Path>, outcome: Result<String, Fault>) -> Result<(), Fault> {
    let line = match &outcome {
        Ok(line) => line.clone(),
        Err(fault) => fault.message.clone(),
    };
    if let Some(path) = file.map(localnode::mounted)
        && let Err(error) = fs::write(&path, line)
    {
        warn!(%error, path = %path.display(), "the outcome is not told there");
    }
    outcome.map(drop)
}
