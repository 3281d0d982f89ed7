//! `admit lint`: reports what a server would refuse, the estimated cost of rules, type errors, and policies or rules
//! that have no effect.

mod kustomize;

use std::path::PathBuf;

use admit_apiserver::BuiltinTypes;
use admit_language::Texts;
use admit_language::lint::{Linted as Checked, Reading, codes};
use admit_policy::LoadOptions;
use admit_policy::lint::{Finding, Report, Severity};
use admit_policy::manifest::LoadError;
use clap::Args;
use clap::builder::PossibleValuesParser;

use super::Exit;
use super::load::{self, Found};
use super::process::{self, Fault};
use super::progress::Progress;
use super::releases::{self, ReleaseArgs};
use super::render;
use super::render::lint::{self as drawing, Verdict};
use super::render::releases::Asked;
use super::report_format::ReportFormat;

/// Every warning, as `--deny` names them.
const WARNINGS: &str = "warnings";

/// Arguments of `admit lint`.
#[derive(Debug, Args)]
#[command(after_help = "\
Errors are what kube-apiserver would refuse, with its messages. Warnings are what it would accept although it has no \
effect, or not the intended one: unused variables and params, rules whose result is the same for all objects, \
expressions in `message`, bindings and policies that do not fit together; and what it would write into a policy's \
status: expressions that do not fit the types of the objects, of built-in kinds and of CRDs among the files. Kinds \
whose types are not known are listed with -v. For rules of CRDs the estimated cost is reported, with the fields whose \
missing maxItems, maxLength or maxProperties causes it.

Warnings alone are no failure, unless --deny says so. They are silenced by code: for all files with --allow, for one \
file by a comment `# admit:allow-file CODE` in it, at one place by `# admit:allow CODE` at the end of the line or in a \
line above. --kube-versions checks what the API servers of several releases would refuse, find too costly, drop or not \
check, and lists for each file the releases that accept it; all other checks follow release 1.36.

Folders may contain a whole repository. Files that are not manifests, and patches that a kustomization names, are \
skipped and reported as notes; templates of charts and unreadable files are reported as warnings. Documents with the \
same name are each checked as if they were alone.

Examples:
  admit lint policies/
  admit lint --deny warnings --allow type-check policies/
  admit lint -v crd.yaml
  admit lint -o sarif ./... > lint.sarif
  kustomize build . | admit lint -
  admit lint --ignore-unknown .
  admit lint --kube-versions 1.29..1.37 crds/

Exit codes: 0 no denied findings, 1 findings that --deny names, 2 usage or unreadable input, 3 errors: something would \
be refused, 4 internal error")]
pub(super) struct LintArgs {
    /// Policies, bindings, CRDs and params: files or folders (also `./...`), `-` for standard input
    #[arg(default_value = ".")]
    paths: Vec<PathBuf>,

    /// Report the cost of every rule, and which expressions were not type-checked
    ///
    /// Without it, only costs that reach a hundredth of a limit are reported.
    #[arg(short, long)]
    verbose: bool,

    /// Skip objects of kinds that no policy uses, such as an application's other manifests
    #[arg(long)]
    ignore_unknown: bool,

    #[command(flatten)]
    releases: ReleaseArgs,

    /// Findings that lead to exit code 1: all `warnings`, or those with a code; may be given several times
    #[arg(long, value_name = "WHAT", value_parser = PossibleValuesParser::new(std::iter::once(WARNINGS).chain(codes())))]
    deny: Vec<String>,

    /// Silence findings with this code; may be given several times
    #[arg(long, value_name = "CODE", value_parser = PossibleValuesParser::new(codes()))]
    allow: Vec<String>,

    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: ReportFormat,
}

impl LintArgs {
    pub(super) fn run(self) -> Exit {
        match self.report() {
            Ok(Linted { report, silenced, texts, asked }) => {
                let exit = self.exit(&report).max(undecided(asked.as_ref()));
                let verdict = Verdict { silenced, denied: exit == Exit::Differs, asked: asked.as_ref() };
                render::print(&match self.output {
                    ReportFormat::Text => drawing::text(&report, verdict, &texts, self.verbose),
                    ReportFormat::Json => drawing::json(&report, verdict),
                    ReportFormat::Sarif => drawing::sarif(&report),
                    ReportFormat::Github => drawing::github(&report),
                });
                exit
            }
            Err(fault) => process::fail(&fault),
        }
    }

    fn exit(&self, report: &Report) -> Exit {
        let is_denied = |finding: &Finding| {
            let by_code = self.deny.iter().any(|denied| denied == finding.code);
            by_code
                || finding.severity == Severity::Warning && self.deny.iter().any(|denied| denied == WARNINGS)
        };
        if report.findings.iter().any(|finding| finding.severity == Severity::Error) {
            Exit::NotCompiled
        } else if report.findings.iter().any(is_denied) {
            Exit::Differs
        } else {
            Exit::Expected
        }
    }

    /// Returns the findings, and how many of them are silenced. Invalid YAML is a finding like any other, so that one bad file
    /// does not hide the rest.
    fn report(&self) -> Result<Linted, Fault> {
        let reading = self.read()?;
        let options = LoadOptions { ignore_unknown: self.ignore_unknown };
        let mut asked = None;
        let Checked { report, silenced, texts } =
            reading.lint(options, &BuiltinTypes::default(), |documents, report| {
                asked = self.releases.asked().map(|asked| {
                    // Errors are reported by release.
                    report.findings.retain(|finding| {
                        finding.severity != Severity::Error || load::is_unknown_kind(&finding.mistake)
                    });
                    let documents: Vec<_> = documents.iter().map(|document| (**document).clone()).collect();
                    let (found, asked) = releases::findings(&documents, &asked);
                    report.findings.extend(found);
                    report.findings.sort_by(|a, b| {
                        let key =
                            |finding: &Finding| (finding.mistake.file.clone(), finding.mistake.position);
                        key(a).cmp(&key(b))
                    });
                    asked
                });
            });
        Ok(Linted { report, silenced, texts, asked })
    }

    fn read(&self) -> Result<Reading, Fault> {
        let mut reading = Reading::allowing(&self.allow);
        let progress = Progress::of(None, "files read:");
        for path in &self.paths {
            let files = load::files(path)?;
            let patches = kustomize::patches(load::without_recursion(path), &files);
            for file in &files {
                match patches.get(&load::normal(&file.path)).filter(|_| !file.named) {
                    Some(kustomization) => reading.part(&file.path.display().to_string(), kustomization),
                    None => read(&mut reading, file)?,
                }
                progress.step();
            }
        }
        if reading.is_empty() {
            let paths: Vec<String> = self.paths.iter().map(|path| format!("`{}`", path.display())).collect();
            return Err(Fault::usage(format!("no manifests in {}", paths.join(", "))));
        }
        Ok(reading)
    }
}

fn read(reading: &mut Reading, file: &Found) -> Result<(), Fault> {
    let name = file.path.display().to_string();
    match file.text() {
        Ok(text) => reading.file(&name, text, file.named),
        Err(fault) if file.named => return Err(fault),
        Err(fault) => {
            let mistake = LoadError {
                file: name.into(),
                position: Default::default(),
                field: String::new(),
                message: fault.message,
            };
            reading.find("unreadable", Severity::Warning, mistake, "it was passed over");
        }
    }
    Ok(())
}

/// Returns the exit code if documents were not judged.
fn undecided(asked: Option<&Asked>) -> Exit {
    if asked.is_some_and(Asked::is_late) { Exit::Undecided } else { Exit::Expected }
}

/// The result of a run.
struct Linted {
    report: Report,
    /// The number of silenced findings, which are not in the report.
    silenced: usize,
    texts: Texts,
    /// The results of the releases, if any were requested.
    asked: Option<Asked>,
}
