//! `admit bench`: measures the latency and throughput of an admission webhook, this program's or another one.
//!
//! ```text
//! review ──► Load: N connections, each one request at a time ──► Tally per connection ──► Report ──► render
//! ```
//!
//! It behaves like an API server: HTTP/1.1 over TLS, kept-alive connections, every request with a uid of its own,
//! which the response must repeat. Without `--rate` the next request follows a response; with it requests start when
//! they are due, and time spent waiting for a free connection counts as latency. A time limit ends a run on endpoints
//! of any slowness: requests that were due by then and could not be started have failed.

mod load;
mod pace;
mod report;
mod review;
mod target;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tokio_util::sync::CancellationToken;

use self::load::Load;
use self::report::Report;
use self::review::Review;
use self::target::{Target, Trust};
use super::Exit;
use super::process::{self, Fault, GRACE, Threads};
use super::render::{self, Output};
use crate::telemetry::LogFormat;

/// Arguments of `admit bench`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    admit bench https://127.0.0.1:8443/validate --ca ca.crt\n  \
    admit bench https://127.0.0.1:8443/validate --ca ca.crt -f review.json --rate 500 -d 30 -o json\n\n\
    Exit codes: 0 every request was answered, 1 some were not, 2 usage or unreadable input, 4 internal error")]
pub(super) struct BenchArgs {
    /// URL of the endpoint that AdmissionReviews are posted to
    #[arg(value_name = "URL")]
    url: String,

    /// File with the AdmissionReview to post [default: creation of a Pod with three containers]
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// Total number of requests
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 10_000, conflicts_with = "duration",
          value_parser = clap::value_parser!(u64).range(1..))]
    requests: u64,

    /// Run for this many seconds instead of a number of requests; requests that were due but not started by then count as failed
    #[arg(short, long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    duration: Option<u64>,

    /// Number of connections, each with one request at a time
    #[arg(short, long, value_name = "COUNT", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=4096))]
    concurrency: u16,

    /// Requests per second, over all connections [default: as fast as they are answered]
    #[arg(long, value_name = "PER_SECOND", value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,

    /// Seconds after which a request counts as failed
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=60))]
    timeout: u64,

    /// PEM file with the CA to verify the endpoint's certificate against [default: the system's CAs]
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,

    /// PEM file with a client certificate, for endpoints that request one
    #[arg(long, value_name = "FILE", requires = "client_key")]
    client_cert: Option<PathBuf>,

    /// PEM file with the client certificate's private key
    #[arg(long, value_name = "FILE", requires = "client_cert")]
    client_key: Option<PathBuf>,

    /// Host name that the server certificate must be valid for [default: the host of the URL]
    #[arg(long, value_name = "NAME")]
    server_name: Option<String>,

    /// Output format of the report
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

impl BenchArgs {
    pub(super) fn run(self) -> Exit {
        process::run(Threads::Carry, LogFormat::Text, GRACE, |shutdown| self.bench(shutdown))
    }

    async fn bench(self, shutdown: CancellationToken) -> Result<(), Fault> {
        let trust = Trust {
            authority: self.ca,
            client: self.client_cert.zip(self.client_key),
            server_name: self.server_name,
        };
        let target = Target::new(&self.url, &trust)?;
        let review = Review::read(self.file.as_deref())?;
        let load = Load {
            target,
            review,
            requests: self.duration.is_none().then_some(self.requests),
            duration: self.duration.map(Duration::from_secs),
            concurrency: self.concurrency,
            rate: self.rate,
            timeout: Duration::from_secs(self.timeout),
        };
        let run = Arc::new(load).run(shutdown).await;
        let (tally, took) = run.map_err(|error| Fault::internal(format!("no thread for --rate: {error}")))?;
        let report = Report::new(&self.url, self.concurrency, self.rate, &tally, took);
        render::print(&match self.output {
            Output::Text => report.text(),
            Output::Json => render::json(&report.json()),
        });
        match report.failed() {
            0 => Ok(()),
            _ => Err(Fault { exit: Exit::Differs, ..Fault::usage(report.complaint()) }),
        }
    }
}
