//! Traces reviews on request: sends a span for each review to an OpenTelemetry collector with OTLP over HTTP.
//!
//! API servers with tracing send the id of their span in the request; the review's span continues it, and follows their sampling
//! decision. Without a collector nothing of this runs.

mod collector;

use std::time::Duration;

use http::{HeaderMap, Uri};
use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry::trace::{Span as _, SpanKind, Status, Tracer as _, TracerProvider as _};
use opentelemetry::{KeyValue, Value};
use opentelemetry_http::HeaderExtractor;
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider, Span};
use thiserror::Error;

use self::collector::Collector;

/// The path below the collector's address.
const ROUTE: &str = "/v1/traces";
/// The time limit for delivering the last spans when the process ends.
const LAST: Duration = Duration::from_secs(2);

/// Why no traces can be sent.
#[derive(Debug, Error)]
pub enum TracesError {
    #[error("`{0}` is no address of a collector: it is written as http://HOST:4318 or https://HOST:4318")]
    Endpoint(String),
    #[error("no exporter can be made: {0}")]
    Exporter(#[from] ExporterBuildError),
}

/// Creates spans, or does nothing; clones share the connection to the collector.
#[derive(Clone, Debug, Default)]
pub struct Traces(Option<(SdkTracerProvider, SdkTracer)>);

/// The span of one review; ends when this is dropped.
#[derive(Debug)]
pub struct Trace(Option<Span>);

impl Traces {
    /// Sends spans to the collector at `endpoint`. Must be called on the runtime that sends them.
    ///
    /// # Errors
    /// When `endpoint` is not a URL of a collector.
    pub fn to(endpoint: &str) -> Result<Self, TracesError> {
        let not_one = || TracesError::Endpoint(endpoint.to_owned());
        let uri: Uri = endpoint.parse().map_err(|_| not_one())?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.authority().is_none() {
            return Err(not_one());
        }
        let url = format!("{}{ROUTE}", endpoint.trim_end_matches('/'));
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Collector::new(&url).map_err(|_| not_one())?)
            .with_endpoint(&url)
            .build()?;
        let resource = Resource::builder()
            .with_service_name(env!("CARGO_PKG_NAME"))
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .build();
        let provider =
            SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build();
        let tracer = provider.tracer(env!("CARGO_PKG_NAME"));
        Ok(Self(Some((provider, tracer))))
    }

    /// Starts the span of a request with these headers.
    #[must_use]
    pub fn begin(&self, route: &'static str, headers: &HeaderMap) -> Trace {
        Trace(self.0.as_ref().map(|(_, tracer)| {
            let parent = TraceContextPropagator::new().extract(&HeaderExtractor(headers));
            let span = tracer.span_builder("admission review").with_kind(SpanKind::Server);
            span.with_attributes([KeyValue::new("admission.route", route)])
                .start_with_context(tracer, &parent)
        }))
    }

    /// Delivers the remaining spans, and ends. Blocks.
    pub fn finish(self) {
        if let Some((provider, _)) = self.0
            && let Err(error) = provider.shutdown_with_timeout(LAST)
        {
            tracing::warn!(%error, "the last traces could not be delivered");
        }
    }
}

impl Trace {
    /// Whether the span is recorded.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        self.0.as_ref().is_some_and(opentelemetry::trace::Span::is_recording)
    }

    pub fn note(&mut self, key: &'static str, value: impl Into<Value>) {
        if let Some(span) = &mut self.0 {
            span.set_attribute(KeyValue::new(key, value));
        }
    }

    /// Marks the span as failed: the request was answered with an error.
    pub fn failed(&mut self, why: &'static str) {
        if let Some(span) = &mut self.0 {
            span.set_status(Status::error(why));
        }
    }
}
