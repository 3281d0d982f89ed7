//! `admit check`: shows the results of applying manifests, compared with the objects that existed before.
//!
//! Reads the new objects, the old ones (from files or from a git revision) and the policies; the policy package pairs
//! the objects and decides. There may be as many objects as in a cluster: they are read one by one, held in compact
//! form, and decided and printed one by one.

mod asked;
mod fields;
pub(super) mod git;
mod held;
mod input;
mod live;

use std::path::PathBuf;

use clap::Args;

pub(super) use self::asked::AskedArgs;
use self::fields::Fields;
pub(super) use self::input::{InputArgs, Inputs};
pub(super) use self::live::read_from;
use super::Exit;
use super::load;
use super::process::{self, Fault};
use super::progress::Progress;
use super::releases::{self, Limited, ReleaseArgs};
use super::render::check::{Drawing, Format, ObjectReport, Rest, Style};
use super::render::{self, Palette};

/// Arguments of `admit check`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("input").args(["filenames", "kubeconfig"]).required(true))]
#[command(after_help = "\
Objects are paired with old ones by kind, namespace and name: an object with an old one is updated, transition rules \
and ratcheting included; one that equals its old one is not sent at all; all others are created. An old object from a \
server, as `kubectl get -o yaml` writes it, keeps the fields that the manifest does not set, as with kubectl apply. \
Definitions, policies, Namespaces and params among the manifests are in force. Objects of built-in kinds are read \
strictly and get the server's defaults; of the server's own validation, the part that is implemented runs. -v names \
the objects whose kinds are unknown, which are taken as written. Messages of schemas, rules and policies are \
kube-apiserver's.

kube-apiserver's admission plugins also decide about objects of built-in kinds, by the manifests and policies: \
PodSecurity by the labels of Namespaces, LimitRanger, ResourceQuota, ServiceAccount, Priority, RuntimeClass and the \
default classes by their objects. A quota is charged with one object after the other, in addition to what --old \
contains or its status says. A class or an account that an object names and no file contains is assumed to exist; -v \
names it. What controllers create for Deployments and the like is not known. With --kubeconfig, no plugins run.

Examples:
  admit check -f manifests/ --policies policies/
  admit check -f manifests/ --policies policies/ --old-git origin/main
  admit check -f cluster.yaml --policies policies/ --only-denied
  admit check -f manifests/ --policies policies/ -o sarif > check.sarif
  admit check -f manifests/ --policies policies/ --kube-versions 1.30..1.37
  admit check --kubeconfig ~/.kube/config --policies policies/ --only-denied
  admit check -f new.yaml --old old.yaml --policies crd.yaml
  admit check -f manifests/ --disable-admission-plugins ResourceQuota
  kubectl get widgets -A -o yaml > live.yaml && admit check -f ./... --old live.yaml
  helm template chart | admit check -f - --policies policies/ -o json
  admit check -f widget.yaml --old live.yaml --policies crd.yaml --subresource status
  admit check -f manifests/ --policies policies/ --operation DELETE --as dev --as-group ops

Exit codes: 0 everything is admitted, 1 something is refused, 2 usage or unreadable input, 3 a policy or CRD of \
--policies does not compile, 4 internal error")]
pub(super) struct CheckArgs {
    #[command(flatten)]
    input: InputArgs,

    /// Check the objects of the cluster of this kubeconfig instead of manifests
    ///
    /// The objects that the policies and definitions match are read, and each is checked as if it were created as it is stored.
    /// Nothing is written to the cluster.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["old", "old_git", "subresource", "releases",
        "enable_admission_plugins", "disable_admission_plugins", "admission_control_config_file"])]
    kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig to use [default: its current context]
    #[arg(long, value_name = "NAME", requires = "kubeconfig")]
    context: Option<String>,

    /// Apply the cluster's PolicyExceptions and ClusterPolicyExceptions, as a webhook with this flag does: admit what they name
    #[arg(long, requires = "kubeconfig")]
    cluster_exceptions: bool,

    #[command(flatten)]
    releases: ReleaseArgs,

    /// Name every policy and rule that was evaluated for an object
    #[arg(short, long)]
    verbose: bool,

    /// Print only refused objects; all others are only counted
    #[arg(long)]
    only_denied: bool,

    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

impl CheckArgs {
    pub(super) fn run(self) -> Exit {
        let outcome = match self.releases.asked() {
            Some(asked) => self.by_release(&asked),
            None => self.decided(&mut |text| render::print(text)),
        };
        match outcome {
            Ok(exit) => exit,
            Err(fault) => process::fail(&fault),
        }
    }

    /// Runs once for each group of releases with the same results.
    fn by_release(&self, asked: &Limited<'_>) -> Result<Exit, Fault> {
        if !matches!(self.output, Format::Text | Format::Json) {
            return Err(Fault::usage("--kube-versions writes text or json"));
        }
        let paths = self.input.definitions();
        if paths.iter().any(|path| load::is_stdin(path)) {
            return Err(Fault::usage(
                "--kube-versions reads its input several times: standard input can be read only once",
            ));
        }
        releases::run(asked, &paths, matches!(self.output, Format::Json), || {
            let mut written = String::new();
            self.decided(&mut |text| written.push_str(text)).map(|exit| (exit, written))
        })
    }

    /// Decides, and reports one object after the other.
    fn decided(&self, tell: &mut dyn FnMut(&str)) -> Result<Exit, Fault> {
        let inputs = match &self.kubeconfig {
            Some(kubeconfig) => {
                self.input.read_live(kubeconfig, self.context.as_deref(), self.cluster_exceptions)?
            }
            None => self.input.read()?,
        };
        let rehearsal = inputs.rehearsal();
        let (verbose, only_denied, palette) = (self.verbose, self.only_denied, Palette::of_stdout());
        let mut drawing = Drawing::new(self.output, Style { verbose, only_denied, palette });
        let progress = Progress::of(Some(inputs.count()), "checking");
        let mut fields = Fields::default();
        for pair in inputs.pairs() {
            let (file, at) = inputs.place(&pair);
            let applied = rehearsal.apply(&pair);
            let causes = applied.refusal.iter().flat_map(|status| status.causes());
            let refused = causes.map(|cause| cause.field.as_str()).find(|field| !field.is_empty());
            let refused = refused.filter(|_| self.output.is_of_lines());
            let field = refused.and_then(|field| fields.position(&file, at, field));
            let object = ObjectReport { file, at, field, identity: pair.identity, applied };
            let drawn = drawing.object(&object);
            if !drawn.is_empty() {
                progress.aside(|| tell(&drawn));
            }
            progress.step();
        }
        drop(progress);
        let set = &inputs.set;
        let undecided = set.policies().next().is_none()
            && set.mutating_policies().next().is_none()
            && set.documents().crds().is_empty();
        tell(&drawing.rest(&Rest { left: &inputs.left, undecided }));
        let refused = if drawing.refused() == 0 { Exit::Expected } else { Exit::Differs };
        // Objects that could not be read might be rejected.
        Ok(if inputs.unread.is_empty() { refused } else { Exit::Usage })
    }
}
