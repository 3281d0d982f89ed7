//! Serves the webhook of `admit up`, which decides for its API server.

use std::sync::Arc;
use std::time::Duration;

use admit_apiserver::{Identity, Server};
use futures::FutureExt as _;
use time::OffsetDateTime;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{client, local};
use crate::admission::tls::{Authority, server_config};
use crate::admission::{self, Admission, Decisions, InForce, Port, Shutdown, Workers};
use crate::cli::process::Fault;
use crate::cli::{conversion, following};
use crate::controllers::kit::tasks::Supervisor;
use crate::controllers::policies::ClusterCache;
use crate::telemetry::{Metrics, Readiness, Traces};

/// Starts the webhook; returns what it watches of the cluster.
///
/// # Errors
/// When it gets no certificate or thread.
pub(super) fn start_admission(
    parts: &mut Supervisor<Fault>,
    server: &Server,
    (policies, metrics, watched): (watch::Receiver<Arc<InForce>>, Arc<Metrics>, Option<Decisions>),
    listener: TcpListener,
    authority: &Authority,
    stop: &CancellationToken,
) -> Result<Arc<ClusterCache>, Fault> {
    let names = [local(&listener)?.ip().to_string(), "localhost".to_owned()];
    let leaf = authority.issue_server(&names, OffsetDateTime::now_utc()).map_err(Fault::internal)?;
    let tls = Arc::new(server_config(&leaf, None).map_err(Fault::internal)?);
    let (cluster, params) = ClusterCache::new(client(server, Identity::admin()));
    let readiness = Readiness::default();
    readiness.set("policies", true);
    let admission = Admission {
        policies,
        cluster: Some(cluster.clone()),
        workers: Workers::start().map_err(Fault::internal)?,
        metrics: metrics.clone(),
        beta: false,
        traces: Traces::default(),
        converters: conversion::converters(),
        readiness,
        timeout: Duration::from_secs(8),
    };
    let router = match watched {
        Some(decisions) => admission.watched(decisions),
        None => admission.router(),
    };
    let port = Port { listener, tls: Some(watch::channel(tls).1), router, metrics };
    // The API server in this process calls it until it has stopped itself.
    let serving = admission::serve(port, Shutdown { asked: stop.clone(), linger: Duration::ZERO });
    parts.part("admission", async { serving.await.map_err(Fault::internal) });
    parts.part("cluster", following::follow_with_exceptions(cluster.clone(), params, stop.clone()).map(Ok));
    Ok(cluster)
}
