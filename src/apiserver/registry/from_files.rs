//! Stores policies and bindings that come from files as API objects, and reconciles them with the files.
//! `admission::from_files` describes what is special about such objects, and why they are stored.
//!
//! Input: all documents of the files, after each change. An existing object keeps its uid and counts its
//! generations; one whose document is gone is removed, also if that happened while the process did not run.

use std::collections::HashSet;

use futures::future::{BoxFuture, join_all};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::Registry;
use crate::admission::{BINDINGS, MARK, MUTATING_BINDING_KEY, MUTATING_POLICY_KEY, POLICIES, file_of};
use crate::call::{Call, WriteOptions};
use crate::codec::recheck;
use crate::identity::Identity;
use crate::object;
use crate::status::Refusal;
use crate::store::{Kept, StoreError};

const GROUP: &str = "admissionregistration.k8s.io";
const VERSION: &str = "v1";
/// The kinds, and their storage keys.
const KINDS: [(&str, &str); 4] = [
    ("ValidatingAdmissionPolicy", POLICIES),
    ("ValidatingAdmissionPolicyBinding", BINDINGS),
    ("MutatingAdmissionPolicy", MUTATING_POLICY_KEY),
    ("MutatingAdmissionPolicyBinding", MUTATING_BINDING_KEY),
];
/// The field manager.
const MANAGER: &str = "admit";
/// The number of attempts for an object that is changed concurrently.
const ATTEMPTS: usize = 8;

/// A policy or binding from a file.
#[derive(Clone, Debug, PartialEq)]
pub struct FromFile {
    /// The path, as shown to users.
    pub file: String,
    /// The document. Fields that only a server sets are ignored.
    pub object: Value,
}

/// Holds the objects that are to be shown.
#[derive(Debug, Default)]
pub(super) struct FromFiles(Mutex<State>);

#[derive(Clone, Debug, Default)]
struct State {
    wanted: Vec<FromFile>,
    /// The storage keys and names that clients' objects occupy.
    hidden: HashSet<(&'static str, String)>,
}

impl FromFiles {
    /// Copies the state.
    pub(super) async fn fork(&self) -> Self {
        Self(Mutex::new(self.0.lock().await.clone()))
    }
}

/// The result of showing an object.
enum Outcome {
    Shown,
    /// A client's object occupies the name.
    Hidden,
}

/// Returns whether objects from files are stored under this key.
pub(super) fn may_show(storage_key: &str) -> bool {
    KINDS.iter().any(|(_, key)| *key == storage_key)
}

impl FromFile {
    fn storage_key(&self) -> Option<&'static str> {
        let kind = self.object.get("kind").and_then(Value::as_str)?;
        KINDS.iter().find(|(own, _)| *own == kind).map(|(_, key)| *key)
    }

    fn name(&self) -> &str {
        object::name(&self.object)
    }

    /// Returns the object as a client would send it, with the mark.
    fn marked(&self) -> Value {
        let map =
            |field: &str| self.object.pointer(&format!("/metadata/{field}")).cloned().unwrap_or(Value::Null);
        let mut shown = json!({
            "apiVersion": format!("{GROUP}/{VERSION}"), "kind": self.object.get("kind"),
            "metadata": {"name": self.name(), "labels": map("labels"), "annotations": map("annotations")},
            "spec": self.object.get("spec"),
        });
        let metadata = object::meta_mut(&mut shown);
        object::member_mut(metadata, "labels").insert(MARK.to_owned(), "true".into());
        object::member_mut(metadata, "annotations").insert(MARK.to_owned(), self.file.as_str().into());
        shown
    }
}

impl Registry {
    /// Shows exactly these objects, and removes all other objects that come from files.
    pub(crate) async fn show_from_files(&self, wanted: Vec<FromFile>) {
        let mut state = self.from_files.0.lock().await;
        let names: HashSet<_> = wanted.iter().map(|one| (one.storage_key(), one.name())).collect();
        for (_, storage_key) in KINDS {
            let is_gone = |name: &str| !names.contains(&(Some(storage_key), name));
            self.hide(storage_key, is_gone).await;
        }
        // Written concurrently, so that a durable store commits them together.
        let outcomes = join_all(wanted.iter().map(|one| self.show(one))).await;
        let mut hidden = HashSet::new();
        for (one, outcome) in wanted.iter().zip(outcomes) {
            let Some(key) = one.storage_key().map(|key| (key, one.name().to_owned())) else { continue };
            match outcome {
                Ok(Outcome::Shown) => {}
                Ok(Outcome::Hidden) => {
                    if !state.hidden.contains(&key) {
                        tell_hidden(one);
                    }
                    hidden.insert(key);
                }
                Err(refusal) => tell_refused(one, &refusal),
            }
        }
        *state = State { wanted, hidden };
    }

    /// Shows an object once a client's object has freed its name. Boxed, since it follows a removal and may
    /// cause one.
    pub(super) fn show_freed<'r>(&'r self, storage_key: &'r str, name: &'r str) -> BoxFuture<'r, ()> {
        Box::pin(async move {
            let mut state = self.from_files.0.lock().await;
            let State { wanted, hidden } = &mut *state;
            hidden.retain(|(key, hidden)| (*key, hidden.as_str()) != (storage_key, name));
            let is_meant = |one: &&FromFile| (one.storage_key(), one.name()) == (Some(storage_key), name);
            if let Some(one) = wanted.iter().find(is_meant)
                && let Err(refusal) = self.show(one).await
            {
                tell_refused(one, &refusal);
            }
        })
    }

    async fn show(&self, one: &FromFile) -> Result<Outcome, Refusal> {
        let call = one.storage_key().and_then(|key| self.shown_as(key));
        let Some(call) = call else { return Ok(Outcome::Shown) };
        let received = recheck(&call.info, None, one.marked());
        let object = received.map_err(|why| why.refusal(Refusal::internal))?.object;
        let options = WriteOptions { manager: MANAGER.to_owned(), ..WriteOptions::own() };
        let mut refusal = None;
        for _ in 0..ATTEMPTS {
            let mut object = object.clone();
            let written = match self.store.latest(&call.key(one.name())) {
                None => self.create(&call, object, &options).await,
                Some(live) if file_of(&live.object).is_none() => return Ok(Outcome::Hidden),
                Some(live) => {
                    let version = object::resource_version(&live.object);
                    object::set_meta(&mut object, "resourceVersion", Some(version.into()));
                    self.update(&call, one.name(), object, &options).await
                }
            };
            match written {
                Ok(_) => return Ok(Outcome::Shown),
                // Another writer was first: a client, or the controller of the status.
                Err(raced) if ["AlreadyExists", "Conflict", "NotFound"].contains(&raced.reason()) => {
                    refusal = Some(raced);
                }
                Err(other) => return Err(other),
            }
        }
        refusal.map_or(Ok(Outcome::Shown), Err)
    }

    /// Removes the objects from files whose names are `gone`.
    async fn hide(&self, storage_key: &str, gone: impl Fn(&str) -> bool) {
        let Some(call) = self.shown_as(storage_key) else { return };
        let mut found = self.stored_objects(storage_key, None);
        found.retain(|kept| {
            let head = kept.object.head();
            file_of(&head).is_some() && gone(object::name(&head))
        });
        // A concurrent status update makes the removal fail: it is tried again.
        for stored in found.iter().map(Kept::stored) {
            let key = call.key(object::name(&stored.object));
            let mut stored = Some(stored);
            while let Some(live) = stored.take() {
                match self.store.delete_unchanged(&key, live.revision).await {
                    Ok(_) => {}
                    Err(StoreError::Conflict(_)) => {
                        stored = self.store.latest(&key).filter(|live| file_of(&live.object).is_some());
                    }
                    Err(error) => {
                        tracing::warn!(%error, name = key.name, "an object of a file that is gone stays")
                    }
                }
            }
        }
        self.admission.written(storage_key);
    }

    /// Returns the server's own call to the resource.
    fn shown_as(&self, storage_key: &str) -> Option<Call> {
        let served = self.served();
        let info = served.table.find(GROUP, VERSION, storage_key)?;
        Some(Call { identity: Identity::admin(), ..self.own_call(info, "") }.admitted())
    }
}

fn tell_hidden(FromFile { file, object }: &FromFile) {
    let (kind, name) = (object.get("kind").and_then(Value::as_str), object::name(object));
    tracing::warn!(
        kind,
        name,
        file,
        "in force from the file, and not shown: the API server has an object of that name, which is in force as well; \
         delete the object to have the one of the file shown"
    );
}

fn tell_refused(FromFile { file, object }: &FromFile, refusal: &Refusal) {
    let (kind, name) = (object.get("kind").and_then(Value::as_str), object::name(object));
    tracing::warn!(kind, name, file, error = %refusal, "in force from the file, and cannot be shown");
}
