//! What `ObfuscateNetworking` hides without a flag: the names and networks that the cluster itself tells.

use http::Method;
use serde_json::{Value, json};

use super::runs::{Bench, condition, entry, message};
use crate::support::cluster::FakeCluster;

const DNSES: &str = "/apis/config.openshift.io/v1/dnses";
const INFRASTRUCTURES: &str = "/apis/config.openshift.io/v1/infrastructures";
const NETWORKS: &str = "/apis/config.openshift.io/v1/networks";
const SUBNETS: &str = "/apis/network.openshift.io/v1/hostsubnets";
const SECRETS: &str = "/api/v1/namespaces/openshift-insights/secrets";
const CONFIG_MAPS: &str = "/api/v1/namespaces/kube-system/configmaps";
const ADDRESSES: &str =
    "https://api.corp.example:6443 console.apps.corp.example 10.128.7.7 172.30.0.9 10.0.3.3 192.0.2.1";

fn bench() -> Bench {
    let served = [DNSES, INFRASTRUCTURES, NETWORKS, SUBNETS, SECRETS];
    let bench = Bench { cluster: FakeCluster::new(&served), ..Bench::new() };
    let map = |name: &str, key: &str, text: &str| json!({"metadata": {"name": name, "namespace": "kube-system"}, "data": {key: text}});
    bench.cluster.put(CONFIG_MAPS, map("seen", "text", ADDRESSES));
    bench.cluster.put(
        CONFIG_MAPS,
        map("cluster-config-v1", "install-config", "machineNetwork:\n- cidr: 10.0.0.0/16\n"),
    );
    bench
}

fn tell_names(bench: &Bench) {
    let cluster = |mut object: Value| {
        object["metadata"] = json!({"name": "cluster"});
        object
    };
    bench.cluster.put(DNSES, cluster(json!({"spec": {"baseDomain": "corp.example"}})));
    let url = json!({"status": {"apiServerURL": "https://api.corp.example:6443"}});
    bench.cluster.put(INFRASTRUCTURES, cluster(url));
    let networks =
        json!({"clusterNetwork": [{"cidr": "10.128.0.0/14"}], "serviceNetwork": ["172.30.0.0/16"]});
    bench.cluster.put(NETWORKS, cluster(json!({"spec": networks})));
}

async fn gathered(bench: &Bench, state: &str) -> Value {
    bench.ask("first", &json!({"dataPolicy": "ObfuscateNetworking"}));
    bench.until_state("first", state).await
}

fn seen(bench: &Bench) -> String {
    let archive = bench.dir.path().join("archives").join(&bench.archives()[0]);
    entry(&archive, "config/configmaps/kube-system/seen/text")
}

#[tokio::test]
async fn names_and_networks_that_the_cluster_tells_are_hidden() {
    let bench = bench();
    tell_names(&bench);
    let controller = bench.start();
    let status = gathered(&bench, "Completed").await;
    assert_eq!(condition(&status, "DataRecorded"), "True/AsExpected");
    assert_eq!(
        seen(&bench),
        "https://<CLUSTER_DOMAIN_HOST>:6443 console.apps.<CLUSTER_BASE_DOMAIN> 10.128.0.1 172.30.0.1 10.0.0.1 0.0.0.0"
    );
    controller.stop().await;
}

#[tokio::test]
async fn a_cluster_without_a_name_says_so_and_flags_give_one() {
    let bench = bench();
    let controller = bench.start();
    let status = gathered(&bench, "Completed").await;
    assert_eq!(condition(&status, "DataRecorded"), "True/NamesUnknown");
    assert!(message(&status, "DataRecorded").contains("--base-domain"), "{status:#}");
    controller.stop().await;

    let bench = self::bench();
    let mut settings = bench.settings();
    settings.obfuscation.base_domain = Some("corp.example".to_owned());
    // What configures a name does not need what the cluster would say.
    bench.cluster.refuse_once(Method::GET, &format!("{DNSES}/cluster"), 403);
    let controller = bench.start_with(settings);
    let status = gathered(&bench, "Completed").await;
    assert_eq!(condition(&status, "DataRecorded"), "True/AsExpected");
    assert!(seen(&bench).starts_with("https://api.<CLUSTER_BASE_DOMAIN>:6443 "), "{}", seen(&bench));
    controller.stop().await;
}

/// There may be a name, and an archive would show it.
#[tokio::test]
async fn names_that_cannot_be_read_end_the_gathering() {
    for code in [403, 500] {
        let bench = bench();
        tell_names(&bench);
        bench.cluster.refuse_once(Method::GET, &format!("{DNSES}/cluster"), code);
        let controller = bench.start();
        let status = gathered(&bench, "Failed").await;
        assert_eq!(condition(&status, "DataRecorded"), "False/RecordingFailed");
        let told = message(&status, "DataRecorded");
        let start =
            "Failed to record data: cannot read the DNS `cluster` of config.openshift.io/v1: Injected;";
        assert!(told.starts_with(start), "{told}");
        assert_eq!(bench.archives(), Vec::<String>::new());
        controller.stop().await;
    }
}
