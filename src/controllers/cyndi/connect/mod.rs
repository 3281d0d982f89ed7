//! Manages connectors with the REST interface of Kafka Connect, for clusters without Strimzi.
//!
//! Three properties of Kafka Connect decide how it is used. Any worker answers from what it has read of a topic so
//! far, so that one may not know yet of a connector that another one has just created: the connector of the running
//! version counts as missing only after a while. A list with details leaves out connectors that have no status yet:
//! so names are listed, and each is read by itself. And a task that failed stays failed: it is restarted a few times
//! before the table is rebuilt.

mod exchange;
mod login;
mod reading;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use http::Method;
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::time::sleep;

use self::exchange::{Question, Rest, WITHIN};
use super::backend::{Connectors, Done};
use super::connector::{Found, Wanted};
use super::crd::{CyndiPipeline, CyndiPipelineStatus};
use super::names::Version;
use crate::controllers::kit::fence::Fence;
use crate::controllers::kit::wait::GrowingWait;
use crate::gather::upload::percent_encode;
use crate::telemetry::Secrets;

pub use exchange::{ConnectError, ConnectSetupError};
pub use login::{LoginError, LoginSource, Mistake};

/// How often an expected connector is looked up before it counts as missing, and the first wait between: 1.5 s in all, while workers
/// learn of a change in milliseconds.
const LOOKS: u32 = 5;
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_millis(800);
/// How often in a row failed parts of a connector are restarted: temporary errors are over by then, with a pass every two minutes.
const RESTARTS: u32 = 3;
/// The most connectors of one pipeline: there are two, or some more after crashes.
const MAX_LISTED: usize = 100;

/// A Kafka Connect cluster. Clones share its state.
#[derive(Clone, Debug)]
pub struct Connect {
    rest: Rest,
    /// How often each failed connector was restarted since it last worked.
    restarted: Arc<Mutex<BTreeMap<String, u32>>>,
}

impl Connect {
    /// Creates a client for the workers at `url`; for https it trusts the system's CAs or those of the PEM file `ca`.
    ///
    /// # Errors
    /// [`ConnectSetupError`] for an invalid URL, or one with a login; no request is sent.
    pub fn new(url: &str, ca: Option<&Path>) -> Result<Self, ConnectSetupError> {
        Self::answering_within(url, ca, WITHIN)
    }

    /// Like [`Self::new`], with another time limit of requests and of waits for a rebalance.
    ///
    /// # Errors
    /// [`ConnectSetupError`].
    pub fn answering_within(
        url: &str,
        ca: Option<&Path>,
        within: Duration,
    ) -> Result<Self, ConnectSetupError> {
        Ok(Self { rest: Rest::new(url, ca, within)?, restarted: Arc::default() })
    }

    /// Sets the credentials.
    ///
    /// # Errors
    /// [`ConnectSetupError`] for a file that has none.
    pub fn entering_by(self, source: LoginSource) -> Result<Self, ConnectSetupError> {
        Ok(Self { rest: self.rest.entering_by(source)?, ..self })
    }

    /// Sets the cluster whose Secret has the login; only the leader may change anything.
    pub(super) fn of(self, client: &Client, fence: Option<Fence>) -> Self {
        Self { rest: self.rest.of(client, fence), ..self }
    }

    /// Returns namespace and name of the Secret with the login, if there is one.
    pub(super) fn secret(&self) -> Option<(&str, &str)> {
        self.rest.secret()
    }

    async fn listed(&self, pipeline: &CyndiPipeline) -> Result<Vec<Found>, ConnectError> {
        let version = pipeline.status.as_ref().and_then(CyndiPipelineStatus::version);
        let running = version.map(|version| version.connector(&pipeline.spec.app_name));
        let mut names = self.names(&pipeline.spec.app_name).await?;
        names.extend(running.clone());
        let mut listed = Vec::new();
        for name in &names {
            let info = if running.as_ref() == Some(name) {
                self.look_for(name).await?
            } else {
                self.info(name).await?
            };
            if let Some(info) = info {
                listed.extend(self.found(pipeline, name, &info).await?);
            } else {
                self.restarts().remove(name);
            }
        }
        Ok(listed)
    }

    /// Lists the names that have the form of an application's connectors.
    async fn names(&self, app: &str) -> Result<BTreeSet<String>, ConnectError> {
        let all = self.get("/connectors".to_owned(), "list connectors").await?.unwrap_or_default();
        let all = all.as_array().into_iter().flatten().filter_map(Value::as_str);
        let ours = all.filter(|name| Version::of_connector(name, app).is_some());
        Ok(ours.take(MAX_LISTED).map(ToOwned::to_owned).collect())
    }

    async fn info(&self, name: &str) -> Result<Option<Value>, ConnectError> {
        self.get(path(name, ""), "look at a connector").await
    }

    /// Looks up a connector that should exist, with retries.
    async fn look_for(&self, name: &str) -> Result<Option<Value>, ConnectError> {
        let mut wait = GrowingWait::new(FIRST_WAIT, LONGEST_WAIT);
        for _ in 1..LOOKS {
            let info = self.info(name).await?;
            if info.is_some() {
                return Ok(info);
            }
            sleep(wait.grow()).await;
        }
        self.info(name).await
    }

    async fn found(
        &self,
        pipeline: &CyndiPipeline,
        name: &str,
        info: &Value,
    ) -> Result<Option<Found>, ConnectError> {
        let status = self.get(path(name, "/status"), "look at the state of a connector").await?;
        let found = reading::found(name, info, status.as_ref(), pipeline.spec.connector_paused);
        if !reading::is_owned(&found, &pipeline.uid().unwrap_or_default()) {
            return Ok(None);
        }
        let mut restarted = self.restarts();
        let restartable = match (&found.failed, status) {
            (Some(_), _) => restarted.get(name).is_none_or(|times| *times < RESTARTS),
            (None, Some(status)) => {
                if is_running(&status) {
                    restarted.remove(name);
                }
                false
            }
            (None, None) => false,
        };
        Ok(Some(Found { restartable, ..found }))
    }

    fn count_restart(&self, name: &str) {
        let mut restarted = self.restarts();
        let times = restarted.entry(name.to_owned()).or_default();
        *times = times.saturating_add(1);
    }

    fn restarts(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, u32>> {
        self.restarted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn get(&self, path: String, doing: &'static str) -> Result<Option<Value>, ConnectError> {
        let secrets = Secrets::default();
        self.rest.ask(&Question { method: Method::GET, path, body: None, doing, secrets: &secrets }).await
    }

    /// Sends a request that changes a connector. A missing one is no error: the next pass finds that.
    async fn have(&self, method: Method, path: String, doing: &'static str) -> Result<(), ConnectError> {
        let secrets = Secrets::default();
        self.rest.ask(&Question { method, path, body: None, doing, secrets: &secrets }).await.map(drop)
    }

    async fn set_paused(&self, name: &str, paused: bool) -> Result<(), ConnectError> {
        let (verb, doing) =
            if paused { ("/pause", "pause a connector") } else { ("/resume", "resume a connector") };
        self.have(Method::PUT, path(name, verb), doing).await
    }

    async fn put(&self, wanted: &Wanted, secrets: &Secrets) -> Result<(), ConnectError> {
        let question = Question {
            method: Method::PUT,
            path: path(&wanted.name, "/config"),
            body: Some(json!(reading::document(wanted))),
            doing: "make a connector",
            secrets,
        };
        self.rest.ask(&question).await?;
        if wanted.paused { self.set_paused(&wanted.name, true).await } else { Ok(()) }
    }
}

/// Whether all parts of a connector run.
fn is_running(status: &Value) -> bool {
    let runs = |part: &Value| part["state"] == "RUNNING";
    runs(&status["connector"]) && status["tasks"].as_array().is_some_and(|tasks| tasks.iter().all(runs))
}

fn path(name: &str, below: &str) -> String {
    format!("/connectors/{}{below}", percent_encode(name))
}

impl Connectors for Connect {
    fn list<'a>(&'a self, pipeline: &'a CyndiPipeline) -> Done<'a, Vec<Found>> {
        async move { Ok(self.listed(pipeline).await?) }.boxed()
    }

    fn create<'a>(&'a self, _: &'a CyndiPipeline, wanted: &'a Wanted, secrets: &'a Secrets) -> Done<'a> {
        async move { Ok(self.put(wanted, secrets).await?) }.boxed()
    }

    fn pause<'a>(&'a self, _: &'a CyndiPipeline, name: &'a str, paused: bool) -> Done<'a> {
        async move { Ok(self.set_paused(name, paused).await?) }.boxed()
    }

    fn restart<'a>(&'a self, _: &'a CyndiPipeline, name: &'a str) -> Done<'a> {
        async move {
            self.count_restart(name);
            let failed_alone = path(name, "/restart?includeTasks=true&onlyFailed=true");
            Ok(self.have(Method::POST, failed_alone, "restart what failed of a connector").await?)
        }
        .boxed()
    }

    fn delete<'a>(&'a self, _: &'a CyndiPipeline, name: &'a str) -> Done<'a> {
        async move {
            self.have(Method::DELETE, path(name, ""), "delete a connector").await?;
            self.restarts().remove(name);
            Ok(())
        }
        .boxed()
    }
}
