//! Knows the versions of groups that other servers serve, as APIServices delegate them: where these are reached, whether they answer,
//! and what they serve.
//!
//! Input: APIServices, and what was found when their servers were asked. Output: for a group and version its [`Delegated`]. The
//! registry asks, requests are passed on by `http`.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use admit_apimachinery::pointer::text;
use admit_policy::webhook::{Client, Service};
use serde_json::Value;

use crate::callout::{Callee, Credentials};

/// How long a server may take to say what it serves.
const PATIENCE: Duration = Duration::from_secs(5);

/// A version that another server serves.
#[derive(Clone, Debug)]
pub(crate) struct Delegated {
    pub(crate) group: String,
    pub(crate) version: String,
    /// The priority of the group among others.
    pub(crate) priority: i64,
    pub(crate) callee: Callee,
    pub(crate) is_available: bool,
    /// The entries of the server's APIResourceList; none while it is unavailable.
    pub(crate) resources: Vec<Value>,
}

impl Delegated {
    fn of(api_service: &Value, credentials: &Credentials) -> Option<Self> {
        let spec = api_service.get("spec")?;
        let service = spec.get("service").filter(|service| service.is_object())?;
        let number = |value: &Value, field: &str| value.get(field).and_then(Value::as_i64);
        let (name, namespace) = (text(service, "/name").to_owned(), text(service, "/namespace").to_owned());
        let server_name = format!("{name}.{namespace}.svc");
        let port = number(service, "port").unwrap_or(443);
        let client = Client::Service(Service { namespace, name, port, path: String::new() });
        let callee = Callee::new(client, text(spec, "/caBundle"), PATIENCE);
        Some(Self {
            group: text(spec, "/group").to_owned(),
            version: text(spec, "/version").to_owned(),
            priority: number(spec, "groupPriorityMinimum").unwrap_or_default(),
            callee: Callee {
                credentials: Credentials { server_name, ..credentials.clone() },
                is_insecure: spec.get("insecureSkipTLSVerify").is_some_and(|skips| skips == true),
                ..callee
            },
            is_available: false,
            resources: Vec::new(),
        })
    }

    /// Returns the path of the document that the server is asked for.
    pub(crate) fn path(&self) -> String {
        let Self { group, version, .. } = self;
        if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") }
    }
}

type Known = BTreeMap<String, Arc<Delegated>>;

/// The versions that other servers serve, by the names of their APIServices.
#[derive(Debug, Default)]
pub(crate) struct Aggregation {
    known: RwLock<Known>,
    /// What this server presents to others.
    credentials: Credentials,
}

impl Aggregation {
    /// Presents these credentials to other servers.
    pub(crate) fn presenting(credentials: Credentials) -> Self {
        Self { credentials, known: RwLock::default() }
    }

    /// Returns the same credentials, and no versions: the fork asks by itself.
    pub(crate) fn fork(&self) -> Self {
        Self::presenting(self.credentials.clone())
    }

    /// Reads an APIService; None for one that this server serves itself.
    pub(crate) fn delegated(&self, api_service: &Value) -> Option<Delegated> {
        Delegated::of(api_service, &self.credentials)
    }

    /// Returns all versions, ordered by the names of their APIServices.
    pub(crate) fn all(&self) -> Vec<Arc<Delegated>> {
        self.read(|known| known.values().cloned().collect())
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.read(|known| known.keys().cloned().collect())
    }

    pub(crate) fn find(&self, group: &str, version: &str) -> Option<Arc<Delegated>> {
        self.read(|known| {
            // Each request asks; most servers have none.
            if known.is_empty() { None } else { known.get(&format!("{version}.{group}")).cloned() }
        })
    }

    /// Sets what is known of an APIService; None if its version is not delegated.
    pub(crate) fn set(&self, name: &str, delegated: Option<Delegated>) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        match delegated {
            Some(delegated) => drop(known.insert(name.to_owned(), Arc::new(delegated))),
            None => drop(known.remove(name)),
        }
    }

    fn read<T>(&self, get: impl FnOnce(&Known) -> T) -> T {
        get(&self.known.read().unwrap_or_else(PoisonError::into_inner))
    }
}
