//! `admit serve`, called over TLS by the API server for what the shipped webhook configuration sends: at a URL, and at the
//! Service that it names as shipped.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use time::OffsetDateTime;

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

/// The configuration, the Service and its certificate are those of the manifests, but that the Service stands for a name of this
/// machine, where nobody forwards what is sent to the address of one.
pub(super) fn is_called_behind_its_service(api: &ApiServer) {
    let cluster = Cluster::new(api);
    cluster.define();
    let names = ["admit.admit-system.svc".to_owned()];
    let leaf = cluster.place.authority.issue_server(&names, OffsetDateTime::now_utc()).unwrap();
    cluster.place.write("tls.crt", &leaf.certificate_pem);
    cluster.place.write("tls.key", &leaf.key_pem);
    let serving = cluster.place.start(&["--policies", &shipped("policies"), "--shutdown-delay", "0"]);
    let port = serving.webhook.port();
    let is_out_of_reach = |why: &str| {
        let expected = format!(
            "Internal error occurred: failed calling webhook \"policies.admit.local\": failed to call webhook: Post \
             \"https://admit.admit-system.svc:{port}/enforce?timeout=10s\": {why}\n"
        );
        cluster.until(|| said(&cluster.dry_run("welcome")), |said| said.ends_with(&expected));
    };
    let delete = || cluster.works(&["delete", "service", "admit", "--namespace=admit-system"]);
    cluster.register_as_shipped(port);
    is_out_of_reach("service \"admit\" not found");

    cluster.works(&["apply", "-f", &shipped("deploy/service.yaml")]);
    is_out_of_reach(&format!("no service port {port} found for service \"admit\""));
    delete();

    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "admit", "namespace": "admit-system"},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    });
    cluster.works(&["apply", "-f", &cluster.file("service.json", &service)]);
    denies_and_allows(&cluster);

    // Over a connection that is open kube-apiserver goes on asking, whatever becomes of the Service.
    assert!(serving.terminate().success());
    delete();
    is_out_of_reach("service \"admit\" not found");
    cluster.unregister();
    cluster.works(&["delete", "service", "admit-metrics", "--namespace=admit-system"]);
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
