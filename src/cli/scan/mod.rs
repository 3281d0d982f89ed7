//! `admit scan`: reports how policies decide about the objects of a cluster, or of files, by namespace.
//!
//! The objects are read and decided as `admit check` does it ([`super::check`]), and counted by [`admit_analysis::scan`].

mod controller;
mod scanned;

use std::path::PathBuf;
use std::time::Instant;

use admit_analysis::replay::Side;
use admit_analysis::scan::{Flavour, Report, Scan, documents};
use admit_apimachinery::pointer;
use admit_policy::GroupVersionKind;
use admit_policy::manifest::Document;
use clap::Args;
use jiff::SignedDuration;
use serde_json::Value;
use tokio::time::timeout;

pub(super) use self::controller::ScanControllerArgs;
pub(super) use self::scanned::Scanned;

use super::check::{AskedArgs, InputArgs, Inputs, read_from};
use super::process::{self, Fault};
use super::progress::Progress;
use super::render::{self, Output, Palette, scan as drawing};
use super::value_parsers::limit;
use super::{Exit, client};
use crate::controllers::scan::apply;

/// Arguments of `admit scan`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("stored").args(["filenames", "kubeconfig"]).required(true))]
#[command(after_help = "\
Each object is evaluated as if it were created as it is stored. An update of an object to itself would find nothing, because \
fields that an update does not change are not checked again, and a rule that compares with the old object cannot be applied to \
one object. The creator of an object is not stored: policies that depend on the user are skipped, unless --as names one.

There is a report for each namespace, and one for cluster-scoped objects: all results are counted, and the 1,000 most severe \
that do not pass are listed. -o json writes a List of OpenReports (openreports.io/v1alpha1) and PolicyReports \
(wgpolicyk8s.io/v1alpha2); --apply writes those whose definitions the cluster has (deploy/reports contains both) to it, by \
server-side apply, and deletes its own reports on namespaces that have nothing to report any more. Nothing else is written.

Examples:
  admit scan --kubeconfig ~/.kube/config --policies policies/
  admit scan --kubeconfig ~/.kube/config --policies policies/ --apply
  admit scan -f cluster.yaml --policies policies/ -o json
  admit scan -f deploy/samples --policies policies --policies deploy/crds --as admin

Exit codes: 0 nothing fails, 1 something fails, 2 usage or unreadable input, 3 a policy or CRD does not compile, 4 internal \
error, 5 nothing fails, but something is undecided")]
pub(super) struct ScanArgs {
    /// Objects to scan: files, folders (also `./...`), `-` for standard input
    #[arg(short, long = "filename", value_name = "PATH")]
    filenames: Vec<PathBuf>,

    /// Scan the objects of this kubeconfig's cluster that the policies and definitions match, instead of files
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig to use [default: its current context]
    #[arg(long, value_name = "NAME", requires = "kubeconfig")]
    context: Option<String>,

    /// Apply the cluster's PolicyExceptions and ClusterPolicyExceptions, as a webhook with this flag does: admit what they name
    #[arg(long, requires = "kubeconfig")]
    cluster_exceptions: bool,

    /// Write the reports to the cluster
    #[arg(long, requires = "kubeconfig")]
    apply: bool,

    #[command(flatten)]
    by: ByArgs,

    /// Time limit for the scan; what is not decided by then is not reported
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = limit)]
    timeout: SignedDuration,

    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

/// The policies, and the user in whose name objects are decided.
#[derive(Clone, Debug, Args)]
struct ByArgs {
    /// Policies, bindings, exceptions, CRDs, params, Namespaces and roles: files or folders
    #[arg(long, value_name = "PATH", required = true)]
    policies: Vec<PathBuf>,

    /// Namespace of objects that name none
    #[arg(short, long, default_value = "default")]
    namespace: String,

    /// Name of the user to assume as creator of the objects
    #[arg(long = "as", value_name = "USER")]
    user: Option<String>,

    /// A group that the user is in; may be given several times
    #[arg(long = "as-group", value_name = "GROUP", requires = "user")]
    groups: Vec<String>,

    /// File with the authorizer's answers to CEL expressions, a list as under `authorizer` in suites [default: answers follow the
    /// roles and bindings among the files]
    #[arg(long, value_name = "FILE")]
    authorizer: Option<PathBuf>,

    /// Accept objects of kinds that no policy uses in the files of --policies
    #[arg(long)]
    ignore_unknown: bool,
}

impl ScanArgs {
    pub(super) fn run(self) -> Exit {
        match self.scanned() {
            Ok(scanned) => {
                render::print(&match self.output {
                    Output::Text => drawing::text(&scanned, Palette::of_stdout()),
                    Output::Json => drawing::json(&scanned),
                });
                scanned.exit()
            }
            Err(fault) => process::fail(&fault),
        }
    }

    fn scanned(&self) -> Result<Scanned, Fault> {
        let most = self.timeout.unsigned_abs();
        let end = Instant::now().checked_add(most);
        let inputs = self.by.inputs(self.filenames.clone());
        let Some(kubeconfig) = &self.kubeconfig else {
            return Ok(scan(&inputs.read()?, self.by.user.is_some(), end));
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Fault::internal(format!("cannot start the runtime: {error}")))?;
        let connecting = client::client_of_context(kubeconfig.clone(), self.context.clone());
        let client = runtime.block_on(connecting)?;
        let late = || {
            Fault::usage(format!(
                "the objects were not all listed within {:#}; --timeout gives it longer",
                self.timeout
            ))
        };
        let scanned = inputs.read_stored(|set| {
            let listed = runtime
                .block_on(async { timeout(most, read_from(&client, set, self.cluster_exceptions)).await });
            listed.unwrap_or_else(|_| Err(late()))
        })?;
        let scanned = scan(&scanned, self.by.user.is_some(), end);
        if !self.apply {
            return Ok(scanned);
        }
        if scanned.late > 0 {
            return Err(Fault::usage(format!(
                "{} objects were not decided within {:#}, and half a report is none: nothing is written; --timeout gives it longer",
                scanned.late, self.timeout
            )));
        }
        let written = runtime.block_on(apply::write(&client, &scanned.documents()));
        written.map_err(|error| Fault::usage(format!("cannot write the reports: {error}")))?;
        Ok(scanned)
    }
}

impl ByArgs {
    fn inputs(&self, filenames: Vec<PathBuf>) -> InputArgs {
        let user = self.user.clone().unwrap_or_else(|| "admin".to_owned());
        let asked = AskedArgs::by(self.namespace.clone(), user, self.groups.clone(), self.authorizer.clone());
        InputArgs::standing(filenames, self.policies.clone(), asked, self.ignore_unknown)
    }
}

impl Scanned {
    /// Returns the reports as objects of both report APIs.
    pub(super) fn documents(&self) -> Vec<Value> {
        Flavour::ALL.into_iter().flat_map(|flavour| documents(&self.reports, flavour)).collect()
    }

    pub(super) fn exit(&self) -> Exit {
        let any = |count: fn(&Report) -> u64| self.reports.values().any(|report| count(report) > 0);
        if any(|report| report.summary.fail) {
            Exit::Differs
        } else if self.unread > 0 {
            // Objects that could not be read may fail.
            Exit::Usage
        } else if self.late > 0 || any(|report| report.undecided) {
            Exit::Undecided
        } else {
            Exit::Expected
        }
    }
}

/// Decides the objects until `end`.
fn scan(inputs: &Inputs, as_somebody: bool, end: Option<Instant>) -> Scanned {
    let is_role =
        |document: &Document| GroupVersionKind::of(&document.value).group == "rbac.authorization.k8s.io";
    let side = Side::new(&inputs.set, &inputs.policies, inputs.policies.iter().any(is_role));
    let (rehearsal, mut scan) = (inputs.rehearsal(), Scan::new(side, as_somebody));
    let progress = Progress::of(Some(inputs.count()), "scanning");
    let mut late = 0;
    for pair in inputs.pairs() {
        if end.is_some_and(|end| Instant::now() >= end) {
            late += 1;
            continue;
        }
        let uid = pointer::text(&pair.new, "/metadata/uid").to_owned();
        scan.add(&pair.identity, &uid, &rehearsal.apply(&pair));
        progress.step();
    }
    drop(progress);
    Scanned { reports: scan.finish(), late, unread: inputs.unread.len() }
}
