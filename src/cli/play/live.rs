//! Reads the state of a server that runs in this process: its decisions, the objects of the five systems as `kubectl get` shows
//! them, and its controllers. It only lists objects, and writes nothing.

use std::sync::Arc;
use std::time::Duration;

use admit_apimachinery::pointer;
use http::Request;
use http::header::ACCEPT;
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};
use thiserror::Error;
use tokio::sync::{Mutex, Semaphore, watch};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::admission::{Decisions, Noted};
use crate::controllers::kit::observe::Observed;
use crate::telemetry::with_causes;

/// Event streams that may be open at a time.
pub(super) const LISTENERS: usize = 16;
/// Objects of each kind that are shown.
const MOST: usize = 50;
/// How long the API server may take for all lists.
const TIME: Duration = Duration::from_secs(10);
/// The `Accept` header that kubectl sends.
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

/// The collections of the five systems.
const COLLECTIONS: [(&str, &str); 5] = [
    ("ClusterOperators", "/apis/config.openshift.io/v1/clusteroperators"),
    ("CyndiPipelines", "/apis/cyndi.cloud.redhat.com/v1alpha1/cyndipipelines"),
    ("DataGathers", "/apis/insights.openshift.io/v1alpha1/datagathers"),
    ("MustGathers", "/apis/operator.openshift.io/v1alpha1/mustgathers"),
    ("ObservabilityAddons", "/apis/observability.open-cluster-management.io/v1beta1/observabilityaddons"),
];

/// Why there is no snapshot.
#[derive(Debug, Error)]
pub(super) enum LookError {
    #[error("the API server did not list the objects within {} s; try again", TIME.as_secs())]
    TimedOut,
    #[error(transparent)]
    Request(#[from] http::Error),
    #[error("cannot list {title}: {}", with_causes(.error))]
    List { title: &'static str, error: kube::Error },
}

/// The parts of a server that are shown.
#[derive(Clone)]
pub(in crate::cli) struct Live {
    decisions: Decisions,
    client: Client,
    controllers: Observed,
    /// Serializes the listing, however many pages are open.
    turn: Arc<Mutex<()>>,
    /// The newest snapshot, shared by all event streams.
    newest: Arc<Mutex<Option<Look>>>,
    /// Permits for event streams.
    pub(super) places: Arc<Semaphore>,
    /// Ends all event streams when cancelled.
    pub(super) stop: CancellationToken,
}

/// A snapshot as a JSON document.
struct Look {
    at: Instant,
    /// The number of decisions when it was taken.
    decisions: u64,
    seen: Arc<str>,
}

impl Live {
    /// Creates a view of a server; `client` must be allowed to list the objects.
    pub(in crate::cli) fn new(decisions: Decisions, client: Client, controllers: Observed) -> Self {
        Self {
            decisions,
            client,
            controllers,
            turn: Arc::default(),
            newest: Arc::default(),
            places: Arc::new(Semaphore::new(LISTENERS)),
            stop: CancellationToken::new(),
        }
    }

    /// Ends all event streams when `stop` is cancelled.
    pub(super) fn until(self, stop: CancellationToken) -> Self {
        Self { stop, ..self }
    }

    /// Returns the number of decisions, which notifies about changes.
    pub(super) fn decided(&self) -> watch::Receiver<u64> {
        self.decisions.count()
    }

    /// Returns the cached snapshot if it is younger than `age` and no decision was made since; otherwise takes a new one.
    ///
    /// # Errors
    /// As [`Self::seen`].
    pub(super) async fn newest(&self, age: Duration) -> Result<Arc<str>, LookError> {
        let decisions = *self.decisions.count().borrow();
        let mut newest = self.newest.lock().await;
        let is_new = |look: &&Look| look.decisions == decisions && look.at.elapsed() < age;
        if let Some(look) = newest.as_ref().filter(is_new) {
            return Ok(Arc::clone(&look.seen));
        }
        let at = Instant::now();
        let seen: Arc<str> = self.seen().await?.to_string().into();
        *newest = Some(Look { at, decisions, seen: Arc::clone(&seen) });
        Ok(seen)
    }

    /// `{"decisions", "objects", "controllers"}`, as it is now.
    ///
    /// # Errors
    /// Why the API server did not answer.
    pub(super) async fn seen(&self) -> Result<Value, LookError> {
        let looking = async {
            let _turn = self.turn.lock().await;
            let mut objects = Vec::new();
            for (title, path) in COLLECTIONS {
                objects.extend(self.listed(title, path).await?);
            }
            Ok::<_, LookError>(objects)
        };
        let objects = timeout(TIME, looking).await.map_err(|_| LookError::TimedOut)??;
        Ok(json!({
            "decisions": self.decisions.newest().iter().map(decision).collect::<Vec<_>>(),
            "objects": objects,
            "controllers": self.controllers.controllers(),
        }))
    }

    /// A table of the objects of a kind; none where the kind is not served.
    async fn listed(&self, title: &'static str, path: &str) -> Result<Option<Value>, LookError> {
        let request = Request::get(format!("{path}?limit={MOST}&includeObject=Object"))
            .header(ACCEPT, TABLE)
            .body(Vec::new())?;
        match self.client.request::<Value>(request).await {
            Ok(table) => Ok(Some(shown(title, &table))),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(LookError::List { title, error }),
        }
    }
}

/// The columns that kubectl shows without `-o wide`, the namespace before them, and the conditions behind.
fn shown(title: &str, table: &Value) -> Value {
    let list = |pointer: &str| pointer::items(table, pointer);
    let columns = list("/columnDefinitions");
    let is_narrow = |column: &Value| column.get("priority").and_then(Value::as_i64).unwrap_or_default() == 0;
    let names = columns.iter().filter(|column| is_narrow(column)).filter_map(|column| column.get("name"));
    let head: Vec<Value> =
        [json!("Namespace")].into_iter().chain(names.cloned()).chain([json!("Conditions")]).collect();
    let row = |row: &Value| -> Vec<Value> {
        let namespace = row.pointer("/object/metadata/namespace").cloned().unwrap_or_else(|| json!(""));
        let cells = row.get("cells").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let narrow =
            columns.iter().zip(cells).filter(|(column, _)| is_narrow(column)).map(|(_, cell)| text(cell));
        let conditions = conditions(row.pointer("/object/status/conditions"));
        [namespace].into_iter().chain(narrow.map(Value::from)).chain([conditions.into()]).collect()
    };
    let rows: Vec<Vec<Value>> = list("/rows").iter().map(row).collect();
    let more = table.pointer("/metadata/remainingItemCount").and_then(Value::as_u64).unwrap_or_default();
    json!({"title": title, "columns": head, "rows": rows, "more": more})
}

/// Type, status and reason of each, as `Available=True (AsExpected)`.
fn conditions(list: Option<&Value>) -> String {
    let one = |condition: &Value| {
        let field = |name| condition.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        match (field("type"), field("status"), field("reason")) {
            (name, status, reason) if reason.is_empty() => format!("{name}={status}"),
            (name, status, reason) => format!("{name}={status} ({reason})"),
        }
    };
    let list = list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    list.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn text(cell: &Value) -> String {
    match cell {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => cell.to_string(),
    }
}

fn decision(noted: &Noted) -> Value {
    let Noted { number, at, operation, resource, namespace, name, user, allowed, warnings, why } = noted;
    let at = Timestamp::try_from(*at).map(|at| format!("{at:.0}")).unwrap_or_default();
    let slash = if namespace.is_empty() { "" } else { "/" };
    json!({
        "number": number, "at": at, "operation": operation, "resource": resource,
        "object": format!("{namespace}{slash}{name}"), "user": user,
        "outcome": if *allowed { "admitted" } else { "denied" }, "warnings": warnings, "why": why,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_those_of_kubectl_with_conditions() {
        let table = json!({
            "columnDefinitions": [
                {"name": "Name", "priority": 0}, {"name": "State", "priority": 0}, {"name": "Wide", "priority": 1},
            ],
            "rows": [
                {"cells": ["a", null, "w"], "object": {"metadata": {"namespace": "n"}, "status": {"conditions": [
                    {"type": "Available", "status": "True", "reason": "AsExpected"}, {"type": "Odd", "status": "Unknown"},
                ]}}},
                {"cells": ["b", true, "w"]},
            ],
            "metadata": {"remainingItemCount": 3},
        });
        let expected = json!({
            "title": "Cats", "columns": ["Namespace", "Name", "State", "Conditions"], "more": 3,
            "rows": [["n", "a", "", "Available=True (AsExpected), Odd=Unknown"], ["", "b", "true", ""]],
        });
        assert_eq!(shown("Cats", &table), expected);
    }
}
