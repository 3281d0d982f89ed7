//! What priming asks of the API server: two requests for each ClusterOperator, and none where nothing is to be done.

use std::sync::{Arc, Mutex};

use admit::controllers::clusteroperator::Settings;
use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::bench::{Bench, Running};
use crate::support::cluster::PATIENCE;

const OPERATORS: usize = 50;
const EVENTS: &str = "POST /apis/events.k8s.io";

#[derive(Clone, Default)]
struct Asked(Arc<Mutex<Vec<String>>>);

impl Asked {
    fn of(&self, start: &str, end: &str) -> usize {
        let asked = self.0.lock().unwrap();
        asked.iter().filter(|line| line.starts_with(start) && line.ends_with(end)).count()
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    /// The server, which takes note of what it is asked.
    fn on(&self, router: Router) -> Router {
        let asked = self.clone();
        router.layer(from_fn(move |request: Request, next: Next| {
            asked.0.lock().unwrap().push(format!("{} {}", request.method(), request.uri().path()));
            next.run(request)
        }))
    }
}

/// Passes that came to their end so far.
pub(super) fn passes(primer: &Running) -> u64 {
    let line = "controller_runtime_reconcile_total{controller=\"clusteroperator\",result=\"success\"} ";
    let metrics = primer.metrics();
    metrics.lines().find_map(|it| it.strip_prefix(line)?.parse().ok()).unwrap_or_default()
}

pub(super) async fn until(what: &str, holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("never {what}"));
}

#[tokio::test]
async fn each_takes_two_requests_and_a_pass_with_nothing_to_do_none() {
    let bench = Bench::new().await;
    (0..OPERATORS).for_each(|number| bench.announce(&format!("o{number}")));
    let asked = Asked::default();
    let primer = Bench::start_unreported_on(asked.on(bench.router()), Settings::new(bench.payload.path()));
    primer.until_counted(&format!("cluster_operator_primed_total{{result=\"primed\"}} {OPERATORS}")).await;
    until("told in an event", || asked.of(EVENTS, "") > 0).await;
    let operators = "/apis/config.openshift.io/v1/clusteroperators";
    // A list, and the watch that follows it.
    until("watched", || asked.of(&format!("GET {operators}"), "") == 2).await;
    assert_eq!(asked.of(&format!("POST {operators}"), ""), OPERATORS);
    assert_eq!(asked.of(&format!("PATCH {operators}"), "/status"), OPERATORS);
    assert_eq!(asked.of(EVENTS, ""), 1, "one event for all of them");
    let reading = asked.of("GET ", "");
    let all = asked.all();
    assert_eq!(all.len(), 2 * OPERATORS + 1 + reading, "{all:?}");
    assert!(reading < 10, "reads are of the definition, a list and a watch: {all:?}");

    for round in 0..3 {
        let before = passes(&primer);
        let labelled = Patch::Merge(json!({"metadata": {"labels": {"round": round.to_string()}}}));
        bench.operators().patch("o0", &PatchParams::default(), &labelled).await.unwrap();
        until("another pass", || passes(&primer) > before).await;
    }
    assert_eq!(asked.all(), all);
    primer.stop().await;
}
