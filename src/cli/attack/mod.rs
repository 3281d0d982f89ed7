//! `admit attack`: finds requests that bypass policies, each as a pair of a denied request and an admitted one.

mod answer;
mod given;
mod unbound;

use std::path::{Path, PathBuf};
use std::time::Instant;

use admit_analysis::attack::{Attacked, Finding, Inquiry};
use admit_apimachinery::pointer;
use admit_apimachinery::yaml;
use admit_apiserver::BuiltinKinds;
use admit_policy::manifest::Document;
use admit_policy::suite::Accepted;
use admit_policy::{LoadOptions, PolicySet};
use clap::Args;
use jiff::SignedDuration;
use serde_json::{Value, json};

pub(super) use self::answer::Answer;
use self::given::Given;
use super::process::{self, Fault};
use super::progress::Progress;
use super::render::{self, attack as drawing};
use super::report_format::ReportFormat;
use super::value_parsers::limit;
use super::{Exit, conversion, load, whole};

/// Arguments of `admit attack`.
#[derive(Debug, Args)]
#[command(after_help = "\
For each request that a policy denies, requests with the same effect (neighbours) are made: the offending part in another \
place of its type (siblings) or in another kind (workloads); the same change through a subresource, by another operation or in \
another version; a field that is left out or empty to the same effect (absent); labels that the requester sets; errors under \
failurePolicy Ignore; namespaces that bindings leave out, and params that do not exist (bindings); and the same value in \
another notation (spellings). A pair is shown if all policies together admit the neighbour. The engine has evaluated both \
requests; the pairs with the smallest difference come first.

Denied requests come from the cases of suites (those among the files, and --suite), from -f, or are searched for. A policy \
without a known denied request is undecided, and so is one without a binding, unless --bind is given. Bypasses that are \
intended are listed in a suite: they are counted, and are no findings.

  accepted:
  - {policy: privileged, family: operations, path: UPDATE, reason: Pods do not change in this}

Examples:
  admit attack policies/
  admit attack policies/privileged.yaml -f privileged-pod.yaml
  admit attack policies/datagather --definitions deploy/crds --write past.suite.yaml
  admit attack policies/ -o sarif > attack.sarif
  admit attack library/ --bind --ignore-unknown

Exit codes: 0 no bypass found, 1 a bypass found, 2 usage or unreadable input, 3 a policy or CRD does not compile, 4 internal \
error, 5 something is undecided")]
pub(super) struct AttackArgs {
    /// Policies, bindings, params and suites: files or folders
    #[arg(value_name = "POLICIES", required = true)]
    policies: Vec<PathBuf>,

    /// CRDs of the kinds that the policies match, and other objects in force: files or folders
    #[arg(long, value_name = "PATH")]
    definitions: Vec<PathBuf>,

    /// Suites with requests to start from, and with the accepted bypasses
    #[arg(long = "suite", value_name = "SUITE")]
    suites: Vec<PathBuf>,

    /// Objects whose creation to start from: files, folders (also `./...`), `-` for standard input
    #[arg(short, long = "filename", value_name = "PATH")]
    filenames: Vec<PathBuf>,

    /// Attack only the policy with this name; may be given several times
    #[arg(long = "policy", value_name = "NAME")]
    names: Vec<String>,

    /// Time limit for each policy; whatever was not tried by then is undecided
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = limit)]
    timeout: SignedDuration,

    /// Write the pairs of requests that were found as a suite for `admit test`
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,

    /// Attack also policies without a binding, as if each had one that denies in all namespaces
    #[arg(long)]
    bind: bool,

    /// Accept objects of kinds that no policy uses in the files
    #[arg(long)]
    ignore_unknown: bool,

    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: ReportFormat,
}

impl AttackArgs {
    pub(super) fn run(self) -> Exit {
        match self.answers() {
            Ok(answers) => {
                render::print(&match self.output {
                    ReportFormat::Text => drawing::text(&answers),
                    ReportFormat::Json => drawing::json(&answers),
                    ReportFormat::Sarif => drawing::sarif(&answers),
                    ReportFormat::Github => drawing::github(&answers),
                });
                answers.iter().map(Answer::exit).max().unwrap_or(Exit::Expected)
            }
            Err(fault) => process::fail(&fault),
        }
    }

    fn answers(&self) -> Result<Vec<Answer>, Fault> {
        let paths: Vec<&PathBuf> = self.policies.iter().chain(&self.definitions).collect();
        let mut documents = load::policy_documents(&paths)?;
        let bindings = if self.bind { unbound::bindings(&documents) } else { Vec::new() };
        documents.extend(bindings.iter().cloned());
        let set = PolicySet::load_with(&documents, LoadOptions { ignore_unknown: self.ignore_unknown })
            .map_err(|errors| load::with_hint(load::not_compiled(&errors)))?
            .converting(conversion::offline)
            .knowing(&BuiltinKinds);
        let set = load::as_of_now(set);
        let given = Given::read(&documents, &self.suites, &self.filenames, set.documents())?;
        let attacked = self.attacked(&documents)?;
        let progress = Progress::of(Some(attacked.len()), "attacking");
        let mut answers = Vec::new();
        let mut used = vec![false; given.accepted.len()];
        for policy in attacked {
            let end = Instant::now().checked_add(self.timeout.unsigned_abs());
            let over = || end.is_some_and(|end| Instant::now() >= end);
            let name = name(&policy.value);
            let inquiry =
                Inquiry { set: &set, documents: &documents, policy: name, given: &given.asks, over: &over };
            let found = inquiry.attack().map_err(Fault::internal)?;
            answers.push(answer(policy, found, &given.accepted, &mut used));
            progress.step();
        }
        drop(progress);
        let unused = given.accepted.iter().zip(&used).filter(|(_, used)| !**used);
        for (accepted, _) in
            unused.filter(|(accepted, _)| answers.iter().any(|answer| answer.policy == accepted.policy))
        {
            let Accepted { policy, family, path, .. } = accepted;
            process::warn(&format!("accepted, and not found any more: {policy}: {family} {path}"));
        }
        if let Some(file) = &self.write {
            self.write_suite(file, &answers, &bindings)?;
        }
        Ok(answers)
    }

    /// Returns the policies to attack: those of the files that are not among the definitions.
    fn attacked<'d>(&self, documents: &'d [Document]) -> Result<Vec<&'d Document>, Fault> {
        let beside = load::policy_documents(&self.definitions)?;
        let is_beside = |document: &Document| {
            beside.iter().any(|other| other.file == document.file && other.here() == document.here())
        };
        let is_policy = |document: &&Document| {
            document.value.get("kind").and_then(Value::as_str) == Some("ValidatingAdmissionPolicy")
        };
        let policies: Vec<&Document> =
            documents.iter().filter(is_policy).filter(|document| !is_beside(document)).collect();
        if let Some(unknown) = self
            .names
            .iter()
            .find(|wanted| !policies.iter().any(|policy| name(&policy.value) == wanted.as_str()))
        {
            return Err(Fault::usage(format!("there is no policy `{unknown}` in the files")));
        }
        if policies.is_empty() {
            return Err(Fault::usage("there is no ValidatingAdmissionPolicy in the files"));
        }
        let is_wanted = |policy: &&Document| {
            self.names.is_empty() || self.names.iter().any(|wanted| wanted == name(&policy.value))
        };
        Ok(policies.into_iter().filter(is_wanted).collect())
    }

    /// Writes both requests of each pair as cases of a suite, with the decisions of the engine.
    fn write_suite(&self, file: &Path, answers: &[Answer], bindings: &[Document]) -> Result<(), Fault> {
        let mut cases = Vec::new();
        for answer in answers {
            for found in &answer.attacked.findings {
                let title = format!("{}: {} {}", answer.policy, found.family, found.path);
                let policies = [answer.policy.as_str()];
                cases.push(found.denied.case(&format!("{title}: denied"), &policies, found.denied_outcome));
                let first = found.first.iter();
                cases.extend(first.map(|(ask, outcome)| ask.case(&format!("{title}: first"), &[], outcome)));
                cases.push(found.admitted.case(&format!("{title}: gets past"), &[], found.outcome));
            }
        }
        let paths = self.policies.iter().chain(&self.definitions);
        let shown =
            |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string();
        let mut documents: Vec<String> = paths.map(|path| shown(path)).collect();
        let beside = file.with_extension("bindings.yaml");
        if !bindings.is_empty() {
            documents.push(shown(&beside));
        }
        let suite =
            json!({"apiVersion": "admit/v1", "kind": "Suite", "documents": documents, "cases": cases});
        if cases.is_empty() {
            process::warn("nothing gets past: no suite is written");
            return Ok(());
        }
        if !bindings.is_empty() {
            let texts: Vec<String> = bindings.iter().map(|binding| yaml::write(&binding.value)).collect();
            whole::write(&beside, &texts.join("---\n"))?;
        }
        whole::write(file, &render::json(&suite))
    }
}

fn answer(policy: &Document, found: Attacked, accepted: &[Accepted], used: &mut [bool]) -> Answer {
    let name = name(&policy.value);
    let (mut open, mut known): (Vec<Finding>, Vec<(Finding, String)>) = (Vec::new(), Vec::new());
    for finding in found.findings {
        let is_it = |accepted: &Accepted| {
            accepted.policy == name
                && accepted.family == finding.family.as_str()
                && accepted.path == finding.path
        };
        let at = accepted.iter().position(is_it);
        match at.and_then(|at| accepted.get(at)) {
            Some(accepted) => known.push((finding, accepted.reason.clone())),
            None => open.push(finding),
        }
        if let Some(used) = at.and_then(|at| used.get_mut(at)) {
            *used = true;
        }
    }
    Answer {
        policy: name.to_owned(),
        file: policy.file.to_string(),
        at: policy.here(),
        attacked: Attacked { findings: open, ..found },
        accepted: known,
    }
}

fn name(document: &Value) -> &str {
    pointer::text(document, "/metadata/name")
}
