//! `admit serve`, called over TLS by the API server for what the shipped webhook configuration sends.

use std::sync::atomic::{AtomicBool, Ordering};

use super::apiserver::ApiServer;
use super::cluster::{Cluster, said, shipped};

/// Denies in the right words, rotates certificates under load, and is killed and comes back.
pub(super) fn denies_rotates_and_comes_back(api: &ApiServer) {
    let cluster = Cluster::new(api);
    cluster.define();
    let policies = shipped("policies");
    let args = ["--policies", &policies, "--shutdown-delay", "0"];
    let serving = cluster.place.start(&args);
    cluster.register(&serving);
    denies_and_allows(&cluster);
    certificates_change_under_load(&cluster);

    // Killed: what is guarded with `failurePolicy: Fail` is refused, not let through.
    serving.signal("-KILL");
    drop(serving);
    let refused = cluster.dry_run("after-a-kill");
    let said = said(&refused);
    let expected =
        "failed calling webhook \"policies.admit.local\": failed to call webhook: Post \"https://localhost:";
    assert!(!refused.status.success() && said.contains(expected), "{said}");
    assert!(
        said.contains("/enforce?timeout=10s\": dial tcp ") && said.contains(": connect: connection refused"),
        "{said}"
    );
    let serving = cluster.place.start(&args);
    // At another port: what a Service would hide.
    cluster.register(&serving);
    denies_and_allows(&cluster);
    assert!(serving.terminate().success());
    cluster.unregister();
}

/// Also waits for the API server to have learnt of the webhook: a real one takes a moment.
fn denies_and_allows(cluster: &Cluster<'_>) {
    let expected = "The datagathers \"periodic-1\" is invalid: : ValidatingAdmissionPolicy \
                    'datagather-reserved-names' with binding 'datagather-reserved-names' denied request: names with \
                    the prefix periodic are reserved\n";
    // Until then it lets through, or calls where nobody is any more.
    cluster.until(|| said(&cluster.dry_run("periodic-1")), |said| said == expected);
    let allowed = cluster.dry_run("welcome");
    assert!(allowed.status.success(), "{}", said(&allowed));
}

/// New leaves of the same authority, while the API server goes on asking.
fn certificates_change_under_load(cluster: &Cluster<'_>) {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let mut asked = 0;
            while !done.load(Ordering::Relaxed) || asked < 5 {
                let output = cluster.dry_run("meanwhile");
                assert!(output.status.success(), "{}", said(&output));
                asked += 1;
            }
        });
        for _ in 0..3 {
            drop(cluster.place.renew());
            denies_and_allows(cluster);
        }
        done.store(true, Ordering::Relaxed);
        asking.join().unwrap();
    });
}
