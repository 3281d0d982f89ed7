//! The status keeper as a part of a process.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use kube::core::DeserializeGuard;
use kube::runtime::watcher;
use kube::{Api, Client};
use tokio_util::sync::CancellationToken;

use super::crd::{self, ObservabilityAddon};
use super::hub::{Hub, HubSettings};
use super::keeper::{Keeper, said_by_components};
use super::vocabulary::Vocabulary;
use crate::controllers::kit::clock::Clock;
use crate::controllers::kit::controller::{Controller, Surroundings};
use crate::controllers::kit::events::Events;
use crate::controllers::kit::manager::{Definition, Member, Term};
use crate::controllers::kit::operator::Operator;

/// Under which it is counted, logged and chosen.
pub const NAME: &str = "observability";

/// How often an add-on is looked at although nothing changed: what the hub lost comes back, and what no event told of is seen.
const RESYNC: Duration = Duration::from_mins(5);

/// How the keeper works.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the add-on of this cluster lies.
    pub namespace: String,
    pub vocabulary: &'static Vocabulary,
    /// Where its status is shown besides.
    pub hub: Option<HubSettings>,
    pub clock: Clock,
}

impl Settings {
    /// The usual place and names, and no hub.
    #[must_use]
    pub fn new(vocabulary: &'static Vocabulary) -> Self {
        let namespace = crd::SPOKE_NAMESPACE.to_owned();
        Self { namespace, vocabulary, hub: None, clock: Clock::default() }
    }
}

/// The keeper as a member of a manager.
#[must_use]
pub fn member(client: Client, settings: Settings) -> Member {
    let own = client.clone();
    let member =
        Member::new(NAME, client, vec![Definition::of::<ObservabilityAddon>()], move |term: Term| {
            let (client, settings) = (own.clone(), settings.clone());
            let events = Events::new(client.clone(), "admit-observability");
            async move {
                let around = Surroundings::of(&term, events);
                run(client, settings, around, term.stop).await;
                Ok::<(), Infallible>(())
            }
        });
    let kind = ("observability.open-cluster-management.io", "observabilityaddons");
    member.reporting(Operator::new("admit-observability").relating(kind.0, kind.1))
}

/// Keeps the status of the add-ons of the namespace until `stop`.
pub async fn run(client: Client, settings: Settings, around: Surroundings, stop: CancellationToken) {
    let Settings { namespace, vocabulary, hub, clock } = settings;
    let api: Api<DeserializeGuard<ObservabilityAddon>> = Api::namespaced(client.clone(), &namespace);
    let hub = hub.map(|hub| Hub::new(hub, client.clone()));
    let keeper = Arc::new(Keeper { client, vocabulary, hub, clock });
    Controller::new(NAME, api, watcher::Config::default())
        .when(move |object| Some(said_by_components(object, vocabulary)))
        .resync(RESYNC)
        .run(keeper, around, stop)
        .await;
}
