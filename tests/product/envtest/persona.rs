//! What the pair says where it cannot do what it is asked.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use testing::free_port;

use super::harness::Place;

fn told(place: &Place, program: &str, args: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(place.assets.join(program)).args(args).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn the_folder_is_the_same_each_time_and_for_its_owner() {
    let place = Place::new(&[]);
    let cache = place.path("cache");
    let again = Command::new(env!("CARGO_BIN_EXE_admit"))
        .arg("envtest")
        .env("XDG_CACHE_HOME", &cache)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&again.stdout).trim_end(), place.assets.to_str().unwrap());
    assert!(place.assets.starts_with(&cache));
    let mode = std::fs::metadata(&place.assets).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let version = Command::new(place.assets.join("kube-apiserver")).arg("--version").output().unwrap();
    assert!(String::from_utf8_lossy(&version.stdout).contains("v1.36"), "{version:?}");
    let unknown = Command::new(env!("CARGO_BIN_EXE_admit"))
        .args(["envtest", "--controllers", "deployment"])
        .env("XDG_CACHE_HOME", &cache)
        .output()
        .unwrap();
    assert_eq!(unknown.status.code(), Some(2));
    let text = String::from_utf8_lossy(&unknown.stderr);
    assert!(text.contains("\"deployment\" is not in the list of known controllers: "), "{text}");
}

#[test]
fn a_flag_whose_meaning_is_not_built_stops_with_its_name() {
    let place = Place::new(&[]);
    for (program, arg, name) in [
        ("kube-apiserver", "--audit-webhook-mode=batch", "--audit-webhook-mode is a flag"),
        ("kube-apiserver", "--audit-log-format=legacy", "--etcd-servers must be specified"),
        (
            "kube-apiserver",
            "--audit-log-format=xml",
            "--audit-log-format: `xml` is not a format, json or legacy",
        ),
        ("kube-apiserver", "--audit-log-maxage=-1", "--audit-log-maxage: `-1` is not a number of 0 or more"),
        ("kube-apiserver", "--audit-policy-file=none.yaml", "--audit-policy-file: cannot read `none.yaml`"),
        ("kube-apiserver", "--feature-gates=A=true", "--feature-gates: unrecognized feature gate: A"),
        ("kube-apiserver", "--runtime-config=apps/v1beta1", "--runtime-config: apps/v1beta1 is not built"),
        ("kube-apiserver", "--feature-gates=SidecarContainers=true", "--etcd-servers must be specified"),
        ("kube-apiserver", "--runtime-config=api/all=true", "--runtime-config: api/all=true is not built"),
        ("kube-apiserver", "--runtime-config=api/ga=true", "--etcd-servers must be specified"),
        ("kube-apiserver", "-v=4", "--etcd-servers must be specified"),
        ("kube-apiserver", "--profiling=true", "--profiling=true is not built"),
        ("kube-apiserver", "--allow-privileged=false", "--etcd-servers must be specified"),
        ("kube-apiserver", "--allow-privileged=no", "--allow-privileged: `no` is not a bool, true or false"),
        ("kube-apiserver", "--authorization-mode=Node,RBAC", "--etcd-servers must be specified"),
        ("kube-apiserver", "--authorization-mode=Webhook", "--authorization-mode: `Webhook` is not built"),
        (
            "kube-apiserver",
            "--authorization-mode=RBAC,RBAC",
            "--authorization-mode: `RBAC` is given more than once",
        ),
        ("kube-apiserver", "--enable-admission-plugins=NodeRestriction", "--etcd-servers must be specified"),
        ("kube-apiserver", "--enable-admission-plugins=JobValidation", "--etcd-servers must be specified"),
        ("kube-apiserver", "--secure-port=0", "--secure-port: `0` is not a port"),
        ("kube-apiserver", "--bind-address=here", "--bind-address: `here` is not an IP address"),
        ("kube-apiserver", "--no-such-flag", "'--no-such-flag'"),
        ("kube-apiserver", "--allow-privileged", "--etcd-servers must be specified"),
        ("etcd", "-quota-backend-bytes=1", "--quota-backend-bytes is a flag"),
        ("etcd", "--listen-client-urls=https://127.0.0.1:1", "is not spoken here"),
        ("etcd", "--listen-client-urls=http://192.0.2.1:1", "is not of this machine alone"),
        ("etcd", "--initial-cluster=a=http://a,b=http://b", "--initial-cluster: there is one member"),
    ] {
        let (code, text) = told(&place, program, &[arg]);
        assert_eq!(code, Some(2), "{program} {arg}: {text}");
        assert!(text.contains(name), "{program} {arg}: {text}");
    }
}

#[test]
fn a_data_directory_has_one_etcd() {
    let place = Place::new(&[]);
    let port = free_port().unwrap();
    let data = format!("--data-dir={}", place.text("etcd"));
    let listen = |port: u16| format!("--listen-client-urls=http://127.0.0.1:{port}");
    let mut etcd = place.start("etcd", &[data.clone(), listen(port)]);
    etcd.wait_for(port, "/health", false);
    let (code, text) = told(&place, "etcd", &[&data, &listen(free_port().unwrap())]);
    assert_eq!(code, Some(2));
    assert!(text.contains("is used by another etcd"), "{text}");
    assert!(etcd.stop().success());
}
