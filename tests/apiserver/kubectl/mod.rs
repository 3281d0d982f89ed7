//! Replays recorded scenarios with the real kubectl and compares what it prints and how it ends.
//!
//! `ADMIT_KUBECTL` names the program, else it is the one on the PATH. `ADMIT_KUBECTL_SCENARIO` runs only the scenarios
//! whose name contains it and prints every difference. Steps that are known to differ stand in
//! `tests/known-failures/kubectl.txt`; one that does not differ any more has to be struck off.

mod pattern;
mod run;
mod server;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use self::run::{Difference, Runner};
use self::server::TestServer;
use crate::corpus;

/// Scenarios that run side by side.
const WORKERS: usize = 3;

#[test]
fn kubectl_prints_what_was_recorded() {
    let Some(folder) = corpus::folder("kubectl") else { return };
    let Some(kubectl) = kubectl() else { return };
    let fixtures = corpus::lines(&folder.join("fixtures.jsonl"));
    let filter = std::env::var("ADMIT_KUBECTL_SCENARIO").ok();
    let mut scenarios = corpus::lines(&folder.join("scenarios.jsonl"));
    scenarios.retain(|scenario| filter.as_deref().is_none_or(|part| name(scenario).contains(part)));

    let next = AtomicUsize::new(0);
    let failed: Mutex<Vec<(String, Difference)>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(scenario) = scenarios.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let differences = replay(&kubectl, &fixtures, scenario);
                    let named =
                        differences.into_iter().map(|difference| (name(scenario).to_owned(), difference));
                    failed.lock().expect("no worker panicked").extend(named);
                }
            });
        }
    });

    let failed = failed.into_inner().expect("no worker panicked");
    let steps: usize =
        scenarios.iter().map(|scenario| scenario["steps"].as_array().map_or(0, Vec::len)).sum();
    report(&failed, steps, filter.is_some(), &scenarios);
}

#[test]
fn explain_reaches_into_built_in_kinds() {
    let Some(kubectl) = kubectl() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let server = TestServer::start(folder.path(), &[]);
    for (arguments, line) in [
        (["explain", "pod.spec.containers", "--recursive=false"], "image\t<string>"),
        (["explain", "pods", "--recursive"], "containers\t<[]Container> -required-"),
        (
            ["explain", "job.spec.template.spec.volumes", "--recursive=false"],
            "configMap\t<ConfigMapVolumeSource>",
        ),
        (
            ["explain", "customresourcedefinition.spec.versions", "--recursive=true"],
            "openAPIV3Schema\t<JSONSchemaProps>",
        ),
    ] {
        let mut command = Command::new(&kubectl);
        command.args(arguments).env("KUBECONFIG", server.kubeconfig()).env("HOME", folder.path());
        let output = command.output().expect("kubectl runs");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(
            text.lines().any(|printed| printed.trim() == line),
            "{arguments:?} prints no {line:?}:\n{text}"
        );
    }
}

fn replay(kubectl: &Path, fixtures: &[Value], scenario: &Value) -> Vec<Difference> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let server = TestServer::start(folder.path(), fixtures);
    // Some messages hold the program's own name.
    let program = folder.path().join("kubectl");
    std::os::unix::fs::symlink(kubectl, &program).expect("a link");
    Runner::new(&program, &server, folder.path()).run(scenario)
}

fn report(failed: &[(String, Difference)], steps: usize, filtered: bool, scenarios: &[Value]) {
    let known = corpus::known_failures("kubectl");
    let ran: BTreeSet<&str> = scenarios.iter().map(name).collect();
    let mut unexpected = Vec::new();
    let mut seen = BTreeSet::new();
    for (scenario, difference) in failed {
        let id = format!("{scenario}/{}", difference.step);
        if filtered || !known.contains(&id) {
            unexpected.push(format!("=== {id}\n{}", difference.report));
        }
        seen.insert(id);
    }
    let fixed: Vec<&String> = known
        .iter()
        .filter(|id| ran.contains(id.split('/').next().unwrap_or_default()) && !seen.contains(*id))
        .collect();
    println!("kubectl: {} passed, {} known to fail, {steps} in all", steps - failed.len(), known.len());
    if let Some(path) = std::env::var_os("ADMIT_KUBECTL_REPORT") {
        let all: Vec<String> =
            failed.iter().map(|(scenario, d)| format!("=== {scenario}/{}\n{}", d.step, d.report)).collect();
        std::fs::write(path, all.join("\n")).expect("a report");
    }
    assert!(
        filtered || unexpected.is_empty(),
        "{} steps differ:\n{}",
        unexpected.len(),
        unexpected.join("\n")
    );
    if filtered {
        println!("{}", unexpected.join("\n"));
    }
    assert!(filtered || fixed.is_empty(), "no longer failing, strike off: {fixed:?}");
}

fn name(scenario: &Value) -> &str {
    scenario["name"].as_str().expect("a name")
}

/// The program to run. Some distributions put a wrapper on the PATH that asks the server for its version and then runs
/// the kubectl nearest to it; the programs stand beside it, and the one of the recording is preferred.
fn kubectl() -> Option<PathBuf> {
    let path = std::env::var_os("ADMIT_KUBECTL").map(PathBuf::from).or_else(on_path);
    let Some(path) = path else {
        eprintln!("SKIPPED: no kubectl on the PATH, recorded scenarios are not replayed");
        return None;
    };
    let beside = path.canonicalize().ok()?.with_file_name("kubectl.1.32");
    let chosen = if beside.is_file() { beside } else { path };
    let version = Command::new(&chosen).args(["version", "--client"]).output().ok()?;
    println!(
        "kubectl: {} {}",
        chosen.display(),
        String::from_utf8_lossy(&version.stdout).trim().replace('\n', ", ")
    );
    Some(chosen)
}

fn on_path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join("kubectl")).find(|candidate| candidate.is_file())
}
