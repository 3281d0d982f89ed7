//! Runs folders of recorded answers against our packages and prints passed / known-failing / failed / total.
//!
//! ```text
//! folder ──corpus──► Folder ──kinds (told by the shape of the rows)──► cases ──run──► checks ──report──► text | JSON
//! ```
//!
//! The kind of a corpus is recognised by the contents of its files, never by its name or its cases' names, so that any folder
//! of the same kind can be run. A new kind of corpus is one module under `kinds` and one line in its table.

mod corpus;
mod kinds;
mod known;
mod report;
mod run;

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, ValueEnum};

/// Runs recorded corpora and scores our answers.
#[derive(Debug, Parser)]
struct Args {
    /// A folder of corpora, or one corpus; without it, all that are at hand: tests/recorded, and those beside the project
    #[arg(long, value_name = "DIR")]
    corpora: Option<PathBuf>,
    /// Run only corpora of this name (repeatable)
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Run only cases whose id contains this text
    #[arg(long, value_name = "TEXT")]
    case: Option<String>,
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
    /// Write one JSON line per failing case, with expected and actual answers
    #[arg(long, value_name = "FILE")]
    failures: Option<PathBuf>,
    /// Where the lists of known failures are
    #[arg(long, value_name = "DIR", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../known-failures"))]
    known_failures: PathBuf,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Text,
    Json,
}

fn main() -> ExitCode {
    match start(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            let _ = writeln!(io::stderr(), "conformance: {error}");
            ExitCode::from(2)
        }
    }
}

/// Runs everything asked for; true when no case failed that is not known to.
fn start(args: &Args) -> Result<bool, corpus::CorpusError> {
    let mut scores = Vec::new();
    let mut failures = args.failures.as_deref().map(create).transpose()?;
    let folders = match &args.corpora {
        Some(folder) => corpus::find(folder, &args.only)?,
        None => at_hand(&args.only)?,
    };
    for folder in folders {
        let Some(runner) = kinds::of(&folder) else {
            let _ = writeln!(io::stderr(), "conformance: {}: no runner for this kind of corpus", folder.name);
            continue;
        };
        for (name, outcomes) in outcomes(&runner, &folder, args.case.as_deref())? {
            if outcomes.is_empty() {
                continue;
            }
            let known = known::KnownFailures::read(&args.known_failures, &name)?;
            let score = report::Score::of(&name, outcomes, &known, args.case.is_some());
            if let Some(file) = &mut failures {
                let path = args.failures.as_deref().unwrap_or(Path::new("failures"));
                score.write_failures(file).map_err(|error| corpus::CorpusError::io(path, error))?;
            }
            if matches!(args.output, Format::Text) {
                let _ = writeln!(io::stdout(), "{score}");
            }
            scores.push(score);
        }
    }
    if matches!(args.output, Format::Json) {
        let _ = writeln!(io::stdout(), "{}", report::to_json(&scores));
    }
    Ok(scores.iter().all(report::Score::holds))
}

/// Our own recordings and those beside the project; says which are absent.
fn at_hand(only: &[String]) -> Result<Vec<corpus::Folder>, corpus::CorpusError> {
    let failed = |error| corpus::CorpusError::io(Path::new("tests/recorded"), error);
    let mut corpora = testing::corpora().map_err(failed)?;
    let asked = |name: &str| only.is_empty() || only.iter().any(|asked| asked == name);
    corpora.retain(|corpus| asked(&corpus.name));
    for name in testing::FOREIGN.iter().filter(|name| asked(name)) {
        if !corpora.iter().any(|corpus| corpus.name == **name) {
            testing::skip(testing::Need::Corpora, &format!("{name}: no recorded answers beside the project"));
        }
    }
    let mut folders = Vec::new();
    for found in corpora {
        folders.extend(corpus::read(&found.folder, found.name)?);
    }
    if folders.is_empty() { Err(corpus::CorpusError::Empty("tests/recorded".into())) } else { Ok(folders) }
}

/// The outcomes of a folder's parts, most of which are one.
fn outcomes(
    runner: &kinds::Runner,
    folder: &corpus::Folder,
    only: Option<&str>,
) -> Result<kinds::Parts, corpus::CorpusError> {
    let asked = |id: &str| only.is_none_or(|text| id.contains(text));
    let whole = |outcomes| Ok(vec![(folder.name.clone(), outcomes)]);
    match runner {
        kinds::Runner::Parts(kind) => {
            let mut parts = (kind.outcomes)(folder, only)?;
            for (_, outcomes) in &mut parts {
                outcomes.retain(|outcome| asked(&outcome.id));
            }
            Ok(parts)
        }
        kinds::Runner::Cases(kind) => {
            let mut cases = (kind.cases)(folder)?;
            cases.retain(|case| asked(case.id()));
            whole(run::all(&cases))
        }
        kinds::Runner::Sequences(kind) => {
            let mut outcomes = (kind.outcomes)(folder, only)?;
            outcomes.retain(|outcome| asked(&outcome.id));
            whole(outcomes)
        }
    }
}

fn create(path: &Path) -> Result<BufWriter<File>, corpus::CorpusError> {
    File::create(path).map(BufWriter::new).map_err(|error| corpus::CorpusError::io(path, error))
}
