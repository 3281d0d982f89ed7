//! Implements `NamespaceAutoProvision`: creates the namespace of a new object if it does not exist. Off by default.
//!
//! The server creates it as itself, through all plugins and policies; it stays even if the object is refused. A dry run creates
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
