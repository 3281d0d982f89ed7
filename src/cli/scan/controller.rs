//! Defines the flags of the controller `scan`, and runs one scan, the same as `admit scan` does.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use futures::FutureExt as _;
use jiff::SignedDuration;
use kube::Client;
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::{ByArgs, read_from, scan};
use crate::cli::process::Fault;
use crate::cli::value_parsers::{duration, limit};
use crate::controllers::scan::{ScanError, Scanner, Settings};

/// The flags that set the policies of the controller `scan`, and when it runs.
#[derive(Clone, Debug, Args)]
pub(in crate::cli) struct ScanControllerArgs {
    /// Files or folders with the policies, bindings, exceptions, CRDs, params and roles that the controller `scan` evaluates;
    /// read again for each scan
    #[arg(long, value_name = "PATH")]
    scan_policies: Vec<PathBuf>,

    /// Apply the cluster's PolicyExceptions and ClusterPolicyExceptions in the controller `scan`, as `serve --cluster-exceptions`
    /// does: pass what they name
    #[arg(long)]
    scan_cluster_exceptions: bool,

    /// Pause between the end of one scan and the start of the next
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = duration)]
    scan_every: SignedDuration,

    /// Time limit for one scan; when it is exceeded, no reports are written, and the earlier ones stay unchanged
    #[arg(long, value_name = "DURATION", default_value = "30m", value_parser = limit)]
    scan_timeout: SignedDuration,
}

impl ScanControllerArgs {
    /// # Errors
    /// When no policies are named.
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
            // Other objects in a folder of policies are ignored.
            ignore_unknown: true,
        };
        let (within, exceptions) = (self.scan_timeout, self.scan_cluster_exceptions);
        let scanner: Scanner = Arc::new(move |client: Client| {
            let by = by.clone();
            let scanning = async move {
                let runtime = Handle::current();
                // Decisions take much processor time, and other tasks must not wait for them.
                let scanned =
                    spawn_blocking(move || reports(&by, (&client, exceptions), &runtime, within)).await;
                scanned
                    .map_err(|error| ScanError(error.to_string()))?
                    .map_err(|fault| ScanError(fault.message))
            };
            scanning.boxed()
        });
        Ok(Settings { scanner, every: self.scan_every.unsigned_abs() })
    }
}

fn reports(
    by: &ByArgs,
    (client, exceptions): (&Client, bool),
    runtime: &Handle,
    within: SignedDuration,
) -> Result<Vec<Value>, Fault> {
    let most = within.unsigned_abs();
    let end = Instant::now().checked_add(most);
    let inputs = by.inputs(Vec::new()).read_stored(|set| {
        let listed = runtime.block_on(async { timeout(most, read_from(client, set, exceptions)).await });
        listed.unwrap_or_else(|_| {
            Err(Fault::usage(format!(
                "the objects were not all listed within {within:#}; --scan-timeout gives it longer"
            )))
        })
    })?;
    // Listing errors were reported; a partial report would replace results of an earlier one.
    if let Some(unread) = inputs.unread.first() {
        return Err(Fault::usage(unread));
    }
    let scanned = scan(&inputs, false, end);
    if scanned.late > 0 {
        let late = scanned.late;
        return Err(Fault::usage(format!(
            "{late} objects were not decided within {within:#}; --scan-timeout gives it longer"
        )));
    }
    Ok(scanned.documents())
}
