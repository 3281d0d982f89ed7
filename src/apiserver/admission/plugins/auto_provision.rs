//! `NamespaceAutoProvision`: what is made in a namespace that is not there makes the namespace. Off by default.
//!
//! The server makes it as itself, by way of all plugins and policies, and it stays whatever becomes of the object. A dry run makes
//! none. Read from plugin/pkg/admission/namespace/autoprovision of releases before 1.36; no recorded answers of 1.36 are at hand.

use futures::future::BoxFuture;

use super::{Request, Waiting};
use crate::admission::review::Operation;
use crate::status::Refusal;

pub(super) const PLUGIN: Waiting = Waiting { name: "NamespaceAutoProvision", ask };

fn ask<'r>(request: &'r Request<'_>) -> BoxFuture<'r, Result<(), Refusal>> {
    Box::pin(async move {
        let review = request.review;
        let namespace = request.namespace();
        let concerns = review.operation == Operation::Create && !review.dry_run && !namespace.is_empty();
        if !concerns || request.stored("namespaces", "", namespace).is_some() {
            return Ok(());
        }
        match request.cluster.make_namespace(namespace).await {
            Err(refusal) if refusal.reason() == "Forbidden" => Err(refusal),
            Err(refusal) if refusal.reason() != "AlreadyExists" => Err(request.forbidden(refusal.message())),
            _ => Ok(()),
        }
    })
}
