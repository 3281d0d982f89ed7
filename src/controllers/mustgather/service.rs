//! Sets up the controller of MustGathers and its watches.

use std::convert::Infallible;
use std::sync::Arc;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::core::{DeserializeGuard, PartialObjectMeta};
use kube::runtime::predicates;
use kube::runtime::reflector::Store;
use kube::runtime::watcher::Config;
use kube::{Api, Client, Resource, ResourceExt};

use super::crd::MustGather;
use super::job::{CONTROLLER, OWNER};
use super::settings::Settings;
use super::{Context, Counts, FINALIZER, NAME};
use crate::controllers::kit::cache::{Cache, slim_job};
use crate::controllers::kit::controller::{Controller, Surroundings};
use crate::controllers::kit::definition::Definition;
use crate::controllers::kit::events::Events;
use crate::controllers::kit::key::Key;
use crate::controllers::kit::manager::{Member, Term};
use crate::controllers::kit::operator::Operator;
use crate::controllers::kit::pods::{Hindrance, hindrance};

type Objects = Store<DeserializeGuard<MustGather>>;

/// Creates the controller as a member of a manager.
pub fn member(client: Client, settings: Settings) -> Member {
    let own = client.clone();
    let counts = Counts::default();
    let shown = counts.clone();
    let member = Member::new(NAME, client, vec![Definition::of::<MustGather>()], move |term| {
        let context = Context {
            client: own.clone(),
            settings: settings.clone(),
            events: Events::new(own.clone(), "admit-mustgather"),
            counts: counts.clone(),
            known: Known::default(),
        };
        async move {
            run(Arc::new(context), term).await;
            Ok::<_, Infallible>(())
        }
    });
    let operator = Operator::new("admit-mustgather").relating("operator.openshift.io", "mustgathers");
    member.counting(|registry| shown.register(registry)).reporting(operator)
}

/// Runs the controller for a term.
pub async fn run(context: Arc<Context>, term: Term) {
    let controller = controller(&context);
    let around = Surroundings::of(&term, context.events.clone());
    controller.run(context, around, term.stop).await;
}

/// The state of Jobs and Pods as the watches last reported it. Clones share the same state.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The Jobs without their Pod templates.
    pub(super) jobs: Cache<Job>,
    pub(super) pods: Cache<PodSeen>,
}

/// The relevant state of a Pod.
#[derive(Clone, Debug)]
pub(super) struct PodSeen {
    /// The uid of the MustGather.
    of: String,
    /// The uid of its Job.
    pub(super) job: String,
    pub(super) hindrance: Option<Hindrance>,
}

impl PodSeen {
    fn of(pod: &Pod) -> Self {
        let label = |name: &str| pod.labels().get(name).cloned().unwrap_or_default();
        Self { of: label(OWNER), job: label(CONTROLLER), hindrance: hindrance(pod) }
    }
}

/// Creates the controller: it watches MustGathers, their Jobs with their Pods, and the Secrets that some of them wait for.
fn controller(context: &Context) -> Controller<MustGather> {
    let Context { client, settings, known, .. } = context;
    let objects: Api<DeserializeGuard<MustGather>> = Api::all(client.clone());
    let ours = Config::default().labels(OWNER);
    let (jobs, pods): (Api<Job>, Api<Pod>) = match &settings.rules.job_namespace {
        Some(namespace) => {
            (Api::namespaced(client.clone(), namespace), Api::namespaced(client.clone(), namespace))
        }
        None => (Api::all(client.clone()), Api::all(client.clone())),
    };
    let secrets: Api<PartialObjectMeta<Secret>> = Api::all(client.clone());
    Controller::new(NAME, objects, Config::default())
        .when(moved)
        .keeps(jobs, ours.clone(), (&known.jobs, slim_job), labelled)
        .keeps(pods, ours, (&known.pods, |pod: Pod| PodSeen::of(&pod)), |pod, objects| {
            of_uid(&pod.of, objects)
        })
        .watches(secrets, Config::default(), of_secret)
}

/// Returns a number that changes with what requires a reconciliation: the spec, the deletion, and the finalizer. The status
/// does not matter.
fn moved(object: &MustGather) -> Option<u64> {
    let generation = predicates::generation(object)?;
    let ours = object.finalizers().iter().any(|finalizer| finalizer == FINALIZER);
    let leaves = object.metadata.deletion_timestamp.is_some();
    Some(generation.wrapping_mul(4) + u64::from(ours) * 2 + u64::from(leaves))
}

fn labelled(job: &Job, objects: &Objects) -> Vec<Key> {
    job.labels().get(OWNER).map_or_else(Vec::new, |uid| of_uid(uid, objects))
}

fn of_uid(uid: &str, objects: &Objects) -> Vec<Key> {
    keys(objects, |object| object.meta().uid.as_deref() == Some(uid))
}

fn of_secret(secret: &PartialObjectMeta<Secret>, objects: &Objects) -> Vec<Key> {
    keys(objects, |object| {
        let named = object.spec.sftp().map(|sftp| sftp.case_management_account_secret_ref.name.as_str());
        !object.has_ended() && object.namespace() == secret.namespace() && named == Some(&*secret.name_any())
    })
}

fn keys(objects: &Objects, wanted: impl Fn(&MustGather) -> bool) -> Vec<Key> {
    let found = objects.state();
    let found = found.iter().filter(|object| object.0.as_ref().is_ok_and(&wanted));
    found.map(|object| Key::of(object.as_ref())).collect()
}
