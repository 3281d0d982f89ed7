//! Implements the verbs on resources: naming, defaults, validation, admission, preconditions, deletion rules,
//! selection. Works on decoded objects; HTTP, encoding and Tables are left to the layer above, durability to the
//! store.

mod api_services;
mod apply;
mod autoscalers;
mod builtin_kinds;
mod crd_status;
mod crds;
mod create;
mod custom;
mod delete;
mod field_ownership;
mod from_files;
mod garbage_collector;
mod get;
mod kinds;
mod list;
mod metadata;
pub mod options;
mod patch;
mod pod_subresources;
mod policy_statuses;
mod reset_fields;
mod scale;
pub(crate) mod selector;
mod served;
mod storage_version;
mod token_requests;
mod update;
mod updated_object;
mod watch;
mod webhook_conversion;

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use admit_apimachinery::findings::Room;
use indexmap::IndexSet;
use serde_json::Value;

pub use builtin_kinds::BuiltinKinds;
pub(crate) use custom::causes;
pub use custom::{CustomKind, CustomVersion};
pub use from_files::FromFile;
pub use list::Listing;
pub(crate) use metadata::{annotation_problems, label_problems};
pub use options::{DeleteOptions, ListOptions, Query, WriteOptions};
pub use patch::PatchFormat;
pub use scale::ScalePaths;
pub use served::Served;
pub use watch::{WatchEvent, Watching};

use self::from_files::FromFiles;
use self::garbage_collector::Collector;
use crate::admission::Admission;
use crate::authorization::Authorization;
use crate::clock::Clock;
use crate::conversion::{Conversions, Counts};
use crate::identity::Identity;
use crate::resources::{ResourceInfo, Subresource};
use crate::status::Refusal;
use crate::store::{Key, Store, StoreError};

/// One request, as far as the registry needs to know it.
#[derive(Clone, Debug)]
pub struct Call {
    pub info: Arc<ResourceInfo>,
    /// The CRD's version that serves this, for custom resources.
    pub custom: Option<Arc<CustomVersion>>,
    /// Empty for cluster scope, and for lists across namespaces.
    pub namespace: String,
    pub subresource: Option<Subresource>,
    pub identity: Identity,
    pub warnings: Warnings,
    /// The conversions that were made for the request.
    pub(crate) conversions: Conversions,
    /// The clock for times that are written into objects.
    pub clock: Clock,
    /// Whether the request that this is a part of has already passed admission.
    pub admitted: bool,
}

impl Call {
    pub(crate) fn key(&self, name: &str) -> Key {
        Key {
            resource: self.info.storage_key.as_str().into(),
            namespace: self.namespace.clone(),
            name: name.to_owned(),
        }
    }

    /// The same call to another subresource, or to the resource itself.
    pub(crate) fn on(&self, subresource: Option<Subresource>) -> Self {
        Self { subresource, ..self.clone() }
    }

    /// The same caller, about another resource.
    pub(crate) fn about(&self, info: &Arc<ResourceInfo>, namespace: &str) -> Self {
        Self {
            info: Arc::clone(info),
            custom: None,
            namespace: namespace.to_owned(),
            subresource: None,
            identity: self.identity.clone(),
            warnings: Warnings::default(),
            conversions: Conversions::default(),
            clock: self.clock.clone(),
            admitted: false,
        }
    }

    /// A part of a request that was let in.
    pub(crate) fn admitted(self) -> Self {
        Self { admitted: true, ..self }
    }
}

/// Texts for `Warning` headers, gathered while a request runs.
#[derive(Clone, Debug, Default)]
pub struct Warnings(Arc<Mutex<Gathered>>);

/// Each text once. Answers have room for 4,096 characters of them, so that none is missed of those beyond the bound.
#[derive(Debug, Default)]
struct Gathered {
    texts: IndexSet<String>,
    room: Room,
}

impl Warnings {
    /// A text that is there already is not repeated.
    pub fn add(&self, text: impl Into<String>) {
        let text = text.into();
        let mut gathered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Gathered { texts, room } = &mut *gathered;
        if !room.is_full() && !texts.contains(&text) {
            room.take(text.len());
            texts.insert(text);
        }
    }

    #[must_use]
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
            .texts
            .into_iter()
            .collect()
    }
}

/// A verb's answer: the object, or a Status, and the HTTP code.
#[derive(Debug)]
pub struct Answer {
    pub code: u16,
    /// The object, shared with the store.
    pub object: Arc<Value>,
}

impl Answer {
    fn ok(object: impl Into<Arc<Value>>) -> Self {
        Self { code: 200, object: object.into() }
    }
}

/// The registry of all resources over one store.
#[derive(Debug)]
pub struct Registry {
    pub store: Store,
    pub(crate) clock: Clock,
    served: RwLock<Arc<Served>>,
    pub(crate) admission: Admission,
    pub(crate) authorization: Authorization,
    /// Questions to conversion webhooks.
    pub(crate) converted: Counts,
    collector: Collector,
    from_files: FromFiles,
}

impl Registry {
    #[must_use]
    pub fn new(store: Store, clock: Clock) -> Self {
        let served = RwLock::new(Arc::new(Served::builtin()));
        Self {
            store,
            clock,
            served,
            admission: Admission::default(),
            authorization: Authorization::default(),
            converted: Counts::default(),
            collector: Collector::default(),
            from_files: FromFiles::default(),
        }
    }

    /// The snapshot of what is served now.
    #[must_use]
    pub fn served(&self) -> Arc<Served> {
        Arc::clone(&self.served.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Serves a table from now on, unless a newer one is served already.
    fn serve(&self, served: Served) {
        let mut current = self.served.write().unwrap_or_else(PoisonError::into_inner);
        if served.table.generation() >= current.table.generation() {
            *current = Arc::new(served);
        }
    }
}

fn store_failed(error: &StoreError) -> Refusal {
    Refusal::internal(error.to_string())
}
