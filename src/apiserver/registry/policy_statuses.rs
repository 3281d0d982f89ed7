//! Writes the status of ValidatingAdmissionPolicies: the observed generation, and where expressions do not fit
//! the types of the objects that they are evaluated on. No decision depends on it.
//!
//! The counterpart of kube-controller-manager's validatingadmissionpolicy-status-controller. As there, a policy is
//! checked once for each generation, against the kinds that are served at that time: a definition that comes later
//! changes no status.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use admit_policy::{Documents, GroupVersionKind, GroupVersionResource, Policy, TypeWarning, Types, unasked};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::Registry;
use crate::admission::POLICIES;
use crate::call::{Call, WriteOptions};
use crate::cel_types::BuiltinTypes;
use crate::housekeeping;
use crate::identity::{Identity, MASTERS};
use crate::object;
use crate::resources::Subresource;
use crate::served::Served;
use crate::store::{EventKind, Stored};

/// The field manager of the status.
const MANAGER: &str = "validatingadmissionpolicy-status";
const USER: &str = "system:serviceaccount:kube-system:validatingadmissionpolicy-status-controller";

/// The time after which a failed status update is repeated.
const AGAIN: Duration = Duration::from_secs(5);

impl Registry {
    /// Writes statuses until the future is dropped, if the controller is enabled.
    pub(crate) async fn keep_policy_statuses(&self) {
        if !self.controllers.runs(housekeeping::POLICY_STATUSES) {
            return;
        }
        loop {
            // Existing policies are listed, later changes are watched.
            let Ok(mut changes) = self.store.watch(POLICIES, self.store.revision()) else { continue };
            let mut names = self.policy_names();
            loop {
                let mut left = self.write_policy_statuses(names).await;
                let again =
                    async { if left.is_empty() { std::future::pending().await } else { sleep(AGAIN).await } };
                tokio::select! {
                    () = changes.changed() => {}
                    () = again => {}
                }
                // The watch has lost changes: everything is processed again.
                let Ok(events) = changes.drain() else { break };
                let there = events.iter().filter(|event| event.kind != EventKind::Deleted);
                left.extend(there.map(|event| object::name(&event.object.head()).to_owned()));
                names = left;
            }
        }
    }

    fn policy_names(&self) -> BTreeSet<String> {
        let kept = self.stored_objects(POLICIES, None);
        kept.iter().map(|kept| object::name(&kept.object.head()).to_owned()).collect()
    }

    /// Writes outdated statuses; returns the names of policies whose status could not be written.
    async fn write_policy_statuses(&self, names: BTreeSet<String>) -> BTreeSet<String> {
        let served = self.served();
        let Some(info) = served.table.find("admissionregistration.k8s.io", "v1", POLICIES) else {
            return BTreeSet::new();
        };
        let identity = Identity::new(USER, [MASTERS.to_owned()]);
        let call = Call { identity, ..self.own_call(info, "") }.admitted();
        let stored = names.iter().filter_map(|name| self.store.latest(&call.key(name)));
        let behind: Vec<Stored> = stored.filter(|stored| is_behind(&stored.object)).collect();
        if behind.is_empty() {
            return BTreeSet::new();
        }
        // Type checking is expensive, so it runs off the threads that serve connections.
        let served = Arc::clone(&served);
        let checked = spawn_blocking(move || {
            let known = Known::of(&served);
            let status = |stored: Stored| {
                (object::name(&stored.object).to_owned(), configuration(&stored.object, &known))
            };
            behind.into_iter().map(status).collect::<Vec<_>>()
        });
        let checked = match checked.await {
            Ok(checked) => checked,
            Err(panic) => {
                tracing::error!(%panic, "the types of expressions cannot be checked");
                return BTreeSet::new();
            }
        };
        let status = call.on(Some(Subresource::Status));
        let mut left = BTreeSet::new();
        for (name, configuration) in checked {
            let applied = self.apply(&status, &name, configuration.to_string().as_bytes(), &options()).await;
            match applied {
                Ok(_) => {}
                // The policy is gone or was replaced, which the watch reports.
                Err(raced) if ["NotFound", "Conflict", "Invalid"].contains(&raced.reason()) => {
                    tracing::debug!(error = %raced, name, "the status of a policy is not written");
                }
                // The store has already logged that it cannot write.
                Err(internal) if internal.reason() == "InternalError" => {
                    tracing::debug!(error = %internal, name, "the status of a policy waits for the store");
                    left.insert(name);
                }
                Err(error) => {
                    tracing::warn!(%error, name, "the status of a policy is not written; it will be tried again");
                    left.insert(name);
                }
            }
        }
        left
    }
}

fn options() -> WriteOptions {
    WriteOptions {
        kind: "PatchOptions",
        field_manager: MANAGER.to_owned(),
        manager: MANAGER.to_owned(),
        force: true,
        ..WriteOptions::own()
    }
}

fn is_behind(policy: &Value) -> bool {
    let observed = policy.pointer("/status/observedGeneration").and_then(Value::as_i64).unwrap_or_default();
    object::generation(policy) > observed
}

/// Returns the configuration to apply to the status of `policy`; its uid keeps the status from a later policy of that name.
fn configuration(policy: &Value, types: &dyn Types) -> Value {
    let mut checking = json!({});
    let warnings = warnings(policy, types);
    if !warnings.is_empty() {
        let warnings =
            warnings.iter().map(|found| json!({"fieldRef": found.field, "warning": found.warning}));
        object::set_field(&mut checking, "expressionWarnings", Some(warnings.collect()));
    }
    json!({
        "apiVersion": policy.get("apiVersion"), "kind": policy.get("kind"),
        "metadata": {"name": object::name(policy), "uid": object::uid(policy)},
        "status": {"observedGeneration": object::generation(policy), "typeChecking": checking},
    })
}

/// Returns the type warnings; none for a policy that does not compile, as it was accepted by older rules.
fn warnings(policy: &Value, types: &dyn Types) -> Vec<TypeWarning> {
    unasked(|| Policy::compile_stored(policy).map(|policy| policy.check_types(types)).unwrap_or_default())
}

/// The types of everything that is served: custom resources by their definitions, and built-in kinds.
struct Known<'s> {
    served: &'s Served,
    defined: Documents,
    builtin: BuiltinTypes,
}

impl<'s> Known<'s> {
    fn of(served: &'s Served) -> Self {
        let mut defined = Documents::default();
        let definitions = served.definitions();
        definitions.for_each(|definition| defined.insert_crd(Arc::clone(definition)));
        Self { served, defined, builtin: BuiltinTypes::default() }
    }
}

impl Types for Known<'_> {
    fn kinds(&self, resource: &GroupVersionResource) -> Vec<GroupVersionKind> {
        let GroupVersionResource { group, version, resource } = resource;
        let row = self.served.table.find(group, version, resource);
        row.map(|row| GroupVersionKind::new(&*row.group, &*row.version, &*row.kind)).into_iter().collect()
    }

    fn type_of(&self, kind: &GroupVersionKind) -> Option<admit_cel::Type> {
        self.defined.type_of(kind).or_else(|| self.builtin.type_of(kind))
    }
}
