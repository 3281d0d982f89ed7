//! Defines the flags for CyndiPipelines, shared by the commands that run their controllers, and `admit cyndi`,
//! which inspects pipelines without writing.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::Exit;
use super::client::client;
use super::process::{self, Fault, GRACE, Threads};
use super::render::{self, Output};
use super::value_parsers::{label, object};
use crate::controllers::cyndi::connect::{Connect, ConnectSetupError, LoginSource};
use crate::controllers::cyndi::inspect::{Planned, planned, validated};
use crate::controllers::cyndi::merge::Side;
use crate::controllers::cyndi::verdict::Verdict;
use crate::controllers::cyndi::{Error, INSIGHTS, Settings};
use crate::telemetry::{LogFormat, with_causes};

/// The flags about CyndiPipelines.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Cyndi pipelines")]
pub(super) struct CyndiArgs {
    /// Run in an ephemeral environment
    ///
    /// Database credentials are written into connectors as plain values, and pipelines are deleted even if their database is
    /// unavailable.
    #[arg(long = "cyndi-ephemeral", env = "EPHEMERAL", hide_env_values = true)]
    ephemeral: bool,

    /// SQL condition that selects the inventory's hosts with an insights id
    #[arg(long = "cyndi-insights-condition", value_name = "SQL", default_value = INSIGHTS)]
    insights: String,

    /// URL of Kafka Connect's REST API, such as http://host:8083, to manage connectors by [default: as objects of Strimzi]
    #[arg(long, value_name = "URL")]
    connect_url: Option<String>,

    /// PEM file with CAs to trust for Kafka Connect over TLS, in addition to the system's
    #[arg(long, value_name = "FILE", requires = "connect_url")]
    connect_ca: Option<PathBuf>,

    /// File with the credentials for Kafka Connect, as USER:PASSWORD
    #[arg(long, value_name = "FILE", requires = "connect_url", conflicts_with_all = ["connect_token", "connect_secret"])]
    connect_login: Option<PathBuf>,

    /// File with a bearer token for Kafka Connect
    #[arg(long, value_name = "FILE", requires = "connect_url", conflicts_with = "connect_secret")]
    connect_token: Option<PathBuf>,

    /// Secret, as NAMESPACE/NAME, with the keys username and password, or token, for Kafka Connect
    #[arg(long, value_name = "SECRET", requires = "connect_url", value_parser = object)]
    connect_secret: Option<(String, String)>,
}

impl CyndiArgs {
    /// Converts the flags to settings.
    ///
    /// # Errors
    /// For an invalid address, authority or login of Kafka Connect.
    pub(super) fn settings(&self) -> Result<Settings, Fault> {
        let connect = self.connect_url.as_ref().map(|url| self.connect(url));
        let connect = connect.transpose().map_err(Fault::usage)?;
        let (ephemeral, insights) = (self.ephemeral, self.insights.clone());
        Ok(Settings { ephemeral, insights, connect, ..Settings::default() })
    }
}

impl CyndiArgs {
    fn connect(&self, url: &str) -> Result<Connect, ConnectSetupError> {
        let connect = Connect::new(url, self.connect_ca.as_deref())?;
        let login = self.connect_login.clone().map(LoginSource::LoginFile);
        let login = login.or_else(|| self.connect_token.clone().map(LoginSource::TokenFile));
        let secret = self.connect_secret.clone();
        let login = login.or_else(|| secret.map(|(namespace, name)| LoginSource::Secret { namespace, name }));
        match login {
            Some(login) => connect.entering_by(login),
            None => Ok(connect),
        }
    }
}

/// Arguments of `admit cyndi`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  admit cyndi plan application-pipeline -n apps
  admit cyndi validate application-pipeline -n apps -o json")]
pub(super) struct CyndiCommand {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show what the next reconciliation would do for a pipeline
    Plan(LookArgs),
    /// Compare the table of a pipeline with the inventory
    Validate(LookArgs),
}

/// The arguments of both subcommands.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  admit cyndi plan application-pipeline -n apps
  admit cyndi validate application-pipeline -n apps -o json

Nothing is written. The Secrets that the pipeline names are read, and the databases are queried. Exit code 0 if there is \
nothing to do or the table is valid, 1 if not.")]
struct LookArgs {
    /// Name of the CyndiPipeline
    name: String,

    /// Namespace of the CyndiPipeline
    #[arg(short, long, value_name = "NAMESPACE", default_value = "default", value_parser = label)]
    namespace: String,

    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,

    /// Kubeconfig that selects the cluster and the user [default: KUBECONFIG, ~/.kube/config, or the Pod's service account]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Format of log lines
    #[arg(long, value_enum, default_value_t)]
    log_format: LogFormat,

    #[command(flatten)]
    pipelines: CyndiArgs,
}

impl CyndiCommand {
    pub(super) fn run(self) -> Exit {
        let (Command::Plan(args) | Command::Validate(args)) = &self.command;
        process::run(Threads::Work, args.log_format, GRACE, |shutdown| self.look(shutdown))
    }

    async fn look(self, shutdown: CancellationToken) -> Result<(), Fault> {
        let looking = async {
            match self.command {
                Command::Plan(args) => plan(args).await,
                Command::Validate(args) => validate(args).await,
            }
        };
        match shutdown.run_until_cancelled(looking).await {
            Some(looked) => looked,
            None => Err(Fault::usage("asked to stop")),
        }
    }
}

async fn plan(args: LookArgs) -> Result<(), Fault> {
    let client = client(args.kubeconfig.clone()).await?;
    let looked = planned(client, args.pipelines.settings()?, &args.namespace, &args.name).await;
    let found = looked.map_err(|error| args.fault(&error))?;
    let (step, words) = found.step();
    args.print(&plan_document(&found), || {
        let mut lines = vec![format!("{} {}", found.state.as_str(), found.table)];
        lines.extend(found.plan.stale_connectors.iter().map(|name| format!("remove connector {name}")));
        lines.extend(found.plan.stale_tables.iter().map(|table| format!("drop table {table}")));
        lines.extend(found.plan.drop_view.then(|| "drop view inventory.hosts".to_owned()));
        lines.push(words.clone());
        lines
    });
    if step == "nothing" { Ok(()) } else { Err(differs(words)) }
}

async fn validate(args: LookArgs) -> Result<(), Fault> {
    let client = client(args.kubeconfig.clone()).await?;
    let looked = validated(client, args.pipelines.settings()?, &args.namespace, &args.name).await;
    let found = looked.map_err(|error| args.fault(&error))?;
    let Some(verdict) = found else {
        return Err(differs("the pipeline has no table that could be compared: it is new, or to go"));
    };
    args.print(&verdict_document(&verdict), || vec![verdict.message()]);
    if verdict.valid { Ok(()) } else { Err(differs(verdict.message())) }
}

fn differs(why: impl Into<String>) -> Fault {
    Fault { exit: Exit::Differs, ..Fault::usage(why.into()) }
}

impl LookArgs {
    fn print(&self, document: &Value, lines: impl Fn() -> Vec<String>) {
        match self.output {
            Output::Json => render::print(&render::json(document)),
            Output::Text => lines().iter().for_each(|line| render::print(&format!("{line}\n"))),
        }
    }

    fn fault(&self, error: &Error) -> Fault {
        Fault::usage(format!("{}/{}: {}", self.namespace, self.name, with_causes(error)))
    }
}

fn plan_document(found: &Planned) -> Value {
    let (step, words) = found.step();
    let tables: Vec<_> = found.plan.stale_tables.iter().map(ToString::to_string).collect();
    json!({
        "state": found.state.as_str(), "table": found.table, "activeTable": found.active, "removeConnectors": found.plan.stale_connectors,
        "dropTables": tables, "dropView": found.plan.drop_view, "step": step, "message": words,
    })
}

fn verdict_document(verdict: &Verdict) -> Value {
    let ids = |side: fn(&Verdict) -> Option<&Side>| {
        let shown = side(verdict).map(|side| side.shown.as_slice()).unwrap_or_default();
        shown.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    json!({
        "valid": verdict.valid, "inventory": verdict.inventory, "table": verdict.table, "mismatches": verdict.mismatches,
        "percent": verdict.percent, "threshold": verdict.threshold, "message": verdict.message(),
        "missing": ids(|verdict| verdict.difference.as_ref().map(|it| &it.left)),
        "superfluous": ids(|verdict| verdict.difference.as_ref().map(|it| &it.right)),
    })
}
