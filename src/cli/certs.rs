//! `admit certs`: issues the serving certificate of a webhook that runs in a cluster.

use std::path::{Path, PathBuf};

use admit_apimachinery::go;
use clap::Args;
use time::OffsetDateTime;

use super::Exit;
use super::conversion::DEFINITIONS;
use super::process::{Fault, fail, warn};
use super::render;
use super::state;
use super::value_parsers::{label, name};
use crate::admission::tls::{Authority, write_private};
use crate::private::Note;

/// Arguments of `admit certs`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  admit certs --out /tmp/admit-certs --service admit --namespace admit-system"
)]
pub(super) struct CertsArgs {
    /// Folder to write ca.crt, ca.key, tls.crt and tls.key to; an existing CA there is reused
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// Name of the Service in front of the webhook
    #[arg(long, default_value = "admit", value_parser = name)]
    service: String,

    /// Namespace of that Service
    #[arg(long, default_value = "admit-system", value_parser = label)]
    namespace: String,

    /// Name of the ValidatingWebhookConfiguration, for the printed command that sets its caBundle
    #[arg(long, default_value = "admit", value_parser = name)]
    webhook: String,
}

impl CertsArgs {
    pub(super) fn run(&self) -> Exit {
        match self.make() {
            Ok(text) => {
                render::print(&text);
                Exit::Expected
            }
            Err(fault) => fail(&fault),
        }
    }

    fn make(&self) -> Result<String, Fault> {
        let Self { out, service, namespace, webhook } = self;
        let now = OffsetDateTime::now_utc();
        for note in state::certificates(out)? {
            // A shared folder is the user's choice, so only changed permissions are a warning.
            if matches!(note, Note::Closed { .. }) {
                warn(&note.to_string());
            }
        }
        let authority = Authority::open(out, now).map_err(Fault::usage)?;
        let names = [
            format!("{service}.{namespace}.svc"),
            format!("{service}.{namespace}.svc.cluster.local"),
            format!("{service}.{namespace}"),
            service.clone(),
        ];
        let leaf = authority.issue_server(&names, now).map_err(Fault::usage)?;
        let write = |name: &str, text: &str| write_private(&out.join(name), text).map_err(Fault::usage);
        write("tls.crt", &leaf.certificate_pem)?;
        write("tls.key", &leaf.key_pem)?;
        let bundle = go::base64::encode(authority.certificate_pem());
        Ok(hints(out, namespace, webhook, &bundle))
    }
}

/// Returns instructions for using the files, ready to be pasted.
fn hints(out: &Path, namespace: &str, webhook: &str, bundle: &str) -> String {
    let (out, definitions) = (out.display(), DEFINITIONS.join(" "));
    format!(
        "wrote {out}/tls.crt and {out}/tls.key; hand them to the cluster, once it has the namespace:\n\
         kubectl -n {namespace} create secret tls admit-tls --cert {out}/tls.crt --key {out}/tls.key\n\
         and, once it has the webhook configuration, tell it for each webhook whom to trust:\n\
         for hook in $(kubectl get validatingwebhookconfiguration {webhook} -o jsonpath='{{.webhooks[*].name}}'); do \
         kubectl patch validatingwebhookconfiguration {webhook} \
         -p '{{\"webhooks\":[{{\"name\":\"'$hook'\",\"clientConfig\":{{\"caBundle\":\"{bundle}\"}}}}]}}'; done\n\
         and each definition whose objects it converts:\n\
         for definition in {definitions}; do kubectl patch customresourcedefinition $definition --type=merge \
         -p '{{\"spec\":{{\"conversion\":{{\"webhook\":{{\"clientConfig\":{{\"caBundle\":\"{bundle}\"}}}}}}}}}}'; done\n"
    )
}
