//! `admit up --demo`: creates sample objects of the controllers and takes them through all their states, so that all
//! of it can be watched with kubectl. Only what surrounds the controllers is simulated (operators, collectors,
//! rollouts, hosts); the controllers, the policies and the database are real.
//!
//! ```text
//!  payload folder ──► clusteroperator ──► ClusterOperators ◄── an operator that reports           operators
//!  Deployments, Service, the hub's spec ──► observability ──► add-on ◄── two collectors           add_on
//!  PostgreSQL with hosts ──► cyndi ──► pipeline                                                   pipeline, postgres
//! ```
//!
//! INVARIANT: the demo creates a fixed number of objects, however long it runs, and all its processes end with this
//! one.

mod add_on;
mod operators;
mod pipeline;
mod postgres;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::Args;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::time::sleep;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::{info, warn};

use super::controller_selection::{ControllerArgs, Told};
use super::process::Fault;
use crate::controllers::kit::tasks::Supervisor;
use crate::controllers::observability::hub::HubSettings;
use crate::controllers::observability::vocabulary::Vocabulary;
use crate::private;
use crate::telemetry::with_causes;

/// The namespace of objects that have no prescribed one.
const NAMESPACE: &str = "demo";
/// The namespace on the hub, which is this server, for this cluster.
const CLUSTER: &str = "cluster1";
/// The Service of Prometheus, which is created and deleted.
const PROMETHEUS: &str = "prometheus";
/// The field manager of applied objects.
const MANAGER: &str = "admit-demo";
/// How long to wait for the result of a step, so that no state is skipped on a busy machine. Limited, since somebody may prevent it.
const LONGEST: Duration = Duration::from_mins(1);
/// How often the result is polled in the time of one step.
const LOOKS: u32 = 5;
/// The most different errors that are logged; later ones are of the same kind, with other numbers in them.
const MOST_TOLD: usize = 100;

/// The flags of the demo.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Demo")]
pub(super) struct DemoArgs {
    /// Demonstrate the controllers: move sample objects through their states, one step every SECONDS [default: 5]
    ///
    /// The objects are ClusterOperators, an add-on with two collectors and, if PostgreSQL is installed, a pipeline.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, default_missing_value = "5",
        value_parser = clap::value_parser!(u16).range(1..=3600))]
    demo: Option<u16>,
}

/// A demo that was requested.
pub(super) struct Demo {
    step: Duration,
    vocabulary: &'static Vocabulary,
}

/// The clients that the demo uses.
pub(super) struct Actors {
    pub(super) admin: Client,
    /// The collectors' client, which may not report for an endpoint operator.
    pub(super) collectors: Client,
}

impl DemoArgs {
    /// Sets the flags of the controllers for the demo, unless they were given.
    ///
    /// # Errors
    /// When the payload cannot be written into the folder `state`.
    pub(super) fn prepare(
        self,
        state: &Path,
        controlling: &mut ControllerArgs,
        told: &mut Told,
    ) -> Result<Option<Demo>, Fault> {
        let Some(seconds) = self.demo else { return Ok(None) };
        let folder = state.join("demo");
        payload(&folder).map_err(|error| {
            Fault::usage(format!("cannot write `{}`: {error}; make it writable", folder.display()))
        })?;
        controlling.announce(folder);
        let add_ons = &mut told.add_ons;
        add_ons.hub.get_or_insert_with(|| HubSettings { namespace: CLUSTER.to_owned(), kubeconfig: None });
        if let Some(endpoint) = &mut add_ons.endpoint {
            endpoint.prometheus.get_or_insert_with(|| (NAMESPACE.to_owned(), PROMETHEUS.to_owned()));
        }
        Ok(Some(Demo { step: Duration::from_secs(seconds.into()), vocabulary: add_ons.vocabulary }))
    }
}

/// Writes a folder of manifests for the primer.
fn payload(folder: &Path) -> std::io::Result<()> {
    private::make_folder(folder)?;
    for (name, manifest) in operators::payload() {
        private::replace(&folder.join(format!("{name}.json")), &format!("{manifest:#}\n"))?;
    }
    Ok(())
}

impl Demo {
    /// Starts the demo. `controlling` is dropped after it has ended, so that its clean-up still reaches the API server.
    pub(super) fn start(
        self,
        parts: &mut Supervisor<Fault>,
        actors: Actors,
        stop: &CancellationToken,
        controlling: Arc<DropGuard>,
    ) {
        info!("the demo goes on until this ends: `kubectl get clusteroperators,oba,cyndi -A -w` watches it");
        let playing = self.run(actors, stop.clone());
        parts.part("demo", async {
            let _controlling = controlling;
            playing.await;
            Ok(())
        });
    }

    /// Runs until `stop`. Errors are logged, and the step is repeated.
    async fn run(self, actors: Actors, stop: CancellationToken) {
        let Actors { admin, collectors } = actors;
        let stage = Stage { admin, step: self.step, stop, told: Arc::default() };
        for name in [NAMESPACE, CLUSTER] {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            let made = stage.apply("namespaces", &namespace).await;
            stage.tell("make a namespace", made);
        }
        tokio::join!(
            operators::run(&stage),
            add_on::run(&stage, collectors, self.vocabulary),
            pipeline::run(&stage),
        );
    }
}

/// The state that the parts of the demo share.
struct Stage {
    admin: Client,
    step: Duration,
    stop: CancellationToken,
    /// Errors that were logged, so that each is logged once.
    told: Arc<Mutex<Vec<String>>>,
}

impl Stage {
    /// Waits for `time`; false if the demo was stopped meanwhile.
    async fn pause(&self, time: Duration) -> bool {
        self.stop.run_until_cancelled(sleep(time)).await.is_some()
    }

    /// Applies `object` with server-side apply.
    async fn apply(&self, plural: &str, object: &Value) -> Result<(), kube::Error> {
        let object: DynamicObject =
            serde_json::from_value(object.clone()).map_err(kube::Error::SerdeError)?;
        let types = object.types.clone().unwrap_or_default();
        let kind =
            GroupVersionKind::try_from(&types).unwrap_or_else(|_| GroupVersionKind::gvk("", "", &types.kind));
        let api = self.objects(&kind, plural, object.metadata.namespace.as_deref());
        let ours = PatchParams::apply(MANAGER).force();
        api.patch(&object.name_any(), &ours, &Patch::Apply(&object)).await.map(drop)
    }

    fn objects(&self, kind: &GroupVersionKind, plural: &str, namespace: Option<&str>) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk_with_plural(kind, plural);
        match namespace {
            Some(namespace) => Api::namespaced_with(self.admin.clone(), namespace, &resource),
            None => Api::all_with(self.admin.clone(), &resource),
        }
    }

    /// Logs an error, once.
    fn tell(&self, doing: &str, done: Result<(), impl std::error::Error + 'static>) {
        let Err(error) = done else { return };
        let error = with_causes(&error);
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let line = format!("{doing}: {error}");
        if !told.contains(&line) && told.len() < MOST_TOLD {
            warn!(error, "the demo cannot {doing}, and tries again");
            told.push(line);
        }
    }
}
