//! The ObservabilityAddon controllers as a part of a process.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt, stream};
use kube::core::DeserializeGuard;
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt};
use tokio_util::sync::CancellationToken;

use super::changes::Changes;
use super::counts::Counts;
use super::crd::{self, ObservabilityAddon};
use super::endpoint::{self, EndpointSettings, Workloads};
use super::hub::mirror::{self, Mirror};
use super::hub::{HubSettings, Link};
use super::last_seen::LastSeen;
use super::reconcile::Reconciler;
use super::vocabulary::Vocabulary;
use crate::controllers::kit::clock::Clock;
use crate::controllers::kit::controller::{Controller, Surroundings};
use crate::controllers::kit::definition::Definition;
use crate::controllers::kit::events::Events;
use crate::controllers::kit::key::Key;
use crate::controllers::kit::manager::{Member, Term};
use crate::controllers::kit::operator::{Operator, Says};

/// The controller's name in metrics, logs and on the command line.
pub const NAME: &str = "observability";

/// How often an add-on is looked at although nothing changed: what the hub lost comes back, and what no event told of is seen.
const RESYNC: Duration = Duration::from_mins(5);

/// How the keeper works.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The namespace of this cluster's add-on.
    pub namespace: String,
    pub vocabulary: &'static Vocabulary,
    /// The endpoint operator's part, unless another program has it.
    pub endpoint: Option<EndpointSettings>,
    /// The hub, which shows its status and provides its spec; none without a hub.
    pub hub: Option<HubSettings>,
    pub clock: Clock,
}

impl Settings {
    /// The usual place and names, and no hub.
    #[must_use]
    pub fn new(vocabulary: &'static Vocabulary) -> Self {
        let (namespace, endpoint) = (crd::SPOKE_NAMESPACE.to_owned(), Some(EndpointSettings::default()));
        Self { namespace, vocabulary, endpoint, hub: None, clock: Clock::default() }
    }
}

/// The keeper as a member of a manager.
#[must_use]
pub fn member(client: Client, settings: Settings) -> Member {
    let own = client.clone();
    let counts = Counts::new(settings.vocabulary);
    let shown = counts.clone();
    let member =
        Member::new(NAME, client, vec![Definition::of::<ObservabilityAddon>()], move |term: Term| {
            let (client, settings, counts) = (own.clone(), settings.clone(), counts.clone());
            let events = Events::new(client.clone(), "admit-observability");
            async move {
                let around = Surroundings::of(&term, events);
                run(client, settings, counts, around, term.stop).await;
                Ok::<(), Infallible>(())
            }
        });
    let kind = ("observability.open-cluster-management.io", "observabilityaddons");
    let operator = Operator::new("admit-observability").relating(kind.0, kind.1);
    member.counting(|registry| shown.register(registry)).reporting(operator)
}

/// Runs the controllers until `stop`: of the add-ons in the namespace, of the link to their hub, and of what this
/// cluster shows as a hub.
pub async fn run(
    client: Client,
    settings: Settings,
    counts: Counts,
    around: Surroundings,
    stop: CancellationToken,
) {
    let seen = LastSeen::default();
    let Settings { namespace, vocabulary, endpoint, hub, clock } = settings;
    let mirror = Mirror {
        client: client.clone(),
        namespace: namespace.clone(),
        clock: clock.clone(),
        events: around.events.clone(),
    };
    let link = hub.map(|hub| Link {
        hub,
        client: client.clone(),
        namespace: namespace.clone(),
        seen: seen.clone(),
        counts: counts.clone(),
    });
    let workloads = Workloads::default();
    let rollouts = endpoint.as_ref().map(|settings| workloads.follow(&client, &namespace, settings));
    let endpoint = endpoint.map(|_| endpoint::Operator { client: client.clone(), vocabulary, workloads });
    let changes = Arc::new(Changes::new(vocabulary));
    let reconciler = Reconciler { client, vocabulary, endpoint, changes, seen, counts, clock };
    tokio::join!(
        keep(reconciler, &namespace, rollouts, around.clone(), stop.clone()),
        show(mirror, around.clone(), stop.clone()),
        async {
            if let Some(link) = link {
                link.run(around, stop).await;
            }
        },
    );
}

/// Keeps the add-ons of this cluster, which are looked at again with each of `rollouts`.
async fn keep(
    reconciler: Reconciler,
    namespace: &str,
    rollouts: Option<impl Stream<Item = ()> + Send + 'static>,
    around: Surroundings,
    stop: CancellationToken,
) {
    let api: Api<DeserializeGuard<ObservabilityAddon>> =
        Api::namespaced(reconciler.client.clone(), namespace);
    let (changes, counts) = (Arc::clone(&reconciler.changes), reconciler.counts.clone());
    let controller =
        Controller::new(NAME, api, watcher::Config::default()).resync(RESYNC).when(move |object| {
            // Each version that the watch tells of comes by here, also those that no look sees.
            counts.hear(object);
            Some(changes.number(object))
        });
    let objects = controller.store();
    let concerned = rollouts.map(|rollouts| {
        rollouts.flat_map(move |()| {
            let own = objects.state().into_iter().filter(|object| object.name_any() == crd::NAME);
            stream::iter(own.map(|object| Key::of(object.as_ref())).collect::<Vec<_>>())
        })
    });
    let controller = match concerned {
        Some(concerned) => controller.wakes(concerned),
        None => controller,
    };
    controller.run(Arc::new(reconciler), around, stop).await;
}

/// Shows the add-ons that lie here as on a hub.
async fn show(mirror: Mirror, around: Surroundings, stop: CancellationToken) {
    let api: Api<DeserializeGuard<ObservabilityAddon>> = Api::all(mirror.client.clone());
    let selected = watcher::Config::default().fields(&format!("metadata.name={}", crd::NAME));
    // The keeper says how this controller is; what goes wrong here is told on the objects and in metrics.
    let around = Surroundings { says: Says::default(), ..around };
    let controller = Controller::new(mirror::HUB, api, selected).when(mirror::displayed).resync(RESYNC);
    controller.run(Arc::new(mirror), around, stop).await;
}
