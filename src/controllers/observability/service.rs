//! Sets up the ObservabilityAddon controllers and their watches.

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

/// How often an add-on is reconciled without a change, to restore what the hub lost, and to notice missed events.
const RESYNC: Duration = Duration::from_mins(5);

/// The settings of the controllers.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The namespace of this cluster's add-on.
    pub namespace: String,
    pub vocabulary: &'static Vocabulary,
    /// The endpoint operator's part, unless another program has it.
    pub endpoint: Option<EndpointSettings>,
    /// The hub, which shows the status and provides the spec; None without a hub.
    pub hub: Option<HubSettings>,
    pub clock: Clock,
}

impl Settings {
    /// Creates the default settings, without a hub.
    #[must_use]
    pub fn new(vocabulary: &'static Vocabulary) -> Self {
        let (namespace, endpoint) = (crd::SPOKE_NAMESPACE.to_owned(), Some(EndpointSettings::default()));
        Self { namespace, vocabulary, endpoint, hub: None, clock: Clock::default() }
    }
}

/// Creates the controllers as a member of a manager.
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

/// Runs the controllers until `stop`: for the add-ons in the namespace, for the link to their hub, and for the add-ons that this
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

/// Runs the controller of this cluster's add-ons, which are also reconciled with each item of `rollouts`.
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
            // Called for each version that the watch reports, also for those without a reconciliation.
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

/// Runs the controller that copies the add-ons on a hub.
async fn show(mirror: Mirror, around: Surroundings, stop: CancellationToken) {
    let api: Api<DeserializeGuard<ObservabilityAddon>> = Api::all(mirror.client.clone());
    let selected = watcher::Config::default().fields(&format!("metadata.name={}", crd::NAME));
    // The state of this controller is not part of the ClusterOperator; errors are reported in events and metrics.
    let around = Surroundings { says: Says::default(), ..around };
    let controller = Controller::new(mirror::HUB, api, selected).when(mirror::displayed).resync(RESYNC);
    controller.run(Arc::new(mirror), around, stop).await;
}
