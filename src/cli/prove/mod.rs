//! `admit prove`: proves claims about rules for all objects, or finds an object that breaks them.

mod answer;
mod open;
mod refused;
mod session;
mod solver;
mod suite;
mod upgrade;

use std::path::{Path, PathBuf};
use std::time::Instant;

use admit_analysis::prove::{Inquiry, Kinds, Question, Side, Solver, Subject, Verdict};
use admit_apimachinery::pointer;
use admit_apiserver::BuiltinKinds;
use admit_policy::manifest::Document;
use clap::{Args, ValueEnum};
use jiff::SignedDuration;
use serde_json::Value;

pub(super) use self::answer::Answer;
use self::open::Compared;
use self::refused::not_compiled;
pub(super) use self::solver::Program;
use super::process::{self, Fault};
use super::progress::Progress;
use super::render::{self, prove as drawing};
use super::report_format::ReportFormat;
use super::value_parsers::duration;
use super::{Exit, load};

/// Arguments of `admit prove`.
#[derive(Debug, Args)]
#[command(after_help = "\
A claim holds if a solver (z3 or cvc5, on the PATH) refutes its negation for all objects that the schema allows; if lists or \
maps have no bound, or a greater one, it holds up to --items, and likewise where strings are split into parts. Otherwise the \
smallest object found that refutes it is shown, which the engine has evaluated itself. Where bounds or rules name more than \
--items, the claim is asked again with so many, up to 32, for a small part of the time. What cannot be translated for the \
solver is undecided, with the place in the expression: answers are never guessed. Without a solver small objects are tried, \
which can refute a claim but never prove it.

For definitions the claim is checked for each served version, for policies for each kind that their constraints name: built-in \
kinds and those among --definitions, and for `*` all of both; a policy on other kinds is undecided. For built-in kinds the \
types of the fields are known, and for the most used ones also what every server requires and defaults; other requirements can \
make a claim undecided, and never make it hold. For a policy the claim is about the requests that it matches. Ratcheting, and \
limits of cost and size, are not part of claims; nor are lists in place of strings with a format, which servers let pass.

For an upgrade, each version that both serve is checked: whether whatever could be created still can (for documents in which \
the old definition drops nothing), and whether every stored object of that version can still be updated without a change, and \
its status be written: with pruning, defaults, ratcheting and oldSelf as on the server. Each keyword or rule that breaks this \
is reported with its place.

At most 512 MiB of memory are used, and as much by each solver; what needs more is undecided: too large.

Examples:
  admit prove equivalent old/crd.yaml new/crd.yaml
  admit prove implies strict.yaml loose.yaml --definitions deploy/crds
  admit prove implies no-privileged-containers.yaml no-privileged-pods.yaml
  admit prove no-errors policies/datagather --definitions deploy/crds
  admit prove never-denies crd.yaml --that 'self.spec.replicas > 0' --write replicas.suite.yaml
  admit prove equivalent old/crd.yaml new/crd.yaml -o sarif > prove.sarif
  admit prove upgrade --old crds/v1.4 --new crds/v1.5

Exit codes: 0 everything holds, 1 something does not, 2 usage or unreadable input, 3 a policy or CRD does not compile, \
4 internal error, 5 something is undecided")]
pub(super) struct ProveArgs {
    /// Claim to prove
    #[arg(value_enum)]
    claim: Claim,

    /// CRDs or policies that the claim is about: a file or folder
    #[arg(value_name = "A", required_if_eq_any([("claim", "equivalent"), ("claim", "implies"),
        ("claim", "never-denies"), ("claim", "always-denies"), ("claim", "no-errors")]))]
    left: Option<PathBuf>,

    /// CRDs or policies to compare A with: a file or folder
    #[arg(value_name = "B", required_if_eq_any([("claim", "equivalent"), ("claim", "implies")]))]
    right: Option<PathBuf>,

    /// For upgrade: the CRDs before it, a file or folder
    #[arg(long, value_name = "PATH", required_if_eq("claim", "upgrade"))]
    old: Option<PathBuf>,

    /// For upgrade: the CRDs that replace the old ones, a file or folder
    #[arg(long, value_name = "PATH", required_if_eq("claim", "upgrade"))]
    new: Option<PathBuf>,

    /// CRDs of the kinds that the policies match: files or folders
    #[arg(long, value_name = "PATH")]
    definitions: Vec<PathBuf>,

    /// Prove the claim only for objects for which this CEL expression is true, over `self`, or over `object` for policies
    #[arg(long, value_name = "EXPR")]
    that: Option<String>,

    /// Largest number of list items and map entries to consider, unless the schema allows fewer. Where a limit names a larger number,
    /// objects with so many are tried, too
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=32))]
    items: u8,

    /// Solver to use: z3, cvc5 or a path to one [default: the first found on the PATH]
    #[arg(long, value_name = "NAME")]
    solver: Option<String>,

    /// Time limit for each claim, after which it is undecided
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    timeout: SignedDuration,

    /// Write the requests that refute claims as a suite for `admit test`
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,

    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: ReportFormat,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Claim {
    /// B denies exactly what A denies
    Equivalent,
    /// B admits everything that A admits
    Implies,
    /// A denies nothing
    NeverDenies,
    /// A denies everything
    AlwaysDenies,
    /// No expression of A fails to evaluate
    NoErrors,
    /// --new admits everything that --old admits: creations, updates of stored objects, and updates of their status
    Upgrade,
}

impl Claim {
    /// Returns the question to the prover, and its name. None for upgrades, which have three.
    const fn question(self) -> Option<(Question, &'static str)> {
        match self {
            Self::Equivalent => Some((Question::Equivalent, "equivalent")),
            Self::Implies => Some((Question::Implies, "implies")),
            Self::NeverDenies => Some((Question::NeverDenies, "never-denies")),
            Self::AlwaysDenies => Some((Question::AlwaysDenies, "always-denies")),
            Self::NoErrors => Some((Question::NoErrors, "no-errors")),
            Self::Upgrade => None,
        }
    }
}

impl ProveArgs {
    pub(super) fn run(self) -> Exit {
        match self.answers() {
            Ok((answers, solver)) => {
                render::print(&match self.output {
                    ReportFormat::Text => drawing::text(&answers),
                    ReportFormat::Json => drawing::json(&answers, solver.as_deref()),
                    ReportFormat::Sarif => drawing::sarif(&answers),
                    ReportFormat::Github => drawing::github(&answers),
                });
                let exit = answers.iter().map(|answer| exit(&answer.verdict)).max();
                exit.unwrap_or(Exit::Expected)
            }
            Err(fault) => process::fail(&fault),
        }
    }

    fn answers(&self) -> Result<(Vec<Answer>, Option<String>), Fault> {
        let solver = Program::find(self.solver.as_deref(), None).map_err(Fault::usage)?;
        let answers = match (self.claim.question(), &self.left, &self.old, &self.new) {
            (None, None, Some(old), Some(new)) => self.upgrades(old, new, solver.is_some())?,
            (Some((question, claim)), Some(left), None, None) => {
                if self.right.is_some() && !question.compares() {
                    return Err(Fault::usage("this claim is about A alone"));
                }
                self.claims(question, claim, left, solver.is_some())?
            }
            (None, ..) => return Err(Fault::usage("of an upgrade, --old and --new say what is compared")),
            (Some(_), ..) => return Err(Fault::usage("--old and --new are of upgrades")),
        };
        if let Some(file) = &self.write {
            suite::write(file, &answers)?;
        }
        Ok((answers, solver.map(|solver| solver.name())))
    }

    fn upgrades(&self, old: &Path, new: &Path, has_solver: bool) -> Result<Vec<Answer>, Fault> {
        if self.that.is_some() || !self.definitions.is_empty() {
            return Err(Fault::usage("--that and --definitions are of no use for upgrades"));
        }
        if !has_solver {
            return Err(Fault::usage("there is neither z3 nor cvc5 on the PATH: upgrades need one"));
        }
        let definitions = |path: &Path| {
            let mut found = documents(&[path.to_owned()])?;
            found.retain(|document| is_definition(&document.value));
            Ok::<_, Fault>(found)
        };
        let (old, new) = (definitions(old)?, definitions(new)?);
        let pairs = paired(&old, Some(&new))?;
        let asked = upgrade::Asked {
            items: usize::from(self.items),
            solver: self.solver.as_deref(),
            timeout: self.timeout.unsigned_abs(),
        };
        let progress = Progress::of(Some(pairs.len()), "proving");
        let mut answers = Vec::new();
        for (old, new) in pairs {
            if let Some(new) = new {
                let compared = Compared { claim: "create", left: old, right: Some(new) };
                match compared.too_large(false) {
                    Some(answer) => answers.push(answer),
                    None => answers.extend(asked.answers(old, new)?),
                }
            }
            progress.step();
        }
        drop(progress);
        if answers.is_empty() {
            return Err(Fault::usage("there is no CRD in the files"));
        }
        Ok(answers)
    }

    fn claims(
        &self,
        question: Question,
        claim: &'static str,
        left: &Path,
        has_solver: bool,
    ) -> Result<Vec<Answer>, Fault> {
        let left = documents(&[left.to_owned()])?;
        let right = self.right.as_ref().map(|path| documents(std::slice::from_ref(path))).transpose()?;
        let definitions = documents(&self.definitions)?;
        let pairs = paired(&left, right.as_deref())?;
        if !has_solver {
            process::warn(
                "there is neither z3 nor cvc5 on the PATH: small objects are tried, which prove nothing",
            );
        }
        let progress = Progress::of(Some(pairs.len()), "proving");
        let mut answers = Vec::new();
        for (left, right) in pairs {
            let (compared, of_policy) = (Compared { claim, left, right }, is_policy(&left.value));
            if let Some(answer) = compared.too_large(of_policy) {
                answers.push(answer);
                continue;
            }
            let kinds = kinds(left, &definitions)?;
            for subject in &kinds.subjects {
                answers.push(self.answer((question, claim), subject, left, right)?);
            }
            if of_policy && (!kinds.unknown.is_empty() || kinds.subjects.is_empty()) {
                answers.push(compared.of_no_subject(&kinds.unknown, of_policy));
            }
            progress.step();
        }
        drop(progress);
        if answers.is_empty() {
            return Err(Fault::usage("there is neither a CRD nor a policy in the files"));
        }
        Ok(answers)
    }

    fn answer(
        &self,
        (question, claim): (Question, &'static str),
        subject: &Subject,
        left: &Document,
        right: Option<&Document>,
    ) -> Result<Answer, Fault> {
        let side = |document: &Document| {
            let side = if is_policy(&document.value) {
                Side::policy(&document.value, subject)
            } else {
                Side::definition(&document.value, subject)
            };
            side.map_err(|error| not_compiled(document, &error))
        };
        let (left_side, right_side) = (side(left)?, right.map(side).transpose()?);
        if let Some(that) = &self.that {
            Side::assumption(that, &left_side, subject)
                .map_err(|error| Fault::usage(format!("--that: {error}")))?;
        }
        let inquiry = Inquiry {
            question,
            subject,
            left: &left_side,
            right: right_side.as_ref(),
            that: self.that.as_deref(),
            items: usize::from(self.items),
        };
        let end = Instant::now().checked_add(self.timeout.unsigned_abs());
        let over = || end.is_some_and(|end| Instant::now() >= end);
        let mut solver = Program::find(self.solver.as_deref(), end).map_err(Fault::usage)?;
        let solver = solver.as_mut().map(|solver| solver as &mut dyn Solver);
        let verdict = inquiry.decide(solver, &over).map_err(Fault::internal)?;
        let compared: Vec<&Document> = std::iter::once(left).chain(right).collect();
        let undecided_at = match &verdict {
            Verdict::Undecided(undecided) => undecided
                .iter()
                .map(|one| {
                    let document = compared.get(one.side).copied().unwrap_or(left);
                    let at =
                        one.field.as_ref().map_or_else(|| document.here(), |field| document.position(field));
                    (document.file.to_string(), at)
                })
                .collect(),
            Verdict::Holds { .. } | Verdict::Refuted(_) => Vec::new(),
        };
        let kind = subject.kind();
        Ok(Answer {
            claim,
            names: compared.iter().map(|document| name(&document.value)).collect(),
            places: compared.iter().map(|document| (document.file.to_string(), document.here())).collect(),
            // The core group has an empty name.
            kind: format!("{}.{}.{}", kind.kind, kind.version, kind.group).trim_end_matches('.').to_owned(),
            verdict,
            undecided_at,
            is_policy: is_policy(&left.value),
            at: None,
        })
    }
}

/// Returns the kinds that a document's rules are about.
fn kinds(document: &Document, definitions: &[Document]) -> Result<Kinds, Fault> {
    if is_definition(&document.value) {
        let subjects = Kinds::declared(&document.value);
        let subjects = subjects.map_err(|error| not_compiled(document, &error))?;
        return Ok(Kinds { subjects, unknown: Vec::new() });
    }
    let given: Vec<&Document> = definitions.iter().filter(|given| is_definition(&given.value)).collect();
    let values: Vec<&Value> = given.iter().map(|given| &given.value).collect();
    Kinds::of(&document.value, &values, Some(&BuiltinKinds))
        .map_err(|error| not_compiled(given.get(error.definition).copied().unwrap_or(document), &error.error))
}

fn exit(verdict: &Verdict) -> Exit {
    match verdict {
        Verdict::Holds { .. } => Exit::Expected,
        Verdict::Refuted(_) => Exit::Differs,
        Verdict::Undecided(_) => Exit::Undecided,
    }
}

fn documents(paths: &[PathBuf]) -> Result<Vec<Document>, Fault> {
    let mut found = Vec::new();
    let mut take = |document: Document| {
        if is_policy(&document.value) || is_definition(&document.value) {
            found.push(document);
        }
        Ok(())
    };
    load::each_document(paths, &mut take)?.tell();
    Ok(found)
}

fn is_policy(value: &Value) -> bool {
    value.get("kind").and_then(Value::as_str) == Some("ValidatingAdmissionPolicy")
}

fn is_definition(value: &Value) -> bool {
    value.get("kind").and_then(Value::as_str) == Some("CustomResourceDefinition")
}

fn name(value: &Value) -> String {
    pointer::text(value, "/metadata/name").to_owned()
}

type Pair<'d> = (&'d Document, Option<&'d Document>);

/// Pairs the documents to compare: by kind and name; or if there is only one of a kind on each side, these.
fn paired<'d>(left: &'d [Document], right: Option<&'d [Document]>) -> Result<Vec<Pair<'d>>, Fault> {
    let Some(right) = right else { return Ok(left.iter().map(|document| (document, None)).collect()) };
    let mut pairs = Vec::new();
    for document in left {
        let same_kind = |other: &&Document| other.value.get("kind") == document.value.get("kind");
        let named =
            right.iter().find(|other| same_kind(other) && name(&other.value) == name(&document.value));
        let mut alone = right.iter().filter(same_kind);
        let alone = match (alone.next(), alone.next(), left.iter().filter(same_kind).count()) {
            (Some(one), None, 1) => Some(one),
            _ => None,
        };
        match named.or(alone) {
            Some(other) => pairs.push((document, Some(other))),
            None => {
                let (at, kind) = (document.here(), pointer::text(&document.value, "/kind"));
                return Err(Fault::usage(format!(
                    "{}:{}:{}: the other side has no {kind} to compare `{}` with: name files that hold it",
                    document.file,
                    at.line,
                    at.column,
                    name(&document.value)
                )));
            }
        }
    }
    Ok(pairs)
}
