//! Configures the API server for the policies in force: which requests it sends to the webhook, and the policies and bindings of
//! files that it shows as objects. The webhook enforces them, and the API server does not.

use std::sync::Arc;

use admit_apiserver::{FromFile, Identity, Server};
use admit_policy::manifest::Document;
use serde_json::json;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{client, refused};
use crate::admission::InForce;
use crate::cli::generate::webhook::{self, Callee, Endpoint};
use crate::cli::process::Fault;
use crate::cli::register;

/// Registers the webhook for what the policies match, and shows the documents of files.
///
/// # Errors
/// When the API server rejects the webhook configuration.
pub(super) async fn tell(server: &Server, in_force: &InForce, endpoint: &Endpoint) -> Result<(), Fault> {
    let client = client(server, Identity::admin());
    // The API server has the same CRDs, and applies their rules itself.
    let callee = Callee {
        endpoint: endpoint.clone(),
        own_namespace: None,
        failure_policy: "Fail",
        definitions: false,
    };
    let configuration = webhook::configuration(&in_force.policies, &callee);
    register::put(&client, "validatingwebhookconfigurations", &configuration)
        .await
        .map_err(|error| refused("the webhook configuration", &error))?;
    let mutating = webhook::mutating_configuration(&in_force.policies, &callee).unwrap_or_else(|| {
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": webhook::NAME}, "webhooks": []})
    });
    register::put(&client, "mutatingwebhookconfigurations", &mutating)
        .await
        .map_err(|error| refused("the webhook configuration", &error))?;
    server.show_from_files(in_force.shown.iter().map(shown).collect()).await;
    Ok(())
}

fn shown(document: &Document) -> FromFile {
    FromFile { file: document.file.to_string(), object: document.value.clone() }
}

/// Repeats [`tell`] whenever the policies in force have changed, until `stop`.
pub(super) async fn keep(
    server: Server,
    mut in_force: watch::Receiver<Arc<InForce>>,
    endpoint: Endpoint,
    stop: CancellationToken,
) -> Result<(), Fault> {
    while let Some(Ok(())) = stop.run_until_cancelled(in_force.changed()).await {
        let now = Arc::clone(&in_force.borrow_and_update());
        tell(&server, &now, &endpoint).await?;
    }
    Ok(())
}
