//! What a process tells about itself: log lines (one subscriber, text or JSON, on standard error), counters, which of
//! its parts are ready, and traces where they are asked for.

mod metrics;
mod outside;
mod readiness;
mod secrets;
mod traces;

use std::error::Error;
use std::io::{self, IsTerminal as _};

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

pub use metrics::{MEDIA_TYPE, Metrics};
pub use outside::{Outside, escaped, redacted};
pub use readiness::Readiness;
pub use secrets::Secrets;
pub use traces::{Trace, Traces, TracesError};

/// How log lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}

/// What is logged where `RUST_LOG` does not say: ourselves, and only trouble from the libraries. That of kube's clients is told
/// by whoever made the request, who knows what it was for.
const DEFAULT_FILTER: &str =
    "warn,kube_client::client::builder=off,admit=info,admit_apiserver=info,admit_policy=info";

/// An error with what caused it, in one line: clients of HTTP say only that they could not connect, and leave the reason to
/// the causes. Messages of servers are in it, so that it is a text from outside.
#[must_use]
pub fn with_causes(error: &dyn Error) -> String {
    Outside::error(error).into_string()
}

fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let words = cause.to_string();
        // Some errors tell their cause themselves.
        if !text.ends_with(&words) {
            text = format!("{text}: {words}");
        }
        source = cause.source();
    }
    text
}

/// Starts logging for the process. A second call changes nothing, so that tests may call it freely.
///
/// # Errors
/// When `RUST_LOG` is set and cannot be read as a filter.
pub fn init(format: LogFormat) -> Result<(), String> {
    let filter = match std::env::var("RUST_LOG") {
        Ok(text) if !text.is_empty() => EnvFilter::try_new(&text).map_err(|error| {
            format!("RUST_LOG is `{text}`: {error}; write it as `info` or `warn,admit=debug`")
        })?,
        _ => EnvFilter::new(DEFAULT_FILTER),
    };
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        // It would complain of a line that cannot be written by a macro that panics where nobody reads: a request would be
        // denied, or a signal lost, because whoever collected the log has gone.
        .log_internal_errors(false)
        .with_ansi(io::stderr().is_terminal());
    // A subscriber that is already there stays: the first caller decides.
    let _ = match format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
    Ok(())
}
