//! Counts requests for `/metrics`, under the names and labels of kube-apiserver.
//!
//! | metric | counts |
//! |---|---|
//! | `apiserver_request_total` | answered requests by verb, resource, scope, dry run and status code |
//! | `apiserver_request_duration_seconds` | seconds from the head of a request to its response; of a stream, to its end |
//! | `apiserver_response_sizes` | bytes of responses to reads |
//! | `apiserver_current_inflight_requests` | requests under way that are no streams |
//! | `apiserver_longrunning_requests` | streams under way |
//! | `apiserver_requested_deprecated_apis` | 1 for each deprecated resource that was requested |
//! | `apiserver_watch_events_total` | events sent to watches, bookmarks too |
//! | `authentication_attempts`, `authenticated_user_requests` | requests with a user, and who it was |
//! | `authorization_attempts_total` | decisions of the authorizers |
//! | `process_cpu_seconds_total` and others | what the process uses |
//!
//! [`AdmissionMetrics`] counts what webhooks and policies did. Every label has a bounded set of values: of those that clients choose,
//! [`MOST_NAMES`] have series of their own.

mod admission;
mod exposition;

pub(crate) use admission::{AdmissionMetrics, Ended, Step, WebhookCall};

use std::time::Duration;

use admit_serving::{Names, OTHER, Process};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
pub(crate) use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};

use crate::resources::ResourceInfo;

/// How many names of one kind are counted by themselves.
const MOST_NAMES: usize = 1_000;
/// The bounds of the durations, in seconds.
const SECONDS: [f64; 23] = [
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0,
    20.0, 30.0, 45.0, 60.0,
];
/// The bounds of the sizes, in bytes.
const BYTES: [f64; 7] = [1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];

/// What a request asks for, as the labels name it.
#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
pub(crate) struct Asked {
    component: &'static str,
    group: String,
    resource: String,
    scope: &'static str,
    pub(crate) subresource: String,
    verb: &'static str,
    version: String,
}

impl Asked {
    /// Returns the same labels for a stream about one object, which it selects by name.
    pub(crate) fn of_one(self) -> Self {
        Self { scope: "resource", ..self }
    }

    /// Returns the labels of a health check, whose path stands for a subresource.
    pub(crate) fn of_path(path: &str, verb: &'static str) -> Self {
        Self {
            component: "",
            group: String::new(),
            resource: String::new(),
            scope: "",
            subresource: path.to_owned(),
            verb,
            version: String::new(),
        }
    }
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct DurationLabels {
    dry_run: &'static str,
    #[prometheus(flatten)]
    asked: Asked,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct RequestLabels {
    code: u32,
    dry_run: &'static str,
    #[prometheus(flatten)]
    asked: Asked,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct DeprecatedLabels {
    group: String,
    removed_release: String,
    resource: String,
    subresource: String,
    version: String,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct ResourceLabels {
    group: String,
    resource: String,
    version: String,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct KindLabels {
    request_kind: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct ResultLabels {
    result: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct UserLabels {
    username: &'static str,
}

/// The metrics of a server.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    custom: Names,
    requests: Family<RequestLabels, Counter>,
    seconds: Family<DurationLabels, Histogram, fn() -> Histogram>,
    sizes: Family<Asked, Histogram, fn() -> Histogram>,
    under_way: Family<KindLabels, Gauge>,
    streams: Family<Asked, Gauge>,
    deprecated: Family<DeprecatedLabels, Gauge>,
    events: Family<ResourceLabels, Counter>,
    authenticated: Family<ResultLabels, Counter>,
    users: Family<UserLabels, Counter>,
    authorized: Family<ResultLabels, Counter>,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut metrics = Self {
            registry: Registry::default(),
            custom: Names::up_to(MOST_NAMES),
            requests: Family::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            sizes: Family::new_with_constructor(|| Histogram::new(BYTES)),
            under_way: Family::default(),
            streams: Family::default(),
            deprecated: Family::default(),
            events: Family::default(),
            authenticated: Family::default(),
            users: Family::default(),
            authorized: Family::default(),
        };
        for request_kind in ["mutating", "readOnly"] {
            drop(metrics.under_way.get_or_create(&KindLabels { request_kind }));
        }
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Process));
        let mut add = Register(&mut registry);
        add.one("apiserver_request", "Answered requests", &metrics.requests);
        add.one("apiserver_request_duration_seconds", "Seconds that requests took", &metrics.seconds);
        add.one("apiserver_response_sizes", "Bytes of responses to reads", &metrics.sizes);
        add.one("apiserver_current_inflight_requests", "Requests that are under way", &metrics.under_way);
        add.one("apiserver_longrunning_requests", "Streams that are under way", &metrics.streams);
        add.one(
            "apiserver_requested_deprecated_apis",
            "1 for each deprecated resource that was requested",
            &metrics.deprecated,
        );
        add.one("apiserver_watch_events", "Events sent to watches", &metrics.events);
        add.one("authentication_attempts", "Requests by whether they have a user", &metrics.authenticated);
        add.one("authenticated_user_requests", "Requests by user", &metrics.users);
        add.one("authorization_attempts", "Decisions of the authorizers", &metrics.authorized);
        metrics.registry = registry;
        metrics
    }
}

struct Register<'r>(&'r mut Registry);

impl Register<'_> {
    fn one(&mut self, name: &str, help: &str, metric: &(impl Metric + Clone)) {
        self.0.register(name, help, metric.clone());
    }
}

/// A request that was answered.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) asked: Asked,
    /// Empty, or `All`.
    pub(crate) dry_run: &'static str,
    pub(crate) code: u16,
    /// The bytes of the response; None for a stream.
    pub(crate) size: Option<u64>,
    pub(crate) took: Duration,
}

impl Metrics {
    /// Returns the metrics in the Prometheus text format.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        exposition::plain(&text)
    }

    /// Returns the labels of a request to a resource.
    pub(crate) fn asked(
        &self,
        info: &ResourceInfo,
        (verb, subresource): (&'static str, &str),
        scope: &'static str,
    ) -> Asked {
        let (group, resource, version) = self.named(info);
        Asked {
            component: "apiserver",
            group,
            resource,
            scope,
            subresource: subresource.to_owned(),
            verb,
            version,
        }
    }

    /// Counts an answered request.
    pub(crate) fn answered(&self, answered: &Answered) {
        let Answered { asked, dry_run, code, size, took } = answered;
        let (code, asked, dry_run) = (u32::from(*code), asked.clone(), *dry_run);
        if let (Some(size), "GET" | "LIST") = (size, asked.verb) {
            self.sizes.get_or_create(&asked).observe(*size as f64);
        }
        let labels = DurationLabels { dry_run, asked };
        self.seconds.get_or_create(&labels).observe(took.as_secs_f64());
        self.requests.get_or_create(&RequestLabels { code, dry_run, asked: labels.asked }).inc();
    }

    /// Counts a request to a deprecated resource; `why` is the text of its warning.
    pub(crate) fn deprecated(&self, info: &ResourceInfo, subresource: &str, why: &str) {
        let (group, resource, version) = self.named(info);
        let removed = why.split_once("unavailable in v").and_then(|(_, rest)| rest.split_once('+'));
        self.deprecated
            .get_or_create(&DeprecatedLabels {
                group,
                removed_release: removed.map(|(release, _)| release.to_owned()).unwrap_or_default(),
                resource,
                subresource: subresource.to_owned(),
                version,
            })
            .set(1);
    }

    /// Returns the counter of events sent to watches of a resource.
    pub(crate) fn events(&self, info: &ResourceInfo) -> Counter {
        let (group, resource, version) = self.named(info);
        self.events.get_or_create(&ResourceLabels { group, resource, version }).clone()
    }

    /// Counts a request as under way until the result is dropped.
    pub(crate) fn begin(&self, reads: bool) -> UnderWay {
        let request_kind = if reads { "readOnly" } else { "mutating" };
        UnderWay::of(&self.under_way.get_or_create(&KindLabels { request_kind }))
    }

    /// Counts a stream as under way until the result is dropped.
    pub(crate) fn begin_stream(&self, asked: &Asked) -> UnderWay {
        UnderWay::of(&self.streams.get_or_create(asked))
    }

    /// Counts the user of a request; None for credentials that are refused.
    pub(crate) fn authenticated(&self, user: Option<&str>) {
        let result = if user.is_some() { "success" } else { "failure" };
        self.authenticated.get_or_create(&ResultLabels { result }).inc();
        if let Some(user) = user {
            self.users.get_or_create(&UserLabels { username: known_user(user) }).inc();
        }
    }

    /// Counts a decision of the authorizers; None if they failed.
    pub(crate) fn authorized(&self, allowed: Option<bool>) {
        let result = match allowed {
            Some(true) => "allowed",
            Some(false) => "no-opinion",
            None => "error",
        };
        self.authorized.get_or_create(&ResultLabels { result }).inc();
    }

    /// Returns the group, the resource and the version as labels. Clients choose all three of custom resources.
    fn named(&self, info: &ResourceInfo) -> (String, String, String) {
        if info.builtin || self.custom.has(&format!("{}/{}", info.group_resource(), info.version)) {
            return (info.group.clone(), info.plural.clone(), info.version.clone());
        }
        (OTHER.to_owned(), OTHER.to_owned(), OTHER.to_owned())
    }
}

/// Something that is counted while it lasts.
#[derive(Debug)]
pub(crate) struct UnderWay(Gauge);

impl UnderWay {
    fn of(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Returns a user's label: few users have one of their own.
fn known_user(user: &str) -> &'static str {
    const KNOWN: [&str; 5] =
        ["admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default"];
    let known = KNOWN.into_iter().find(|known| *known == user);
    known.unwrap_or(if user.contains('@') { "email_id" } else { "other" })
}
