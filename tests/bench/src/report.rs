//! Prints the last results of `cargo bench -p bench`, one line for each case: our time, the peer's, the ratio.
//!
//! Reads the files that criterion leaves in the target folder. `-o json` prints an array instead of a table.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs, io};

use serde_json::{Value, json};

/// The minimum ratios to the `cel` crate, by group and case.
const TARGETS: [(&str, &str, f64); 4] = [
    ("json", "i-transition", 6.0),
    ("json", "ii-containers", 60.0),
    ("json", "iii-kept-fields", 15.0),
    ("compile", "i-transition", 5.0),
];

/// The nanoseconds of one case, by engine.
type Times = BTreeMap<String, f64>;

fn main() -> ExitCode {
    let as_json = match env::args().skip(1).collect::<Vec<_>>().as_slice() {
        [] => false,
        [flag, format] if flag == "-o" && format == "json" => true,
        _ => {
            let _ = writeln!(io::stderr(), "usage: bench-report [-o json]");
            return ExitCode::from(2);
        }
    };
    let mut cases = BTreeMap::new();
    gather(&target().join("criterion"), &mut cases);
    if cases.is_empty() {
        let _ = writeln!(io::stderr(), "nothing was measured: run `cargo bench -p bench` first");
        return ExitCode::from(2);
    }
    let printed = if as_json { print_json(&cases) } else { print_table(&cases) };
    if printed.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target")), PathBuf::from)
}

/// Collects the medians below a folder, by group and case.
fn gather(folder: &Path, cases: &mut BTreeMap<(String, String), Times>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.ends_with("new") {
            note(&path, cases);
        } else if path.is_dir() {
            gather(&path, cases);
        }
    }
}

fn note(folder: &Path, cases: &mut BTreeMap<(String, String), Times>) -> Option<()> {
    let read =
        |name: &str| -> Option<Value> { serde_json::from_slice(&fs::read(folder.join(name)).ok()?).ok() };
    let benchmark = read("benchmark.json")?;
    let (group, id) = benchmark.get("full_id")?.as_str()?.split_once('/')?;
    let (case, who) = id.rsplit_once('/')?;
    let median = read("estimates.json")?.pointer("/median/point_estimate")?.as_f64()?;
    cases.entry((group.to_owned(), case.to_owned())).or_default().insert(who.to_owned(), median);
    Some(())
}

/// Another engine's name, its time, and the ratio to ours.
type Other<'t> = (&'t str, f64, f64);

/// Returns our time and that of the other engine.
fn compared(times: &Times) -> Option<(f64, Option<Other<'_>>)> {
    let ours = *times.get("admit")?;
    let other = times.iter().find(|(who, _)| *who != "admit");
    Some((ours, other.map(|(who, time)| (who.as_str(), *time, time / ours))))
}

fn target_of(group: &str, case: &str) -> Option<f64> {
    TARGETS.iter().find(|(g, c, _)| *g == group && *c == case).map(|(_, _, least)| *least)
}

fn print_table(cases: &BTreeMap<(String, String), Times>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "{:8} {:24} {:>14} {:>14}  {:>8} {:>7}  peer",
        "group", "case", "admit", "peer", "ratio", "target"
    )?;
    for ((group, case), times) in cases {
        let Some((ours, other)) = compared(times) else { continue };
        write!(out, "{group:8} {case:24} {:>14}", duration(ours))?;
        if let Some((who, time, ratio)) = other {
            let target = target_of(group, case).map(|least| format!("{least:.0}x")).unwrap_or_default();
            write!(out, " {:>14}  {ratio:>7.1}x {target:>7}  {who}", duration(time))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn print_json(cases: &BTreeMap<(String, String), Times>) -> io::Result<()> {
    let rows: Vec<Value> = cases
        .iter()
        .filter_map(|((group, case), times)| {
            let (ours, other) = compared(times)?;
            Some(json!({
                "group": group,
                "case": case,
                "admit_ns": ours,
                "peer": other.map(|(who, ..)| who),
                "peer_ns": other.map(|(_, time, _)| time),
                "ratio": other.map(|(.., ratio)| ratio),
                "target": target_of(group, case),
            }))
        })
        .collect();
    writeln!(io::stdout().lock(), "{:#}", Value::Array(rows))
}

fn duration(nanoseconds: f64) -> String {
    match nanoseconds {
        n if n < 1e4 => format!("{n:.0} ns"),
        n if n < 1e7 => format!("{:.1} µs", n / 1e3),
        n => format!("{:.1} ms", n / 1e6),
    }
}
