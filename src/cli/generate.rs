//! `admit generate`: manifests that follow from the policies, so that nobody keeps them by hand.

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::json;

use super::process::{Fault, fail};
use super::{Exit, load, webhook};

/// Arguments of `admit generate`.
#[derive(Debug, Args)]
pub(super) struct GenerateArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// The ValidatingWebhookConfiguration that sends what the policies match to the webhook
    #[command(after_help = "Example:\n  admit generate webhook --policies policies | kubectl apply -f -")]
    Webhook(WebhookArgs),
}

#[derive(Debug, Args)]
struct WebhookArgs {
    /// Folder or file with policies, bindings and params
    #[arg(long, value_name = "PATH", default_value = "policies")]
    policies: PathBuf,

    /// Name of the Service in front of the webhook
    #[arg(long, default_value = "admit")]
    service: String,

    /// Namespace of that Service
    #[arg(long, default_value = "admit-system")]
    namespace: String,
}

impl GenerateArgs {
    pub(super) fn run(&self) -> Exit {
        let What::Webhook(args) = &self.what;
        match args.text() {
            Ok(text) => {
                // A closed stream leaves nobody to tell.
                let _ = io::stdout().write_all(text.as_bytes());
                Exit::Expected
            }
            Err(fault) => fail(&fault),
        }
    }
}

impl WebhookArgs {
    fn text(&self) -> Result<String, Fault> {
        let policies = load::policies(&[&self.policies])?;
        let client = json!({
            "service": {"name": self.service, "namespace": self.namespace, "path": "/validate", "port": 443},
        });
        serde_saphyr::to_string(&webhook::configuration(&policies, &client)).map_err(Fault::internal)
    }
}
