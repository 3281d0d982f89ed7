//! Leadership: one at a time, given up before others may take it, never argued about.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use admit::controllers::kit::lease::{Election, Term, lead};
use http::Method;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::support::cluster::FakeCluster;

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/admit/leases";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/admit/leases/controllers";

fn election(identity: &str) -> Election {
    Election::new("admit", "controllers", identity)
}

fn cluster() -> FakeCluster {
    FakeCluster::new(&[LEASES])
}

fn holder(cluster: &FakeCluster) -> String {
    cluster.get(LEASES, "controllers")["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(start_paused = true)]
async fn work_that_ends_gives_the_lease_back() {
    let cluster = cluster();
    let never = CancellationToken::new();
    let work = |_| async { sleep(Duration::from_mins(1)).await };
    assert_eq!(lead(cluster.client(), &election("a"), &never, work).await, Term::Ended(()));
    assert_eq!(holder(&cluster), "");
    let renewals = cluster.count(&Method::PUT, LEASE);
    assert!((25..=31).contains(&renewals), "a renewal every two seconds: {renewals}");
}

#[tokio::test(start_paused = true)]
async fn two_candidates_never_work_at_the_same_time() {
    let cluster = cluster();
    let working = Arc::new(AtomicUsize::new(0));
    let terms = ["a", "b", "c"].map(|identity| {
        let (client, working) = (cluster.client(), Arc::clone(&working));
        async move {
            let never = CancellationToken::new();
            let work = |_| async {
                assert_eq!(working.fetch_add(1, Ordering::SeqCst), 0, "{identity} is not alone");
                sleep(Duration::from_secs(40)).await;
                working.fetch_sub(1, Ordering::SeqCst);
            };
            lead(client, &election(identity), &never, work).await
        }
    });
    assert_eq!(futures::future::join_all(terms).await, [Term::Ended(()), Term::Ended(()), Term::Ended(())]);
}

#[tokio::test(start_paused = true)]
async fn a_silent_holder_is_waited_for_as_long_as_it_asked() {
    let cluster = cluster();
    let held = serde_json::json!({"metadata": {"name": "controllers"},
        "spec": {"holderIdentity": "gone", "leaseDurationSeconds": 15, "leaseTransitions": 4}});
    cluster.put(LEASES, held);
    let started = Instant::now();
    let never = CancellationToken::new();
    let waited = lead(cluster.client(), &election("b"), &never, |_| async { started.elapsed() }).await;
    let Term::Ended(waited) = waited else { panic!("{waited:?}") };
    assert!((15..=17).contains(&waited.as_secs()), "{waited:?}");
    assert_eq!(cluster.get(LEASES, "controllers")["spec"]["leaseTransitions"], 5);
}

#[tokio::test(start_paused = true)]
async fn a_conflict_ends_the_term_and_the_work() {
    let cluster = cluster();
    let never = CancellationToken::new();
    let rival = cluster.clone();
    let started = Instant::now();
    let work = |stop: CancellationToken| async move {
        rival.refuse_once(Method::PUT, LEASE, 409);
        stop.cancelled().await;
    };
    assert_eq!(lead(cluster.client(), &election("a"), &never, work).await, Term::Lost);
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn work_stops_before_an_unreachable_lease_runs_out() {
    let cluster = cluster();
    let never = CancellationToken::new();
    let (server, started) = (cluster.clone(), Instant::now());
    let stopped = Arc::new(std::sync::Mutex::new(None));
    let seen = Arc::clone(&stopped);
    let work = |stop: CancellationToken| async move {
        server.hold(LEASE);
        stop.cancelled().await;
        *seen.lock().unwrap() = Some(started.elapsed());
        // Work that does not listen is dropped in time.
        std::future::pending::<()>().await;
    };
    assert_eq!(lead(cluster.client(), &election("a"), &never, work).await, Term::Lost);
    let told = stopped.lock().unwrap().unwrap();
    assert!(told <= Duration::from_secs(12), "told to stop after {told:?}");
    assert!(started.elapsed() <= Duration::from_secs(15), "dropped after {:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn shutdown_ends_waiting() {
    let cluster = cluster();
    cluster.hold(LEASE);
    let shutdown = CancellationToken::new();
    shutdown.cancel();
    assert_eq!(lead(cluster.client(), &election("a"), &shutdown, |_| async {}).await, Term::NeverLed);
}

#[tokio::test(start_paused = true)]
async fn the_fence_is_open_while_the_lease_is_held() {
    let (cluster, election, never) = (cluster(), election("a"), CancellationToken::new());
    let fence = election.fence.clone();
    let work = |_| async {
        assert!(fence.is_open());
        sleep(Duration::from_mins(1)).await;
        assert!(fence.is_open(), "it was renewed");
    };
    assert!(!election.fence.is_open());
    assert_eq!(lead(cluster.client(), &election, &never, work).await, Term::Ended(()));
    assert!(!election.fence.is_open());
}
