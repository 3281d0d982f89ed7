//! Allocates cluster IPs and node ports for services, and releases them.
//!
//! An allocated address has an IPAddress, created right after its service is stored; until then
//! the address is in [`Taken`]. Node ports are there as long as they are allocated, and are read from the stored
//! services at start. What was allocated for a service that is not stored in the end is released. Read from
//! pkg/registry/core/service of Kubernetes 1.36.

mod own_objects;
mod ranges;

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use serde_json::{Value, json};

pub use self::ranges::{ServiceNetwork, ServiceRange, ServiceRangeError};
use super::{Registry, kinds};
use crate::call::{Call, DeleteOptions};
use crate::kinds::core::service::allotment;
use crate::kinds::core::service::node_ports::{self, Draw, NoPort, ON_NODES};
use crate::object;
use crate::status::{Cause, Refusal};
use crate::store::Key;

const SERVICES: &str = "services";
const ADDRESSES: &str = "ipaddresses";
const RANGES: &str = "servicecidrs";

/// The number of first node ports that are drawn only when no other is left: services request these by number.
const ASKED_FOR: i64 = 86;

/// The allocated addresses and ports.
#[derive(Debug, Default)]
pub(super) struct Allotments {
    network: ServiceNetwork,
    taken: Mutex<Taken>,
}

#[derive(Clone, Debug, Default)]
struct Taken {
    ports: HashSet<i64>,
    /// The addresses of services that are not stored yet.
    addresses: HashSet<IpAddr>,
}

/// What was allocated for a service, and what is released once the service is stored.
#[derive(Debug)]
pub(super) struct Allotment<'a> {
    all: &'a Allotments,
    addresses: Vec<IpAddr>,
    ports: Vec<i64>,
    returned: Returned,
}

#[derive(Debug, Default)]
struct Returned {
    addresses: Vec<IpAddr>,
    ports: Vec<i64>,
}

impl Allotments {
    pub(super) fn new(network: ServiceNetwork) -> Self {
        Self { network, taken: Mutex::default() }
    }

    /// Copies the state for a fork.
    pub(super) fn fork(&self) -> Self {
        Self { network: self.network, taken: Mutex::new(self.taken().clone()) }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Allotment<'_> {
    fn drop(&mut self) {
        let mut taken = self.all.taken();
        for port in &self.ports {
            taken.ports.remove(port);
        }
        for address in &self.addresses {
            taken.addresses.remove(address);
        }
    }
}

/// Draws node ports for one service.
struct Ports<'a, 'b> {
    allotment: &'b mut Allotment<'a>,
    start: i64,
    /// The ports that a dry run drew, which stay free for others.
    drawn: Option<Vec<i64>>,
}

impl Draw for Ports<'_, '_> {
    fn reaches(&self, number: i64) -> bool {
        self.drawn.is_some() || ON_NODES.contains(&number)
    }

    fn take(&mut self, number: i64) -> bool {
        let mut taken = self.allotment.all.taken();
        if let Some(drawn) = &mut self.drawn {
            let is_free = !taken.ports.contains(&number) && !drawn.contains(&number);
            drawn.extend(is_free.then_some(number));
            return is_free;
        }
        let is_free = taken.ports.insert(number);
        drop(taken);
        if is_free {
            self.allotment.ports.push(number);
        }
        is_free
    }

    fn next(&mut self) -> Option<i64> {
        if let Some(drawn) = &mut self.drawn {
            // Any number will do, as no service gets it.
            let next = drawn.iter().max().map_or(UNREAL, |last| last.saturating_add(1));
            drawn.push(next);
            return Some(next);
        }
        let (first, last) = (*ON_NODES.start(), *ON_NODES.end());
        let upper = first.saturating_add(ASKED_FOR);
        let around = |first: i64, last: i64, start: i64| {
            let count = last.saturating_sub(first).saturating_add(1);
            (0..count).map(move |step| first.saturating_add((start % count).saturating_add(step) % count))
        };
        let mut all =
            around(upper, last, self.start).chain(around(first, upper.saturating_sub(1), self.start));
        all.find(|number| self.take(*number))
    }
}

/// The first port that a dry run shows; the others follow.
const UNREAL: i64 = 32_769;

impl Registry {
    /// Allocates what a service needs that is about to be validated, and stored in place of `old`.
    ///
    /// # Errors
    /// 422 if a requested address or port is taken or invalid, 500 if none is left.
    pub(super) fn allot<'r>(
        &'r self,
        call: &Call,
        service: &mut Value,
        old: Option<&Value>,
        dry_run: bool,
    ) -> Result<Option<Allotment<'r>>, Refusal> {
        if !is_service(call) || call.subresource.is_some() {
            return Ok(None);
        }
        let hindrances = allotment::hindrances(service, old);
        if !hindrances.is_empty() {
            let causes = hindrances.into_iter().map(|error| error.cause()).collect();
            return Err(kinds::invalid(call, service, object::name(service), causes));
        }
        let mut given = Allotment {
            all: &self.allotments,
            addresses: Vec::new(),
            ports: Vec::new(),
            returned: Returned::default(),
        };
        let start = hash(object::uid(service));
        self.give_address(call, service, old, &mut given, (start, dry_run))?;
        let drawn = dry_run.then(Vec::new);
        let mut ports = Ports { allotment: &mut given, start: i64::from(start), drawn };
        node_ports::allot(service, old, &mut ports).map_err(|why| no_port(call, service, &why))?;
        if let Some(old) = old {
            let (held, kept) = (node_ports::held(old), node_ports::held(service));
            given.returned.ports = held.difference(&kept).copied().collect();
        }
        Ok(Some(given))
    }

    /// Allocates an address, or keeps the old ones: a service keeps its addresses as long as it has any.
    fn give_address(
        &self,
        call: &Call,
        service: &mut Value,
        old: Option<&Value>,
        given: &mut Allotment<'_>,
        (start, dry_run): (u32, bool),
    ) -> Result<(), Refusal> {
        let before: Vec<IpAddr> =
            old.map(allotment::addresses).unwrap_or_default().iter().map(|(_, address)| *address).collect();
        if !allotment::is_addressed(service) {
            given.returned.addresses = before;
            return Ok(());
        }
        if old.is_some_and(|old| !before.is_empty() || has_no_address_on_purpose(old)) {
            return Ok(());
        }
        let asked: Vec<(String, IpAddr)> = allotment::addresses(service)
            .into_iter()
            .map(|(text, address)| (text.to_owned(), address))
            .collect();
        let ranges = self.ranges();
        if asked.is_empty() {
            let address = if dry_run {
                ranges.first().map(|range| range.shown())
            } else {
                ranges.iter().flat_map(|range| range.drawn(start)).find(|address| self.take(*address, given))
            };
            let full = || Refusal::internal("failed to allocate a serviceIP: range is full");
            allotment::give(service, address.ok_or_else(full)?);
            return Ok(());
        }
        for (text, address) in asked {
            let why = if !ranges.iter().any(|range| range.contains(address)) {
                not_in_range(&ranges, address, dry_run)
            } else if dry_run || self.take(address, given) {
                continue;
            } else {
                "provided IP is already allocated".to_owned()
            };
            let shown = service["spec"]["clusterIPs"].clone();
            let why = format!("failed to allocate IP {text}: {why}");
            return Err(invalid(call, service, Cause::invalid("spec.clusterIPs", &shown, &why)));
        }
        Ok(())
    }

    /// Takes the address; returns false if it is taken already.
    fn take(&self, address: IpAddr, given: &mut Allotment<'_>) -> bool {
        // Checked under the lock: a service that settles has either created the IPAddress or still holds the address.
        let mut taken = self.allotments.taken();
        let is_free =
            !taken.addresses.contains(&address) && self.store.latest(&address_key(address)).is_none();
        if is_free {
            taken.addresses.insert(address);
            given.addresses.push(address);
        }
        is_free
    }

    /// Marks the service as stored for which this was allocated.
    pub(super) fn settle_allotment<'r>(
        &'r self,
        mut given: Allotment<'r>,
        namespace: &'r str,
        name: &'r str,
    ) -> BoxFuture<'r, ()> {
        Box::pin(async move {
            given.ports.clear();
            let returned = std::mem::take(&mut given.returned);
            self.give_back(&returned, namespace, name).await;
            for address in given.addresses.clone() {
                self.note_address(address, namespace, name).await;
            }
            // From now on the IPAddresses show what is taken.
            drop(given);
        })
    }

    /// Releases what a removed service had.
    pub(super) async fn take_back(&self, call: &Call, removed: &Value) {
        if !is_service(call) {
            return;
        }
        let returned = Returned {
            addresses: allotment::addresses(removed).iter().map(|(_, address)| *address).collect(),
            ports: node_ports::held(removed).into_iter().collect(),
        };
        self.give_back(&returned, &call.namespace, object::name(removed)).await;
        self.forget_endpoints(call, object::name(removed)).await;
    }

    /// Deletes the Endpoints of a removed service, which a new one of its name would begin with.
    fn forget_endpoints<'r>(&'r self, call: &'r Call, name: &'r str) -> BoxFuture<'r, ()> {
        Box::pin(async move {
            let served = self.served();
            let Some(info) = served.table.find("", "v1", "endpoints") else { return };
            let about = call.about(info, &call.namespace).admitted();
            if let Err(refusal) = self.delete(&about, name, &DeleteOptions::default()).await
                && refusal.code() != 404
            {
                tracing::error!(
                    ?refusal,
                    namespace = call.namespace,
                    name,
                    "the Endpoints of a removed service stay"
                );
            }
        })
    }

    async fn give_back(&self, returned: &Returned, namespace: &str, name: &str) {
        {
            let mut taken = self.allotments.taken();
            for port in &returned.ports {
                taken.ports.remove(port);
            }
        }
        for address in &returned.addresses {
            self.forget_address(*address, namespace, name).await;
        }
    }
}

fn is_service(call: &Call) -> bool {
    call.info.builtin && call.info.group.is_empty() && call.info.plural == SERVICES
}

/// Returns whether the service is headless, not an external name.
fn has_no_address_on_purpose(old: &Value) -> bool {
    old.pointer("/spec/type").is_none_or(|kind| kind != "ExternalName")
}

fn address_key(address: IpAddr) -> Key {
    Key { resource: ADDRESSES.into(), namespace: String::new(), name: address.to_string() }
}

/// Formats the error for an address outside of the ranges; a dry run names only one of them.
fn not_in_range(ranges: &[ServiceRange], address: IpAddr, dry_run: bool) -> String {
    match ranges.first().filter(|_| dry_run) {
        Some(range) => {
            format!(
                "the provided IP ({address}) is not in the valid range. The range of valid IPs is {range}"
            )
        }
        None => "the provided network does not match the current range".to_owned(),
    }
}

fn invalid(call: &Call, service: &Value, cause: Cause) -> Refusal {
    Refusal::invalid(&call.info, object::name(service), vec![cause])
}

fn no_port(call: &Call, service: &Value, why: &NoPort) -> Refusal {
    match why {
        NoPort::Taken { at, number } => {
            let field = format!("spec.ports[{at}].nodePort");
            let cause = Cause::invalid(&field, &json!(number), "provided port is already allocated");
            invalid(call, service, cause)
        }
        NoPort::Outside { at, number } => {
            let field = format!("spec.ports[{at}].nodePort");
            invalid(call, service, Cause::invalid(&field, &json!(number), &outside()))
        }
        NoPort::Twice { protocol, number } => {
            Refusal::unclassified(format!("duplicate nodePort: {{{protocol} {number}}}"))
        }
        NoPort::Left => Refusal::internal("failed to allocate a nodePort: range is full"),
        NoPort::CheckTaken(number) => {
            let why = if ON_NODES.contains(number) {
                "provided port is already allocated".to_owned()
            } else {
                outside()
            };
            Refusal::internal(format!("failed to allocate requested HealthCheck NodePort {number}: {why}"))
        }
        NoPort::CheckLeft => Refusal::internal("failed to allocate a HealthCheck NodePort 0: range is full"),
    }
}

fn outside() -> String {
    let (first, last) = (ON_NODES.start(), ON_NODES.end());
    format!("provided port is not in the valid range. The range of valid ports is {first}-{last}")
}

/// Returns an FNV-1a hash: the start of the search for an address, which depends on the service only.
fn hash(uid: &str) -> u32 {
    uid.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
