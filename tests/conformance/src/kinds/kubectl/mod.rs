//! Runs commands of the real kubectl, in scenarios that each have a new server, and compares their output and exit
//! codes.
//!
//! ```text
//! fixtures.jsonl    {metadata, spec…}                     definitions that are there before every scenario
//! scenarios.jsonl   {name, steps: [{n, argv, files?, stdin?, stdout, stderr, exit}], webhookReviews?}
//! ```
//!
//! A step is a case, `SCENARIO/STEP`. Requests that were recorded beside the output are for explanation and are not compared.
//! `ADMIT_KUBECTL` names the program, else it is the one on the PATH; without one the corpus is reported as skipped.

mod hook;
mod keys;
mod pattern;
mod run;
mod server;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use self::run::Runner;
use self::server::Server;
use super::{Replayed, fixtures};
use crate::corpus::{CorpusError, Folder};
use crate::report::Check;
use crate::run::Outcome;

pub(crate) const KIND: Replayed = Replayed { recognises, outcomes };

/// Scenarios that run side by side: kubectl spends most of its time waiting.
const WORKERS: usize = 3;

fn recognises(folder: &Folder) -> bool {
    super::has_step_with(folder, "argv")
}

fn outcomes(folder: &Folder, only: Option<&str>) -> Result<Vec<Outcome>, CorpusError> {
    let Some(kubectl) = kubectl() else {
        testing::skip(testing::Need::Kubectl, &format!("{}: no kubectl on the PATH", folder.name));
        return Ok(Vec::new());
    };
    let fixtures = fixtures(folder);
    let scenarios = super::sequences(folder, only);
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(scenario) = scenarios.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = replayed(&kubectl, &fixtures, scenario);
                    outcomes.lock().unwrap_or_else(PoisonError::into_inner).extend(found);
                }
            });
        }
    });
    Ok(outcomes.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn replayed(kubectl: &Path, fixtures: &[Value], scenario: &Value) -> Vec<Outcome> {
    let name = scenario["name"].as_str().unwrap_or_default();
    let steps = replay(kubectl, fixtures, scenario).unwrap_or_else(|problem| {
        // Nothing can be said of any step when the server does not come up as recorded.
        let check = || vec![Check::new(crate::report::Aspect::Verdict, "a server", problem.clone())];
        super::steps(scenario).map(|step| (step["n"].as_u64().unwrap_or_default(), check())).collect()
    });
    steps.into_iter().map(|(step, checks)| Outcome { id: format!("{name}/{step}"), checks }).collect()
}

fn replay(kubectl: &Path, fixtures: &[Value], scenario: &Value) -> Result<Vec<(u64, Vec<Check>)>, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let server = Server::start(folder.path(), fixtures, scenario)?;
    // Some messages hold the program's own name.
    let program = folder.path().join("kubectl");
    std::os::unix::fs::symlink(kubectl, &program).map_err(|error| error.to_string())?;
    Runner::new(&program, &server, folder.path())?.run(scenario)
}

/// The program to run. Some distributions put a wrapper on the PATH that asks the server for its version and then runs
/// the kubectl nearest to it; the programs stand beside it, and the one of the recording is preferred.
fn kubectl() -> Option<PathBuf> {
    let path = std::env::var_os("ADMIT_KUBECTL").map(PathBuf::from).or_else(on_path)?;
    let beside = path.canonicalize().ok()?.with_file_name("kubectl.1.32");
    let chosen = if beside.is_file() { beside } else { path };
    let works = Command::new(&chosen).args(["version", "--client"]).output().ok()?.status.success();
    works.then_some(chosen)
}

fn on_path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join("kubectl")).find(|candidate| candidate.is_file())
}
