//! Second stage: decides the next step for one MustGather. Pure: no client, no clock, no waiting.
//!
//! ```text
//!  (none) ──► finalizer ──► Job created, Running ──► Completed ──► cleaned up, unless retained
//!     └────────────────────────────┴──────────────► Failed ─────►       "
//! ```
//!
//! INVARIANT: a result is final, whoever restarts, deletes the Job or edits the object; and no second Job is ever
//! created for one object: once it was Running, a missing Job is a failure.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;

use super::crd::{MustGather, MustGatherStatus, Phase};
use super::fetch::{Fetched, ImageError, Inputs, Login, SecretView};
use super::job::{self, Creation, JobView, NoJob, manifest};
use super::settings::Settings;
use super::status::{self, STUCK};
use super::{FINALIZER, limit, obfuscation};
use crate::controllers::kit::conditions::{self, Statement, Truth};
use crate::controllers::kit::events::Notice;
use crate::controllers::kit::pods::Hindrance;
use crate::gather::tunnel::Proxies;
use crate::gather::upload::sftp::{KnownHosts, Patience, Sftp, Trust};

/// How soon missing objects are looked up again; the watch of Secrets may report them earlier.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// The plan, at stage `W`: [`Prepared`] before it is applied, [`super::apply::Applied`] after.
#[derive(Debug)]
pub struct Plan<W> {
    /// The status to write; `None` if it is unchanged.
    pub status: Option<MustGatherStatus>,
    /// Events to record once the status is written.
    pub notices: Vec<Notice>,
    pub work: W,
    /// When to reconcile again without a change.
    pub again: Option<Duration>,
}

/// Work before the status update, except [`Self::CleanUp`] and [`Self::Suspend`], which are done after it.
#[derive(Debug)]
pub enum Prepared {
    Nothing,
    AddFinalizer,
    Create(Box<Created>),
    /// Remove the leftovers of a MustGather that has ended.
    CleanUp,
    /// Suspend a Job that is retained although its MustGather has ended.
    Suspend,
    /// Remove the finalizer of an object that is being deleted, with or without cleaning up.
    Release {
        clean: bool,
    },
}

/// A Job to create, with the steps before that.
#[derive(Debug)]
pub struct Created {
    pub job: Job,
    /// Whether the Secret is copied to the namespace of the Job.
    pub copy: bool,
    /// The SFTP server to check before the Job is created.
    pub preflight: Option<Sftp>,
}

/// Decides the next step.
pub fn plan(fetched: &Fetched, settings: &Settings) -> Plan<Prepared> {
    let Fetched { object, job, hindrance, inputs, now: _ } = fetched;
    let ours = object.finalizers().iter().any(|finalizer| finalizer == FINALIZER);
    if object.metadata.deletion_timestamp.is_some() {
        let clean = !object.spec.retains();
        return Plan::of(if ours { Prepared::Release { clean } } else { Prepared::Nothing });
    }
    if object.has_ended() {
        return Plan::of(after_the_end(fetched, settings));
    }
    if !ours {
        return Plan::of(Prepared::AddFinalizer);
    }
    match job {
        JobView::Foreign => {
            let (namespace, name) = job::place(object, settings.rules.job_namespace.as_deref());
            ended(
                (fetched, settings),
                Phase::Failed,
                &format!("a Job {namespace}/{name} exists that is not of this MustGather"),
            )
        }
        JobView::Active | JobView::Suspended => match hindrance {
            Some(hindrance) if !hindrance.passes => stuck(fetched, settings, hindrance),
            hindrance => running(fetched, hindrance.as_ref()),
        },
        JobView::Succeeded => ended((fetched, settings), Phase::Completed, "MustGather Job pods succeeded"),
        JobView::Failed(why) => {
            ended((fetched, settings), Phase::Failed, &format!("MustGather Job pods failed: {why}"))
        }
        JobView::Missing if phase(object) == Some(Phase::Running) => {
            ended((fetched, settings), Phase::Failed, "the Job was deleted before it ended")
        }
        JobView::Missing => match inputs {
            Some(inputs) => begin(fetched, inputs, settings),
            None => Plan::of(Prepared::Nothing),
        },
    }
}

impl Plan<Prepared> {
    fn of(work: Prepared) -> Self {
        Self { status: None, notices: Vec::new(), work, again: None }
    }
}

/// Returns the work about the leftovers of an object that has ended, or is about to.
fn after_the_end(fetched: &Fetched, settings: &Settings) -> Prepared {
    // A copy of the Secret may exist without a Job.
    let copies = settings.rules.job_namespace.is_some() && fetched.object.spec.sftp().is_some();
    match &fetched.job {
        JobView::Foreign => Prepared::Nothing,
        JobView::Missing if !copies => Prepared::Nothing,
        _ if !fetched.object.spec.retains() => Prepared::CleanUp,
        // Its Pod waits for something. If that appeared, it would gather and upload for an object that has failed.
        JobView::Active => Prepared::Suspend,
        _ => Prepared::Nothing,
    }
}

fn phase(object: &MustGather) -> Option<Phase> {
    object.status.as_ref().and_then(|status| status.status)
}

/// Plans to create the Job, or reports why that is impossible.
fn begin(fetched: &Fetched, inputs: &Inputs, settings: &Settings) -> Plan<Prepared> {
    match created(fetched, inputs, settings) {
        Ok(created) => {
            let status = status::next(fetched, Phase::Running, "the Job was created", None);
            let notice = Notice {
                warning: false,
                reason: "JobCreated",
                action: "Gather",
                note: format!("Job {} created", created.job.name_any()),
            };
            Plan { status, notices: vec![notice], ..Plan::of(Prepared::Create(Box::new(created))) }
        }
        Err(NoJob::Final(reason)) => ended((fetched, settings), Phase::Failed, &reason),
        Err(NoJob::Passing(reason)) => {
            let status = status::next(fetched, Phase::None, "", Some(&reason));
            let notices = if status.is_some() { vec![warning(reason)] } else { Vec::new() };
            Plan { status, notices, again: Some(LOOK_AGAIN), ..Plan::of(Prepared::Nothing) }
        }
    }
}

fn created(fetched: &Fetched, inputs: &Inputs, settings: &Settings) -> Result<Created, NoJob> {
    let Fetched { object, now, .. } = fetched;
    let Inputs { account, secret, cluster, hiding, image } = inputs;
    let rules = &settings.rules;
    let spec = &object.spec;
    contradictions(object)?;
    let name = job::place(object, rules.job_namespace.as_deref()).1;
    if name.len() > job::MAX_NAME {
        return Err(NoJob::Final(format!(
            "the name has {} characters, and a Job of it at most {}",
            name.len(),
            job::MAX_NAME
        )));
    }
    let limit = limit::parse(spec.must_gather_timeout.as_deref().unwrap_or_default());
    let limit = limit.map_err(|error| NoJob::Final(error.to_string()))?;
    if !account {
        let reason =
            format!("Service Account validation failed: there is no ServiceAccount {}", spec.account());
        return Err(NoJob::Final(reason));
    }
    let own = spec.proxy_config.clone().unwrap_or_default();
    let own = Proxies { http: own.http_proxy, https: own.https_proxy, none: own.no_proxy };
    let proxies = Proxies::layered([&own, cluster, &rules.environment]);
    let login = login(object, secret.as_ref())?;
    let keys = login.and_then(|login| login.known_hosts.clone());
    let preflight = login.map(|login| server(object, login, &proxies, settings)).transpose()?.flatten();
    // The Job reads the host keys of the Secret itself.
    let known_hosts = if keys.is_some() { None } else { settings.known_hosts.clone() };
    let hiding = hiding.as_ref().map(obfuscation::ordered).transpose()?;
    let failed = |why: ImageError| NoJob::Final(format!("ImageStream validation failed: {why}"));
    let image = image.clone().transpose().map_err(failed)?;
    let creation = Creation { now: *now, proxies, limit, known_hosts, hiding, image };
    let job = manifest(object, &creation, rules).map_err(|error| NoJob::Final(error.to_string()))?;
    Ok(Created { job, copy: rules.job_namespace.is_some() && spec.sftp().is_some(), preflight })
}

/// Checks that the two names of a field are not used together.
fn contradictions(object: &MustGather) -> Result<(), NoJob> {
    let spec = &object.spec;
    let named = spec.service_account_ref.as_ref().is_some_and(|named| !named.name.is_empty());
    let later = spec.service_account_name.as_ref().is_some_and(|name| !name.is_empty());
    if named && later {
        return Err(NoJob::Final("serviceAccountRef and serviceAccountName are both set".to_owned()));
    }
    if let Some(reason) = obfuscation::impossible(spec) {
        return Err(NoJob::Final(reason.to_owned()));
    }
    let gather = spec.gather_spec.clone().unwrap_or_default();
    if spec.additional_config.as_ref().is_some_and(|config| config.audit) && spec.gather_spec.is_some() {
        return Err(NoJob::Final("additionalConfig and gatherSpec are both set".to_owned()));
    }
    if gather.since.is_some() && gather.since_time.is_some() {
        return Err(NoJob::Final("only one of since or sinceTime may be specified".to_owned()));
    }
    if spec.audit() && spec.image_stream_ref.is_some() {
        return Err(NoJob::Final(
            "audit mode is only supported with the default must-gather image".to_owned(),
        ));
    }
    if spec.audit() && !gather.command.is_empty() {
        return Err(NoJob::Final("audit mode cannot be combined with custom gather commands".to_owned()));
    }
    Ok(())
}

/// Returns the credentials, if something is uploaded.
fn login<'s>(object: &MustGather, secret: Option<&'s SecretView>) -> Result<Option<&'s Login>, NoJob> {
    let Some(sftp) = object.spec.sftp() else { return Ok(None) };
    let name = &sftp.case_management_account_secret_ref.name;
    match secret {
        None | Some(SecretView::Missing) => {
            Err(NoJob::Passing(format!("there is no Secret {name}: it is waited for")))
        }
        Some(SecretView::Lacks(key)) => Err(NoJob::Final(format!(
            "Secret validation failed: Secret {name} has no {key}, or an empty one"
        ))),
        Some(SecretView::Whole(login)) => Ok(Some(login)),
    }
}

/// Returns the server to check before the Job is created; None if the check is disabled.
fn server(
    object: &MustGather,
    login: &Login,
    proxies: &Proxies,
    settings: &Settings,
) -> Result<Option<Sftp>, NoJob> {
    let Some(sftp) = object.spec.sftp() else { return Ok(None) };
    let failed = |error: &dyn std::fmt::Display| NoJob::Final(format!("SFTP validation failed: {error}"));
    let host = sftp.host.parse().map_err(|error| failed(&error))?;
    let proxy = proxies.to_sftp(&host).map_err(|error| failed(&error))?;
    let keys = login.known_hosts.as_ref().or(settings.known_hosts.as_ref());
    let known = KnownHosts::parse(keys.map_or("", String::as_str)).map_err(|error| failed(&error))?;
    let trust = if settings.rules.accept_any_host_key { Trust::AcceptAny } else { Trust::Known(known) };
    let sftp = Sftp {
        host,
        credentials: login.credentials.clone(),
        trust,
        proxy,
        proxy_ca: settings.proxy_ca.clone(),
        patience: Patience::preflight(),
    };
    Ok(settings.rules.preflight.then_some(sftp))
}

/// Plans for a Job that runs, or waits for a temporary reason.
fn running(fetched: &Fetched, hindrance: Option<&Hindrance>) -> Plan<Prepared> {
    let known = fetched.object.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let statement = match hindrance {
        Some(hindrance) => Some(Statement::new(STUCK, Truth::False, hindrance.reason, hindrance.text())),
        None if conditions::has(known, STUCK) => Some(Statement::new(STUCK, Truth::False, "Started", "")),
        None => None,
    };
    Plan { status: status::active(fetched, statement), ..Plan::of(Prepared::Nothing) }
}

/// Plans for a Job whose Pod cannot start: reported at once, and a failure after a while.
fn stuck(fetched: &Fetched, settings: &Settings, hindrance: &Hindrance) -> Plan<Prepared> {
    let said = fetched.object.status.as_ref().and_then(|status| {
        status.conditions.iter().find(|one| one.type_ == STUCK && one.status == Truth::True.as_str())
    });
    let since = said.map_or(fetched.now, |said| said.last_transition_time.0);
    let for_so_long = Duration::try_from(fetched.now.duration_since(since)).unwrap_or_default();
    let left = settings.rules.stuck_for.saturating_sub(for_so_long);
    if left.is_zero() {
        let reason = format!("the Job's Pod does not start: {}", hindrance.text());
        return ended((fetched, settings), Phase::Failed, &reason);
    }
    // The changing message of each attempt is not reported again.
    let known = said.filter(|said| said.message.starts_with(&hindrance.what));
    let (statement, notices) = match known {
        Some(said) => (Statement::new(STUCK, Truth::True, &said.reason, said.message.clone()), Vec::new()),
        None => {
            let text = hindrance.text();
            (Statement::new(STUCK, Truth::True, hindrance.reason, text.clone()), vec![warning(text)])
        }
    };
    let status = status::active(fetched, Some(statement));
    Plan { status, notices, again: Some(left), ..Plan::of(Prepared::Nothing) }
}

/// Plans the end, which is written before anything is cleaned up.
pub(super) fn ended(
    (fetched, settings): (&Fetched, &Settings),
    phase: Phase,
    reason: &str,
) -> Plan<Prepared> {
    let failed = phase == Phase::Failed;
    let notice = Notice {
        warning: failed,
        reason: if failed { "ProcessingError" } else { "Completed" },
        action: "Gather",
        note: reason.to_owned(),
    };
    let status = status::next(fetched, phase, reason, None);
    Plan { status, notices: vec![notice], ..Plan::of(after_the_end(fetched, settings)) }
}

fn warning(note: String) -> Notice {
    Notice { warning: true, reason: "ProcessingError", action: "Gather", note }
}
