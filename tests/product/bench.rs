//! `admit bench` against a running webhook: it counts what it asked, and says what failed. And the scripts that make the
//! figures of the webhook: that they run, and say something; what they measure here counts for nothing.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::output_schemas::schema;
use crate::repository::root;
use crate::serve::server::{Place, Serving};
use crate::support::json_schema::complaints;
use crate::support::postgres;
use crate::support::sshd::{Sshd, Wanted};
use crate::tour::has_kubectl;

/// Names that start with `periodic` are for the operator.
const DENIED: &str = r#"
apiVersion: admission.k8s.io/v1
kind: AdmissionReview
request:
  kind: &kind {group: insights.openshift.io, version: v1alpha1, kind: DataGather}
  requestKind: *kind
  resource: &resource {group: insights.openshift.io, version: v1alpha1, resource: datagathers}
  requestResource: *resource
  name: periodic-1
  operation: CREATE
  userInfo: {username: someone}
  object:
    apiVersion: insights.openshift.io/v1alpha1
    kind: DataGather
    metadata: {name: periodic-1}
    spec: {}
  oldObject: null
  dryRun: false
  options: {apiVersion: meta.k8s.io/v1, kind: CreateOptions}
"#;

/// The shipped policies, served.
fn serving(place: &Place) -> Serving {
    place.start(&["--policies", root().join("policies").to_str().unwrap()])
}

fn url(serving: &Serving, path: &str) -> String {
    format!("https://{}{path}", serving.webhook)
}

fn authority(place: &Place) -> String {
    place.path("ca/ca.crt").display().to_string()
}

fn bench(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_admit")).arg("bench").args(args).output().unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// A report, which follows its schema.
fn report(output: &Output) -> Value {
    let report = json(output);
    assert_eq!(complaints(&schema("bench"), &report), Vec::<String>::new());
    report
}

#[test]
fn every_request_is_counted_and_answered() {
    let place = Place::new();
    let serving = serving(&place);
    let (url, authority) = (url(&serving, "/validate"), authority(&place));
    let output = bench(&[&url, "--ca", &authority, "-n", "500", "-c", "7", "-o", "json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let figures = report(&output);
    assert_eq!((&figures["requests"], &figures["allowed"]), (&500.into(), &500.into()), "{figures}");
    assert_eq!(figures["connections"], 7, "{figures}");
    let latency = |name: &str| figures["latencyMs"][name].as_f64().unwrap();
    let names = ["min", "p50", "p90", "p99", "p99.9", "max"];
    let sorted = names.map(latency);
    assert!(sorted.is_sorted() && sorted[0] > 0.0, "{figures}");

    // A review that is denied is an answer too.
    let review = place.path("review.yaml");
    fs::write(&review, DENIED).unwrap();
    let file = review.display().to_string();
    let figures = report(&bench(&[&url, "--ca", &authority, "-n", "20", "-f", &file, "-o", "json"]));
    assert_eq!((&figures["denied"], &figures["failed"]), (&20.into(), &0.into()), "{figures}");
}

#[test]
fn a_rate_is_kept_and_time_ends_a_run() {
    let place = Place::new();
    let serving = serving(&place);
    let (url, authority) = (url(&serving, "/validate"), authority(&place));
    let output =
        bench(&[&url, "--ca", &authority, "--duration", "1", "--rate", "50", "-c", "2", "-o", "json"]);
    let figures = report(&output);
    // The requests that are due within the second, whatever the machine is busy with.
    assert_eq!(figures["requests"], 50, "{figures}");
}

/// Each attempt takes the whole `--timeout` here, so that one connection starts two at the most in the time.
#[test]
fn what_cannot_be_started_within_the_time_is_told_and_not_waited_for() {
    // Takes connections, and never says a word.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/validate", silent.local_addr().unwrap());
    let output = bench(&[&url, "-d", "1", "--rate", "50", "-c", "1", "--timeout", "1", "-o", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let figures = report(&output);
    assert_eq!((&figures["requests"], &figures["failed"]), (&50.into(), &50.into()), "{figures}");
    assert!(figures["failures"]["not started"].as_u64().is_some_and(|count| count >= 48), "{figures}");
}

#[test]
fn what_fails_is_named() {
    let place = Place::new();
    let serving = serving(&place);
    let authority = authority(&place);
    let output = bench(&[&url(&serving, "/nothing"), "--ca", &authority, "-n", "10"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("  10 status 404\n"), "{text}");

    // Whoever is not trusted is not asked.
    let stranger = tempfile::tempdir().unwrap();
    let made =
        Command::new(env!("CARGO_BIN_EXE_admit")).args(["certs", "--out"]).arg(stranger.path()).output();
    assert!(made.unwrap().status.success());
    let other = stranger.path().join("ca.crt").display().to_string();
    let figures = report(&bench(&[&url(&serving, "/validate"), "--ca", &other, "-n", "4", "-o", "json"]));
    assert_eq!(figures["failures"], serde_json::json!({"connect": 4}), "{figures}");
    let output = bench(&[&url(&serving, "/validate"), "--ca", &other, "-n", "4"]);
    let said = String::from_utf8_lossy(&output.stderr);
    let why = "4 of 4 requests failed; no connection to `https://";
    assert!(said.contains(why) && said.contains(": invalid peer certificate: "), "{said}");
}

/// Nothing is posted then.
#[test]
fn what_cannot_be_measured_is_told_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.pem").display().to_string();
    fs::write(&empty, "").unwrap();
    let url = "https://127.0.0.1:1/validate";
    for (args, wanted) in [
        (&["http://127.0.0.1:1/validate"][..], "webhooks are called over https"),
        (&[url, "--ca", &empty], "empty.pem`: it holds no certificate as PEM text"),
        (&[url, "--ca", "/nowhere"], "cannot use `/nowhere`: No such file"),
        (&[url, "--client-cert", &empty, "--client-key", &empty], "cannot use `"),
        (&[url, "--file", &empty], "empty.pem` is no AdmissionReview"),
        (&[url, "--rate", "0"], "invalid value '0' for '--rate <PER_SECOND>': 0 is not in 1.."),
        (&[url, "--concurrency", "0"], "invalid value '0' for '--concurrency <COUNT>'"),
    ] {
        let output = bench(args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        // The parser of the flags adds where its help is.
        let lines =
            said.lines().filter(|line| !line.is_empty() && !line.starts_with("For more information")).count();
        assert!(lines == 1 && said.contains(wanted), "{args:?}: {said}");
    }
}

#[test]
fn the_figures_of_the_webhook_can_be_made() {
    let binaries = Path::new(env!("CARGO_BIN_EXE_admit")).parent().unwrap();
    assert!(
        binaries.join("examples/bare_handler").is_file(),
        "not built: `cargo build -p admit --example bare_handler` does, and `cargo test -p admit` for all its targets"
    );
    let output = Command::new(root().join("scripts/bench-serve"))
        .env("BINARIES", binaries)
        .envs([("SECONDS_EACH", "1"), ("ROUNDS", "1")])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let Value::Object(figures) = json(&output) else { panic!("{said}") };
    assert_eq!(figures.len(), 12, "{figures:?}");
    for (name, figure) in &figures {
        let numbers = figure.as_array().map_or(std::slice::from_ref(figure), Vec::as_slice);
        let is_positive = |number: &Value| number.as_f64().is_some_and(|number| number > 0.0);
        // How many fail depends on what else the machine does.
        let told = numbers.len() == 1 && (numbers.iter().all(is_positive) || name == "failedAtHalfRate");
        assert!(told, "{name}: {figure}");
    }
}

#[test]
fn the_figures_of_uploads_can_be_made() {
    // Where this machine can have no server, this says so.
    if Sshd::start(&Wanted::default()).is_none() {
        return;
    }
    let output = Command::new(root().join("scripts/bench-uploads"))
        .env("BINARIES", Path::new(env!("CARGO_BIN_EXE_admit")).parent().unwrap())
        .envs([("MIB", "4"), ("DELAYED_MIB", "1")])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let figures = json(&output);
    let is_positive = |figure: &Value| figure.as_f64().is_some_and(|figure| figure > 0.0);
    for (part, names) in [("bytesPerSecond", ["admit", "sftp"]), ("pack", ["admit", "tar"])] {
        assert!(names.iter().all(|name| is_positive(&figures[part][name])), "{part}: {figures}");
    }
    assert!(is_positive(&figures["rssMiB"]), "{figures}");
}

#[test]
fn the_figures_of_the_command_line_can_be_made() {
    let (peers, absent) = (tempfile::tempdir().unwrap(), "/nowhere");
    // A peer that is there is measured as well, whatever it does.
    symlink("/bin/true", peers.path().join("kyverno")).unwrap();
    let path = format!("{}:{}", peers.path().display(), std::env::var("PATH").unwrap());
    let output = Command::new(root().join("scripts/bench-cli"))
        .env("BINARIES", Path::new(env!("CARGO_BIN_EXE_admit")).parent().unwrap())
        .envs([("PATH", path.as_str()), ("ADMIT_SHARED", absent), ("ROUNDS", "1")])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let figures = json(&output);
    for measured in ["suite", "policy", "policyKyverno", "definition"] {
        assert!(figures[measured]["mib"].as_f64().is_some_and(|mib| mib > 0.0), "{measured}: {figures}");
    }
    assert_eq!(figures["corpus"], "/nowhere/corpora/openshift-api is absent");
}

/// What they come to here, built without optimization beside other tests, counts for nothing.
#[test]
fn the_figures_of_the_keepers_can_be_made() {
    if !has_kubectl() || Command::new("python3").arg("--version").output().is_err() {
        return testing::skip(
            testing::Need::Other,
            "the keepers cannot be measured without kubectl and python3",
        );
    }
    let small = ["THOUSANDS", "OPERATORS", "ADDONS", "CHANGES", "PIPELINES", "REFRESHES", "ROUNDS", "SETTLE"];
    let mut parts = vec!["priming", "resync", "copy", "idle"];
    let mut figures = vec!["priming", "resync", "resync writes", "copy", "idle", "idle start"];
    if postgres::can_be() {
        parts.extend(["validation", "pipelines", "view"]);
        figures.extend(["validation", "validation memory", "pipelines memory", "pipelines connections"]);
        figures.extend(["view failures", "view"]);
    }
    let output = Command::new(root().join("scripts/bench-keepers"))
        .args(&parts)
        .env("BINARIES", Path::new(env!("CARGO_BIN_EXE_admit")).parent().unwrap())
        .envs(small.map(|name| (name, "2")))
        .env("QUERIES", "20")
        .output()
        .unwrap();
    let (made, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(matches!(output.status.code(), Some(0 | 1)), "{made}{said}");
    let named = |line: &str| Some(line.strip_prefix("figure: ")?.split_once(": ")?.0.to_owned());
    let names: Vec<String> = made.lines().filter_map(named).collect();
    assert_eq!(names, figures, "{made}{said}");
    // These are no matter of speed.
    for held in ["resync writes: 0 ", "view failures: 0 ", "pipelines connections: 1 "] {
        let wanted = figures.contains(&held.split(':').next().unwrap());
        assert_eq!(made.contains(&format!("figure: {held}")), wanted, "{made}{said}");
    }
}

#[test]
fn what_the_scripts_cannot_use_is_told_in_one_line() {
    let binaries = Path::new(env!("CARGO_BIN_EXE_admit")).parent().unwrap().to_str().unwrap();
    let alone = tempfile::tempdir().unwrap();
    symlink(env!("CARGO_BIN_EXE_admit"), alone.path().join("admit")).unwrap();
    let without_handler = alone.path().to_str().unwrap();
    for (script, name, value, wanted) in [
        ("bench-serve", "BINARIES", "/nowhere", "no program /nowhere/admit"),
        (
            "bench-serve",
            "BINARIES",
            without_handler,
            "/examples/bare_handler; BINARIES names a folder with admit",
        ),
        ("bench-serve", "SECONDS_EACH", "0", "SECONDS_EACH is `0`: a number from 1"),
        ("bench-serve", "ROUNDS", "-1", "ROUNDS is `-1`: a number from 1"),
        ("bench-uploads", "BINARIES", "nowhere", "nowhere/admit; BINARIES names a folder with admit"),
        ("bench-uploads", "MIB", "0", "MIB is `0`: a number from 1"),
        ("bench-cli", "BINARIES", "nowhere", "nowhere/admit; BINARIES names a folder with admit"),
        ("bench-cli", "ROUNDS", "x", "ROUNDS is `x`: a number from 1"),
        ("bench-keepers", "BINARIES", "nowhere", "nowhere/admit; BINARIES names a folder with admit"),
        ("bench-keepers", "ADDONS", "0", "ADDONS is `0`: a number from 1"),
    ] {
        let output = Command::new(root().join("scripts").join(script))
            .env("BINARIES", binaries)
            .env(name, value)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{script} {name}={value}: {said}");
        assert!(said.lines().count() == 1 && said.contains(wanted), "{script} {name}={value}: {said}");
    }
}

/// One short row by `scripts/soak`, with this program as that of the tests.
fn soak(results: &Path, row: &str) -> Output {
    Command::new(root().join("scripts/soak"))
        .arg(results)
        .arg(row)
        .env("TESTS", std::env::current_exe().unwrap())
        .envs([("PERCENT", "1"), ("REMARK", "a trial")])
        .output()
        .unwrap()
}

#[test]
fn rows_of_the_acceptance_table_can_be_measured() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("soak.json");
    let output = soak(&results, "row_28_versions");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let results: Value = serde_json::from_str(&fs::read_to_string(&results).unwrap()).unwrap();
    assert_eq!((&results["passed"], &results["remark"]), (&true.into(), &"a trial".into()), "{results}");
    let rows: Vec<_> = results["rows"].as_array().unwrap().iter().map(|row| &row["row"]).collect();
    assert_eq!(rows, [28], "{results}");

    let nothing = folder.path().join("nothing.json");
    let output = soak(&nothing, "row_99");
    assert_eq!(output.status.code(), Some(2), "what measures nothing has not passed");
    assert!(!nothing.exists() && String::from_utf8_lossy(&output.stderr).contains("row_99"));
}
