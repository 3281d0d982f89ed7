//! Collects the logs of Pods: the current log of each container, and that before its last restart.

use std::path::PathBuf;
use std::time::Duration;

use futures::io::AsyncReadExt as _;
use futures::stream::{self, StreamExt as _};
use k8s_openapi::api::core::v1;
use kube::Api;
use kube::api::LogParams;
use serde_json::{Map, Value};
use tokio::fs::File;
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;

use super::{CollectError, Run};

/// Logs that are read at a time: for each, the API server sends a request to a node.
const AT_ONCE: usize = 8;
/// How long a node may send nothing before a log is given up.
pub(super) const SILENCE: Duration = Duration::from_secs(60);
const BUFFER: usize = 64 * 1024;

/// A Pod, and which of its containers were restarted.
#[derive(Debug, PartialEq)]
pub(super) struct Pod {
    namespace: String,
    name: String,
    containers: Vec<(String, bool)>,
}

impl Pod {
    pub(super) fn of(namespace: &str, name: &str, object: &Map<String, Value>) -> Self {
        let each = |part: &str, fields: [&'static str; 3]| {
            let part = object.get(part).cloned().unwrap_or_default();
            let lists = fields.map(|field| part.get(field).and_then(Value::as_array).cloned());
            lists.into_iter().flatten().flatten().collect::<Vec<_>>()
        };
        let statuses =
            each("status", ["initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"]);
        let text = |value: &Value| value.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let again = |name: &str| {
            let status = statuses.iter().find(|status| text(status) == name);
            status.and_then(|status| status.get("restartCount")).and_then(Value::as_u64).unwrap_or(0) > 0
        };
        let containers = each("spec", ["initContainers", "containers", "ephemeralContainers"]);
        let containers = containers.iter().map(text).map(|name| (name.clone(), again(&name))).collect();
        Self { namespace: namespace.to_owned(), name: name.to_owned(), containers }
    }
}

/// The number of logs, and of failures.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Found {
    pub(super) logs: u64,
    pub(super) missed: u64,
}

impl Found {
    pub(super) fn add(&mut self, other: Self) {
        self.logs += other.logs;
        self.missed += other.missed;
    }
}

/// One log.
struct Log {
    namespace: String,
    pod: String,
    container: String,
    previous: bool,
}

pub(super) async fn collect(run: &Run<'_>, pods: Vec<Pod>) -> Result<Found, CollectError> {
    let logs = pods.into_iter().flat_map(|pod| {
        let Pod { namespace, name, containers } = pod;
        containers.into_iter().flat_map(move |(container, again)| {
            let log = |previous| Log {
                namespace: namespace.clone(),
                pod: name.clone(),
                container: container.clone(),
                previous,
            };
            std::iter::once(log(false)).chain(again.then(|| log(true))).collect::<Vec<_>>()
        })
    });
    let mut reading = stream::iter(logs.map(|log| one(run, log))).buffer_unordered(AT_ONCE);
    let mut found = Found::default();
    while let Some(read) = reading.next().await {
        match read? {
            true => found.logs += 1,
            false => found.missed += 1,
        }
    }
    Ok(found)
}

/// Copies a log; returns whether it exists.
async fn one(run: &Run<'_>, log: Log) -> Result<bool, CollectError> {
    let Log { namespace, pod, container, previous } = &log;
    let pods: Api<v1::Pod> = Api::namespaced(run.client.clone(), namespace);
    let params = LogParams {
        container: Some(container.clone()),
        previous: *previous,
        since_time: run.since,
        timestamps: true,
        ..LogParams::default()
    };
    let file = if *previous { "previous.log" } else { "current.log" };
    let parts = ["namespaces", namespace, "pods", pod, container, container, "logs", file];
    let what = || format!("{file} of {namespace}/{pod}, container {container}");
    let opening = timeout(SILENCE, pods.log_stream(pod, &params)).await;
    let source = match opening {
        Ok(Ok(source)) => source,
        Ok(Err(error)) => {
            run.missed(what(), &error);
            return Ok(false);
        }
        Err(_) => {
            run.teller.tell(format!("left out: {}: no answer", what()));
            return Ok(false);
        }
    };
    let (file, path) = run.folder.create(&parts)?;
    copy(run, source, File::from_std(file), path, what).await
}

/// Copies a log while it arrives; an incomplete one is kept.
pub(super) async fn copy(
    run: &Run<'_>,
    source: impl futures::AsyncBufRead,
    mut file: File,
    path: PathBuf,
    what: impl Fn() -> String,
) -> Result<bool, CollectError> {
    let mut source = std::pin::pin!(source);
    let mut buffer = vec![0; BUFFER];
    let mut whole = true;
    loop {
        let read = match timeout(SILENCE, source.read(&mut buffer)).await {
            Ok(Ok(0)) => break,
            Ok(Ok(read)) => buffer.get(..read).unwrap_or_default(),
            Ok(Err(error)) => {
                run.teller.tell(format!("incomplete: {}: {error}", what()));
                whole = false;
                break;
            }
            Err(_) => {
                run.teller.tell(format!("incomplete: {}: nothing came for {} s", what(), SILENCE.as_secs()));
                whole = false;
                break;
            }
        };
        let written = file.write_all(read).await;
        written.map_err(|source| CollectError::Disk { path: path.clone(), source })?;
    }
    file.flush().await.map_err(|source| CollectError::Disk { path, source })?;
    Ok(whole)
}
