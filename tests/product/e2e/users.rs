//! What users see at their prompts: the README's tour, and the plugin of kubectl.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use super::apiserver::ApiServer;
use super::cluster::{Cluster, data_gather, said, shipped};
use super::controllers::Replica;
use crate::running::Workplace;
use crate::tour::{marked, played};

/// As the README has it, with the parts of `admit up` as processes of their own beside the API server. Jobs are not run here: there
/// is no node.
pub(super) fn the_tour_is_the_same(api: &ApiServer) {
    let cluster = Cluster::new(api);
    cluster.define();
    let place = Workplace::new();
    fs::create_dir_all(place.path().join(".admit/archives")).unwrap();
    fs::copy(api.kubeconfig(), place.kubeconfig()).unwrap();
    let serving = cluster.place.start(&["--policies", &shipped("policies"), "--shutdown-delay", "0"]);
    cluster.register(&serving);
    cluster.convert_by(&serving);
    let kubeconfig = cluster.as_account("admit-controllers", &shipped("deploy/rbac.yaml"));
    let archives = place.path().join(".admit/archives").display().to_string();
    let replica = Replica::start(&cluster, &kubeconfig, &archives, &[]);
    cluster.until(|| said(&cluster.dry_run("periodic")), |said| said.contains("names with the prefix"));
    let wrong = played(&place, &marked("tour"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    replica.terminated();
    cluster.convert_no_longer();
    assert!(serving.terminate().success());
    cluster.unregister();
}

/// `kubectl admit check` decides on what `kubectl get` prints, managed fields, uid and all.
pub(super) fn the_plugin_takes_live_objects(api: &ApiServer) {
    let cluster = Cluster::new(api);
    cluster.define();
    let bin = cluster.place.path("bin");
    fs::create_dir(&bin).unwrap();
    symlink(env!("CARGO_BIN_EXE_admit"), bin.join("kubectl-admit")).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let (policies, definitions) = (shipped("policies"), shipped("deploy/crds"));
    let check = |args: &[&str]| {
        let mut command = Command::new("kubectl");
        command.args(["admit", "check", "--policies", &policies, "--policies", &definitions]).args(args);
        command.env("PATH", &path).current_dir(cluster.place.path(".")).output().unwrap()
    };

    cluster.works(&["create", "-f", &cluster.file("live.json", &data_gather("live"))]);
    let live = cluster.works(&["get", "datagather", "live", "--output=yaml", "--show-managed-fields"]);
    cluster.place.write("live.yaml", &live);
    let unchanged = check(&["-f", "live.yaml", "--old", "live.yaml"]);
    assert!(unchanged.status.success(), "{}{}", String::from_utf8_lossy(&unchanged.stdout), said(&unchanged));

    let changed = live.replace("spec: {}", "spec: {dataPolicy: ClearText}");
    assert_ne!(changed, live);
    cluster.place.write("changed.yaml", &changed);
    let denied = check(&["-f", "changed.yaml", "--old", "live.yaml"]);
    let told = String::from_utf8_lossy(&denied.stdout);
    assert!(denied.status.code() == Some(1) && told.contains("spec is immutable"), "{told}{}", said(&denied));
    cluster.works(&["delete", "datagather", "live"]);
}
