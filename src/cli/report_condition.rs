//! `admit report-condition`: sets a component's condition on an ObservabilityAddon, for collectors that are not Rust
//! programs.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::Exit;
use super::client::client;
use super::process::{self, Fault, GRACE, Threads};
use super::render;
use super::value_parsers::{label, name};
use crate::controllers::observability::crd::{NAME, SPOKE_NAMESPACE};
use crate::controllers::observability::failures::{FAILURES, Failures};
use crate::controllers::observability::report::{Report, Reporter};
use crate::controllers::observability::vocabulary::{SEED, SHIPPED, Vocabulary};
use crate::telemetry::LogFormat;
use crate::{outside, private};

/// The largest state file in bytes.
const MAX_STATE: u64 = 64;

/// Arguments of `admit report-condition`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  admit report-condition --component mc --reason ForwardSuccessful --message 'all sent'
  admit report-condition --component uwl --reason ForwardFailure --state /tmp/uwl-failures

A reason that may not follow the current one, or that the API server refuses, is skipped: exit code 0, and the output says so. \
ForwardFailure is written only at the third consecutive failure, which needs --state to count in.")]
pub(super) struct ReportConditionArgs {
    /// Metrics collector to report on
    #[arg(long, value_enum)]
    component: Component,

    /// Reason that the collector reports
    #[arg(long, value_name = "REASON")]
    reason: String,

    /// Message for humans that goes with the reason
    #[arg(long, value_name = "TEXT", default_value = "")]
    message: String,

    /// File to count consecutive failures in, across calls [default: each failure counts as the first]
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,

    /// Names to use for reasons and conditions
    #[arg(long, value_enum, default_value_t)]
    vocabulary: VocabularyName,

    /// Namespace of the ObservabilityAddon
    #[arg(long, value_name = "NAMESPACE", default_value = SPOKE_NAMESPACE, value_parser = label)]
    namespace: String,

    /// Name of the ObservabilityAddon
    #[arg(long, value_name = "NAME", default_value = NAME, value_parser = name)]
    name: String,

    /// Kubeconfig that selects the cluster and the user [default: KUBECONFIG, ~/.kube/config, or the Pod's service account]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Format of log lines
    #[arg(long, value_enum, default_value_t)]
    log_format: LogFormat,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Component {
    /// Collector of platform metrics
    Mc,
    /// Collector of user workload metrics
    Uwl,
}

/// The vocabularies for conditions and reasons.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum VocabularyName {
    /// Names from the design document
    #[default]
    Seed,
    /// Names that the released operator uses
    Shipped,
}

impl VocabularyName {
    pub(super) fn vocabulary(self) -> &'static Vocabulary {
        match self {
            Self::Seed => &SEED,
            Self::Shipped => &SHIPPED,
        }
    }
}

impl ReportConditionArgs {
    pub(super) fn run(self) -> Exit {
        process::run(Threads::Work, self.log_format, GRACE, |shutdown| async move {
            shutdown.run_until_cancelled(self.report()).await.unwrap_or(Ok(()))
        })
    }

    async fn report(&self) -> Result<(), Fault> {
        let vocabulary = self.vocabulary.vocabulary();
        let component = match self.component {
            Component::Mc => vocabulary.collector,
            Component::Uwl => vocabulary.workloads_collector,
        };
        let report = Report::named(vocabulary, component, &self.reason, &self.message)
            .map_err(|unknown| Fault::usage(format!("--reason: {unknown}")))?;
        let mut failures = self.state.as_deref().map_or(Ok(Failures::default()), counted)?;
        let is_told = failures.is_told(report.meaning());
        if let Some(path) = &self.state {
            count(path, failures)?;
        }
        if !is_told {
            let count = failures.count();
            render::print(&format!("counted: failure {count} of {FAILURES} in a row\n"));
            return Ok(());
        }
        let client = client(self.kubeconfig.clone()).await?;
        let reporter = Reporter::new(client, vocabulary).to(&self.namespace, &self.name);
        let outcome = reporter.report(&report).await.map_err(Fault::usage)?;
        render::print(&format!("{outcome}\n"));
        Ok(())
    }
}

fn counted(path: &Path) -> Result<Failures, Fault> {
    let shown = path.display();
    match outside::text(path, MAX_STATE) {
        Ok(text) => text.trim().parse().map(Failures::so_far).map_err(|_| {
            Fault::usage(format!("--state `{shown}`: it holds no number; delete the file to count from 0"))
        }),
        Err(error) if error.is_missing() => Ok(Failures::default()),
        Err(error) => Err(Fault::usage(format!("--state `{shown}`: {error}"))),
    }
}

fn count(path: &Path, failures: Failures) -> Result<(), Fault> {
    private::replace(path, &format!("{}\n", failures.count())).map_err(|error| {
        Fault::usage(format!(
            "--state `{}`: {error}; name a file in a folder that can be written",
            path.display()
        ))
    })
}
