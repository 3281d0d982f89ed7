//! Keeps the link to the hub: one connection after the other, each with a watch of this cluster's object there.

use std::sync::Arc;
use std::time::Duration;

use futures::stream;
use kube::core::DeserializeGuard;
use kube::runtime::reflector::Store;
use kube::runtime::watcher;
use kube::{Api, Client};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::HubSettings;
use super::reach::Reached;
use super::replicate::{PART, Replicator};
use super::spoke::Spoke;
use crate::controllers::kit::conditions::Truth;
use crate::controllers::kit::controller::{Controller, Surroundings};
use crate::controllers::kit::events::Events;
use crate::controllers::kit::key::Key;
use crate::controllers::kit::operator::{Aspect, Says};
use crate::controllers::kit::wait::GrowingWait;
use crate::controllers::observability::counts::Counts;
use crate::controllers::observability::crd::{NAME, ObservabilityAddon};
use crate::controllers::observability::last_seen::LastSeen;
use crate::telemetry::with_causes;

/// The name in metrics and logs.
const REPLICATION: &str = "observability-replication";
/// How often the hub's object is reconciled without a change.
const RESYNC: Duration = Duration::from_mins(5);
/// The waits after connections that did not work.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// The two sides of the link.
pub(in crate::controllers::observability) struct Link {
    pub(in crate::controllers::observability) hub: HubSettings,
    /// The client of this cluster.
    pub(in crate::controllers::observability) client: Client,
    pub(in crate::controllers::observability) namespace: String,
    pub(in crate::controllers::observability) seen: LastSeen,
    pub(in crate::controllers::observability) counts: Counts,
}

impl Link {
    /// Keeps the link until `stop`.
    pub(in crate::controllers::observability) async fn run(
        self,
        around: Surroundings,
        stop: CancellationToken,
    ) {
        let mut wait = GrowingWait::new(FIRST_WAIT, LONGEST_WAIT);
        let mut told = String::new();
        while !stop.is_cancelled() {
            let trouble = match Reached::new(&self.hub, &self.client).await {
                Ok(reached) => {
                    info!(namespace = self.hub.namespace, "connecting to the hub");
                    let since = Instant::now();
                    self.until_worn(&reached, &around, &stop).await;
                    // A connection with a successful list but rejected writes does not count as working.
                    if reached.heard.has_worked() || since.elapsed() > LONGEST_WAIT {
                        wait.reset();
                        told.clear();
                    }
                    reached.heard.why()
                }
                Err(error) => Some(with_causes(&error)),
            };
            // Asked to stop.
            let Some(trouble) = trouble else { return };
            self.tell(&trouble, &mut told, &around.says);
            let waiting = stop.run_until_cancelled(sleep(wait.grow()));
            if waiting.await.is_none() {
                return;
            }
        }
    }

    fn tell(&self, trouble: &str, told: &mut String, says: &Says) {
        self.counts.replicated("reconnected");
        says.say(PART, Aspect::Degraded, Truth::True, "NotConnected", trouble);
        if told != trouble {
            warn!(trouble, "no connection to the hub, trying again");
            trouble.clone_into(told);
        }
    }

    /// Replicates until the connection is unusable, or until `stop`.
    async fn until_worn(&self, reached: &Reached, around: &Surroundings, stop: &CancellationToken) {
        let hub: Api<DeserializeGuard<ObservabilityAddon>> =
            Api::namespaced(reached.client.clone(), &self.hub.namespace);
        let selected = watcher::Config::default().fields(&format!("metadata.name={NAME}"));
        let controller = Controller::new(REPLICATION, hub, selected).resync(RESYNC);
        let wakes = wakes(&self.seen, controller.store());
        let replicator = Replicator {
            hub: Api::namespaced(reached.client.clone(), &self.hub.namespace),
            namespace: self.hub.namespace.clone(),
            heard: Arc::clone(&reached.heard),
            spoke: Spoke::new(self.client.clone(), &self.namespace, self.seen.clone()),
            counts: self.counts.clone(),
            says: around.says.clone(),
        };
        let around = Surroundings {
            // Events are about the hub's object, where the add-on was requested.
            events: Events::new(reached.client.clone(), "admit-observability"),
            // Results of reconciling the hub's object are reported separately, as the part of the hub.
            says: Says::default(),
            ..around.clone()
        };
        let ends = stop.child_token();
        let running = controller.wakes(wakes).run(Arc::new(replicator), around, ends.clone());
        let worn = async {
            tokio::select! {
                () = reached.heard.worn.cancelled() => {}
                () = reached.until_changed(&self.hub) => {}
            }
            ends.cancel();
            // The controller ends when it is stopped, which decides about the end of this future.
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = running => {}
            () = worn => {}
        }
    }
}

/// Yields the hub's object after each relevant change of the spoke's add-on.
fn wakes(
    seen: &LastSeen,
    objects: Store<DeserializeGuard<ObservabilityAddon>>,
) -> impl futures::Stream<Item = Key> + Send + use<> {
    let changes = stream::unfold(seen.changes(), |mut changes| async move {
        changes.changed().await.ok()?;
        Some(((), changes))
    });
    futures::StreamExt::flat_map(changes, move |()| {
        let keys: Vec<Key> = objects.state().iter().map(|object| Key::of(object.as_ref())).collect();
        stream::iter(keys)
    })
}
