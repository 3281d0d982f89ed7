//! The flags of the controller `scan`, and what it does in a round: the same as `admit scan` does once.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use futures::FutureExt as _;
use jiff::SignedDuration;
use kube::Client;
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

use super::{ByArgs, read_from, scan};
use crate::cli::process::Fault;
use crate::cli::value_parsers::duration;
use crate::controllers::scan::{ScanError, Scanner, Settings};

/// By what the controller `scan` decides, and when.
#[derive(Clone, Debug, Args)]
pub(in crate::cli) struct ScanControllerArgs {
    /// Policies, bindings, exceptions, CRDs, params and roles that the controller `scan` decides by: files or folders, read again
    /// for each scan
    #[arg(long, value_name = "PATH")]
    scan_policies: Vec<PathBuf>,

    /// From the end of one scan to the next
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = duration)]
    scan_every: SignedDuration,
}

impl ScanControllerArgs {
    /// # Errors
    /// Without policies.
    pub(in crate::cli) fn settings(&self) -> Result<Settings, Fault> {
        if self.scan_policies.is_empty() {
            return Err(Fault::usage("the controller scan needs --scan-policies"));
        }
        let by = ByArgs {
            policies: self.scan_policies.clone(),
            namespace: "default".to_owned(),
            user: None,
            groups: Vec::new(),
            authorizer: None,
            // Of a folder that has more than policies, the rest is no matter.
            ignore_unknown: true,
        };
        let scanner: Scanner = Arc::new(move |client: Client| {
            let by = by.clone();
            let scanning = async move {
                let runtime = Handle::current();
                // Deciding takes processors, and others of this process are not to wait for it.
                let scanned = spawn_blocking(move || reports(&by, &client, &runtime)).await;
                scanned
                    .map_err(|error| ScanError(error.to_string()))?
                    .map_err(|fault| ScanError(fault.message))
            };
            scanning.boxed()
        });
        Ok(Settings { scanner, every: self.scan_every.unsigned_abs() })
    }
}

fn reports(by: &ByArgs, client: &Client, runtime: &Handle) -> Result<Vec<Value>, Fault> {
    let inputs = by.inputs(Vec::new()).read_stored(|set| runtime.block_on(read_from(client, set)))?;
    // What could not be listed was told; half a report would take away what an earlier one says.
    if let Some(unread) = inputs.unread.first() {
        return Err(Fault::usage(unread));
    }
    Ok(scan(&inputs, false, None).documents())
}
