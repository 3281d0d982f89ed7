//! Opens database connections: one pool for each Secret, as long as the Secret does not change.
//!
//! INVARIANT: no error that this module returns contains a password or rows: of a server's error, the message and the
//! code are kept, never the detail.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use deadpool_postgres::{
    Hook, HookError, Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime, TimeoutType,
};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use tokio::time::timeout;
use tokio_postgres::error::SqlState;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::config::{Config, SslMode};
use super::copy::Broken;
use super::merge::OutOfOrder;
use super::sql::SqlError;
use super::tls::{self, TlsError};
use crate::controllers::kit::fence::{Fence, NotLeading};
use crate::controllers::kit::retry::Remedy;
use crate::telemetry::{Outside, Secrets, with_causes};

/// The time limit for connecting, including TLS and login, so that a port without a response is detected.
const CONNECTING: Duration = Duration::from_secs(10);
/// The time limit for waiting for a free connection of the pool.
const WAITING: Duration = Duration::from_secs(30);
/// The time limit of one statement, on the server and, slightly longer, here: an unreachable server does not enforce its own.
const STATEMENT: Duration = Duration::from_mins(1);
const STATEMENT_OURS: Duration = Duration::from_secs(70);
/// The time limit for waiting for a lock on a table.
const LOCK: Duration = Duration::from_secs(10);
/// The most connections to one database. A pass takes one, and a validation another; that of the inventory is shared by all.
const CONNECTIONS: usize = 4;
/// The idle connections to one database that are kept between passes.
const IDLE: usize = 1;

/// The address of a database, with the login.
#[derive(Clone)]
pub struct Credentials {
    pub host: String,
    pub port: u16,
    pub name: String,
    pub user: String,
    pub password: String,
    /// Namespace and name of the Secret, and its uid and resourceVersion.
    secret: (String, String),
    version: (String, String),
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").field("secret", &self.secret).finish_non_exhaustive()
    }
}

/// An error in a database Secret.
#[derive(Clone, Debug, thiserror::Error, PartialEq)]
pub enum SecretError {
    #[error("{key} missing from {secret} secret")]
    Missing { key: &'static str, secret: String },
    #[error("{key} of {secret} secret is {what}")]
    Wrong { key: &'static str, secret: String, what: &'static str },
}

impl Credentials {
    /// Reads the credentials in a Secret.
    ///
    /// # Errors
    /// [`SecretError`] with the first key that is missing or invalid, never its value.
    pub fn of(secret: &Secret) -> Result<Self, SecretError> {
        let named = secret.name_any();
        let text = |key: &'static str| {
            let bytes = secret.data.as_ref().and_then(|data| data.get(key)).filter(|it| !it.0.is_empty());
            let bytes = bytes.ok_or_else(|| SecretError::Missing { key, secret: named.clone() })?;
            let wrong = |what| SecretError::Wrong { key, secret: named.clone(), what };
            let text = str::from_utf8(&bytes.0).map_err(|_| wrong("no text"))?;
            if text.contains('\0') { Err(wrong("a text with a NUL character")) } else { Ok(text.to_owned()) }
        };
        let (host, port) = (text("db.host")?, text("db.port")?);
        let wrong = SecretError::Wrong { key: "db.port", secret: named.clone(), what: "no port" };
        Ok(Self {
            host,
            port: port.trim().parse().map_err(|_| wrong)?,
            name: text("db.name")?,
            user: text("db.user")?,
            password: text("db.password")?,
            secret: (secret.namespace().unwrap_or_default(), named.clone()),
            version: (secret.uid().unwrap_or_default(), secret.resource_version().unwrap_or_default()),
        })
    }

    /// Returns these credentials with the password of another Secret.
    ///
    /// # Errors
    /// [`SecretError`] when it has none.
    pub fn with_password_of(&self, other: &Secret) -> Result<Self, SecretError> {
        let key = "db.password";
        let named = other.name_any();
        let bytes = other.data.as_ref().and_then(|data| data.get(key)).filter(|it| !it.0.is_empty());
        let bytes = bytes.ok_or_else(|| SecretError::Missing { key, secret: named.clone() })?;
        let wrong = || SecretError::Wrong { key, secret: named.clone(), what: "no text" };
        let password = str::from_utf8(&bytes.0).map_err(|_| wrong())?.to_owned();
        let secret = (other.namespace().unwrap_or_default(), named.clone());
        let version = (other.uid().unwrap_or_default(), other.resource_version().unwrap_or_default());
        Ok(Self { password, secret, version, ..self.clone() })
    }

    fn pool(&self, mode: SslMode, root: Option<&str>) -> Result<Pool, DatabaseError> {
        let mut login = tokio_postgres::Config::new();
        login
            .host(&self.host)
            .port(self.port)
            .dbname(&self.name)
            .user(&self.user)
            .password(&self.password)
            .application_name("admit-cyndi")
            .connect_timeout(CONNECTING)
            .ssl_mode(match mode {
                SslMode::Disable => tokio_postgres::config::SslMode::Disable,
                SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => {
                    tokio_postgres::config::SslMode::Require
                }
            });
        let tls = MakeRustlsConnect::new(tls::config(mode, root)?);
        let config = ManagerConfig { recycling_method: RecyclingMethod::Verified };
        let limits = format!(
            "SET statement_timeout = {}; SET lock_timeout = {}; SET idle_in_transaction_session_timeout = {}",
            STATEMENT.as_millis(),
            LOCK.as_millis(),
            STATEMENT.as_millis()
        );
        let limit = Hook::async_fn(move |client: &mut deadpool_postgres::ClientWrapper, _| {
            let limits = limits.clone();
            Box::pin(async move { client.batch_execute(&limits).await.map_err(HookError::Backend) })
        });
        Pool::builder(Manager::from_config(login, tls, config))
            .max_size(CONNECTIONS)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(WAITING))
            .create_timeout(Some(CONNECTING))
            .recycle_timeout(Some(CONNECTING))
            .post_create(limit)
            .build()
            .map_err(|error| DatabaseError::Unconnected(with_causes(&error)))
    }
}

/// An error in dealing with a database.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("cannot connect to the database: {0}")]
    Unconnected(String),
    /// The server reported SQLSTATE 28P01.
    #[error("the database refuses the password of the Secret: {0}")]
    Password(String),
    #[error("cannot {doing}: {message} (SQLSTATE {code})")]
    Statement { doing: &'static str, message: String, code: String },
    #[error("cannot {doing}: {message}")]
    Lost { doing: &'static str, message: String },
    #[error("cannot {doing}: it took longer than {} s", .within.as_secs())]
    TooLong { doing: &'static str, within: Duration },
    #[error(transparent)]
    NotLeading(#[from] NotLeading),
    #[error("inventory.hosts is {0}, not a view: drop or rename it")]
    NoView(&'static str),
    #[error(transparent)]
    Sql(#[from] SqlError),
    #[error(transparent)]
    Broken(#[from] Broken),
    #[error(transparent)]
    Order(#[from] OutOfOrder),
}

impl DatabaseError {
    #[must_use]
    pub fn remedy(&self) -> Remedy {
        match self {
            // Resolved only by a change of the spec or of a ConfigMap.
            Self::Sql(_) => Remedy::Change,
            Self::Tls(_)
            | Self::Unconnected(_)
            | Self::Password(_)
            | Self::Statement { .. }
            | Self::Lost { .. }
            | Self::TooLong { .. }
            | Self::NotLeading(_)
            | Self::NoView(_)
            | Self::Broken(_)
            | Self::Order(_) => Remedy::Wait,
        }
    }

    /// Creates the error for a failed statement, without its details.
    pub(super) fn of(doing: &'static str, error: &tokio_postgres::Error, secrets: &Secrets) -> Self {
        match error.as_db_error() {
            Some(told) if *told.code() == SqlState::INVALID_PASSWORD => {
                Self::Password(Outside::of(told.message(), secrets).into_string())
            }
            Some(told) => Self::Statement {
                doing,
                message: Outside::of(told.message(), secrets).into_string(),
                code: told.code().code().to_owned(),
            },
            None => Self::Lost { doing, message: Outside::of(with_causes(error), secrets).into_string() },
        }
    }
}

/// Connection pools by Secret. A pool whose Secret or TLS settings have changed is closed.
#[derive(Debug, Default)]
pub struct Pools {
    kept: Mutex<BTreeMap<(String, String), Kept>>,
    fence: Option<Fence>,
}

#[derive(Debug)]
struct Kept {
    version: (String, String),
    secured: (SslMode, Option<String>),
    pool: Pool,
}

impl Pools {
    /// Creates an empty set; changes through its connections need the open fence.
    #[must_use]
    pub fn behind(fence: Option<Fence>) -> Self {
        Self { kept: Mutex::default(), fence }
    }

    /// Returns a connection with the credentials.
    ///
    /// # Errors
    /// [`DatabaseError`]. After a rejected password, the pool is dropped.
    pub async fn open(&self, credentials: &Credentials, config: &Config) -> Result<Database, DatabaseError> {
        let pool = self.pool(credentials, config)?;
        let secrets = Secrets::of([credentials.password.as_str()]);
        let client = match pool.get().await {
            Ok(client) => client,
            Err(error) => {
                let error = unconnected(error, &secrets);
                if matches!(error, DatabaseError::Password(_)) {
                    self.forget(credentials);
                }
                return Err(error);
            }
        };
        Ok(Database { client: Some(client), pool, secrets, fence: self.fence.clone() })
    }

    fn pool(&self, credentials: &Credentials, config: &Config) -> Result<Pool, DatabaseError> {
        let secured = (config.ssl_mode, config.ssl_root.clone());
        let mut pools = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = pools.get(&credentials.secret) {
            if kept.version == credentials.version && kept.secured == secured {
                return Ok(kept.pool.clone());
            }
            kept.pool.close();
        }
        let pool = credentials.pool(config.ssl_mode, config.ssl_root.as_deref())?;
        let kept = Kept { version: credentials.version.clone(), secured, pool: pool.clone() };
        pools.insert(credentials.secret.clone(), kept);
        Ok(pool)
    }

    /// Closes the pool with these credentials.
    pub(super) fn forget(&self, credentials: &Credentials) {
        let mut pools = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = pools.remove(&credentials.secret) {
            kept.pool.close();
        }
    }

    /// Closes idle connections. New ones are opened when needed.
    pub fn clear(&self) {
        let mut pools = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        pools.retain(|_, kept| {
            let used = kept.pool.status().available < kept.pool.status().size;
            if !used {
                kept.pool.close();
            }
            used
        });
    }
}

fn unconnected(error: PoolError, secrets: &Secrets) -> DatabaseError {
    match error {
        PoolError::Backend(error) => match DatabaseError::of("connect to the database", &error, secrets) {
            DatabaseError::Lost { message, .. } => DatabaseError::Unconnected(message),
            other => other,
        },
        PoolError::Timeout(TimeoutType::Wait) => {
            DatabaseError::TooLong { doing: "get a free connection to the database", within: WAITING }
        }
        PoolError::Timeout(TimeoutType::Create | TimeoutType::Recycle) => {
            DatabaseError::TooLong { doing: "connect to the database", within: CONNECTING }
        }
        other => DatabaseError::Unconnected(Outside::of(with_causes(&other), secrets).into_string()),
    }
}

/// A connection, which is returned to its pool when dropped.
pub struct Database {
    client: Option<Object>,
    pool: Pool,
    secrets: Secrets,
    fence: Option<Fence>,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database").finish_non_exhaustive()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        drop(self.client.take());
        let mut idle = 0;
        drop(self.pool.retain(|_, _| {
            idle += 1;
            idle <= IDLE
        }));
    }
}

impl Database {
    /// Returns the fence, which must be checked last before any change.
    pub(super) fn fence(&self) -> Option<Fence> {
        self.fence.clone()
    }

    /// Returns the connection.
    ///
    /// # Errors
    /// When an earlier error has closed it.
    pub(super) fn client(&mut self) -> Result<&mut Object, DatabaseError> {
        let lost =
            || DatabaseError::Lost { doing: "go on", message: "the connection was given up".to_owned() };
        self.client.as_mut().ok_or_else(lost)
    }

    /// Closes the connection instead of returning it to the pool, since an abandoned operation may still run on it.
    pub(super) fn give_up(&mut self) {
        if let Some(client) = self.client.take() {
            drop(Object::take(client));
        }
    }

    pub(super) fn secrets(&self) -> Secrets {
        self.secrets.clone()
    }
}

/// Waits for a database operation, with the default timeout; errors name the operation.
pub(super) async fn asked<T>(
    doing: &'static str,
    secrets: &Secrets,
    work: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, DatabaseError> {
    within(STATEMENT_OURS, doing, secrets, work).await
}

/// Does the same with another timeout.
pub(super) async fn within<T>(
    bound: Duration,
    doing: &'static str,
    secrets: &Secrets,
    work: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, DatabaseError> {
    match timeout(bound, work).await {
        Ok(done) => done.map_err(|error| DatabaseError::of(doing, &error, secrets)),
        Err(_) => Err(DatabaseError::TooLong { doing, within: bound }),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;

    use super::*;

    fn secret(pairs: &[(&str, &str)]) -> Secret {
        let data = pairs.iter().map(|(k, v)| ((*k).to_owned(), ByteString(v.as_bytes().to_vec()))).collect();
        let mut secret = Secret { data: Some(data), ..Secret::default() };
        secret.metadata.name = Some("app-db".to_owned());
        secret
    }

    #[test]
    fn cy_03_what_is_missing_from_a_secret_is_named_and_no_value_is() {
        let all = [
            ("db.host", "h"),
            ("db.port", "5432"),
            ("db.name", "n"),
            ("db.user", "u"),
            ("db.password", "canary"),
        ];
        assert!(Credentials::of(&secret(&all)).is_ok());
        for (left_out, _) in all {
            let rest: Vec<_> = all.iter().copied().filter(|(key, _)| *key != left_out).collect();
            let error = Credentials::of(&secret(&rest)).unwrap_err().to_string();
            assert_eq!(error, format!("{left_out} missing from app-db secret"));
        }
        let mut wrong = all;
        wrong[1].1 = "canary";
        let error = Credentials::of(&secret(&wrong)).unwrap_err().to_string();
        assert_eq!(error, "db.port of app-db secret is no port");
        let shown = format!("{:?}", Credentials::of(&secret(&all)).unwrap());
        assert!(!shown.contains("canary"), "{shown}");
    }
}
