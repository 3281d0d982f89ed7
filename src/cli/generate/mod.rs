//! `admit generate`: generates manifests from the policies, so that nobody has to maintain them by hand.

pub(super) mod crds;
mod manifests;
mod monitoring;
mod output;
mod rbac;
mod settings;
mod template;
pub(super) mod webhook;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use admit_apimachinery::yaml;
use admit_policy::PolicySet;
use clap::{Args, Subcommand};

use self::manifests::PolicyFolder;
use self::settings::Settings;
use self::webhook::{Callee, Endpoint};
use super::process::{Fault, fail};
use super::{Exit, load};

/// Arguments of `admit generate`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  admit generate manifests --policies policies --out deploy")]
pub(super) struct GenerateArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Print the ValidatingWebhookConfiguration that sends the requests that the policies match to the webhook
    #[command(after_help = "Example:\n  admit generate webhook --policies policies | kubectl apply -f -")]
    Webhook(WebhookArgs),
    /// Write a folder for `kubectl apply -k`, which also contains a Helm chart
    #[command(after_help = Settings::help() + "\nExample:\n  \
        admit generate manifests --out deploy --set image=registry.example.com/admit:0.1.0\n  kubectl apply -k deploy")]
    Manifests(ManifestsArgs),
    /// Print the CustomResourceDefinitions of the kinds that the shipped policies validate
    #[command(after_help = "Example:\n  admit generate crds | kubectl apply -f -")]
    Crds,
    /// Print the service accounts and their RBAC rules, including those to watch the params of the policies
    #[command(
        after_help = "Example:\n  admit generate rbac --policies policies --set certificates=self-managed | kubectl apply -f -"
    )]
    Rbac(RbacArgs),
}

#[derive(Debug, Args)]
struct NamespaceArgs {
    /// Namespace of all namespaced objects
    #[arg(long, default_value = "admit-system")]
    namespace: String,

    /// Change a setting from its default; `admit generate manifests --help` lists the settings
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
}

#[derive(Debug, Args)]
struct RbacArgs {
    /// Folder or file with policies, bindings and params
    #[arg(long, value_name = "PATH", default_value = "policies")]
    policies: PathBuf,

    #[command(flatten)]
    common: NamespaceArgs,
}

#[derive(Debug, Args)]
struct WebhookArgs {
    /// Folder or file with policies, bindings and params
    #[arg(long, value_name = "PATH", default_value = "policies")]
    policies: PathBuf,

    /// Name of the Service in front of the webhook
    #[arg(long, default_value = "admit")]
    service: String,

    /// Namespace of that Service; requests in it are not sent to the webhook
    #[arg(long, default_value = "admit-system")]
    namespace: String,
}

#[derive(Debug, Args)]
struct ManifestsArgs {
    /// Folder with policies, bindings and params; a kustomization that lists them is written there
    #[arg(long, value_name = "DIR", default_value = "policies")]
    policies: PathBuf,

    /// Folder to write the manifests to
    #[arg(long, value_name = "DIR", default_value = "deploy")]
    out: PathBuf,

    /// Write nothing; name the files that differ from what would be written, and exit with 1 if there are any
    #[arg(long)]
    check: bool,

    #[command(flatten)]
    common: NamespaceArgs,
}

impl GenerateArgs {
    pub(super) fn run(&self) -> Exit {
        let text = match &self.what {
            What::Webhook(args) => args.text(),
            What::Manifests(args) => return args.run().unwrap_or_else(|fault| fail(&fault)),
            What::Crds => Ok(crds::stream()),
            What::Rbac(args) => args.text(),
        };
        match text {
            Ok(text) => {
                // If the stream is closed, nobody can be told.
                let _ = io::stdout().write_all(text.as_bytes());
                Exit::Expected
            }
            Err(fault) => fail(&fault),
        }
    }
}

/// Generates accounts and roles for gatherings that run as Jobs, without those that policies need.
///
/// # Errors
/// When the namespace is invalid.
pub(super) fn rights_with_jobs(namespace: &str) -> Result<String, Fault> {
    let settings = Settings::new(namespace, &["runner=job".to_owned()]).map_err(Fault::usage)?;
    manifests::rights(&PolicySet::builder().finish(), &settings)
}

impl NamespaceArgs {
    fn settings(&self) -> Result<Settings, Fault> {
        Settings::new(&self.namespace, &self.set).map_err(Fault::usage)
    }
}

impl RbacArgs {
    fn text(&self) -> Result<String, Fault> {
        manifests::rights(&load::policies(&[&self.policies])?, &self.common.settings()?)
    }
}

impl WebhookArgs {
    /// Returns a comment about what the configuration cannot express: who else may call the webhook.
    fn head(&self) -> String {
        let Self { service, namespace, .. } = self;
        format!(
            "# Whoever reaches the Service may ask as the API server does, unless `admit serve --client-ca FILE --client-subject \
             NAME`\n# asks for its certificate: of the user `{service}.{namespace}.svc` in the kubeconfig that the API \
             server's\n# AdmissionConfiguration names for ValidatingAdmissionWebhook.\n"
        )
    }

    fn text(&self) -> Result<String, Fault> {
        let policies = load::policies(&[&self.policies])?;
        let endpoint = Endpoint::Service { name: self.service.clone(), namespace: self.namespace.clone() };
        let callee = Callee {
            endpoint,
            own_namespace: Some(&self.namespace),
            failure_policy: "Fail",
            definitions: true,
        };
        let configuration = webhook::configuration(&policies, &callee);
        let mut text = format!("{}{}", self.head(), yaml::write(&configuration));
        if let Some(mutating) = webhook::mutating_configuration(&policies, &callee) {
            text.push_str("---\n");
            text.push_str(&yaml::write(&mutating));
        }
        Ok(text)
    }
}

impl ManifestsArgs {
    fn run(&self) -> Result<Exit, Fault> {
        let settings = self.common.settings()?;
        let policies = load::policies(&[&self.policies])?;
        let folder = PolicyFolder {
            path: output::relative(&self.out, &self.policies)?,
            files: policy_files(&self.policies)?,
        };
        let files = manifests::files(&policies, &folder, &settings)?;
        if self.check { output::check(&self.out, &files) } else { output::write(&self.out, &files) }
    }
}

/// Returns the manifests of a folder of policies, without test suites, relative to it.
fn policy_files(folder: &Path) -> Result<Vec<PathBuf>, Fault> {
    let mut files = load::files(folder)?;
    files.retain(|file| !file.path.to_string_lossy().ends_with(".suite.yaml"));
    let relative =
        |file: &load::Found| file.path.strip_prefix(folder).map(Path::to_owned).map_err(Fault::internal);
    files.iter().map(relative).collect()
}
