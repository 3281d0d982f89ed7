//! `bench-apiserver`: that it runs, and what of it is no matter of time.

use std::process::Command;

use serde_json::Value;

/// The rows of a short run.
fn rows(parts: &str) -> Vec<Value> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bench-apiserver"));
    let output =
        command.args(["--seconds", "1", "--rounds", "3", "--only", parts, "-o", "json"]).output().unwrap();
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn kills_lose_nothing_that_was_acknowledged() {
    let rows = rows("starting,kills");
    let of = |name: &str| {
        let row = rows.iter().find(|row| row["name"] == name);
        row.and_then(|row| row["values"]["ours"].as_f64())
            .unwrap_or_else(|| panic!("{name} is not in {rows:?}"))
    };
    assert!(of("writes acknowledged") > 0.0);
    assert_eq!((of("objects lost or invented"), of("revisions given twice")), (0.0, 0.0));
    assert!(of("ready with 50 definitions") > 0.0 && of("stop under 50 watches") > 0.0);
}
