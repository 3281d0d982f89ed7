//! Collects the logs of system services of control plane nodes from the journal, through their kubelets.
//!
//! Kubernetes' kubelets answer a query for a service, those of OpenShift serve a file of that name; kubelets with neither serve
//! an HTML page of their log folder.

use std::pin::Pin;

use futures::AsyncBufRead;
use futures::io::AsyncBufReadExt as _;
use tokio::fs::File;
use tokio::time::timeout;

use super::audit::get;
use super::logs::{Found, SILENCE, copy};
use super::{CollectError, Run};

/// The services whose logs help to explain problems of a node.
const SERVICES: [&str; 10] = [
    "kubelet",
    "crio",
    "containerd",
    "machine-config-daemon-firstboot",
    "machine-config-daemon-host",
    "NetworkManager",
    "openvswitch",
    "ovs-configuration",
    "ovs-vswitchd",
    "rpm-ostreed",
];

type Source = Pin<Box<dyn AsyncBufRead + Send>>;

/// Writes the logs of `nodes`, one file for each service.
pub(super) async fn collect(run: &Run<'_>, nodes: &[String]) -> Result<Found, CollectError> {
    let mut found = Found::default();
    for node in nodes {
        for service in SERVICES {
            match open(run, node, service).await {
                Ok(Some(source)) => {
                    let name = format!("{service}_service.log");
                    let (file, path) = run.folder.go_on(&["host_service_logs", "masters", &name])?;
                    let what = || format!("the log of {service} on {node}");
                    let whole = copy(run, source, File::from_std(file), path, what).await?;
                    found.logs += u64::from(whole);
                    found.missed += u64::from(!whole);
                }
                Ok(None) => {}
                Err(error) => {
                    // An error for one service applies to all services of this node.
                    run.missed(format!("logs of services on {node}"), &error);
                    found.missed += 1;
                    break;
                }
            }
        }
    }
    Ok(found)
}

/// Opens the log of a service; None if the node has none, or does not serve it.
async fn open(run: &Run<'_>, node: &str, service: &str) -> Result<Option<Source>, kube::Error> {
    let logs = format!("/api/v1/nodes/{node}/proxy/logs");
    let since =
        |name: &str| run.since.map_or(String::new(), |time| format!("&{name}={}", time.strftime("%FT%TZ")));
    for path in [
        format!("{logs}/?query={service}{}", since("sinceTime")),
        format!("{logs}/journal?unit={service}{}", since("since")),
    ] {
        let mut source: Source = match run.client.request_stream(get(&path)?).await {
            Ok(source) => Box::pin(source),
            Err(kube::Error::Api(status)) if matches!(status.code, 400 | 404) => continue,
            Err(error) => return Err(error),
        };
        match timeout(SILENCE, source.fill_buf()).await {
            Ok(Ok(first)) if !first.is_empty() && !first.starts_with(b"<") => return Ok(Some(source)),
            _ => {}
        }
    }
    Ok(None)
}
