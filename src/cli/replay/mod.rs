//! `admit replay`: reports how policies would have decided about the requests of an audit log.
//!
//! One thread reads and decompresses, another decides: see `lines`, and [`admit_analysis::replay`], which limits the memory for
//! objects.

mod lines;
mod state;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use admit_analysis::replay::{MAX_LINE, Place, Replay, Report, Side, Unread};
use admit_apiserver::BuiltinKinds;
use admit_policy::manifest::Document;
use admit_policy::{GroupVersionKind, LoadOptions, PolicySet};
use clap::Args;
use jiff::SignedDuration;
use serde_json::value::RawValue;

use self::lines::{Content, Log, Piece};
use super::process::{self, Fault};
use super::progress::Progress;
use super::render::{self, Output, Palette, replay};
use super::value_parsers::limit;
use super::{Exit, conversion, load};

/// The timeout if the given one is too long to be represented.
const FOREVER: Duration = Duration::from_hours(24 * 365);
/// Pieces that are read ahead.
const AHEAD: usize = 4;

/// Arguments of `admit replay`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("by").args(["policies", "compare"]).required(true))]
#[command(after_help = "\
From audit logs (audit.k8s.io/v1, one JSON document per line), events of the stage ResponseComplete at level \
RequestResponse can be decided. Old objects are known from earlier events and from --state; a policy that reads \
nothing unknown decides all the same. What cannot be decided is counted by its cause, and never guessed. Recorded \
AdmissionReviews (admission.k8s.io/v1) each contain everything that is needed.

Examples:
  admit replay audit.log --policies policies/
  admit replay audit-2.log.gz audit-1.log.gz audit.log --policies policies/ --state cluster.yaml
  zcat audit.log.gz | admit replay - --policies policies/ -o json
  admit replay audit.log --compare released/ policies/
  admit replay /var/log/kube-apiserver/audit*.log --policies policies/ --timeout 30m
  kubectl get widgets,namespaces -A -o yaml > cluster.yaml

Exit codes: 0 nothing would be denied, 1 something would be denied, or with --compare decided otherwise, 2 usage or \
unreadable input, 3 a policy or CRD does not compile, 4 internal error, 5 nothing would be denied, and something cannot be \
decided")]
pub(super) struct ReplayArgs {
    /// Audit logs, plain or compressed with gzip, oldest first; `-` for standard input
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<PathBuf>,

    /// Policies, bindings, CRDs, params, Namespaces and roles: files or folders
    #[arg(long, value_name = "PATH")]
    policies: Vec<PathBuf>,

    /// Show only the requests that two folders of policies decide differently
    #[arg(long, num_args = 2, value_names = ["OLD", "NEW"], conflicts_with = "policies")]
    compare: Vec<PathBuf>,

    /// Objects as they were stored when the log began, as `kubectl get -o yaml` writes them: files or folders
    #[arg(long, value_name = "PATH")]
    state: Vec<PathBuf>,

    /// Accept objects of kinds that no policy uses in the files of --policies
    #[arg(long)]
    ignore_unknown: bool,

    /// Time limit for the replay; how much of the log was not read by then is reported, and it is not decided
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = limit)]
    timeout: SignedDuration,

    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

impl ReplayArgs {
    pub(super) fn run(self) -> Exit {
        match self.report() {
            Ok(report) => {
                render::print(&match self.output {
                    Output::Text => replay::text(&report, Palette::of_stdout()),
                    Output::Json => replay::json(&report),
                });
                exit(&report)
            }
            Err(fault) => process::fail(&fault),
        }
    }

    fn report(&self) -> Result<Report, Fault> {
        let logs = Log::open_all(&self.logs)?;
        let (newer, older) = match self.compare.as_slice() {
            [older, newer] => (vec![newer.clone()], Some(vec![older.clone()])),
            _ => (self.policies.clone(), None),
        };
        let newer = self.folder(&newer)?;
        let older = older.map(|older| self.folder(&older)).transpose()?;
        let mut replay = Replay::new(newer.side(), older.as_ref().map(Folder::side));
        state::each(&self.state, &mut |object| replay.hold(object))?;
        let end = Instant::now().checked_add(self.timeout.unsigned_abs());
        decide(logs, &mut replay, end)?;
        Ok(replay.finish())
    }

    /// Loads the policies of a folder, with the objects of `--state` that they look up.
    fn folder(&self, paths: &[PathBuf]) -> Result<Folder, Fault> {
        let mut documents = load::policy_documents(paths)?;
        let options = LoadOptions { ignore_unknown: self.ignore_unknown };
        let load = |documents: &[Document], options| {
            PolicySet::load_with(documents, options)
                .map(|set| load::as_of_now(set).converting(conversion::offline).knowing(&BuiltinKinds))
                .map_err(|errors| load::with_hint(load::not_compiled(&errors)))
        };
        let set = load(&documents, options)?;
        load::tell_ended(&set);
        let asked = state::asked_for(&self.state, &set, &documents)?;
        if asked.is_empty() {
            return Ok(Folder { set, documents });
        }
        documents.extend(asked);
        Ok(Folder { set: load(&documents, LoadOptions { ignore_unknown: true })?, documents })
    }
}

/// A compiled set of policies with its documents.
struct Folder {
    set: PolicySet,
    documents: Vec<Document>,
}

impl Folder {
    fn side(&self) -> Side<'_> {
        Side::new(&self.set, &self.documents, self.knows_access())
    }

    /// Whether there are roles, so that authorizer checks can be answered.
    fn knows_access(&self) -> bool {
        let is_role =
            |document: &Document| GroupVersionKind::of(&document.value).group == "rbac.authorization.k8s.io";
        self.documents.iter().any(is_role)
    }
}

/// Replays the logs, as far as time permits: the first line that was not read is reported.
fn decide(logs: Vec<Log>, replay: &mut Replay<'_>, end: Option<Instant>) -> Result<(), Fault> {
    let (sender, pieces) = sync_channel(AHEAD);
    let progress = Progress::of(None, "lines read:");
    // The thread is not joined: a pipe without data would block it for ever. It ends when the receiver is gone.
    let reading = thread::Builder::new().name("log".to_owned()).spawn(move || {
        logs.into_iter().for_each(|log| log.send(&sender));
    });
    reading.map_err(Fault::internal)?;
    let mut next = ("-".into(), 1);
    loop {
        let left = end.map_or(FOREVER, |end| end.saturating_duration_since(Instant::now()));
        match pieces.recv_timeout(left) {
            Ok(piece) if left.is_zero() => {
                replay.unread(Place { file: &piece.file, line: piece.line }, Unread::Late);
                return Ok(());
            }
            Ok(piece) => {
                take(&piece, replay, &progress);
                next = (Arc::clone(&piece.file), piece.line);
            }
            Err(RecvTimeoutError::Timeout) => {
                let (file, line) = &next;
                replay.unread(Place { file, line: *line }, Unread::Late);
                return Ok(());
            }
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

fn take(Piece { file, line, content }: &Piece, replay: &mut Replay<'_>, progress: &Progress) {
    match content {
        Content::Unread(why) => replay.unread(Place { file, line: *line }, *why),
        Content::Lines(text) => {
            for (line, text) in (*line..).zip(text.split(|byte| *byte == b'\n')) {
                progress.step();
                let place = Place { file, line };
                if text.len() > MAX_LINE {
                    replay.unread(place, Unread::TooLong);
                } else {
                    replay.line(place, text);
                }
            }
        }
        Content::Documents(text) => {
            let mut documents = serde_json::Deserializer::from_slice(text).into_iter::<&RawValue>();
            loop {
                let before = text.get(..documents.byte_offset()).unwrap_or_default();
                let feeds = before.iter().filter(|byte| **byte == b'\n').count();
                let place = Place { file, line: line.saturating_add(u64::try_from(feeds).unwrap_or(0)) };
                match documents.next() {
                    None => return,
                    Some(Ok(document)) => replay.line(place, document.get().as_bytes()),
                    Some(Err(error)) => {
                        let why = if error.is_eof() { Unread::Cut } else { Unread::Malformed };
                        return replay.unread(place, why);
                    }
                }
            }
        }
    }
}

fn exit(report: &Report) -> Exit {
    let counts = &report.counts;
    let differs = if report.compared { counts.changed } else { counts.denied };
    if differs > 0 {
        Exit::Differs
    } else if counts.undecided > 0 || !report.unread.is_empty() {
        Exit::Undecided
    } else {
        Exit::Expected
    }
}
