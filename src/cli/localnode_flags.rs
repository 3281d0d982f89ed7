//! Defines the flags for Jobs and Pods that run on this machine, and starts these for `admit up`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use admit_apiserver::{Identity, LogError, LogOptions, LogStream, PodLogs, Server};
use clap::Args;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use serde_json::Value;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::process::Fault;
use crate::admission::tls::Authority;
use crate::controllers::kit::tasks::Supervisor;
use crate::localnode::{self, ApiServer, Clients, LogWanted, Logs, MAX_PODS, NODE, Pace, RunImage, Settings};
use crate::private;

/// The user in whose name Jobs are updated.
const JOB_CONTROLLER: &str = "system:serviceaccount:kube-system:job-controller";
/// The group whose members may do everything.
const MASTERS: &str = "system:masters";

/// The flags about Pods.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Jobs and Pods")]
pub(super) struct LocalNodeArgs {
    /// Run programs of a folder instead of this image; repeatable
    ///
    /// DIR/usr/bin/gather, or the container's command, runs as a process of your user on this machine. Admit's own image does not
    /// need this.
    #[arg(long, value_name = "NAME=DIR")]
    run_image: Vec<RunImage>,

    /// Do not run Jobs and Pods: they stay as they were written, as in a cluster without nodes
    #[arg(long, conflicts_with = "run_image")]
    no_node: bool,
}

/// What running Jobs and Pods needs.
pub(super) struct Ground<'a> {
    pub(super) server: &'a Server,
    pub(super) authority: &'a Authority,
    /// The address of the API server.
    pub(super) api: SocketAddr,
    pub(super) folder: PathBuf,
}

/// Returns the folder for data of Pods, creating it if it is missing.
///
/// # Errors
/// When it cannot be created.
pub(super) fn folder(state: &Path) -> Result<PathBuf, Fault> {
    let path = state.join("local");
    let made = private::make_folder(&path).and_then(|()| path.canonicalize());
    made.map_err(|error| Fault::usage(format!("cannot use `{}` for Pods: {error}", path.display())))
}

impl LocalNodeArgs {
    /// Starts running Jobs and Pods; `controlling` is dropped when they have ended for any reason.
    ///
    /// # Errors
    /// When the path of this program is unknown.
    pub(super) fn start(
        &self,
        parts: &mut Supervisor<Fault>,
        ground: Ground<'_>,
        shutdown: &CancellationToken,
        controlling: Arc<DropGuard>,
    ) -> Result<(), Fault> {
        if self.no_node {
            return Ok(());
        }
        let Ground { server, authority, api, folder } = ground;
        let program = std::env::current_exe().map_err(Fault::internal)?;
        let host = if api.ip().is_unspecified() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { api.ip() };
        let logs = Logs::new(&folder);
        server.set_pod_logs(Arc::new(NodeLogs(logs.clone())));
        let settings = Settings {
            folder,
            program,
            images: self.run_image.iter().cloned().collect(),
            logs,
            api: ApiServer {
                host: host.to_string(),
                port: api.port(),
                ca: authority.certificate_pem().to_owned(),
            },
            pace: Pace::default(),
            pods: MAX_PODS,
        };
        let client = |name: String, group: &str| {
            let identity = Identity::new(name, [group.to_owned(), MASTERS.to_owned()]);
            Client::new(server.router().layer(axum::Extension(identity)), "default")
        };
        let clients = Clients {
            jobs: client(JOB_CONTROLLER.to_owned(), "system:serviceaccounts"),
            node: client(format!("system:node:{NODE}"), "system:nodes"),
        };
        let run = localnode::run(clients, settings, shutdown.clone());
        parts.part("jobs and pods", async {
            let _controlling = controlling;
            run.await.map_err(Fault::usage)
        });
        Ok(())
    }
}

/// Provides the API server with the container logs of the node.
#[derive(Debug)]
struct NodeLogs(Logs);

impl PodLogs for NodeLogs {
    fn open(&self, pod: &Value, options: LogOptions) -> Result<LogStream, LogError> {
        if pod["spec"]["nodeName"] != NODE {
            return Err(LogError::OtherNode);
        }
        let pod: Pod =
            serde_json::from_value(pod.clone()).map_err(|error| LogError::Refused(error.to_string()))?;
        let LogOptions { container, follow, previous, timestamps, since, tail, limit, stream } = options;
        let wanted = LogWanted { follow, previous, timestamps, since, tail, limit, stream };
        self.0.open(&pod, &container, wanted).map_err(|error| LogError::Refused(error.to_string()))
    }
}
