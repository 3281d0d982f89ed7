//! `admit test`: runs declared test suites against the policies and CRDs that they name.
//!
//! Finds the suites, loads what each of them tests, runs their cases on all processors, and hands the report to
//! `render`. What a case means is the policy package's affair.

use std::io::{self, Read as _};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use admit_policy::manifest::{self, Document, LoadError};
use admit_policy::suite::{self, Suite, SuiteError};
use clap::Args;
use regex_automata::meta::Regex;

use super::Exit;
use super::load;
use super::process::{self, Fault};
use super::render::suites::{self, CaseReport, Report, SuiteReport};
use super::render::{self, Output, Palette};

/// Evaluation recurses as deep as expressions nest.
const THREAD_STACK: usize = 8 * 1024 * 1024;

/// Arguments of `admit test`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  admit test policies/\n  admit test -v -run 'final' ./...\n  admit test -o json a.suite.yaml"
)]
pub(super) struct TestArgs {
    /// Suites, or folders searched for `*.suite.yaml` (`./...` and `-` for standard input are understood)
    #[arg(default_value = ".")]
    paths: Vec<PathBuf>,

    /// Run only cases whose name matches the regular expression (also written `-run`)
    #[arg(long, value_name = "REGEX")]
    run: Option<String>,

    /// Name every case, not only those that fail
    #[arg(short, long)]
    verbose: bool,

    /// Stop at the first case that fails
    #[arg(long)]
    fail_fast: bool,

    /// How results are written
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

impl TestArgs {
    pub(super) fn run(self) -> Exit {
        match self.report() {
            Ok(report) => self.write(&report),
            Err(fault) => process::fail(&fault),
        }
    }

    fn report(&self) -> Result<Report, Fault> {
        let pattern = self.run.as_deref().map(compile).transpose()?;
        let sources = sources(&self.paths)?;
        let suites = run_all(&sources, pattern.as_ref(), self.fail_fast);
        let report = Report { suites };
        match &self.run {
            Some(pattern) if report.is_empty() => Err(Fault::usage(format!("no case matches `{pattern}`"))),
            _ => Ok(report),
        }
    }

    fn write(&self, report: &Report) -> Exit {
        for fault in report.suites.iter().filter_map(|suite| suite.fault.as_ref()) {
            process::fail(fault);
        }
        let drawing = match self.output {
            Output::Text => suites::text(report, self.verbose, Palette::of_stdout()),
            Output::Json => suites::json(report),
        };
        render::print(&drawing);
        report.exit()
    }
}

/// The text of one suite file.
struct Source {
    file: String,
    text: String,
    /// What its documents' paths start from.
    folder: PathBuf,
}

fn compile(pattern: &str) -> Result<Regex, Fault> {
    Regex::new(pattern).map_err(|error| Fault::usage(format!("--run `{pattern}`: {error}")))
}

fn sources(paths: &[PathBuf]) -> Result<Vec<Source>, Fault> {
    let mut sources = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            sources.push(standard_input()?);
            continue;
        }
        let files = load::files(path)?;
        // A file that was named is a suite by that; in a folder the name tells.
        let named = files.as_slice() == [path.clone()];
        for file in files.into_iter().filter(|file| named || is_suite_name(file)) {
            let folder = file.parent().unwrap_or(Path::new("")).to_owned();
            sources.push(Source { text: load::text(&file)?, file: file.display().to_string(), folder });
        }
    }
    if sources.is_empty() {
        let paths: Vec<String> = paths.iter().map(|path| format!("`{}`", path.display())).collect();
        return Err(Fault::usage(format!("no suites (`*.suite.yaml`) in {}", paths.join(", "))));
    }
    Ok(sources)
}

fn standard_input() -> Result<Source, Fault> {
    let mut text = String::new();
    io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| Fault::usage(format!("cannot read standard input: {error}")))?;
    Ok(Source { file: "-".to_owned(), text, folder: PathBuf::new() })
}

fn is_suite_name(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    [".suite.yaml", ".suite.yml", ".suite.json"].iter().any(|end| name.ends_with(end))
}

/// Reports in the order of `sources`; with `fail_fast` up to the first that fails.
fn run_all(sources: &[Source], pattern: Option<&Regex>, fail_fast: bool) -> Vec<SuiteReport> {
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let reports = Mutex::new(Vec::with_capacity(sources.len()));
    let work = || {
        while !stop.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(source) = sources.get(index) else { return };
            let report = run_one(source, pattern, fail_fast);
            if fail_fast && report.exit() != Exit::Expected {
                stop.store(true, Ordering::Relaxed);
            }
            reports.lock().unwrap_or_else(PoisonError::into_inner).push((index, report));
        }
    };
    let workers = thread::available_parallelism().map_or(1, NonZero::get).min(sources.len());
    thread::scope(|scope| {
        for _ in 1..workers {
            // Where no more threads can be had, those there are do all the work.
            let _ = thread::Builder::new().stack_size(THREAD_STACK).spawn_scoped(scope, work);
        }
        work();
    });
    let mut reports = reports.into_inner().unwrap_or_else(PoisonError::into_inner);
    reports.sort_by_key(|(index, _)| *index);
    let mut reports: Vec<SuiteReport> = reports.into_iter().map(|(_, report)| report).collect();
    let first_failure = reports.iter().position(|report| report.exit() != Exit::Expected);
    if let Some(last) = first_failure.filter(|_| fail_fast) {
        reports.truncate(last + 1);
    }
    reports
}

fn run_one(source: &Source, pattern: Option<&Regex>, fail_fast: bool) -> SuiteReport {
    let start = Instant::now();
    let mut report = SuiteReport::new(&source.file);
    let suites = match read(source) {
        Ok(suites) => suites,
        Err(fault) => return report.failed(fault),
    };
    for suite in suites {
        let cases = suite.cases.iter().filter(|case| pattern.is_none_or(|p| p.is_match(&case.name)));
        let set = match load::policies(&documents_of(&suite, source)) {
            Ok(set) => set,
            Err(fault) => return report.failed(fault),
        };
        for case in cases {
            let start = Instant::now();
            let result = suite::run(case, &set);
            let passed = result.passed();
            let expected = case.expect.outcome;
            report.cases.push(CaseReport {
                name: case.name.clone(),
                expected,
                result,
                duration: start.elapsed(),
            });
            if fail_fast && !passed {
                break;
            }
        }
    }
    report.duration = start.elapsed();
    report
}

/// The suites of a file; anything else in it is a mistake.
fn read(source: &Source) -> Result<Vec<Suite>, Fault> {
    let unreadable = |errors: &[LoadError]| Fault { exit: Exit::Usage, ..load::not_compiled(errors) };
    let documents = manifest::read(&source.file, &source.text).map_err(|errors| unreadable(&errors))?;
    let suite = |document: &Document| {
        if !Suite::is(&document.value) {
            return Err(unreadable(&[
                document.mistake("is no suite (`apiVersion: admit/v1`, `kind: Suite`)")
            ]));
        }
        Suite::decode(&document.value).map_err(|error| unreadable(&[placed(document, &error)]))
    };
    let suites: Vec<Suite> = documents.iter().map(suite).collect::<Result<_, _>>()?;
    if suites.is_empty() { Err(Fault::usage(format!("`{}` is empty", source.file))) } else { Ok(suites) }
}

fn placed(document: &Document, error: &SuiteError) -> LoadError {
    LoadError {
        position: document.position(error.path()),
        field: error.path().to_owned(),
        ..document.mistake(error.to_string())
    }
}

/// What the suite names, or all that stands beside it.
fn documents_of(suite: &Suite, source: &Source) -> Vec<PathBuf> {
    if suite.documents.is_empty() {
        let beside = if source.folder.as_os_str().is_empty() { Path::new(".") } else { &source.folder };
        return vec![beside.to_owned()];
    }
    suite.documents.iter().map(|path| source.folder.join(path)).collect()
}
