//! Creations that are refused, and operators that report while they are primed (CO §8).

use admit::controllers::clusteroperator::crd::ClusterOperator;
use admit::controllers::clusteroperator::wait::until_well;
use admit::controllers::clusteroperator::{Settings, member};
use admit::controllers::kit::manager::Manager;
use axum::body::Body;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use http::Method;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use kube::runtime::wait::await_condition;
use serde_json::{Value, json};

use super::bench::{Bench, available};
use crate::soak::{percent, scaled};
use crate::support::cluster::PATIENCE;
use crate::support::crashes::everywhere;
use crate::support::refusing::refusing;
use crate::support::reliability::Row;
use crate::support::shipped::api;
use crate::support::testcluster::{Moment, TestCluster};

/// A policy that lets nobody create the ClusterOperator `name`.
pub(super) fn refused(name: &str) -> [Value; 2] {
    let expression = format!("object.metadata.name != '{name}'");
    refusing("config.openshift.io", "clusteroperators", "CREATE", &expression)
}

#[tokio::test]
async fn co_08_03_one_that_is_refused_keeps_no_other_and_is_tried_again() {
    let bench = Bench::new().await;
    for document in refused("dns") {
        bench.create(&document).await;
    }
    ["dns", "ingress", "network"].iter().for_each(|name| bench.announce(name));
    let primer = bench.start();
    for name in ["ingress", "network"] {
        bench.until_primed(name).await;
    }
    primer.until_counted("cluster_operator_primed_total{result=\"error\"} 1").await;
    assert_eq!(bench.operators().get_opt("dns").await.unwrap(), None);
    let group = "admissionregistration.k8s.io/v1";
    let bindings = api(&bench.admin, group, "ValidatingAdmissionPolicyBinding");
    bindings.delete("refusing", &DeleteParams::default()).await.unwrap();
    bench.until_primed("dns").await;
    primer.stop().await;
}

/// The operator is quicker than the second of the primer's two writes.
#[tokio::test]
async fn co_08_04_who_reports_between_creation_and_status_is_left_alone() {
    let bench = Bench::new().await;
    let operators = bench.operators();
    let router = bench.router().layer(from_fn(move |request: Request<Body>, next: Next| {
        let operators = operators.clone();
        async move {
            let creates =
                *request.method() == Method::POST && request.uri().path().ends_with("/clusteroperators");
            let answer = next.run(request).await;
            if creates {
                let report = Patch::Merge(json!({"status": available()}));
                operators.patch_status("dns", &PatchParams::default(), &report).await.unwrap();
            }
            answer
        }
    }));
    bench.announce("dns");
    let settings = Settings::new(bench.payload.path());
    let primer = Bench::start_on(router, settings);
    primer.until_counted("cluster_operator_primed_total{result=\"conflict\"} 1").await;
    let reported = bench.operators().get("dns").await.unwrap();
    assert_eq!(reported.condition("Available"), Some("True"));
    assert_eq!(json!(reported.status), available());
    primer.stop().await;
}

/// All are primed once, whenever the primer dies.
#[tokio::test(flavor = "multi_thread")]
async fn co_08_05_a_primer_that_dies_at_any_write_is_followed_by_one_that_ends_the_work() {
    let points = everywhere(async |number, moment| dies_at(number, moment, 0).await).await;
    assert!(points >= 6, "{points}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes: scripts/soak runs it"]
async fn row_34_primers_at_full_length() {
    let mut row = Row::full(34, "primers of ClusterOperators, dead at each write", percent());
    let (seeds, mut points) = (scaled(20), 0);
    for seed in 1..=u64::try_from(seeds).unwrap() {
        points = everywhere(async |number, moment| dies_at(number, moment, seed).await).await.max(points);
    }
    row.measured(json!({"pointsOfPrimers": points, "moments": 2, "seeds": seeds, "unprimed": 0}));
}

/// In the order of requests that `seed` makes of them; 0 leaves it alone.
async fn dies_at(number: usize, moment: Moment, seed: u64) -> Option<String> {
    let cluster = TestCluster::new().await;
    let payload = tempfile::tempdir().unwrap();
    let names = ["dns", "ingress", "network"];
    for name in names {
        let text = super::bench::manifest(name).to_string();
        std::fs::write(payload.path().join(format!("{name}.json")), text).unwrap();
    }
    let operators: Api<ClusterOperator> = Api::all(cluster.admin.clone());
    let over = async {
        for name in names {
            let primed = |found: Option<&ClusterOperator>| {
                found.is_some_and(|found| found.condition("Degraded") == Some("Unknown"))
            };
            let waiting = await_condition(operators.clone(), name, primed);
            tokio::time::timeout(PATIENCE, waiting).await.unwrap().unwrap();
        }
    };
    let work = |client: kube::Client| {
        let settings = Settings::new(payload.path());
        async move {
            let primer = member(client.clone(), settings).unwrap();
            let manager = Manager::new(client, None).reports(false).with(primer);
            manager.run(tokio_util::sync::CancellationToken::new()).await.unwrap();
        }
    };
    let mut over = std::pin::pin!(over);
    let (first, next) = (cluster.process("admit-clusteroperator"), cluster.process("admit-clusteroperator"));
    if seed > 0 {
        first.wire.shuffle(seed);
    }
    first.wire.crash_at(number, moment);
    let lived = first.until_death(work(first.client.clone()), &mut over).await;
    if lived.is_none() {
        next.until_death(work(next.client.clone()), &mut over).await.unwrap();
    }
    let at = first.wire.writes().get(number).cloned();
    let there = operators.list(&ListParams::default()).await.unwrap().items.len();
    assert_eq!(there, names.len(), "dead {moment:?} {at:?}");
    for process in [&first, &next] {
        assert_eq!(process.wire.denied(), Vec::<String>::new(), "dead {moment:?} {at:?}");
    }
    at
}

#[tokio::test]
async fn co_09_02_what_is_excluded_is_neither_made_nor_waited_for() {
    let bench = Bench::new().await;
    bench.announce("dns");
    let mut excluded = super::bench::manifest("other");
    excluded["metadata"]["annotations"] =
        json!({"capability.openshift.io/name": "Off", "release.openshift.io/delete": "true"});
    bench.write("9.json", &excluded.to_string());
    let primer = bench.start();
    bench.until_primed("dns").await;
    bench.report("dns", available()).await;
    let settings = Settings::new(bench.payload.path());
    let waiting = until_well(bench.admin.clone(), &settings, false, |_| {});
    let report = tokio::time::timeout(PATIENCE, waiting).await.unwrap().unwrap();
    assert_eq!(report.verdicts.len(), 1);
    assert_eq!(bench.operators().get_opt("other").await.unwrap(), None);
    primer.stop().await;
}
