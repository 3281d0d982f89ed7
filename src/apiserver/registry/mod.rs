//! Implements the verbs on resources: naming, defaults, validation, admission, preconditions, deletion rules,
//! selection. Works on decoded objects; HTTP, encoding and Tables are left to the layer above, durability to the
//! store.

mod accounts;
mod admit;
mod allotments;
mod api_services;
mod apply;
mod authorize;
mod autoscalers;
mod availability;
mod bootstrap_flows;
mod bootstrap_policy;
mod bootstrap_priorities;
mod builtin_kinds;
mod catalogue;
mod compaction;
mod continue_token;
mod crd_status;
mod crds;
mod create;
mod delete;
mod field_ownership;
mod from_files;
mod garbage_collector;
mod get;
mod kinds;
mod list;
mod mutations;
mod offline;
mod own_maps;
mod patch;
mod patch_body;
mod patch_kind;
mod pod_subresources;
mod policy_statuses;
mod quotas;
mod reset_fields;
pub(crate) mod selector;
mod smallest;
mod storage_version;
mod stored_text;
mod token_requests;
mod update;
mod updated_object;
mod watch;
mod webhook_conversion;
mod written;

use std::sync::{Arc, PoisonError, RwLock};

use serde_json::Value;

pub use allotments::{ServiceNetwork, ServiceRange, ServiceRangeError};
pub use builtin_kinds::BuiltinKinds;
pub use from_files::FromFile;
pub use offline::OfflinePlugins;
pub(crate) use patch_body::PatchFormat;
pub(crate) use watch::{Told, WatchEvent, Watching};
pub(crate) use written::belongs_to_path;

use self::accounts::Accounts;
use self::allotments::Allotments;
use self::from_files::FromFiles;
use self::garbage_collector::Collector;
use self::quotas::Quotas;
use crate::admission::{Admission, SERVICE_ACCOUNTS, quota};
use crate::aggregation::Aggregation;
use crate::authorization::Authorization;
use crate::callout::Credentials;
use crate::clock::Clock;
use crate::conversion::Counts;
use crate::housekeeping::{self, Controllers};
use crate::served::Served;
use crate::status::Refusal;
use crate::store::{Kept, Packed, Store, StoreError};

/// The response of a verb: the object or a Status, and the HTTP code.
#[derive(Debug)]
pub(crate) struct Answer {
    pub code: u16,
    /// The object, shared with the store.
    pub object: Arc<Value>,
    /// The object as the store holds it, where that is what the caller sees.
    pub stored: Option<Arc<Packed>>,
}

impl Answer {
    fn ok(object: impl Into<Arc<Value>>) -> Self {
        Self { code: 200, object: object.into(), stored: None }
    }
}

/// The registry of all resources over one store.
#[derive(Debug)]
pub(crate) struct Registry {
    pub store: Store,
    pub(crate) clock: Clock,
    served: RwLock<Arc<Served>>,
    pub(crate) admission: Admission,
    pub(crate) authorization: Authorization,
    /// Counts calls of conversion webhooks.
    pub(crate) converted: Arc<Counts>,
    collector: Collector,
    from_files: FromFiles,
    accounts: Accounts,
    quotas: Quotas,
    allotments: Allotments,
    /// The versions that other servers serve.
    aggregation: Aggregation,
    pub(crate) controllers: Controllers,
    /// Whether privileged containers are refused.
    refuses_privileged: bool,
}

/// The settings of a registry.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) admission: Admission,
    pub(crate) authorization: Authorization,
    /// The requested controllers; by default all, and service accounts are created if the plugin that needs them is enabled.
    pub(crate) controllers: Option<Controllers>,
    pub(crate) root_ca: Option<String>,
    pub(crate) network: ServiceNetwork,
    pub(crate) proxy_client: Credentials,
    pub(crate) refuses_privileged: bool,
}

impl Registry {
    #[must_use]
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts {
            store,
            clock,
            admission,
            authorization,
            controllers,
            root_ca,
            network,
            proxy_client,
            refuses_privileged,
        } = parts;
        let served = RwLock::new(Arc::new(Served::builtin()));
        let plugins = admission.plugins();
        let asked = |name: &str| match &controllers {
            Some(asked) => asked.runs(name),
            None => plugins.is_enabled(SERVICE_ACCOUNTS),
        };
        Self {
            store,
            clock,
            served,
            accounts: Accounts::new(
                asked(housekeeping::ACCOUNTS),
                root_ca.filter(|_| asked(housekeeping::ROOT_CA)),
            ),
            quotas: Quotas::new(plugins.is_enabled(quota::PLUGIN)),
            allotments: Allotments::new(network),
            refuses_privileged,
            admission,
            authorization,
            converted: Arc::default(),
            collector: Collector::default(),
            from_files: FromFiles::default(),
            aggregation: Aggregation::presenting(proxy_client),
            controllers: controllers.unwrap_or_else(Controllers::all),
        }
    }

    /// Creates an independent registry over a fork of the store. It shares what was derived of stored objects (served kinds,
    /// rules, policies) until one of the two changes them.
    ///
    /// `quiet`: whether no write is in progress. Otherwise all of that is derived anew, as it may lag behind a stored
    /// write.
    pub(crate) async fn fork(&self, store: Store, quiet: bool) -> Self {
        let from_files = self.from_files.fork().await;
        Self {
            store,
            clock: self.clock.clone(),
            served: RwLock::new(self.served()),
            accounts: self.accounts.clone(),
            quotas: self.quotas.fork(),
            allotments: self.allotments.fork(),
            refuses_privileged: self.refuses_privileged,
            admission: self.admission.fork(quiet),
            authorization: self.authorization.fork(quiet),
            converted: Arc::default(),
            collector: Collector::default(),
            from_files,
            aggregation: self.aggregation.fork(),
            controllers: self.controllers.clone(),
        }
    }

    pub(crate) fn aggregation(&self) -> &Aggregation {
        &self.aggregation
    }

    /// Returns a snapshot of what is served now.
    #[must_use]
    pub(crate) fn served(&self) -> Arc<Served> {
        Arc::clone(&self.served.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the stored objects of a resource, packed, in a namespace or in all.
    fn stored_objects(&self, storage_key: &str, namespace: Option<&str>) -> Vec<Kept> {
        self.store.all(storage_key, namespace).unwrap_or_else(|error| {
            tracing::error!(%error, storage_key, "objects cannot be listed");
            Vec::new()
        })
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
