//! Parses one webhook of a stored configuration, once per request that it may concern.

use std::time::Duration;

use admit_policy::matching::{MatchError, Matched};
use admit_policy::webhook::{Kind, Webhook};
use admit_policy::{ConditionsError, FailurePolicy, Host, Request};
use serde_json::Value;

use super::answer::ReviewVersion;
use crate::admission::plugins::WebhookUsers;
use crate::callout::Callee;

#[derive(Debug)]
pub(super) struct Hook {
    /// The name of the configuration that holds it.
    pub(super) configuration: String,
    webhook: Webhook,
    pub(super) callee: Callee,
}

impl Hook {
    /// Reads an element of `webhooks`. One that does not compile, as it was accepted by older rules, is
    /// skipped.
    pub(super) fn read(kind: Kind, configuration: &str, hook: &Value, users: &WebhookUsers) -> Option<Self> {
        let webhook = Webhook::compile_stored(kind, hook)
            .map_err(|errors| {
                let name = hook["name"].as_str().unwrap_or_default();
                tracing::error!(webhook = name, errors = errors.len(), "a stored webhook does not compile");
            })
            .ok()?;
        let timeout = Duration::from_secs(webhook.timeout_seconds.unsigned_abs());
        let mut callee = Callee::new(webhook.client.clone(), &webhook.ca_bundle, timeout);
        if let Some(user) = users.of(&callee.client) {
            callee.credentials.clone_from(user);
        }
        Some(Self { configuration: configuration.to_owned(), callee, webhook })
    }

    pub(super) fn name(&self) -> &str {
        &self.webhook.name
    }

    /// Returns what a failed call means for the write.
    pub(super) fn failure_policy(&self) -> FailurePolicy {
        self.webhook.failure_policy
    }

    pub(super) fn has_side_effects(&self) -> bool {
        self.webhook.has_side_effects
    }

    /// Returns whether the webhook is called again if later webhooks change the object.
    pub(super) fn is_reinvoked(&self) -> bool {
        self.webhook.reinvoked
    }

    /// Returns the first of the webhook's review versions that this server supports.
    pub(super) fn review_version(&self) -> Option<ReviewVersion> {
        self.webhook.review_versions.iter().find_map(|version| match version.as_str() {
            "v1" => Some(ReviewVersion::V1),
            "v1beta1" => Some(ReviewVersion::V1beta1),
            _ => None,
        })
    }

    /// Returns the resource and kind with which a rule of the webhook matches `request`. A webhook without rules never matches.
    pub(super) fn matches<'r>(
        &self,
        request: &'r Request<'_>,
        host: &dyn Host,
    ) -> Result<Option<Matched<'r>>, MatchError> {
        let matching = &self.webhook.matching;
        if matching.rules.is_empty() { Ok(None) } else { matching.matches(request, host) }
    }

    /// Returns whether the webhook's match conditions hold.
    pub(super) fn conditions_hold(
        &self,
        request: &Request<'_>,
        matched: &Matched<'_>,
        host: &dyn Host,
    ) -> Result<bool, ConditionsError> {
        self.webhook.conditions.hold(request, matched, host)
    }
}
