//! One webhook of a stored configuration, read once per request that it may concern.

use std::time::Duration;

use admit_policy::host::Host;
use admit_policy::matching::{MatchError, Matched};
use admit_policy::request::Request;
use admit_policy::vap::FailurePolicy;
use admit_policy::webhook::{Client, Kind, Service, Webhook};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

#[derive(Debug)]
pub(super) struct Hook {
    webhook: Webhook,
    /// PEM; empty when the configuration names no authority.
    pub(super) ca_bundle: Vec<u8>,
    pub(super) timeout: Duration,
}

impl Hook {
    /// Reads an element of `webhooks`. One that does not compile was written by other rules than today's and is passed
    /// over.
    pub(super) fn read(kind: Kind, hook: &Value) -> Option<Self> {
        let webhook = Webhook::compile_stored(kind, hook)
            .map_err(|errors| {
                let name = hook["name"].as_str().unwrap_or_default();
                tracing::error!(webhook = name, errors = errors.len(), "a stored webhook does not compile");
            })
            .ok()?;
        let bundle: String = webhook.ca_bundle.split_whitespace().collect();
        Some(Self {
            ca_bundle: STANDARD.decode(bundle).unwrap_or_default(),
            timeout: Duration::from_secs(webhook.timeout_seconds.unsigned_abs()),
            webhook,
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.webhook.name
    }

    pub(super) fn client(&self) -> &Client {
        &self.webhook.client
    }

    /// What not being able to ask the webhook means for the write.
    pub(super) fn failure_policy(&self) -> FailurePolicy {
        self.webhook.failure_policy
    }

    pub(super) fn has_side_effects(&self) -> bool {
        self.webhook.has_side_effects
    }

    /// Whether the webhook wants to see what webhooks after it changed.
    pub(super) fn is_reinvoked(&self) -> bool {
        self.webhook.reinvoked
    }

    pub(super) fn speaks_v1(&self) -> bool {
        self.webhook.review_versions.iter().any(|version| version == "v1")
    }

    /// Whether the webhook is asked about `request`, and in which version. One without rules is never asked.
    pub(super) fn matches<'r>(
        &self,
        request: &'r Request<'_>,
        host: &dyn Host,
    ) -> Result<Option<Matched<'r>>, MatchError> {
        let matching = &self.webhook.matching;
        if matching.rules.is_empty() { Ok(None) } else { matching.matches(request, host) }
    }

    /// Whether the webhook's conditions let it be asked about what it matched.
    pub(super) fn conditions_hold(
        &self,
        request: &Request<'_>,
        matched: &Matched<'_>,
        host: &dyn Host,
    ) -> Result<bool, String> {
        self.webhook.conditions.hold(request, matched, host)
    }

    /// The URL as error messages name it.
    pub(super) fn url(&self) -> String {
        let seconds = self.timeout.as_secs();
        match &self.webhook.client {
            Client::Url(url) if url.contains('?') => format!("{url}&timeout={seconds}s"),
            Client::Url(url) => format!("{url}?timeout={seconds}s"),
            Client::Service(Service { namespace, name, port, path }) => {
                let slash = if path.starts_with('/') { "" } else { "/" };
                format!("https://{name}.{namespace}.svc:{port}{slash}{path}?timeout={seconds}s")
            }
        }
    }
}
