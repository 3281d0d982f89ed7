//! Gathers the ends of container logs: a hundred lines of each, or more if they contain a stack trace.

use std::time::Duration;

use futures::io::AsyncReadExt as _;
use futures::stream::{self, StreamExt as _};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::LogParams;
use serde_json::Value;
use tokio::time::timeout;

use super::super::super::failure::Failure;
use super::super::super::gatherer::Context;
use super::super::super::spool::MAX_RECORDS;
use super::super::pods::items;
use super::super::{name, namespace, told};
use super::trace::Traces;

/// The number of lines that are kept.
const TAIL: i64 = 100;
/// The number of lines that are searched for the beginning of a stack trace.
const LONG_TAIL: i64 = 2_000;
/// The most bytes of all logs: half of an archive.
const MAX_TOGETHER: usize = MAX_RECORDS / 2;
/// The most bytes of one log, even if there are few.
const MAX_LOG: usize = 512 * 1024;
/// The most logs: with so many, there is still room for some lines of each.
const MAX_LOGS: usize = 2_000;
/// Logs that are read at a time: for each, the API server sends a request to a node, and two copies may be in memory.
const AT_ONCE: usize = 4;
/// How long a node may send nothing before the log is given up.
const SILENCE: Duration = Duration::from_secs(30);
const BUFFER: usize = 16 * 1024;

/// The logs to gather.
#[derive(Default)]
pub(super) struct Logged {
    logs: Vec<Log>,
    left: usize,
}

struct Log {
    namespace: String,
    pod: String,
    container: String,
    previous: bool,
}

impl Logged {
    /// Adds the logs of the containers of a Pod, and with `previous` also those before their last restart.
    pub(super) fn add(&mut self, pod: &Value, previous: bool) {
        let containers = items(pod, "/spec/initContainers").chain(items(pod, "/spec/containers"));
        for container in containers.filter_map(|container| container.get("name")?.as_str()) {
            for previous in [false, true].into_iter().take(1 + usize::from(previous)) {
                if self.logs.len() == MAX_LOGS {
                    self.left += 1;
                    continue;
                }
                self.logs.push(Log {
                    namespace: namespace(pod).to_owned(),
                    pod: name(pod).to_owned(),
                    container: container.to_owned(),
                    previous,
                });
            }
        }
    }
}

pub(super) async fn keep(context: &Context, logged: Logged) -> Result<(), Failure> {
    let Logged { logs, left } = logged;
    if left > 0 {
        context.recorder.warn(format!("{left} logs past the first {MAX_LOGS} were not read"));
    }
    let traces = Traces::new()?;
    let room = (MAX_TOGETHER / logs.len().max(1)).min(MAX_LOG);
    let mut reading = stream::iter(logs.into_iter().map(|log| keep_one(context, log, room, &traces)))
        .buffer_unordered(AT_ONCE);
    while let Some(kept) = reading.next().await {
        told(context, kept)?;
    }
    Ok(())
}

async fn keep_one(context: &Context, log: Log, room: usize, traces: &Traces) -> Result<(), Failure> {
    let Some(mut text) = tail(context, &log, TAIL, room).await? else { return Ok(()) };
    if traces.are_in(&text) {
        let longer = tail(context, &log, LONG_TAIL, room).await?;
        text = traces.around_first(&longer.unwrap_or(text));
    }
    let Log { namespace, pod, container, previous } = log;
    let when = if previous { "previous" } else { "current" };
    context.raw(format!("config/pod/{namespace}/logs/{pod}/{container}_{when}.log"), text).await
}

/// Returns the last lines of a log, up to `room` bytes. None if there is no log, which is reported.
async fn tail(context: &Context, log: &Log, lines: i64, room: usize) -> Result<Option<String>, Failure> {
    let Log { namespace, pod, container, previous } = log;
    let what = || format!("the log of container {container} of pod {namespace}/{pod}");
    let params = LogParams {
        container: Some(container.clone()),
        previous: *previous,
        tail_lines: Some(lines),
        timestamps: true,
        ..LogParams::default()
    };
    let pods: Api<Pod> = Api::namespaced(context.client.clone(), namespace);
    let silent =
        || Failure::Unreadable { what: what(), why: format!("nothing came for {} s", SILENCE.as_secs()) };
    let opened = timeout(SILENCE, pods.log_stream(pod, &params)).await.map_err(|_| silent())?;
    let mut source = match opened {
        Ok(source) => Box::pin(source),
        // The container has not started, or the Pod was deleted.
        Err(kube::Error::Api(status)) if matches!(status.code, 400 | 404) => {
            context.recorder.warn(format!("{} is not there: {}", what(), status.message));
            return Ok(None);
        }
        Err(error) => return Err(Failure::Api { what: what(), source: Box::new(error) }),
    };
    let mut end = End { room, text: Vec::new(), cut: false };
    let mut buffer = vec![0; BUFFER];
    loop {
        let read = timeout(SILENCE, source.read(&mut buffer)).await.map_err(|_| silent())?;
        let read = read.map_err(|error| Failure::Unreadable { what: what(), why: error.to_string() })?;
        if read == 0 {
            return Ok(Some(end.into_text()));
        }
        end.add(buffer.get(..read).unwrap_or_default());
    }
}

/// The end of a text that arrives in parts.
struct End {
    room: usize,
    text: Vec<u8>,
    cut: bool,
}

impl End {
    fn add(&mut self, part: &[u8]) {
        self.text.extend_from_slice(part);
        if self.text.len() > 2 * self.room {
            self.shorten();
        }
    }

    fn shorten(&mut self) {
        let surplus = self.text.len().saturating_sub(self.room);
        self.cut |= surplus > 0;
        self.text.drain(..surplus);
    }

    /// Returns the end without a partial first line.
    fn into_text(mut self) -> String {
        self.shorten();
        let line = self.text.iter().position(|byte| *byte == b'\n').filter(|_| self.cut);
        let from = line.map_or(0, |at| at + 1);
        String::from_utf8_lossy(self.text.get(from..).unwrap_or_default()).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_end_of_a_long_text_is_whole_lines_within_its_room() {
        let mut end = End { room: 20, text: Vec::new(), cut: false };
        (0..1_000).for_each(|n| end.add(format!("line {n}\n").as_bytes()));
        assert!(end.text.len() <= 40);
        assert_eq!(end.into_text(), "line 998\nline 999\n");
        let mut short = End { room: 20, text: Vec::new(), cut: false };
        short.add(b"a\nb\n");
        assert_eq!(short.into_text(), "a\nb\n");
    }

    #[test]
    fn no_more_logs_are_wanted_than_have_room() {
        let pod = json!({"metadata": {"name": "p", "namespace": "n"},
            "spec": {"initContainers": [{"name": "i"}], "containers": [{"name": "c"}]}});
        let mut logged = Logged::default();
        logged.add(&pod, true);
        let wanted: Vec<_> = logged.logs.iter().map(|log| (log.container.as_str(), log.previous)).collect();
        assert_eq!(wanted, [("i", false), ("i", true), ("c", false), ("c", true)]);
        (0..MAX_LOGS).for_each(|_| logged.add(&pod, false));
        assert_eq!((logged.logs.len(), logged.left), (MAX_LOGS, MAX_LOGS + 4));
    }
}
