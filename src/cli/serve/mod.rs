//! `admit serve`: runs the admission webhook for a cluster's API server.
//!
//! ```text
//! policies (folder, cluster) ──changes──► InForce ─┐
//! namespaces, params, access (cluster) ──► Host ───┼──► webhook port
//! certificates (files, self-made) ─────► TLS ──────┘
//!                                counters, readiness ──► observe port: /metrics /livez /readyz /policies
//! ```

mod args;
mod certificates;
mod self_signed;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::args::Certificates;
pub(super) use self::args::ServeArgs;
use self::certificates::Told;
use super::process::{self, Fault, GRACE, Threads};
use super::sources::{self, Sources};
use super::{Exit, converters, following};
use crate::admission::tls::Managed;
use crate::admission::{self, Admission, Cluster, InForce, Observed, Port, Shutdown, Workers};
use crate::controllers::kit::tasks::Supervisor;
use crate::controllers::policies::{ClusterCache, ExceptionCounts, Wanted};
use crate::telemetry::{Metrics, Readiness, Traces};

/// The time between checks of whether the watched data are up to date.
const LOOK: Duration = Duration::from_millis(100);

/// How long shutdown may take after the requested delay, before the process is ended: draining the webhook's listener takes up to
/// ten seconds.
const DRAIN_GRACE: Duration = Duration::from_secs(15);

/// The state that the parts of the process share.
struct Process {
    parts: Supervisor<Fault>,
    metrics: Arc<Metrics>,
    readiness: Readiness,
    traces: Traces,
    shutdown: CancellationToken,
}

impl ServeArgs {
    pub(super) fn run(self) -> Exit {
        // The default delay is within the grace period; a longer delay extends it.
        let delay = Duration::from_secs(self.shutdown_delay);
        let grace = GRACE.max(delay + DRAIN_GRACE);
        process::run(Threads::Carry, self.log_format, grace, |shutdown| self.serve(shutdown))
    }

    async fn serve(self, shutdown: CancellationToken) -> Result<(), Fault> {
        let mut process = Process {
            parts: Supervisor::new(shutdown.clone()),
            metrics: Arc::new(Metrics::default()),
            readiness: Readiness::default(),
            traces: self.traces()?,
            shutdown,
        };
        let traces = process.traces.clone();
        // All errors in the configuration are found before anything listens.
        let ended = match self.start(&mut process).await {
            Ok(()) => process.parts.join().await.map_err(Fault::internal),
            // The parts that were started have nothing to finish, so only the error is reported.
            Err(fault) => Err(fault),
        };
        let delivered = tokio::task::spawn_blocking(|| traces.finish()).await.map_err(Fault::internal);
        ended.and(delivered)
    }

    async fn start(&self, process: &mut Process) -> Result<(), Fault> {
        process.outlive_hangups()?;
        let client = process.unless_stopped(self.cluster.client()).await?;
        let cluster = client.clone().map(|client| process.follow(client, self.cluster.wanted()));
        if let Some(cluster) = &cluster {
            process.heard_of(cluster, self.cluster.wanted()).await?;
        }
        let sources = Sources {
            paths: self.folder().into_iter().collect(),
            cluster: cluster.clone().filter(|_| self.cluster.cluster_policies),
            ..Sources::default()
        };
        let reading = sources.clone();
        let files = process.unless_stopped(reading.first()).await?;
        let (documents, contents) = sources::parsed(files).await?;
        let set = sources.compiled(documents, Arc::default()).await?;
        sources::want_params(&set, cluster.as_ref()).await;
        let config = process.certificates(self.certificates(client)?).await?;
        let listener = process::listen(self.listen, "--listen")?;
        let observe = process::listen(self.observe_listen, "--observe-listen")?;
        let (address, observed) = (local(&listener)?, local(&observe)?);

        sources::announce(&set, &process.metrics);
        sources::tell_broken(&set, &InForce::default(), &process.metrics);
        let (in_force, policies) = watch::channel(Arc::new(set));
        let keeping = sources::keep(
            sources::InUse { sources, contents, in_force },
            cluster.clone(),
            process.metrics.clone(),
            process.shutdown.clone(),
        );
        process.parts.part("policies", keeping);
        self.webhook(process, listener, config, policies.clone(), cluster.map(|cluster| cluster as _))?;
        self.observe(process, observe, policies);
        process.ready("policies", true);
        process.leave_first();
        tracing::info!(%address, observe = %observed, "serving");
        Ok(())
    }

    fn webhook(
        &self,
        process: &mut Process,
        listener: TcpListener,
        config: watch::Receiver<Arc<ServerConfig>>,
        policies: watch::Receiver<Arc<InForce>>,
        cluster: Cluster,
    ) -> Result<(), Fault> {
        let admission = Admission {
            policies,
            cluster,
            workers: Workers::start().map_err(Fault::internal)?,
            metrics: process.metrics.clone(),
            traces: process.traces.clone(),
            readiness: process.readiness.clone(),
            converters: converters(),
            beta: self.v1beta1,
            timeout: Duration::from_secs(self.timeout),
        };
        let metrics = process.metrics.clone();
        let port = Port { listener, tls: Some(config), router: admission.router(), metrics };
        let serving = admission::serve(port, self.stop(process));
        process.parts.part("webhook", async { serving.await.map_err(Fault::internal) });
        Ok(())
    }

    fn observe(&self, process: &mut Process, listener: TcpListener, policies: watch::Receiver<Arc<InForce>>) {
        let (metrics, readiness) = (process.metrics.clone(), process.readiness.clone());
        let router = Observed { policies, metrics: metrics.clone(), readiness }.router();
        let serving = admission::serve(Port { listener, tls: None, router, metrics }, self.stop(process));
        process.parts.part("observe", async { serving.await.map_err(Fault::internal) });
    }

    fn stop(&self, process: &Process) -> Shutdown {
        let linger = Duration::from_secs(self.shutdown_delay);
        Shutdown { asked: process.shutdown.clone(), linger }
    }
}

impl Process {
    /// Watches the cluster, including its policies and exceptions if they are `wanted`.
    fn follow(&mut self, client: kube::Client, wanted: Wanted) -> Arc<ClusterCache> {
        let (cluster, params) = ClusterCache::new(client);
        let stop = || self.shutdown.clone();
        let always = following::follow(cluster.clone(), params, stop());
        let policies = cluster.clone().follow_policies(stop());
        let exceptions = cluster.clone().follow_exceptions(stop());
        let shutdown = stop();
        let following = async move {
            let policies =
                async { if wanted.policies { policies.await } else { shutdown.cancelled().await } };
            let exceptions =
                async { if wanted.exceptions { exceptions.await } else { shutdown.cancelled().await } };
            tokio::join!(always, policies, exceptions);
            Ok(())
        };
        self.parts.part("cluster", following);
        cluster
    }

    /// Waits until the cluster's objects were listed, and then keeps the readiness up to date. Losing only the exceptions does not make
    /// the webhook unready: no exception is in force then, and denials say why.
    async fn heard_of(&mut self, cluster: &Arc<ClusterCache>, wanted: Wanted) -> Result<(), Fault> {
        let waiting = async {
            while cluster.trouble(wanted).is_some() {
                tokio::time::sleep(LOOK).await;
            }
        };
        if self.shutdown.run_until_cancelled(waiting).await.is_none() {
            return Err(Fault::internal("stopped before anything was heard of the cluster"));
        }
        self.ready("cluster", true);
        let (cluster, shutdown) = (Arc::clone(cluster), self.shutdown.clone());
        let (readiness, metrics) = (self.readiness.clone(), self.metrics.clone());
        self.parts.part("cluster readiness", async move {
            while shutdown.run_until_cancelled(tokio::time::sleep(LOOK * 10)).await.is_some() {
                let ready = cluster.trouble(Wanted { exceptions: false, ..wanted }).is_none();
                if wanted.exceptions {
                    tell_exceptions(&cluster, &metrics);
                }
                readiness.set("cluster", ready);
                metrics.ready("cluster", ready);
            }
            Ok(())
        });
        Ok(())
    }

    /// Returns the result of `work`, or an error if the process is asked to stop before.
    async fn unless_stopped<T>(&self, work: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        let stopped = || Fault::internal("stopped before it served");
        self.shutdown.run_until_cancelled(work).await.ok_or_else(stopped)?
    }

    /// Loads the first certificates, and starts the task that keeps them up to date.
    async fn certificates(
        &mut self,
        source: Certificates,
    ) -> Result<watch::Receiver<Arc<ServerConfig>>, Fault> {
        let shutdown = self.shutdown.clone();
        let told = Told { metrics: self.metrics.clone(), readiness: self.readiness.clone() };
        match source {
            Certificates::Files(files) => {
                let (tls, config) = self.unless_stopped(files.load()).await?;
                told.tell(&tls);
                let (sender, receiver) = watch::channel(Arc::new(config));
                self.parts.part("certificates", certificates::keep(files, tls, sender, told, shutdown));
                Ok(receiver)
            }
            Certificates::SelfSigned(source) => {
                let (managed, tls, config) = self.unless_stopped(source.load(Managed::default())).await?;
                told.tell(&tls);
                let (sender, receiver) = watch::channel(Arc::new(config));
                let keeping = self_signed::keep(*source, managed, tls, sender, told, shutdown);
                self.parts.part("certificates", keeping);
                Ok(receiver)
            }
        }
    }

    /// Handles SIGHUP, which makes file watchers look at once; unhandled, it would end the process.
    fn outlive_hangups(&mut self) -> Result<(), Fault> {
        let mut hangups = signal(SignalKind::hangup()).map_err(Fault::internal)?;
        let shutdown = self.shutdown.clone();
        self.parts.part("signals", async move {
            while shutdown.run_until_cancelled(hangups.recv()).await.is_some() {
                tracing::info!(
                    signal = "SIGHUP",
                    "files are looked at; they are followed without signals, too"
                );
            }
            Ok(())
        });
        Ok(())
    }

    fn ready(&self, part: &'static str, ready: bool) {
        self.readiness.set(part, ready);
        self.metrics.ready(part, ready);
    }

    /// Reports not ready as soon as the process is asked to stop, so that callers go elsewhere before the listener closes.
    fn leave_first(&mut self) {
        self.ready("shutdown", true);
        let (readiness, metrics) = (self.readiness.clone(), self.metrics.clone());
        let shutdown = self.shutdown.clone();
        self.parts.part("readiness", async move {
            shutdown.cancelled().await;
            readiness.set("shutdown", false);
            metrics.ready("shutdown", false);
            Ok(())
        });
    }
}

fn tell_exceptions(cluster: &ClusterCache, metrics: &Metrics) {
    let ExceptionCounts { in_force, ended, malformed, left_out } =
        cluster.exception_counts(SystemTime::now());
    let known = cluster.trouble(Wanted { exceptions: true, ..Wanted::default() }).is_none();
    metrics.ready("exceptions", known);
    for (state, count) in
        [("in_force", in_force), ("ended", ended), ("malformed", malformed), ("left_out", left_out)]
    {
        metrics.exceptions(state, count);
    }
}

fn local(listener: &TcpListener) -> Result<SocketAddr, Fault> {
    listener.local_addr().map_err(Fault::internal)
}
