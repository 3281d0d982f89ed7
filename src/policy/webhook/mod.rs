//! Parses and validates Validating- and MutatingWebhookConfigurations, with kube-apiserver's messages about each field. Calling the
//! webhooks is left to servers.
//!
//! `matching` decides for which requests a webhook is called, and its conditions are compiled like those of policies.

mod allowances;
mod called;

use std::collections::HashSet;

use admit_apimachinery::field_error::{BadValue, FieldError};
use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::{go, names};
use serde_json::Value;

pub use self::called::{Called, Turn, Webhooks};
pub use crate::read::webhook_client::{Client, Service};

use self::allowances::Allowances;
use crate::matching::MatchResources;
use crate::read::decode::{DecodeError, Fields};
use crate::schema::metadata::configuration;
use crate::vap::{FailurePolicy, MatchConditions};

/// Versions of AdmissionReview that a webhook may understand.
const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];
/// Side effects that are compatible with a dry run.
const NO_SIDE_EFFECTS: [&str; 2] = ["None", "NoneOnDryRun"];
const SIDE_EFFECTS: [&str; 4] = ["None", "NoneOnDryRun", "Some", "Unknown"];
const DEFAULT_TIMEOUT_SECONDS: i64 = 10;

/// Which of the two kinds a configuration is of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    Validating,
    Mutating,
}

/// A compiled configuration. [`Webhook`] has an example of an update.
#[derive(Debug)]
pub struct Configuration {
    /// The webhooks, in the order of the document.
    pub webhooks: Vec<Webhook>,
}

/// A webhook of a configuration, with defaults.
///
/// ```
/// use admit_policy::webhook::{Configuration, Kind, Webhook};
/// use serde_json::json;
///
/// let webhook = json!({
///     "name": "a.example.com",
///     "clientConfig": {"url": "https://a.example.com/"},
///     "sideEffects": "None",
///     "admissionReviewVersions": ["v1"],
/// });
/// assert_eq!(Webhook::compile_stored(Kind::Validating, &webhook).unwrap().timeout_seconds, 10);
/// let stored = json!({"metadata": {"name": "all"}, "webhooks": [webhook]});
/// let mut update = stored.clone();
/// update["webhooks"][0]["timeoutSeconds"] = 60.into();
/// assert!(Configuration::compile_update(Kind::Validating, &update, &stored).is_err());
/// ```
#[derive(Debug)]
pub struct Webhook {
    pub name: String,
    pub client: Client,
    /// PEM in base64, as written; empty when no authority is named.
    pub ca_bundle: String,
    pub timeout_seconds: i64,
    pub failure_policy: FailurePolicy,
    /// Whether a call has side effects even in a dry run.
    pub has_side_effects: bool,
    /// Whether the webhook is called again after later changes (`reinvocationPolicy: IfNeeded`).
    pub reinvoked: bool,
    pub review_versions: Vec<String>,
    /// The rules and selectors; a webhook without rules is never called.
    pub matching: MatchResources,
    pub conditions: MatchConditions,
}

impl Configuration {
    /// Compiles a configuration that is to be created.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    ///
    /// ```
    /// use admit_policy::webhook::{Configuration, Kind};
    /// use serde_json::json;
    ///
    /// let errors = Configuration::compile(Kind::Validating, &json!({
    ///     "apiVersion": "admissionregistration.k8s.io/v1",
    ///     "kind": "ValidatingWebhookConfiguration",
    ///     "metadata": {"name": "hooks"},
    ///     "webhooks": [{
    ///         "name": "hook.example.com",
    ///         "clientConfig": {"url": "http://hook.example.com"},
    ///         "sideEffects": "None",
    ///         "admissionReviewVersions": ["v1"],
    ///     }],
    /// }))
    /// .unwrap_err();
    /// assert!(errors[0].to_string().contains("'https' is the only allowed URL scheme"));
    /// ```
    pub fn compile(kind: Kind, document: &Value) -> Result<Self, Vec<FieldError>> {
        Reader::new(kind, Allowances::none()).compile(document)
    }

    /// Compiles a configuration that replaces `stored`: values that newer checks reject are tolerated where they were stored.
    ///
    /// # Errors
    /// As [`Self::compile`].
    pub fn compile_update(kind: Kind, document: &Value, stored: &Value) -> Result<Self, Vec<FieldError>> {
        Reader::new(kind, Allowances::of(stored)).compile(document)
    }
}

impl Webhook {
    /// Compiles one webhook of a configuration read from where a server stores it.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn compile_stored(kind: Kind, webhook: &Value) -> Result<Self, Vec<FieldError>> {
        let mut reader = Reader::new(kind, Allowances::all());
        let read = Fields::of(webhook, "").and_then(|fields| reader.webhook(&fields, webhook));
        match read {
            Ok(Some(webhook)) if reader.errors.is_empty() => Ok(webhook),
            Ok(_) => Err(reader.errors.into_vec()),
            Err(error) => Err(vec![configuration::wrong_type(&error)]),
        }
    }
}

struct Reader {
    kind: Kind,
    allowed: Allowances,
    errors: FieldErrors,
}

impl Reader {
    fn new(kind: Kind, allowed: Allowances) -> Self {
        Self { kind, allowed, errors: FieldErrors::default() }
    }

    fn compile(mut self, document: &Value) -> Result<Configuration, Vec<FieldError>> {
        match self.configuration(document) {
            Ok(webhooks) if self.errors.is_empty() => Ok(Configuration { webhooks }),
            Ok(_) => Err(self.errors.into_vec()),
            Err(error) => Err(vec![configuration::wrong_type(&error)]),
        }
    }

    fn configuration(&mut self, document: &Value) -> Result<Vec<Webhook>, DecodeError> {
        let fields = Fields::of(document, "")?;
        configuration::name(&fields, &mut self.errors)?;
        let items = fields.list("webhooks")?;
        let mut names: HashSet<String> = HashSet::with_capacity(items.len());
        let mut webhooks = Vec::with_capacity(items.len());
        for (path, item) in items {
            let fields = Fields::of(item, &path)?;
            webhooks.extend(self.webhook(&fields, item)?);
            let name = fields.string("name")?;
            if !self.allowed.duplicate_names && !name.is_empty() && names.contains(&name) {
                self.errors.push(FieldError::duplicate(fields.path_of("name"), name.as_str()));
            }
            names.insert(name);
        }
        Ok(webhooks)
    }

    /// Returns `None` if it has no valid address, or its conditions do not compile.
    fn webhook(&mut self, fields: &Fields<'_>, document: &Value) -> Result<Option<Webhook>, DecodeError> {
        let name = fields.string("name")?;
        self.name(&fields.path_of("name"), &name);
        let rules = crate::matching::rules(fields, "rules", &mut self.errors)?;
        let failure_policy = FailurePolicy::decode(fields, &mut self.errors)?;
        let match_policy = crate::matching::match_policy(fields, &mut self.errors)?;
        let has_side_effects = self.side_effects(fields)?;
        let timeout_seconds = self.timeout(fields)?;
        let namespace_selector =
            self.allowed.selector(&fields.object("namespaceSelector")?, &mut self.errors)?;
        let object_selector = self.allowed.selector(&fields.object("objectSelector")?, &mut self.errors)?;
        let reinvoked = match self.kind {
            Kind::Validating => false,
            Kind::Mutating => self.reinvocation(fields)?,
        };
        let config = fields.object("clientConfig")?;
        let client = Client::decode(&config, &mut self.errors)?;
        let conditions = self.conditions(fields, document, failure_policy);
        let review_versions = self.review_versions(fields)?;
        let matching =
            MatchResources { rules, excludes: Vec::new(), match_policy, namespace_selector, object_selector };
        let ca_bundle = config.string("caBundle")?;
        if let Err(problem) = go::json::bytes(&ca_bundle) {
            let at = config.path_of("caBundle");
            self.errors.push(FieldError::invalid(at, ca_bundle.as_str(), problem.to_string()));
        }
        Ok(client.zip(conditions).map(|(client, conditions)| Webhook {
            name,
            client,
            ca_bundle,
            timeout_seconds,
            failure_policy,
            has_side_effects,
            reinvoked,
            review_versions,
            matching,
            conditions,
        }))
    }

    fn name(&mut self, path: &str, name: &str) {
        if name.is_empty() {
            self.errors.push(FieldError::required(path, ""));
            return;
        }
        let problems = names::dns1123_subdomain(name);
        if !problems.is_empty() {
            self.errors.push(FieldError::invalid(path, name, problems.join(",")));
        } else if name.split('.').count() < 3 {
            let detail = "should be a domain with at least three segments separated by dots";
            self.errors.push(FieldError::invalid(path, name, detail));
        }
    }

    fn side_effects(&mut self, fields: &Fields<'_>) -> Result<bool, DecodeError> {
        let allowed: &[&str] = if self.allowed.side_effects { &SIDE_EFFECTS } else { &NO_SIDE_EFFECTS };
        let path = fields.path_of("sideEffects");
        let found = fields.optional_string("sideEffects")?;
        match found.as_deref() {
            None => {
                let detail = format!("must specify one of {}", allowed.join(", "));
                self.errors.push(FieldError::required(path, detail));
            }
            Some(other) if !allowed.contains(&other) => {
                self.errors.push(FieldError::not_supported(
                    path,
                    BadValue::marshalled(other),
                    allowed.iter().copied(),
                ));
            }
            Some(_) => {}
        }
        Ok(!found.is_some_and(|found| NO_SIDE_EFFECTS.contains(&found.as_str())))
    }

    fn timeout(&mut self, fields: &Fields<'_>) -> Result<i64, DecodeError> {
        let seconds = fields.optional_integer("timeoutSeconds")?.unwrap_or(DEFAULT_TIMEOUT_SECONDS);
        if !(1..=30).contains(&seconds) {
            let detail = "the timeout value must be between 1 and 30 seconds";
            self.errors.push(FieldError::invalid(fields.path_of("timeoutSeconds"), seconds, detail));
        }
        Ok(seconds)
    }

    fn reinvocation(&mut self, fields: &Fields<'_>) -> Result<bool, DecodeError> {
        match fields.optional_string("reinvocationPolicy")?.as_deref() {
            None | Some("Never") => Ok(false),
            Some("IfNeeded") => Ok(true),
            Some(other) => {
                let path = fields.path_of("reinvocationPolicy");
                self.errors.push(FieldError::not_supported(
                    path,
                    BadValue::marshalled(other),
                    ["IfNeeded", "Never"],
                ));
                Ok(false)
            }
        }
    }

    fn conditions(
        &mut self,
        fields: &Fields<'_>,
        document: &Value,
        failure_policy: FailurePolicy,
    ) -> Option<MatchConditions> {
        let known = self.allowed.expressions.clone();
        match MatchConditions::compile_knowing(document, fields.path(), failure_policy, known) {
            Ok(conditions) => Some(conditions),
            Err(errors) => {
                self.errors.extend(errors);
                None
            }
        }
    }

    fn review_versions(&mut self, fields: &Fields<'_>) -> Result<Vec<String>, DecodeError> {
        let versions = fields.strings("admissionReviewVersions")?;
        let path = fields.path_of("admissionReviewVersions");
        if versions.is_empty() {
            let detail = format!("must specify one of {}", REVIEW_VERSIONS.join(", "));
            self.errors.push(FieldError::required(path, detail));
            return Ok(versions);
        }
        let mut earlier = HashSet::new();
        for (i, version) in versions.iter().enumerate() {
            let at = format!("{path}[{i}]");
            if !earlier.insert(version) {
                self.errors.push(FieldError::invalid(at, version.as_str(), "duplicate version"));
                continue;
            }
            let problems = names::dns1035_label(version).into_iter();
            self.errors.extend(problems.map(|problem| FieldError::invalid(&at, version.as_str(), problem)));
        }
        let is_known = |version: &String| REVIEW_VERSIONS.contains(&version.as_str());
        if !self.allowed.unknown_review_versions && !versions.iter().any(is_known) {
            let detail = format!("must include at least one of {}", REVIEW_VERSIONS.join(", "));
            self.errors.push(FieldError::invalid(path, Value::from(versions.clone()), detail));
        }
        Ok(versions)
    }
}
