//! Counts conversion webhook calls for metrics, under the names of kube-apiserver.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

/// The kind of a failure of a request or its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    Call,
    Malformed,
    Partial,
    InvalidObject,
}

const FAILURES: [(Failure, &str); 4] = [
    (Failure::Call, "conversion_webhook_call_failure"),
    (Failure::Malformed, "conversion_webhook_malformed_response_failure"),
    (Failure::Partial, "conversion_webhook_partial_response_failure"),
    (Failure::InvalidObject, "conversion_webhook_invalid_converted_object_failure"),
];

#[derive(Debug, Default)]
pub(crate) struct Counts {
    successes: AtomicU64,
    failures: [AtomicU64; FAILURES.len()],
}

impl Counts {
    pub(super) fn count(&self, failure: Option<Failure>) {
        let counters = FAILURES.iter().zip(&self.failures);
        let counter = failure.and_then(|failure| {
            counters.into_iter().find_map(|((known, _), counter)| (*known == failure).then_some(counter))
        });
        counter.unwrap_or(&self.successes).fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the metrics in the text format of `/metrics`.
    pub(crate) fn text(&self) -> String {
        const NAME: &str = "apiserver_conversion_webhook_request_total";
        let mut text = format!("# TYPE {NAME} counter\n");
        let mut line = |result: &str, kind: &str, counter: &AtomicU64| {
            let count = counter.load(Ordering::Relaxed);
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{NAME}{{result=\"{result}\",failure_type=\"{kind}\"}} {count}");
        };
        line("success", "", &self.successes);
        for ((_, kind), counter) in FAILURES.iter().zip(&self.failures) {
            line("failure", kind, counter);
        }
        text
    }
}
