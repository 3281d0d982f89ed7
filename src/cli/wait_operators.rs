//! `admit wait-operators`: waits until the ClusterOperators of a payload are healthy, or a time limit is over.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::Args;
use jiff::SignedDuration;
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::Exit;
use super::client::client;
use super::process::{self, Fault, GRACE, Threads};
use super::render::{self, Output};
use super::value_parsers::duration;
use crate::controllers::clusteroperator::Settings;
use crate::controllers::clusteroperator::payload::Source;
use crate::controllers::clusteroperator::wait::{Report, until_well};
use crate::telemetry::LogFormat;

/// Arguments of `admit wait-operators`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  admit wait-operators --payload manifests
  admit wait-operators --payload manifests --initializing --timeout 1h -o json

A ClusterOperator is well if it is Available, not Degraded, and reports the versions that its manifest names. Those that are \
not, and the reasons, are reported when they change, and at the end: exit code 0 if all are well, 1 if the time limit is \
exceeded.")]
pub(super) struct WaitOperatorsArgs {
    /// Folder of manifests that name the ClusterOperators
    #[arg(long, value_name = "DIR")]
    payload: PathBuf,

    /// Time limit for waiting
    #[arg(long, value_name = "DURATION", default_value = "30m", value_parser = duration)]
    timeout: SignedDuration,

    /// Treat the cluster as being installed: ignore versions, and report Degraded operators without waiting for them
    #[arg(long)]
    initializing: bool,

    /// Output format of the final result
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,

    /// Kubeconfig that selects the cluster and the user [default: KUBECONFIG, ~/.kube/config, or the Pod's service account]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Format of log lines
    #[arg(long, value_enum, default_value_t)]
    log_format: LogFormat,
}

impl WaitOperatorsArgs {
    pub(super) fn run(self) -> Exit {
        process::run(Threads::Work, self.log_format, GRACE, |shutdown| self.wait(shutdown))
    }

    async fn wait(self, shutdown: CancellationToken) -> Result<(), Fault> {
        let settings = Settings::new(&self.payload);
        self.expects_any(&settings)?;
        let client = client(self.kubeconfig.clone()).await?;
        let last = Arc::new(Mutex::new(Report::default()));
        let (heard, progress) = (Arc::clone(&last), self.output == Output::Text);
        let tell = move |report: &Report| {
            if progress {
                tracing::info!(
                    waiting = report.verdicts.iter().filter(|one| one.trouble.is_some()).count(),
                    "{report}"
                );
            }
            heard.lock().unwrap_or_else(PoisonError::into_inner).clone_from(report);
        };
        let longest = Duration::try_from(self.timeout).map_err(Fault::usage)?;
        let waiting = timeout(longest, until_well(client, &settings, self.initializing, tell));
        let last = || last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match shutdown.run_until_cancelled(waiting).await {
            Some(Ok(Ok(report))) => {
                self.print(&report);
                Ok(())
            }
            Some(Ok(Err(error))) => Err(Fault::usage(error)),
            Some(Err(_)) => Err(self.given_up(&last(), "the time is over")),
            None => Err(self.given_up(&last(), "asked to stop")),
        }
    }

    /// Rejects a payload that cannot be read completely, or that has no ClusterOperator to wait for.
    fn expects_any(&self, settings: &Settings) -> Result<(), Fault> {
        let mut source = Source::new(settings.payload.as_deref(), settings.inclusion.clone());
        let payload = source.read().map_err(Fault::usage)?;
        // An unreadable manifest may be one to wait for.
        if !payload.mistakes.is_empty() {
            let mistakes = payload.mistakes.join("\n");
            return Err(Fault::usage(format!(
                "{mistakes}\nmend the payload, or leave these files out of it"
            )));
        }
        if payload.operators.is_empty() {
            let folder = self.payload.display();
            return Err(Fault::usage(format!(
                "the payload `{folder}` has no manifest of a ClusterOperator; name the folder that holds them"
            )));
        }
        Ok(())
    }

    fn print(&self, report: &Report) {
        match self.output {
            Output::Json => render::print(&render::json(&document(report))),
            Output::Text => {
                for verdict in &report.verdicts {
                    render::print(&format!("{verdict}\n"));
                }
            }
        }
    }

    fn given_up(&self, report: &Report, why: &str) -> Fault {
        self.print(report);
        let waited = report.verdicts.iter().filter(|verdict| verdict.trouble.is_some()).count();
        let operators = render::counted(waited, "ClusterOperator");
        let reason = report.reason().unwrap_or_default();
        Fault { exit: Exit::Differs, ..Fault::usage(format!("{why}: {operators} not well ({reason})")) }
    }
}

fn document(report: &Report) -> Value {
    let operators = report.verdicts.iter().map(|verdict| {
        json!({
            "name": verdict.name, "well": verdict.trouble.is_none(), "degraded": verdict.reported,
            "reason": verdict.trouble.as_ref().map(|trouble| trouble.reason()), "message": verdict.to_string(),
        })
    });
    json!({"well": report.is_well(), "reason": report.reason(), "operators": operators.collect::<Vec<_>>()})
}
