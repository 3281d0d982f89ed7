//! Maintains the statuses of ResourceQuotas: charges them with objects that are about to be stored, and counts the stored
//! objects when one is removed or changed.
//!
//! A charge is part of the write that it is for: it holds the [`Ledger`] of the namespace until the object is stored,
//! and a count there waits for that. So concurrent writes never exceed a quota, and the usage
//! matches what is stored. A charge whose write fails is corrected by the next count.

mod count;
mod ledgers;

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use serde_json::Value;
use tokio::sync::{Notify, RwLockReadGuard};

use self::ledgers::{Ledger, Ledgers};
use super::Registry;
use super::field_ownership::Ownership;
use super::update::Change;
use crate::admission::quota::{self, Counted, Excess, Uncovered, Written};
use crate::call::{Call, WriteOptions};
use crate::object;
use crate::resources::{Scope, Subresource};
use crate::status::Refusal;

pub(super) const QUOTAS: &str = "resourcequotas";

/// Records which namespaces are to be counted.
#[derive(Debug, Default)]
pub(super) struct Quotas {
    on: bool,
    /// Whether this server counts: otherwise other controllers write the statuses.
    counted: AtomicBool,
    ledgers: Ledgers,
    /// The namespaces in which usage may have decreased.
    behind: Mutex<BTreeSet<String>>,
    wake: Notify,
}

/// A namespace that is marked for counting when this is dropped, unless it is paid before.
#[derive(Debug)]
struct Debt<'q> {
    quotas: &'q Quotas,
    namespace: Option<String>,
}

impl Drop for Debt<'_> {
    fn drop(&mut self) {
        if let Some(namespace) = self.namespace.take() {
            self.quotas.mark(&namespace);
        }
    }
}

/// Holds the charge of a write until its object is stored.
#[derive(Debug)]
pub(super) struct Charge<'q> {
    /// The debt of the namespace whose quotas were charged.
    debt: Debt<'q>,
    /// Locks out counts meanwhile.
    _entry: RwLockReadGuard<'q, ()>,
}

impl Charge<'_> {
    /// Marks the charged object as stored.
    pub(super) fn settle(mut self) {
        self.debt.namespace = None;
    }
}

impl Quotas {
    pub(super) fn new(on: bool) -> Self {
        Self { on, ..Self::default() }
    }

    /// Creates the state for a fork, which does not count yet.
    pub(super) fn fork(&self) -> Self {
        Self { on: self.on, behind: Mutex::new(self.behind().clone()), ..Self::default() }
    }

    fn mark(&self, namespace: &str) {
        self.behind().insert(namespace.to_owned());
        self.wake.notify_one();
    }

    fn behind(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        self.behind.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the namespace is to be counted.
    fn owes(&self, namespace: &str) -> bool {
        self.behind().contains(namespace)
    }

    /// Takes the debt of a namespace that is to be counted.
    fn take(&self, namespace: &str) -> Option<Debt<'_>> {
        let owes = self.behind().remove(namespace);
        owes.then(|| Debt { quotas: self, namespace: Some(namespace.to_owned()) })
    }
}

/// Returns whether objects that are written by this call can count.
pub(super) fn is_counted(call: &Call) -> bool {
    let info = &call.info;
    let core = |plural: &str| info.builtin && info.group.is_empty() && info.plural == plural;
    match call.subresource {
        None => true,
        Some(Subresource::Resize) => core("pods"),
        Some(Subresource::Status) => core("persistentvolumeclaims"),
        Some(_) => false,
    }
}

/// Returns whether a change of such an object is charged: that of other kinds does not change their usage.
pub(super) fn is_charged_again(call: &Call) -> bool {
    let plural = call.info.plural.as_str();
    call.info.builtin
        && call.info.group.is_empty()
        && (["services", "persistentvolumeclaims"].contains(&plural)
            || (plural == "pods" && call.subresource == Some(Subresource::Resize)))
}

/// Builds the refusal of a write that no quota covers.
pub(super) fn uncovered_refusal(call: &Call, object: &Value, uncovered: Uncovered) -> Refusal {
    match uncovered {
        Uncovered::Consumed(why) => Refusal::forbidden(&call.info, object::name(object), &why),
        Uncovered::Scoped(why) => Refusal::unclassified(why),
    }
}

impl Registry {
    /// Charges the quotas of the namespace with an object that is about to be stored in place of `old`.
    ///
    /// # Errors
    /// 403 if a quota refuses it.
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
        let written = Written {
            of: Counted { group: &call.info.group, plural: &call.info.plural },
            object,
            old,
            now: call.clock.now(),
        };
        let kept = || -> Vec<Arc<Value>> {
            let kept = self.stored_objects(QUOTAS, Some(&call.namespace));
            kept.iter().map(|kept| kept.object.values()).collect()
        };
        if let Some(uncovered) = self.admission.uncovered(kept, written) {
            return Err(uncovered_refusal(call, object, uncovered));
        }
        // A quota that is created meanwhile counts the object once it is stored: see `recount`.
        if self.store.is_empty(QUOTAS) {
            return Ok(None);
        }
        let ledger = quotas.ledgers.of(&call.namespace);
        let charged = match self.charge_all(call, written, dry_run, ledger).await {
            // Usage may have decreased without being counted yet.
            Err(Excess::Exceeded(_)) if self.count_at_once(&call.namespace, ledger).await => {
                self.charge_all(call, written, dry_run, ledger).await
            }
            charged => charged,
        };
        charged
            .map(Some)
            .map_err(|excess| Refusal::forbidden(&call.info, object::name(object), excess.text()))
    }

    async fn charge_all<'r>(
        &'r self,
        call: &Call,
        written: Written<'_>,
        dry_run: bool,
        ledger: &'r Ledger,
    ) -> Result<Charge<'r>, Excess> {
        let debt = Debt { quotas: &self.quotas, namespace: None };
        let mut charge = Charge { debt, _entry: ledger.enter().await };
        if self.concerned(&call.namespace, written)?.is_empty() {
            return Ok(charge);
        }
        let _turn = ledger.turn().await;
        // A previous charge may have used up the rest.
        let concerned = self.concerned(&call.namespace, written)?;
        if dry_run {
            return Ok(charge);
        }
        for name in concerned {
            charge.debt.namespace = Some(call.namespace.clone());
            self.charge_one(&call.namespace, &name, written).await?;
        }
        Ok(charge)
    }

    /// Returns the names of the quotas that are charged with the object.
    fn concerned(&self, namespace: &str, written: Written<'_>) -> Result<Vec<String>, Excess> {
        let mut concerned = Vec::new();
        for kept in self.stored_objects(QUOTAS, Some(namespace)) {
            let quota = kept.object.values();
            if quota::charged(&quota, written)?.is_some() {
                concerned.push(object::name(&quota).to_owned());
            }
        }
        Ok(concerned)
    }

    /// Charges one quota. Boxed, since it is part of a write and makes another.
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
                // A removed quota limits nothing.
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

    /// Marks the namespace for counting after an object was stored or removed without a charge.
    pub(super) fn recount(&self, call: &Call) {
        if !self.quotas.on || call.namespace.is_empty() || self.store.is_empty(QUOTAS) {
            return;
        }
        let is_status = call.info.storage_key == QUOTAS && call.subresource.is_some();
        if !is_status && !self.stored_objects(QUOTAS, Some(&call.namespace)).is_empty() {
            self.quotas.mark(&call.namespace);
        }
    }

    /// Marks the namespace for counting after a quota was created or changed.
    pub(super) fn count_new_quota(&self, call: &Call) {
        if self.quotas.on && call.info.storage_key == QUOTAS && call.subresource.is_none() {
            self.quotas.mark(&call.namespace);
        }
    }
}

#[cfg(test)]
mod tests;
