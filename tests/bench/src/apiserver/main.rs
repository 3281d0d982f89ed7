//! Measures an API server from outside, over TLS on the loopback interface: how fast it starts, answers and stops, its
//! memory, and what survives a kill. Ours runs as a child of this program, with nothing around the library; another
//! build of this program, or a real etcd and kube-apiserver, can be measured in the same run. `scripts/bench-apiserver`
//! describes each figure.

mod client;
mod durability;
mod load;
mod memory;
mod namespaces;
mod report;
mod serve;
mod server;
mod starting;
mod watchers;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use std::{env, io};

use report::Report;
use server::{Kind, Server};

/// The error of a measurement.
pub(crate) type Trouble = Box<dyn std::error::Error + Send + Sync>;

const USAGE: &str = "\
usage: bench-apiserver [--seconds N] [--turns N] [--rounds N] [--only PART,…] [--before PROGRAM] [--assets FOLDER] [-o json]
       bench-apiserver serve FOLDER ADDRESS
parts: starting load namespaces memory watchers kills";

/// The measurements, in their order.
const PARTS: [&str; 6] = ["starting", "load", "namespaces", "memory", "watchers", "kills"];

/// The size of the measurements.
#[derive(Clone, Debug)]
struct Plan {
    parts: Vec<String>,
    /// The time of each load.
    length: Duration,
    /// How many times the servers take turns at the loads.
    turns: usize,
    /// The number of kills.
    rounds: usize,
    servers: Vec<(&'static str, Kind)>,
    as_json: bool,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let outcome = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["serve", folder, address] => serve::run(folder.as_ref(), address),
        other => match plan(other) {
            Some(plan) => measured(&plan),
            None => {
                let _ = writeln!(io::stderr(), "{USAGE}");
                return ExitCode::from(2);
            }
        },
    };
    match outcome {
        Ok(code) => code,
        Err(trouble) => {
            let _ = writeln!(io::stderr(), "bench-apiserver: {trouble}");
            ExitCode::FAILURE
        }
    }
}

fn plan(arguments: &[&str]) -> Option<Plan> {
    let mut plan = Plan {
        parts: PARTS.map(str::to_owned).to_vec(),
        length: Duration::from_secs(5),
        turns: 3,
        rounds: 200,
        servers: vec![("ours", Kind::Library(env::current_exe().ok()?))],
        as_json: false,
    };
    for pair in arguments.chunks(2) {
        match pair {
            ["--seconds", text] => plan.length = Duration::from_secs(text.parse().ok().filter(|n| *n > 0)?),
            ["--turns", text] => plan.turns = text.parse().ok().filter(|n| *n > 0)?,
            ["--rounds", text] => plan.rounds = text.parse().ok()?,
            ["--only", text] => plan.parts = text.split(',').map(str::to_owned).collect(),
            ["--before", path] => plan.servers.push(("before", Kind::Library(PathBuf::from(path)))),
            ["--assets", path] => plan.servers.push(("upstream", Kind::Assets(PathBuf::from(path)))),
            ["-o", "json"] => plan.as_json = true,
            _ => return None,
        }
    }
    plan.parts.iter().all(|part| PARTS.contains(&part.as_str())).then_some(plan)
}

fn measured(plan: &Plan) -> Result<ExitCode, Trouble> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let report = runtime.block_on(all(plan))?;
    report.print(plan.as_json)?;
    Ok(if report.held() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn all(plan: &Plan) -> Result<Report, Trouble> {
    let mut report = Report::default();
    for part in &plan.parts {
        // Rates depend on what else the machine does at that moment, which no single turn shows.
        let turns = if part == "load" { plan.turns } else { 1 };
        for (who, kind) in plan.servers.iter().cycle().take(turns.saturating_mul(plan.servers.len())) {
            writeln!(io::stderr(), "{part} of {who}")?;
            // A new server for each part, so that memory of one does not count for the next.
            match part.as_str() {
                "starting" => starting::measure(kind, who, &mut report).await?,
                "kills" => durability::measure(kind, plan.rounds, who, &mut report).await?,
                _ => {
                    let server = Server::start(kind, None).await?;
                    match part.as_str() {
                        "load" => load::measure(&server, plan.length, who, &mut report).await?,
                        "namespaces" => namespaces::measure(&server, who, &mut report).await?,
                        "memory" => memory::measure(&server, who, &mut report).await?,
                        _ => watchers::measure(&server, plan.length, who, &mut report).await?,
                    }
                    server.stop().await?;
                }
            }
        }
    }
    Ok(report)
}
