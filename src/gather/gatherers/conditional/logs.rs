//! Gathers log lines of the last six hours that the remote configuration requests.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::io::AsyncReadExt as _;
use futures::stream::{self, StreamExt as _};
use futures::{AsyncRead, FutureExt};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::LogParams;
use serde_json::Value;
use tokio::time::timeout;

use super::super::super::failure::Failure;
use super::super::super::gatherer::{Context, Gatherer, Run};
use super::super::super::lister::{self, Resource};
use super::super::super::remote::LogRequest;
use super::super::super::spool::MAX_RECORDS;
use super::super::pods::items;
use super::super::{name, tell, told};
use super::lines::Lines;

pub(in super::super) const ROW: Gatherer = Gatherer {
    id: "conditional/rapid_container_logs",
    collects: "lines of logs that the remote configuration asks for",
    path: "namespaces/{namespace}/pods/{name}/{container}/current.log, previous.log",
    run: Run::Alone(|context| gather(context).boxed()),
};

const PODS: Resource = Resource { group: "", version: "v1", kind: "Pod", plural: "pods" };
/// The maximum age of lines in seconds.
const SINCE: i64 = 6 * 60 * 60;
/// The most logs that are read for one configuration.
const MAX_LOGS: usize = 2_000;
/// Logs that are read at a time: for each, the API server sends a request to a node.
const AT_ONCE: usize = 4;
/// The most bytes of all lines: a quarter of an archive, which also has the logs of failing operators.
const MAX_TOGETHER: usize = MAX_RECORDS / 4;
/// The most bytes of the lines of one log.
const MAX_LOG: usize = 512 * 1024;
/// How long a node may send nothing before the log is given up.
const SILENCE: Duration = Duration::from_secs(30);
const BUFFER: usize = 16 * 1024;

struct Log {
    request: Arc<LogRequest>,
    pod: String,
    container: String,
}

async fn gather(context: Context) -> Result<(), Failure> {
    let mut logs = Vec::new();
    let mut left = 0;
    for request in &context.remote.logs {
        if !context.reads_namespace(&request.namespace) {
            context.recorder.warn(format!(
                "logs of {} are asked for and not read: names of namespaces that are do not begin so",
                request.namespace
            ));
            continue;
        }
        let found = find(&context, request, &mut logs).await;
        told(&context, found.map(|more| left += more))?;
    }
    if left > 0 {
        context.recorder.warn(format!("{left} logs past the first {MAX_LOGS} were not read"));
    }
    let room = (MAX_TOGETHER / logs.len().max(1)).min(MAX_LOG);
    let mut reading =
        stream::iter(logs.into_iter().map(|log| keep(&context, log, room))).buffer_unordered(AT_ONCE);
    while let Some(kept) = reading.next().await {
        told(&context, kept)?;
    }
    Ok(())
}

/// Adds the logs of the matching Pods; returns how many exceeded the limit.
async fn find(context: &Context, request: &Arc<LogRequest>, logs: &mut Vec<Log>) -> Result<usize, Failure> {
    let mut listing = lister::list_in(context, &request.namespace, PODS);
    let mut left = 0;
    while let Some(pod) = listing.next().await? {
        if !request.pods.is_match(name(&pod)) {
            continue;
        }
        let containers = items(&pod, "/spec/containers");
        for container in containers.filter_map(|container| container.get("name").and_then(Value::as_str)) {
            if logs.len() == MAX_LOGS {
                left += 1;
                continue;
            }
            let (request, pod) = (Arc::clone(request), name(&pod).to_owned());
            logs.push(Log { request, pod, container: container.to_owned() });
        }
    }
    tell(context, &listing);
    Ok(left)
}

/// Why a requested log is not read to its end.
#[derive(Debug, thiserror::Error)]
enum LogError {
    #[error("nothing came for {} s", SILENCE.as_secs())]
    Silent,
    #[error(transparent)]
    Broken(#[from] io::Error),
}

async fn keep(context: &Context, log: Log, room: usize) -> Result<(), Failure> {
    let Log { request, pod, container } = &log;
    let LogRequest { namespace, previous, messages, pods: _ } = request.as_ref();
    let what = || format!("the log of container {container} of pod {namespace}/{pod}");
    let params = LogParams {
        container: Some(container.clone()),
        previous: *previous,
        since_seconds: Some(SINCE),
        timestamps: true,
        ..LogParams::default()
    };
    let pods: Api<Pod> = Api::namespaced(context.client.clone(), namespace);
    let unreadable = |why: LogError| Failure::Unreadable { what: what(), why: why.to_string() };
    let opened = timeout(SILENCE, pods.log_stream(pod, &params)).await;
    let opened = opened.map_err(|_| unreadable(LogError::Silent))?;
    let source = match opened {
        Ok(source) => source,
        // The container has not started, or the Pod was deleted.
        Err(kube::Error::Api(status)) if matches!(status.code, 400 | 404) => {
            context.recorder.warn(format!("{} is not there: {}", what(), status.message));
            return Ok(());
        }
        Err(error) => return Err(Failure::Api { what: what(), source: Box::new(error) }),
    };
    let read = read(source, Lines::new(messages, room)).await;
    let (text, left) = read.map_err(unreadable)?;
    if left > 0 {
        context.recorder.warn(format!("{left} lines of {} had no room", what()));
    }
    if text.is_empty() {
        return Ok(());
    }
    let when = if *previous { "previous" } else { "current" };
    context.raw(format!("namespaces/{namespace}/pods/{pod}/{container}/{when}.log"), text).await
}

async fn read(source: impl AsyncRead, mut lines: Lines<'_>) -> Result<(String, usize), LogError> {
    let mut source = std::pin::pin!(source);
    let mut buffer = vec![0; BUFFER];
    loop {
        let read = timeout(SILENCE, source.read(&mut buffer)).await.map_err(|_| LogError::Silent)?;
        match read? {
            0 => return Ok(lines.into_text()),
            length => lines.add(buffer.get(..length).unwrap_or_default()),
        }
    }
}
