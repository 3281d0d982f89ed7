//! `admit mutate`: the suites of the shipped policies see nearly every change of their rules.

use std::process::Command;

use serde_json::Value;

use crate::output_schemas::schema;
use crate::repository::root;
use crate::support::json_schema::complaints;

/// Folders of policies, and the definitions that their kinds have.
const FOLDERS: [&str; 5] = ["clusteroperator", "cyndi", "datagather", "mustgather", "observability"];

/// What `admit mutate -o json` prints of a folder of shipped policies.
fn mutated(folder: &str) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_admit"));
    command.args(["mutate", &format!("policies/{folder}"), "--definitions", "deploy/crds", "-o", "json"]);
    // What takes long is no part of the score: without a solver what no case sees is undecided, which is not seen either.
    let done = command.args(["--timeout", "600s"]).current_dir(root()).env("PATH", "").output().unwrap();
    serde_json::from_slice(&done.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&done.stderr)))
}

#[test]
fn shipped_suites_see_nearly_every_change() {
    let published = schema("mutate");
    for folder in FOLDERS {
        let report = mutated(folder);
        assert_eq!(complaints(&published, &report), Vec::<String>::new(), "{folder}");
        let score = report["summary"]["score"].as_f64().unwrap();
        let open: Vec<String> = report["documents"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|document| {
                let changes = ["survived", "undecided"].map(|list| document[list].as_array().unwrap().iter());
                changes.into_iter().flatten().map(|change| {
                    let (file, line) = (document["file"].as_str().unwrap(), &change["line"]);
                    format!("{file}:{line}: {} becomes {}", change["was"], change["becomes"])
                })
            })
            .collect();
        assert!(report["summary"]["killed"].as_u64().unwrap() > 100, "{folder}: {}", report["summary"]);
        assert!(score >= 95.0, "{folder}: {score} %:\n{}", open.join("\n"));
    }
}
