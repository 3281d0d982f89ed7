//! What an operator does wrong, or by habit, and what `admit serve` says and does then.

use std::fs;
use std::net::TcpListener;
use std::process::Stdio;

use serde_json::json;
use time::{Duration, OffsetDateTime};

use super::server::{Place, policy, review};
use crate::support::https::Client;

/// A kubeconfig whose certificate has gone.
const KEYLESS: &str = "\
apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}]
users: [{name: a, user: {client-certificate: gone.crt, client-key: gone.key}}]
contexts: [{name: a, context: {cluster: a, user: a}}]
current-context: a
";

type Flags = Vec<&'static str>;

/// The flags of a certificate and its key.
fn pair(certificate: &'static str, key: &'static str) -> Flags {
    vec!["--tls-cert", certificate, "--tls-key", key]
}

/// Those of a pair that can be used, and more.
fn good(more: &[&'static str]) -> Flags {
    [pair("tls.crt", "tls.key"), more.to_vec()].concat()
}

/// Flags, and what is said of them.
fn mistakes() -> Vec<(Flags, &'static [&'static str])> {
    vec![
        (vec![], &["--tls-cert and --tls-key, or --self-signed, are needed"]),
        (pair("none.crt", "tls.key"), &["--tls-cert: cannot read `none.crt`: No such file"]),
        (pair("tls.crt", "none.key"), &["--tls-key: cannot read `none.key`: No such file"]),
        (pair("policies", "tls.key"), &["--tls-cert: cannot read `policies`", "directory"]),
        (pair("empty", "tls.key"), &["--tls-cert: `empty` holds no certificate", "give the certificate"]),
        (pair("tls.key", "tls.key"), &["--tls-cert: `tls.key` holds no certificate"]),
        (pair("binary", "tls.key"), &["`binary`"]),
        (pair("tls.crt", "tls.crt"), &["--tls-key: `tls.crt` holds no private key", "give the key"]),
        (pair("tls.crt", "other.key"), &["`tls.crt` and `other.key` are no pair", "give the key"]),
        (pair("old.crt", "old.key"), &["--tls-cert: `old.crt` expired on 20", "put a new certificate"]),
        (good(&["--client-ca", "empty"]), &["--client-ca: `empty` holds no authority of clients"]),
        (good(&["--client-ca", "tls.key"]), &["--client-ca: `tls.key` holds no authority of clients"]),
        (good(&["--client-ca", "none"]), &["--client-ca: cannot read `none`: No such file"]),
        (good(&["--policies", "nowhere"]), &["`nowhere`", "No such file"]),
        (good(&["--policies", "large.yaml"]), &["`large.yaml`: more than 16777216 bytes are too many"]),
        (
            good(&["--kubeconfig", "none"]),
            &["kubeconfig `none`", "No such file", "another with --kubeconfig"],
        ),
        (good(&["--kubeconfig", "empty"]), &["kubeconfig `empty`", "another with --kubeconfig"]),
        (good(&["--kubeconfig", "keyless"]), &["kubeconfig `keyless`", "gone.crt", "--kubeconfig"]),
        (good(&["--in-cluster"]), &["no Pod of a cluster", "name a kubeconfig with --kubeconfig"]),
        (good(&["--otlp-endpoint", "nonsense"]), &["--otlp-endpoint: `nonsense`", "http://HOST:4318"]),
        (
            good(&["--cluster-policies", "--policies", "policies"]),
            &["--cluster-policies needs --kubeconfig or --in-cluster"],
        ),
        (good(&["--listen", "192.0.2.1:1"]), &["cannot listen on 192.0.2.1:1", "with --listen"]),
    ]
}

/// One line that names the flag or the file, and what to do.
#[test]
fn mistakes_at_the_start_are_one_line_that_helps() {
    let place = Place::new();
    place.write("policies/a.yaml", &policy("a", "true"));
    let now = OffsetDateTime::now_utc();
    let names = ["localhost".to_owned()];
    let old = place.authority.issue_server(&names, now - Duration::days(3 * 365)).unwrap();
    place.write("old.crt", &old.certificate_pem);
    place.write("old.key", &old.key_pem);
    place.write("other.key", &place.authority.issue_server(&names, now).unwrap().key_pem);
    place.write("empty", "");
    fs::write(place.path("binary"), [0xff, 0xfe, 0, 1]).unwrap();
    fs::File::create(place.path("large.yaml")).unwrap().set_len(100 << 20).unwrap();
    place.write("keyless", KEYLESS);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();

    for (args, wanted) in mistakes() {
        let output = place.command(&args).stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.lines().count() == 1 && said.starts_with("admit: "), "{args:?}: {said}");
        assert!(wanted.iter().all(|text| said.contains(text)), "{args:?}: {wanted:?} in {said}");
    }
    let output = place.fails(&["--observe-listen", &taken]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("stop what listens there, or choose another address with --observe-listen"),
        "{said}"
    );
}

/// What the parser of the flags says is more than a line, and begins with what is wrong.
#[test]
fn what_flags_cannot_mean_is_told_with_the_flag() {
    let place = Place::new();
    for (args, wanted) in [
        (good(&["--timeout", "0"]), "invalid value '0' for '--timeout <SECONDS>'"),
        (
            good(&["--listen", "localhost:8443"]),
            "invalid value 'localhost:8443' for '--listen <ADDRESS>': an IP address and a port are needed",
        ),
        (good(&["--ca-out", "bundle.pem"]), "'--ca-out <FILE>'"),
        (good(&["--client-subject", "me"]), "--client-ca <FILE>"),
        (
            vec!["--self-signed", "--service-name", "Bad Name"],
            "invalid value 'Bad Name' for '--service-name <NAME>'",
        ),
        (
            vec!["--self-signed", "--tls-cert", "tls.crt"],
            "'--self-signed' cannot be used with '--tls-cert <FILE>'",
        ),
        (vec!["--tls-cert", "tls.crt"], "--tls-key <FILE>"),
    ] {
        let output = place.command(&args).stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code() == Some(2) && said.starts_with("error: ") && said.contains(wanted),
            "{args:?}: {said}"
        );
    }
}

/// A key that others own cannot be read, unless the tests run as root, who can read everything.
#[test]
fn a_key_of_somebody_else_is_told_of() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    fs::set_permissions(place.path("tls.key"), fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(place.path("tls.key")).is_ok() {
        return testing::skip(testing::Need::Other, "this user can read every file");
    }
    let output = place.fails(&[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.starts_with("admit: --tls-key: cannot read `tls.key`: Permission denied"), "{said}");
}

/// A folder that has lost everything is more likely a mount that went wrong than an author's wish.
#[tokio::test(flavor = "multi_thread")]
async fn an_emptied_folder_takes_nothing_out_of_force() {
    let place = Place::new();
    place.write("policies/a.yaml", &policy("a", "false"));
    let serving = place.start(&[]);
    fs::remove_file(place.path("policies/a.yaml")).unwrap();
    let failed = "admit_reloads_total{part=\"policies\",result=\"failure\"} 1\n";
    serving.until("/metrics", |metrics| metrics.contains(failed)).await;
    let mut client = Client::connect(serving.webhook, &place.tls()).await.unwrap();
    let answered = client.post("/validate", review("u", &json!({}))).await.unwrap();
    assert_eq!(answered.json()["response"]["allowed"], false);
    // Counted first and told then.
    let told = "`policies` holds no policies and no definitions any more; restart to enforce none";
    serving.log_until(|log| log.contains(told));
}

/// Whoever wants nothing enforced may; whoever named the wrong folder reads why nothing is.
#[test]
fn an_empty_folder_is_served_and_told_of() {
    let place = Place::new();
    fs::create_dir_all(place.path("policies")).unwrap();
    let serving = place.start(&[]);
    serving.log_until(|log| log.contains("there are no policies and no definitions: everything is allowed"));
}

/// By habit: SIGHUP to have files read again. It ends nothing, and is not needed.
#[tokio::test(flavor = "multi_thread")]
async fn hanging_up_ends_nothing() {
    let place = Place::new();
    place.write("policies/a.yaml", &policy("a", "false"));
    let serving = place.start(&["--shutdown-delay", "0"]);
    serving.signal("-HUP");
    serving.log_until(|log| log.contains("files are looked at"));
    assert_eq!(serving.observed("/readyz").await.0, 200);
    assert!(serving.terminate().success());
}

/// Whoever collected the log has gone: requests are decided as before, and SIGTERM is heard.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_nobody_reads_changes_no_answer() {
    let place = Place::new();
    place.write("policies/a.yaml", &policy("a", "false"));
    let serving = place.start_unheard(&["--shutdown-delay", "0"]);
    let mut client = Client::connect(serving.webhook, &place.tls()).await.unwrap();
    for _ in 0..3 {
        let answered = client.post("/validate", review("u", &json!({}))).await.unwrap();
        assert_eq!(answered.json()["response"]["status"]["code"], 422, "{}", answered.text());
    }
    drop(client);
    let (_, metrics) = serving.observed("/metrics").await;
    assert!(metrics.contains("admit_panics_total 0\n"), "{metrics}");
    assert!(serving.terminate().success());
}
