//! Counts the usage of quotas from stored objects.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::future::BoxFuture;
use jiff::Timestamp;
use serde_json::Value;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use super::QUOTAS;
use super::ledgers::{Ledger, Rested};
use crate::admission::quota::{self, Counted, Tally};
use crate::housekeeping;
use crate::object;
use crate::registry::Registry;
use crate::resources::{ResourceTable, Scope};
use crate::store::{Store, StoreError};

/// The pause after a count, in multiples of its time.
const REST: u32 = 4;

impl Registry {
    /// Counts until the future is dropped, if the controller is enabled.
    pub(crate) async fn keep_quotas(&self) {
        if !self.quotas.on || !self.controllers.runs(housekeeping::QUOTAS) {
            return;
        }
        for kept in self.stored_objects(QUOTAS, None) {
            self.quotas.mark(object::namespace(&kept.object.head()));
        }
        loop {
            let began = Instant::now();
            if self.count_quotas().await {
                // While objects are removed one by one, a count for each of them is not worth it.
                sleep(began.elapsed() * REST).await;
            } else {
                self.quotas.wake.notified().await;
            }
        }
    }

    /// Counts in each namespace where usage may have decreased; returns whether there was one.
    pub(crate) async fn count_quotas(&self) -> bool {
        self.quotas.counted.store(true, Ordering::Release);
        let behind = self.quotas.behind().clone();
        for namespace in &behind {
            if let Some(mut debt) = self.quotas.take(namespace) {
                self.count(namespace, self.quotas.ledgers.of(namespace)).await;
                debt.namespace = None;
            }
        }
        !behind.is_empty()
    }

    /// Counts in the namespace for a refused write, if usage may have decreased there and the last count is not too recent, so
    /// that refusals take a bounded part of the time. Returns whether it was counted.
    pub(super) async fn count_at_once(&self, namespace: &str, ledger: &Ledger) -> bool {
        if !self.quotas.counted.load(Ordering::Acquire) || !self.quotas.owes(namespace) {
            return false;
        }
        let rested = ledger.rested().await;
        if rested == Rested::NotYet {
            return false;
        }
        let Some(mut debt) = self.quotas.take(namespace) else { return rested == Rested::Now };
        self.count(namespace, ledger).await;
        debt.namespace = None;
        true
    }

    /// Counts the objects of the namespace. Boxed, since writes count and counts write.
    fn count<'r>(&'r self, namespace: &'r str, ledger: &'r Ledger) -> BoxFuture<'r, ()> {
        Box::pin(async move {
            let _closed = ledger.close().await;
            let began = Instant::now();
            let stored = self.stored_objects(QUOTAS, Some(namespace));
            let quotas: Vec<_> = stored.iter().map(|kept| kept.object.values()).collect();
            let (store, table) = (self.store.clone(), Arc::clone(&self.served().table));
            let (within, now) = (namespace.to_owned(), self.clock.now());
            // Reads each object, so it runs off the threads that serve connections.
            let counted = spawn_blocking(move || tally(&store, &table, &within, &quotas, now)).await;
            match counted {
                Ok(Ok(tallies)) => {
                    for (name, status) in tallies {
                        self.write_count(namespace, &name, &status).await;
                    }
                }
                Ok(Err(error)) => {
                    tracing::error!(%error, namespace, "objects cannot be listed for a quota");
                }
                Err(error) => tracing::error!(%error, namespace, "quotas are not counted"),
            }
            ledger.rest(began.elapsed());
        })
    }

    async fn write_count(&self, namespace: &str, name: &str, status: &Value) {
        let make = |live: &mut Arc<Value>| {
            let mut next = (**live).clone();
            object::set_field(&mut next, "status", Some(status.clone()));
            Ok(next)
        };
        match self.change_status(namespace, name, &make).await {
            Err(refusal) if refusal.reason() != "NotFound" => {
                tracing::warn!(%refusal, namespace, "the status of a quota is not written");
            }
            _ => {}
        }
    }
}

/// Computes the statuses of quotas by name. Each object is read once, one at a time, however many quotas count it.
fn tally(
    store: &Store,
    table: &ResourceTable,
    namespace: &str,
    quotas: &[Arc<Value>],
    now: Timestamp,
) -> Result<Vec<(String, Value)>, StoreError> {
    let resources: BTreeSet<_> = quotas.iter().flat_map(|quota| quota::counted(quota)).collect();
    let mut tallies: Vec<_> = quotas.iter().map(|quota| Tally::new(quota)).collect();
    for (group, plural) in &resources {
        let info = table.versions(group, plural).next();
        let Some(info) = info.filter(|info| info.scope == Scope::Namespaced) else { continue };
        let of = Counted { group, plural };
        for kept in store.all(&info.storage_key, Some(namespace))? {
            let object = kept.object.values();
            for tally in &mut tallies {
                tally.add(of, &object, now);
            }
        }
    }
    let status =
        |(quota, tally): (&Arc<Value>, Tally<'_>)| (object::name(quota).to_owned(), tally.into_status());
    Ok(quotas.iter().zip(tallies).map(status).collect())
}
