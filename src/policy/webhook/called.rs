//! Determines which webhooks are called for a request from their rules, selectors and match conditions, without calling any.

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::pointer;
use serde_json::Value;

use super::{Configuration, Kind, Webhook};
use crate::matching::{self, Matched, Miss};
use crate::report::decision::Skipped;
use crate::report::options::EvalOptions;
use crate::report::recording::{Expression, Origin};
use crate::request::Request;
use crate::request::host::Host;

/// The webhooks of configurations, in calling order: mutating before validating ones, and each kind by the names of configurations.
///
/// ```
/// use admit_policy::webhook::{Called, Webhooks};
/// use admit_policy::{Documents, EvalOptions, Request};
/// use serde_json::json;
///
/// let configuration = json!({
///     "apiVersion": "admissionregistration.k8s.io/v1",
///     "kind": "ValidatingWebhookConfiguration",
///     "metadata": {"name": "checks"},
///     "webhooks": [{
///         "name": "pods.example.com",
///         "clientConfig": {"url": "https://pods.example.com/"},
///         "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
///         "matchConditions": [{"name": "people", "expression": "request.userInfo.username != 'robot'"}],
///         "sideEffects": "None",
///         "admissionReviewVersions": ["v1"],
///     }],
/// });
/// let webhooks = Webhooks::compile([&configuration]).unwrap();
/// assert!(!webhooks.is_empty() && webhooks.expressions().len() == 1);
/// let ask = |user: &str| {
///     let request = json!({
///         "kind": {"group": "", "version": "v1", "kind": "Pod"},
///         "resource": {"group": "", "version": "v1", "resource": "pods"},
///         "operation": "CREATE",
///         "userInfo": {"username": user},
///         "object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}},
///     });
///     let request = Request::from_value(&request).unwrap();
///     webhooks.ask(&request, &Documents::default(), EvalOptions::default()).remove(0).called
/// };
/// assert_eq!(ask("ann"), Called::Called);
/// assert_eq!(ask("robot"), Called::Skipped { path: "webhooks[0].matchConditions[0].expression".to_owned() });
/// let deletion = json!({
///     "kind": {"group": "", "version": "v1", "kind": "Pod"},
///     "resource": {"group": "", "version": "v1", "resource": "pods"},
///     "operation": "DELETE",
///     "oldObject": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}},
/// });
/// let misses = webhooks.misses(&Request::from_value(&deletion).unwrap(), &Documents::default());
/// assert_eq!(misses[0][0].field, "rules[0]");
/// ```
#[derive(Debug)]
pub struct Webhooks(Vec<Hook>);

#[derive(Debug)]
struct Hook {
    kind: Kind,
    configuration: String,
    webhook: Webhook,
}

/// What happens to one webhook. [`Webhooks`] has an example.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    pub kind: Kind,
    pub configuration: String,
    pub webhook: String,
    pub called: Called,
}

/// Whether a webhook is called.
///
/// ```
/// use admit_policy::webhook::Called;
///
/// let refused = Called::Refused("no such key: a".to_owned());
/// assert_eq!((refused.as_str(), refused.error()), ("error", Some("no such key: a")));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Called {
    Called,
    /// Its rules or selectors leave the request out.
    Unmatched,
    /// A match condition is false.
    Skipped {
        path: String,
    },
    /// A match condition has no value, and `failurePolicy` is `Ignore`.
    Ignored(String),
    /// A match condition fails, or matching does: the request is rejected.
    Refused(String),
}

impl Called {
    /// The word that suites have for it.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Called => "called",
            Self::Unmatched => "unmatched",
            Self::Skipped { .. } => "skipped",
            Self::Ignored(_) => "ignored",
            Self::Refused(_) => "error",
        }
    }

    /// Returns the error message of a condition that fails.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Ignored(error) | Self::Refused(error) => Some(error),
            Self::Called | Self::Unmatched | Self::Skipped { .. } => None,
        }
    }
}

impl Webhooks {
    /// Compiles the webhook configurations among documents; others are skipped.
    ///
    /// # Errors
    /// All errors in the first invalid configuration.
    pub fn compile<'d>(documents: impl IntoIterator<Item = &'d Value>) -> Result<Self, Vec<FieldError>> {
        let mut hooks = Vec::new();
        for document in documents {
            let text = |pointer: &str| pointer::text(document, pointer);
            let kind = match text("/kind") {
                "MutatingWebhookConfiguration" => Kind::Mutating,
                "ValidatingWebhookConfiguration" => Kind::Validating,
                _ => continue,
            };
            let name = text("/metadata/name");
            let origin = || Origin::Configuration { kind: text("/kind").to_owned(), name: name.to_owned() };
            let Configuration { webhooks } = Configuration::compile(kind, document)?;
            hooks.extend(webhooks.into_iter().map(|webhook| {
                let webhook = Webhook { conditions: webhook.conditions.of(origin()), ..webhook };
                Hook { kind, configuration: name.to_owned(), webhook }
            }));
        }
        hooks.sort_by(|one, other| {
            let key = |hook: &Hook| (hook.kind == Kind::Validating, hook.configuration.clone());
            key(one).cmp(&key(other))
        });
        Ok(Self(hooks))
    }

    /// Reports whether there are no webhooks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Every match condition.
    #[must_use]
    pub fn expressions(&self) -> Vec<Expression<'_>> {
        self.0.iter().flat_map(|hook| hook.webhook.conditions.expressions()).collect()
    }

    /// Returns for each webhook why its rules or selectors exclude the request, with field paths relative to the webhook; empty where
    /// they do not.
    #[must_use]
    pub fn misses(&self, request: &Request<'_>, host: &dyn Host) -> Vec<Vec<Miss>> {
        self.0.iter().map(|hook| hook.misses(request, host)).collect()
    }

    /// Returns what happens to each webhook. The request must be in the form that webhooks see, after mutating policies. Changes by
    /// webhooks themselves are unknown.
    #[must_use]
    pub fn ask(&self, request: &Request<'_>, host: &dyn Host, options: EvalOptions<'_>) -> Vec<Turn> {
        let turn = |hook: &Hook| Turn {
            kind: hook.kind,
            configuration: hook.configuration.clone(),
            webhook: hook.webhook.name.clone(),
            called: hook.called(request, host, options),
        };
        self.0.iter().map(turn).collect()
    }
}

impl Hook {
    fn misses(&self, request: &Request<'_>, host: &dyn Host) -> Vec<Miss> {
        let of_rules = |reason: String| vec![Miss { field: "rules".to_owned(), reason }];
        let matching = &self.webhook.matching;
        if matching.rules.is_empty() {
            return of_rules("there are none: it is never called".to_owned());
        }
        if matching::is_exempt(&request.kind) {
            return of_rules(format!("no webhook is asked about a {}", request.kind.kind));
        }
        // They are called so in policies.
        let of_webhook = |field: &str| field.trim_start_matches('.').replace("resourceRules", "rules");
        let misses = matching.misses(request, host, "").into_iter();
        misses.map(|Miss { field, reason }| Miss { field: of_webhook(&field), reason }).collect()
    }

    fn called(&self, request: &Request<'_>, host: &dyn Host, options: EvalOptions<'_>) -> Called {
        let Webhook { matching, conditions, .. } = &self.webhook;
        // A webhook could keep people from repairing it.
        if matching.rules.is_empty() || matching::is_exempt(&request.kind) {
            return Called::Unmatched;
        }
        let matched: Matched<'_> = match matching.matches(request, host) {
            Ok(Some(matched)) => matched,
            Ok(None) => return Called::Unmatched,
            Err(error) => return Called::Refused(error.to_string()),
        };
        match conditions.skipped(request, &matched, host, options) {
            Ok(None) => Called::Called,
            Ok(Some(Skipped::False { path })) => Called::Skipped { path },
            Ok(Some(Skipped::Failed { message })) => Called::Ignored(message),
            // There are no exceptions from webhooks.
            Ok(Some(Skipped::Excepted(_))) => Called::Called,
            Err(error) => Called::Refused(error.to_string()),
        }
    }
}
