//! `admit version`: prints this program's version, and the Kubernetes version whose verdicts it gives.

use clap::Args;
use serde_json::json;

use super::Exit;
use super::render::{self, Output};

/// The Kubernetes release whose CEL, schemas and messages this program follows.
const KUBERNETES: &str = "1.36";

/// Arguments of `admit version`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  admit version
  admit version -o json")]
pub(super) struct VersionArgs {
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

impl VersionArgs {
    pub(super) fn run(self) -> Exit {
        let version = env!("CARGO_PKG_VERSION");
        render::print(&match self.output {
            Output::Text => format!("admit {version}, as Kubernetes {KUBERNETES} decides\n"),
            Output::Json => render::json(&json!({"version": version, "kubernetes": KUBERNETES})),
        });
        Exit::Expected
    }
}
