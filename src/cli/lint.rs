//! `admit lint`: what a server would refuse, what its rules cost, and what is of no use.

use std::path::PathBuf;

use admit_policy::lint::{self, Finding, Report, Severity};
use admit_policy::manifest;
use clap::{Args, ValueEnum};

use super::Exit;
use super::load;
use super::process::{self, Fault};
use super::render::{self, Palette, lint as drawing};

/// Arguments of `admit lint`.
#[derive(Debug, Args)]
#[command(after_help = "\
Errors are what kube-apiserver would refuse, in its words. Warnings are what it would take and that does nothing, or \
not what it seems to: unused variables and params, rules whose answer no object changes, expressions in `message`, \
bindings and policies that miss each other. For rules of CRDs the estimated cost is told, with the fields whose missing \
maxItems, maxLength or maxProperties causes it.

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

    /// Tell the cost of every rule, not only of those that reach a hundredth of a limit
    #[arg(short, long)]
    verbose: bool,

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
                    None => Exit::Expected,
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
                match manifest::read(&file.display().to_string(), &load::text(&file)?) {
                    Ok(found) => documents.extend(found),
                    Err(found) => mistakes.extend(found),
                }
            }
        }
        if documents.is_empty() && mistakes.is_empty() {
            let paths: Vec<String> = self.paths.iter().map(|path| format!("`{}`", path.display())).collect();
            return Err(Fault::usage(format!("no manifests in {}", paths.join(", "))));
        }
        let mut report = lint::lint(&documents);
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
