//! Keeps the statuses of ResourceQuotas: charges them with what is about to be stored, and counts again what is stored
//! when something goes or changes.
//!
//! A charge is part of the write that it is for: it holds [`Quotas::counting`] until the object is stored, and what is
//! counted meanwhile waits. So a quota is never exceeded, whoever writes at the same time, and what is used is what is
//! stored. A charge whose write fails is found by the next count.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use serde_json::Value;
use tokio::sync::{Notify, RwLock, RwLockReadGuard};
use tokio::time::{Instant, sleep};

use super::Registry;
use super::field_ownership::Ownership;
use super::update::Change;
use crate::admission::quota::{self, Counted, Excess, Written};
use crate::call::{Call, WriteOptions};
use crate::object;
use crate::resources::{Scope, Subresource};
use crate::status::Refusal;
use crate::store::{Kept, Range};

const QUOTAS: &str = "resourcequotas";

/// How many times as long as its last count the counter rests.
const REST: u32 = 4;

/// What is to be counted.
#[derive(Debug, Default)]
pub(super) struct Quotas {
    on: bool,
    /// Whether somebody counts: otherwise statuses are what others write into them.
    counted: AtomicBool,
    counting: RwLock<()>,
    /// Charges come one after the other: each builds on the status that the one before left.
    turn: tokio::sync::Mutex<()>,
    /// Namespaces in which something was let go.
    behind: Mutex<BTreeSet<String>>,
    wake: Notify,
}

/// Holds the charge of a write until its object is stored.
#[derive(Debug)]
pub(super) struct Charge<'q> {
    quotas: &'q Quotas,
    /// The namespace whose quotas were charged.
    charged: Option<String>,
    _counting: RwLockReadGuard<'q, ()>,
}

impl Charge<'_> {
    /// Says that what was charged is stored.
    pub(super) fn settle(mut self) {
        self.charged = None;
    }
}

impl Drop for Charge<'_> {
    fn drop(&mut self) {
        if let Some(namespace) = self.charged.take() {
            self.quotas.mark(&namespace);
        }
    }
}

impl Quotas {
    pub(super) fn new(on: bool) -> Self {
        Self { on, ..Self::default() }
    }

    fn mark(&self, namespace: &str) {
        self.behind().insert(namespace.to_owned());
        self.wake.notify_one();
    }

    fn behind(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        self.behind.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the namespace is to be counted, which it is then taken to be.
    fn take(&self, namespace: &str) -> bool {
        self.behind().remove(namespace)
    }
}

/// Whether what is written there can count.
fn is_counted(call: &Call) -> bool {
    let info = &call.info;
    let core = |plural: &str| info.builtin && info.group.is_empty() && info.plural == plural;
    match call.subresource {
        None => true,
        Some(Subresource::Resize) => core("pods"),
        Some(Subresource::Status) => core("persistentvolumeclaims"),
        Some(_) => false,
    }
}

/// Whether a change of such an object is charged: others take as much as before.
fn is_charged_again(call: &Call) -> bool {
    let plural = call.info.plural.as_str();
    call.info.builtin
        && call.info.group.is_empty()
        && (["services", "persistentvolumeclaims"].contains(&plural)
            || (plural == "pods" && call.subresource == Some(Subresource::Resize)))
}

impl Registry {
    /// Charges the quotas of the namespace with an object that is about to be stored in place of `old`.
    ///
    /// # Errors
    /// 403 when a quota does not let it in.
    pub(super) async fn charge<'r>(
        &'r self,
        call: &Call,
        object: &Value,
        old: Option<&Value>,
        dry_run: bool,
    ) -> Result<Option<Charge<'r>>, Refusal> {
        let quotas = &self.quotas;
        let concerns = call.info.scope == Scope::Namespaced && is_counted(call);
        if !quotas.on || call.admitted || !concerns || (old.is_some() && !is_charged_again(call)) {
            return Ok(None);
        }
        let held = Charge { quotas, charged: None, _counting: quotas.counting.read().await };
        let written = Written {
            of: Counted { group: &call.info.group, plural: &call.info.plural },
            object,
            old,
            now: call.clock.now(),
        };
        match self.charge_all(call, written, dry_run, held).await {
            Err(Excess::Exceeded(_))
                if quotas.counted.load(Ordering::Acquire) && quotas.take(&call.namespace) =>
            {
                // Something was let go that has not been counted yet.
                self.count(&call.namespace).await;
                let held = Charge { quotas, charged: None, _counting: quotas.counting.read().await };
                self.charge_all(call, written, dry_run, held).await.map(Some)
            }
            charged => charged.map(Some),
        }
        .map_err(|excess| Refusal::forbidden(&call.info, object::name(object), excess.text()))
    }

    async fn charge_all<'r>(
        &'r self,
        call: &Call,
        written: Written<'_>,
        dry_run: bool,
        mut held: Charge<'r>,
    ) -> Result<Charge<'r>, Excess> {
        let _turn = self.quotas.turn.lock().await;
        let stored = self.quotas_of(&call.namespace);
        let mut concerned = Vec::new();
        for quota in &stored {
            if quota::charged(quota, written)?.is_some() {
                concerned.push(object::name(quota));
            }
        }
        if dry_run {
            return Ok(held);
        }
        for name in concerned {
            held.charged = Some(call.namespace.clone());
            self.charge_one(&call.namespace, name, written).await?;
        }
        Ok(held)
    }

    /// Boxed, since it is part of a write and makes another.
    fn charge_one<'r>(
        &'r self,
        namespace: &'r str,
        name: &'r str,
        written: Written<'r>,
    ) -> BoxFuture<'r, Result<(), Excess>> {
        Box::pin(async move {
            let excess = std::sync::Mutex::new(None);
            let make = |live: &mut Arc<Value>| match quota::charged(live, written) {
                Ok(Some(used)) => {
                    let mut next = (**live).clone();
                    let status = object::member_mut(object::map_of(&mut next), "status");
                    status.insert("used".to_owned(), used.into());
                    Ok(next)
                }
                Ok(None) => Ok((**live).clone()),
                Err(found) => {
                    let text = found.text().to_owned();
                    *excess.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
                    Err(Refusal::internal(text))
                }
            };
            match self.change_status(namespace, name, &make).await {
                Ok(()) => Ok(()),
                // A quota that is gone limits nothing.
                Err(refusal) if refusal.reason() == "NotFound" => Ok(()),
                Err(refusal) => {
                    let found = excess.lock().unwrap_or_else(PoisonError::into_inner).take();
                    Err(found.unwrap_or_else(|| Excess::Unknown(refusal.message().to_owned())))
                }
            }
        })
    }

    async fn change_status(
        &self,
        namespace: &str,
        name: &str,
        make: &(dyn Fn(&mut Arc<Value>) -> Result<Value, Refusal> + Send + Sync),
    ) -> Result<(), Refusal> {
        let served = self.served();
        let Some(info) = served.table.find("", "v1", QUOTAS) else { return Ok(()) };
        let call = self.own_call(info, namespace).on(Some(Subresource::Status)).admitted();
        let change = Change { make, uid_is_precondition: false, ownership: Ownership::Tracked };
        self.change(&call, name, &change, &WriteOptions::own()).await.map(drop)
    }

    fn quotas_of(&self, namespace: &str) -> Vec<Arc<Value>> {
        self.stored_in(QUOTAS, namespace)
    }

    fn stored_in(&self, storage_key: &str, namespace: &str) -> Vec<Arc<Value>> {
        let mut found: Vec<Kept> = Vec::new();
        let mut collect = |kept: &Kept| {
            found.push(kept.clone());
            false
        };
        let range = Range { namespace: Some(namespace), ..Range::default() };
        if let Err(error) = self.store.list(storage_key, range, 0, &mut collect) {
            tracing::error!(%error, storage_key, "cannot be listed for a quota");
        }
        found.iter().map(|kept| kept.object.values()).collect()
    }

    /// Notes that something of the namespace may take less than before.
    pub(super) fn recount(&self, call: &Call) {
        if !self.quotas.on || call.namespace.is_empty() || self.store.is_empty(QUOTAS) {
            return;
        }
        let is_status = call.info.storage_key == QUOTAS && call.subresource.is_some();
        if !is_status && !self.quotas_of(&call.namespace).is_empty() {
            self.quotas.mark(&call.namespace);
        }
    }

    /// Notes that a quota is new or another.
    pub(super) fn count_new_quota(&self, call: &Call) {
        if self.quotas.on && call.info.storage_key == QUOTAS && call.subresource.is_none() {
            self.quotas.mark(&call.namespace);
        }
    }

    /// Counts until the future is dropped.
    pub(crate) async fn keep_quotas(&self) {
        if !self.quotas.on {
            return std::future::pending().await;
        }
        for quota in self.all_quotas() {
            self.quotas.mark(object::namespace(&quota));
        }
        loop {
            let began = Instant::now();
            if self.count_quotas().await {
                // While objects go one by one, a count of all that are left is not worth each of them.
                sleep(began.elapsed() * REST).await;
            } else {
                self.quotas.wake.notified().await;
            }
        }
    }

    /// Counts in each namespace where something was let go; answers whether there was one.
    pub(crate) async fn count_quotas(&self) -> bool {
        self.quotas.counted.store(true, Ordering::Release);
        let behind = std::mem::take(&mut *self.quotas.behind());
        for namespace in &behind {
            self.count(namespace).await;
        }
        !behind.is_empty()
    }

    fn all_quotas(&self) -> Vec<Arc<Value>> {
        let mut found: Vec<Kept> = Vec::new();
        let mut collect = |kept: &Kept| {
            found.push(kept.clone());
            false
        };
        if let Err(error) = self.store.list(QUOTAS, Range::default(), 0, &mut collect) {
            tracing::error!(%error, "the quotas cannot be listed");
        }
        found.iter().map(|kept| kept.object.values()).collect()
    }

    /// Counts what is stored in the namespace. Boxed, since writes count and counts write.
    fn count<'r>(&'r self, namespace: &'r str) -> BoxFuture<'r, ()> {
        Box::pin(async move {
            let _counting = self.quotas.counting.write().await;
            let served = self.served();
            for quota in self.quotas_of(namespace) {
                let counted = quota::counted(&quota);
                let mut objects = Vec::new();
                for (group, plural) in &counted {
                    let info = served.table.versions(group, plural).next();
                    if let Some(info) = info.filter(|info| info.scope == Scope::Namespaced) {
                        let of = Counted { group, plural };
                        let stored = self.stored_in(&info.storage_key, namespace);
                        objects.extend(stored.into_iter().map(|object| (of, object)));
                    }
                }
                let now = self.clock.now();
                let make = |live: &mut Arc<Value>| {
                    let objects = objects.iter().map(|(of, object)| (*of, &**object));
                    let mut next = (**live).clone();
                    let status = quota::status(live, objects, now);
                    object::set_field(&mut next, "status", Some(status));
                    Ok(next)
                };
                match self.change_status(namespace, object::name(&quota), &make).await {
                    Err(refusal) if refusal.reason() != "NotFound" => {
                        tracing::warn!(%refusal, namespace, "the status of a quota is not written");
                    }
                    _ => {}
                }
            }
        })
    }
}
