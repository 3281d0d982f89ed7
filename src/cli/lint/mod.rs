//! `admit lint`: what a server would refuse, what its rules cost, what does not fit its types, and what is of no use.

mod types;

use std::path::PathBuf;

use admit_policy::LoadOptions;
use admit_policy::lint::{self, Finding, Report, Severity};
use clap::{Args, ValueEnum};

use self::types::BuiltinTypes;
use super::Exit;
use super::load;
use super::process::{self, Fault};
use super::render::{self, Palette, lint as drawing};

/// Arguments of `admit lint`.
#[derive(Debug, Args)]
#[command(after_help = "\
Errors are what kube-apiserver would refuse, in its words. Warnings are what it would take and that does nothing, or \
not what it seems to: unused variables and params, rules whose answer no object changes, expressions in `message`, \
bindings and policies that miss each other; and what it would write into a policy's status: expressions that do not fit \
the types of the objects, built-in kinds and those of CRDs among the files. Kinds whose types are not known are told \
with -v. For rules of CRDs the estimated cost is told, with the fields whose missing maxItems, maxLength or \
maxProperties causes it.

Examples:
  admit lint policies/
  admit lint -v crd.yaml
  admit lint -o sarif ./... > lint.sarif
  kustomize build . | admit lint -

Exit codes: 0 nothing found, 1 warnings only, 2 usage or unreadable input, 3 errors: something would be refused, \
4 internal error")]
pub(super) struct LintArgs {
    /// Policies, bindings, CRDs and params: files or folders (`./...` and `-` for standard input are understood)
    #[arg(default_value = ".")]
    paths: Vec<PathBuf>,

    /// Tell the cost of every rule, not only of those that reach a hundredth of a limit, and which expressions were not
    /// type-checked
    #[arg(short, long)]
    verbose: bool,

    /// Pass over objects of kinds that no policy uses, as all manifests of an application have them
    #[arg(long)]
    ignore_unknown: bool,

    /// How results are written
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Format {
    /// For people: a line a finding, then the costs
    #[default]
    Text,
    /// One document
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// Annotations of GitHub Actions
    Github,
}

impl LintArgs {
    pub(super) fn run(self) -> Exit {
        match self.report() {
            Ok(report) => {
                render::print(&match self.output {
                    Format::Text => drawing::text(&report, self.verbose, Palette::of_stdout()),
                    Format::Json => drawing::json(&report),
                    Format::Sarif => drawing::sarif(&report),
                    Format::Github => drawing::github(&report),
                });
                match report.findings.iter().map(|finding| finding.severity).max() {
                    None | Some(Severity::Note) => Exit::Expected,
                    Some(Severity::Warning) => Exit::Differs,
                    Some(Severity::Error) => Exit::NotCompiled,
                }
            }
            Err(fault) => process::fail(&fault),
        }
    }

    /// Text that is no YAML is a finding like any other, so that one bad file does not hide the rest.
    fn report(&self) -> Result<Report, Fault> {
        let (mut documents, mut mistakes) = (Vec::new(), Vec::new());
        for path in &self.paths {
            for file in load::files(path)? {
                match load::read(&file)? {
                    Ok(found) => documents.extend(found),
                    Err(found) => mistakes.extend(found),
                }
            }
        }
        if documents.is_empty() && mistakes.is_empty() {
            let paths: Vec<String> = self.paths.iter().map(|path| format!("`{}`", path.display())).collect();
            return Err(Fault::usage(format!("no manifests in {}", paths.join(", "))));
        }
        let options = LoadOptions { ignore_unknown: self.ignore_unknown };
        let mut report = lint::lint(&documents, options, &BuiltinTypes::default());
        for finding in report.findings.iter_mut().filter(|finding| load::is_unknown_kind(&finding.mistake)) {
            finding.help = load::IGNORE_UNKNOWN.to_owned();
        }
        let unread = mistakes.into_iter().map(|mistake| Finding {
            code: "not-yaml",
            severity: Severity::Error,
            mistake,
            help: String::new(),
        });
        report.findings.splice(0..0, unread).for_each(drop);
        Ok(report)
    }
}
