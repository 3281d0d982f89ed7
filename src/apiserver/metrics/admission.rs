//! Counts the steps of admission, the calls of webhooks, and the rules of policies that fail.

use std::time::Duration;

use admit_serving::{Names, OTHER};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::{MOST_NAMES, Register, exposition};

/// The bounds of the durations of calls, in seconds.
const SECONDS: [f64; 8] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0];
/// The bounds of the durations of steps, in seconds.
const STEP_SECONDS: [f64; 6] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5];
/// Larger status codes of webhooks count as this one.
const LARGEST_CODE: u16 = 600;

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct DurationLabels {
    name: String,
    operation: &'static str,
    rejected: &'static str,
    r#type: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct RequestLabels {
    code: u32,
    #[prometheus(flatten)]
    call: DurationLabels,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct RejectionLabels {
    error_type: &'static str,
    name: String,
    operation: &'static str,
    rejection_code: u32,
    r#type: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct OpenLabels {
    name: String,
    r#type: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct CheckLabels {
    enforcement_action: &'static str,
    error_type: &'static str,
    policy: String,
    policy_binding: String,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct StepLabels {
    operation: &'static str,
    rejected: &'static str,
    r#type: &'static str,
}

/// A step of admission.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Objects are changed.
    Admit,
    /// Objects are checked.
    Validate,
}

/// A call of a webhook.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WebhookCall<'c> {
    pub(crate) name: &'c str,
    /// `admit` for mutating webhooks, or `validating`.
    pub(crate) kind: &'static str,
    /// The operation of the request, as in `CREATE`.
    pub(crate) operation: &'static str,
    pub(crate) ended: Ended,
    pub(crate) took: Duration,
}

/// How the call of a webhook ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ended {
    Admitted,
    /// The webhook denied the request, with this status code.
    Denied(u16),
    /// The webhook gave no valid answer; `rejected` says what its failure policy made of that.
    Failed {
        code: u16,
        rejected: bool,
    },
    /// The server could not apply the answer.
    Internal,
}

/// The metrics of admission.
#[derive(Debug)]
pub(crate) struct AdmissionMetrics {
    registry: Registry,
    webhooks: Names,
    /// The pairs of a policy and a binding.
    bound: Names,
    steps: Family<StepLabels, Histogram, fn() -> Histogram>,
    calls: Family<RequestLabels, Counter>,
    seconds: Family<DurationLabels, Histogram, fn() -> Histogram>,
    rejections: Family<RejectionLabels, Counter>,
    failed_open: Family<OpenLabels, Counter>,
    checks: Family<CheckLabels, Counter>,
}

impl Default for AdmissionMetrics {
    fn default() -> Self {
        let mut metrics = Self {
            registry: Registry::default(),
            webhooks: Names::up_to(MOST_NAMES),
            bound: Names::up_to(MOST_NAMES),
            steps: Family::new_with_constructor(|| Histogram::new(STEP_SECONDS)),
            calls: Family::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            rejections: Family::default(),
            failed_open: Family::default(),
            checks: Family::default(),
        };
        let mut registry = Registry::default();
        let mut add = Register(&mut registry);
        add.one(
            "apiserver_admission_step_admission_duration_seconds",
            "Seconds that the steps of admission took",
            &metrics.steps,
        );
        add.one("apiserver_admission_webhook_request", "Calls of webhooks", &metrics.calls);
        add.one(
            "apiserver_admission_webhook_admission_duration_seconds",
            "Seconds that calls of webhooks took",
            &metrics.seconds,
        );
        add.one(
            "apiserver_admission_webhook_rejection_count",
            "Requests refused because of a webhook",
            &metrics.rejections,
        );
        add.one(
            "apiserver_admission_webhook_fail_open_count",
            "Requests admitted although a webhook failed",
            &metrics.failed_open,
        );
        add.one(
            "apiserver_validating_admission_policy_check",
            "Rules of policies that failed, by what their bindings did",
            &metrics.checks,
        );
        metrics.registry = registry;
        metrics
    }
}

impl AdmissionMetrics {
    /// Returns the metrics in the Prometheus text format.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        exposition::plain(&text)
    }

    /// Counts a step of admission for a request with this operation, as in `CREATE`.
    pub(crate) fn step(&self, step: Step, operation: &'static str, rejected: bool, took: Duration) {
        let labels = StepLabels {
            operation,
            rejected: told(rejected),
            r#type: match step {
                Step::Admit => "admit",
                Step::Validate => "validate",
            },
        };
        self.steps.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// Counts a call of a webhook.
    pub(crate) fn called(&self, call: &WebhookCall<'_>) {
        let WebhookCall { kind, operation, ended, took, .. } = *call;
        let name = self.webhooks.label(call.name).to_owned();
        let (code, rejected, error_type) = match ended {
            Ended::Admitted => (200, false, ""),
            Ended::Denied(code) => (code, true, "no_error"),
            Ended::Failed { code, rejected } => (code, rejected, "calling_webhook_error"),
            Ended::Internal => (0, true, "apiserver_internal_error"),
        };
        let code = u32::from(code.min(LARGEST_CODE));
        if rejected {
            let labels = RejectionLabels {
                error_type,
                name: name.clone(),
                operation,
                rejection_code: code,
                r#type: kind,
            };
            self.rejections.get_or_create(&labels).inc();
        } else if !error_type.is_empty() {
            self.failed_open.get_or_create(&OpenLabels { name: name.clone(), r#type: kind }).inc();
        }
        let call = DurationLabels { name, operation, rejected: told(rejected), r#type: kind };
        self.seconds.get_or_create(&call).observe(took.as_secs_f64());
        self.calls.get_or_create(&RequestLabels { code, call }).inc();
    }

    /// Counts a rule that failed, and the action that followed: `deny`, `warn`, `audit`, or `allow` for an error that is ignored.
    pub(crate) fn checked(&self, policy: &str, binding: &str, enforcement_action: &'static str) {
        let has_own = self.bound.has(&format!("{policy}/{binding}"));
        let (policy, binding) = if has_own { (policy, binding) } else { (OTHER, OTHER) };
        let (policy, policy_binding) = (policy.to_owned(), binding.to_owned());
        // kube-apiserver has the same label for all of them.
        let error_type = "invalid_error";
        self.checks
            .get_or_create(&CheckLabels { enforcement_action, error_type, policy, policy_binding })
            .inc();
    }
}

fn told(rejected: bool) -> &'static str {
    if rejected { "true" } else { "false" }
}
