//! Controls CyndiPipelines: tables of hosts in the databases of applications, which are filled by Kafka connectors
//! and compared with the inventory.
//!
//! ```text
//!  ConfigMaps, Secrets ─┐                      ┌─ table, indexes, rights    (database of the application)
//!  database, view ──────┼─ fetch ── plan ── apply ─ view ────────────────►  applications
//!  connectors ──────────┘                      └─ connector, status        (objects of Strimzi, or Kafka Connect itself)
//!
//!  inventory ── ids ──┐
//!                     ├─ merge ── verdict ── status: Valid                   (the validation controller)
//!  table ────── ids ──┘
//! ```
//!
//! Guarantees: the view shows a table that was valid, at every moment; whenever a process is killed, the next pass
//! leaves one table and one connector for each version that runs or is shown, and drops only tables that are ours; an
//! unavailable database, or a broken stream, is not a failed validation; no text contains a password. Uses kit,
//! telemetry and the HTTP client of gather, and no other controller.
//!
//! | module | decides | may use |
//! |---|---|---|
//! | `crd` | CyndiPipeline as Rust types | none of these |
//! | `names` | names of tables, connectors and versions. Pure | none of these |
//! | `hash` | hashes of configurations | none of these |
//! | `merge` | the comparison of two sorted streams of ids | none of these |
//! | `copy` | ids out of a binary COPY | none of these |
//! | `scram` | the verifier that PostgreSQL stores for a password | none of these |
//! | `connector_config` | the configuration of a connector, which may hold credentials. Pure | none of these |
//! | `config` | the configuration of a pipeline, in its layers | connector_config, crd, hash |
//! | `tls` | TLS to databases | config |
//! | `sql` | SQL statements, and which of users may run. Pure | config, crd, names |
//! | `state` | the state of a pipeline, out of its object. Pure | crd, names |
//! | `connector` | the connector that fills a table, and how an existing one differs | config, connector_config, crd, names |
//! | `backend` | what every backend of connectors can do | connector, crd |
//! | `strimzi` | connectors as objects of Strimzi | backend, connector, crd |
//! | `connect` | connectors by the REST interface of Kafka Connect | backend, connector, connector_config, crd, names |
//! | `settings` | the settings of the controllers, and the backend that they choose | backend, connect, strimzi |
//! | `database` | connections: a pool for each Secret | config, copy, merge, sql, tls |
//! | `verdict` | whether a table is valid, by thresholds. Pure | merge |
//! | `plan` | the steps of a pass. Pure | config, connector, crd, names, state |
//! | `fetch` | first stage: what a pipeline depends on | config, connect, connector, crd, database, plan |
//! | `tables` | tables created and dropped, the view switched | database, names, plan, sql |
//! | `apply` | last stage: carries out the plan, writes the status | connector, crd, fetch, names, plan, sql |
//! | `validation` | the comparison of a table with the inventory | copy, database, merge, sql, tables, verdict |
//! | `first_login` | the password that an application gets at its first login | config, crd, database, fetch, scram |
//! | `secret_refs` | which Secrets each pipeline reads | none of these |
//! | `counts` | metrics, under the names of upstream | plan, verdict |
//! | `pipeline_controller` | what a pipeline consists of, until it is removed | connect, crd, database, fetch, plan |
//! | `validation_controller` | when tables are compared, and what is reported | config, crd, fetch, names, plan, sql, state, validation, verdict |
//! | `service` | the two controllers and their watches | config, connector, counts, crd, database, pipeline_controller, secret_refs, settings, state, strimzi, validation_controller |
//! | `inspect` | what the next pass would do, for commands that only look | counts, crd, database, fetch, plan, secret_refs, settings, state, validation_controller, verdict |

mod apply;
mod backend;
pub mod config;
pub mod connect;
pub mod connector;
pub mod connector_config;
pub mod copy;
mod counts;
pub mod crd;
pub mod database;
mod fetch;
mod first_login;
pub mod hash;
pub mod inspect;
pub mod merge;
pub mod names;
mod pipeline_controller;
pub mod plan;
pub mod scram;
mod secret_refs;
mod service;
mod settings;
pub mod sql;
pub mod state;
pub mod strimzi;
pub mod tables;
pub mod tls;
pub mod validation;
mod validation_controller;
pub mod verdict;

use std::sync::Arc;

use kube::Client;
use kube::core::DeserializeGuard;
use kube::runtime::reflector::Store;

use self::backend::Connectors;
use self::config::ConfigError;
use self::connect::ConnectError;
use self::crd::CyndiPipeline;
use self::database::{DatabaseError, Pools, SecretError};
use self::scram::ScramError;
use self::secret_refs::SecretRefs;
use self::sql::SqlError;
use super::kit::controller::Failure;
use super::kit::events::Events;
use super::kit::retry::{Remedy, remedy};
use super::kit::status::WriteError;
use crate::telemetry::{Outside, Secrets, with_causes};

pub use counts::Counts;
pub use service::{NAME, VALIDATION, members};
pub use settings::{INSIGHTS, Settings};

/// Keeps an object until its tables and connectors are removed.
pub const FINALIZER: &str = "cyndi.cloud.redhat.com/finalizer";

/// The context of every reconciliation.
struct Context {
    client: Client,
    settings: Settings,
    events: Events,
    counts: Counts,
    pools: Arc<Pools>,
    connectors: Arc<dyn Connectors>,
    uses: SecretRefs,
    objects: Store<DeserializeGuard<CyndiPipeline>>,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Why the reconciliation of a pipeline failed. Its state is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("Secret {0} not found: it has the login of a database")]
    NoSecret(String),
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error("application database: {0}")]
    App(#[source] DatabaseError),
    #[error("login of the application with the initial password: {0}")]
    First(#[source] DatabaseError),
    #[error(transparent)]
    Scram(#[from] ScramError),
    #[error("inventory database: {0}")]
    Inventory(#[source] DatabaseError),
    #[error("validation: {0}")]
    Comparison(#[source] DatabaseError),
    #[error(transparent)]
    Sql(#[from] SqlError),
    #[error("the pipeline {0} has the same database, whose tables it would drop: give each its own dbSecret")]
    Rival(String),
    #[error(
        "KafkaConnectors are not served (kafka.strimzi.io): install Strimzi, give --connect-url, or set managedConnectors to false and \
         fill the table by other means"
    )]
    NoConnectors,
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("a connector cannot be written as JSON: {0}")]
    Unwritable(#[source] serde_json::Error),
    #[error("the pipeline is to go")]
    Leaving,
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("cannot read or write what belongs to the pipeline: {}", with_causes(.0))]
    Api(#[from] kube::Error),
    /// A server saw a login in a connector, and may have quoted it.
    #[error("cannot write the connector of the pipeline: {told}")]
    Connector { told: Outside, remedy: Remedy },
}

impl Error {
    /// Removes `secrets` from the error: whoever rejected a connector may have read them, an admission policy or a webhook.
    fn hiding(self, secrets: &Secrets) -> Self {
        match self {
            Self::Api(error) => {
                Self::Connector { told: Outside::error_without(&error, secrets), remedy: remedy(&error) }
            }
            other => other,
        }
    }
}

impl Failure for Error {
    fn remedy(&self) -> Remedy {
        match self {
            // Only the next periodic reconciliation notices that these are resolved.
            Self::Config(_)
            | Self::NoSecret(_)
            | Self::Secret(_)
            | Self::Rival(_)
            | Self::NoConnectors
            | Self::Connect(_)
            | Self::Scram(_)
            | Self::Leaving => Remedy::Wait,
            Self::Sql(_) | Self::Unwritable(_) => Remedy::Change,
            Self::App(error) | Self::First(error) | Self::Inventory(error) | Self::Comparison(error) => {
                error.remedy()
            }
            Self::Write(error) => error.remedy(),
            Self::Api(error) => remedy(error),
            Self::Connector { remedy, .. } => *remedy,
        }
    }
}
