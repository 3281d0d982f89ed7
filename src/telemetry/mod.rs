//! Reports about the process: log lines (one subscriber, text or JSON, on standard error), metrics, which of
//! its parts are ready, and traces on request.

mod controllers;
mod libraries;
mod metrics;
mod outside;
mod readiness;
mod secrets;
mod traces;

use std::any::Any;
use std::error::Error;
use std::io::{self, IsTerminal as _};

use clap::ValueEnum;
use tracing::warn;
use tracing_subscriber::filter::{ParseError, filter_fn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, Registry};

pub use controllers::{ControllerMetrics, Counts};
pub use libraries::may_be_told;
pub use metrics::{MEDIA_TYPE, Metrics};
pub use outside::{Outside, escaped, redacted};
pub use readiness::{Readiness, State};
pub use secrets::Secrets;
pub use traces::{Trace, Traces, TracesError};

/// The formats of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}

/// The log filter unless `RUST_LOG` is set: info of this program, and only warnings of libraries. Errors of the Kubernetes client
/// are reported by its callers, which know the purpose of the request.
const DEFAULT_FILTER: &str =
    "warn,kube_client::client::builder=off,admit=info,admit_apiserver=info,admit_policy=info";

/// Formats an error with its causes on one line: HTTP clients report only that they could not connect, and leave the reason to
/// the causes. It may contain messages of servers, so it is treated as untrusted text.
#[must_use]
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    Outside::error(error).into_string()
}

fn causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut refused = Refused::by(error);
    let mut source = error.source();
    while let (None, Some(cause)) = (&refused, source) {
        refused = Refused::by(cause);
        let words = cause.to_string();
        // Some errors include their cause already.
        if !text.ends_with(&words) && !refused.as_ref().is_some_and(|refused| refused.is_told(&text)) {
            text = format!("{text}: {words}");
        }
        source = cause.source();
    }
    refused.map_or_else(|| text.clone(), |refused| text.replace(&refused.dump, &refused.words))
}

/// An unexpected response of an API server. The client's error prints the whole response as Rust source; only the server's message
/// is of interest.
struct Refused {
    dump: String,
    words: String,
}

impl Refused {
    fn by(error: &(dyn Error + 'static)) -> Option<Self> {
        let boxed = || error.downcast_ref::<Box<kube::Error>>().map(Box::as_ref);
        let error = error.downcast_ref::<kube::Error>().or_else(boxed)?;
        let kube::Error::Api(status) = error else { return None };
        let words = match (status.message.as_str(), status.reason.as_str()) {
            ("", "") => format!("the server answered {}", status.code),
            ("", reason) => format!("the server answered {} {reason}", status.code),
            (message, _) => message.to_owned(),
        };
        Some(Self { dump: error.to_string(), words })
    }

    fn is_told(&self, text: &str) -> bool {
        text.contains(&self.dump) || text.ends_with(&self.words)
    }
}

/// Returns the message of a caught panic.
#[must_use]
pub fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "panic without a message".to_owned())
}

/// The value of `RUST_LOG` is not a filter.
#[derive(Debug, thiserror::Error)]
#[error("RUST_LOG is `{text}`: {source}; write it as `info` or `warn,admit=debug`")]
pub struct InvalidFilter {
    text: String,
    source: ParseError,
}

/// Starts logging for the process. A second call changes nothing, so that tests may call it freely.
///
/// # Errors
/// When `RUST_LOG` is set and cannot be read as a filter.
pub fn init(format: LogFormat) -> Result<(), InvalidFilter> {
    let asked = std::env::var("RUST_LOG").ok().filter(|text| !text.is_empty());
    let filter = match &asked {
        Some(text) => {
            EnvFilter::try_new(text).map_err(|source| InvalidFilter { text: text.clone(), source })?
        }
        None => EnvFilter::new(DEFAULT_FILTER),
    };
    let lines = tracing_subscriber::fmt::layer::<Registry>()
        .with_writer(io::stderr)
        // Otherwise it would report unwritable lines with a macro that panics if standard error is closed: a request would be
        // denied, or a signal lost, because the log collector has gone.
        .log_internal_errors(false)
        .with_ansi(io::stderr().is_terminal());
    let lines = match format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().boxed(),
    };
    let subscriber = tracing_subscriber::registry().with(lines).with(filter).with(filter_fn(may_be_told));
    // An existing subscriber stays: the first caller decides.
    let _ = subscriber.try_init();
    for target in asked.as_deref().map(libraries::asked_in_vain).unwrap_or_default() {
        warn!(
            target,
            "RUST_LOG asks for lines that are not written: they would show what passes over connections"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    enum Wrapped {
        #[error("cannot read: {}", with_causes(.0))]
        Told(#[source] Box<kube::Error>),
        #[error("cannot read: {0}")]
        Dumped(#[source] kube::Error),
        #[error("cannot read")]
        Silent(#[from] Box<kube::Error>),
    }

    #[test]
    fn of_a_refusal_the_servers_words_are_told_and_nothing_else() {
        let refusal = |message: &str| {
            let status = kube::core::Status::failure(message, "Forbidden");
            kube::Error::Api(Box::new(kube::core::Status { code: 403, ..status }))
        };
        let words = "secrets \"pull-secret\" is forbidden";
        let bare: Box<dyn Error> = Box::new(refusal(words));
        assert_eq!(with_causes(bare.as_ref()), words);
        assert_eq!(with_causes(&Box::new(refusal(words))), words);
        assert_eq!(with_causes(&refusal("")), "the server answered 403 Forbidden");
        let told = format!("cannot read: {words}");
        for wrapped in [
            Wrapped::Told(Box::new(refusal(words))),
            Wrapped::Dumped(refusal(words)),
            Wrapped::Silent(Box::new(refusal(words))),
        ] {
            assert_eq!(with_causes(&wrapped), told, "{wrapped:?}");
        }
        let watched = kube::runtime::watcher::Error::InitialListFailed(refusal(words));
        assert_eq!(with_causes(&watched), format!("failed to perform initial object list: {words}"));
    }
}
