//! Collects the results of a benchmark, and formats them as JSON and as text.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde_json::{Value, json};

use crate::telemetry::with_causes;

/// Latencies are recorded in microseconds with this many significant digits, up to a minute.
const DIGITS: u8 = 3;
const LONGEST: u64 = 60_000_000;
const QUANTILES: &[(&str, f64)] = &[("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

/// Why a connection failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    #[error(transparent)]
    Tls(#[from] io::Error),
    #[error("{}", with_causes(.0))]
    Http(#[from] hyper::Error),
}

/// Why a request got no verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Failure {
    /// The TCP connection or the TLS handshake failed.
    Connect,
    /// The connection ended before the response was complete.
    Broken,
    Timeout,
    /// A response with another status than 200.
    Status(u16),
    /// The body is not an AdmissionReview.
    Malformed,
    /// The response has the uid of another request.
    Uid,
    /// No connection was free before the time limit.
    NotStarted,
}

impl Failure {
    fn label(self) -> String {
        match self {
            Self::Connect => "connect".to_owned(),
            Self::Broken => "broken".to_owned(),
            Self::Timeout => "timeout".to_owned(),
            Self::Status(code) => format!("status {code}"),
            Self::Malformed => "malformed".to_owned(),
            Self::Uid => "other uid".to_owned(),
            Self::NotStarted => "not started".to_owned(),
        }
    }
}

/// The results of one connection, or of all together.
#[derive(Debug, Default)]
pub(super) struct Tally {
    allowed: u64,
    denied: u64,
    connections: u64,
    failures: BTreeMap<Failure, u64>,
    /// Why the first failed connection failed.
    trouble: Option<String>,
    /// Latencies in microseconds; created with the first response.
    latencies: Option<Histogram<u64>>,
}

impl Tally {
    pub(super) fn answered(&mut self, allowed: bool, took: Duration) {
        *(if allowed { &mut self.allowed } else { &mut self.denied }) += 1;
        let micros = u64::try_from(took.as_micros()).unwrap_or(LONGEST);
        if let Some(latencies) = self.latencies() {
            latencies.saturating_record(micros.max(1));
        }
    }

    pub(super) fn failed(&mut self, failure: Failure) {
        *self.failures.entry(failure).or_default() += 1;
    }

    /// Counts requests that were due and never sent; `count` may be 0.
    pub(super) fn not_started(&mut self, count: u64) {
        if count > 0 {
            *self.failures.entry(Failure::NotStarted).or_default() += count;
        }
    }

    pub(super) fn connected(&mut self) {
        self.connections += 1;
    }

    pub(super) fn not_connected(&mut self, why: &ConnectError) {
        self.trouble.get_or_insert_with(|| why.to_string());
    }

    /// Returns the number of requests, answered or not.
    pub(super) fn requests(&self) -> u64 {
        self.allowed + self.denied + self.all_failed()
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.allowed += other.allowed;
        self.denied += other.denied;
        self.connections += other.connections;
        if self.trouble.is_none() {
            self.trouble.clone_from(&other.trouble);
        }
        for (failure, count) in &other.failures {
            *self.failures.entry(*failure).or_default() += count;
        }
        if let (Some(all), Some(more)) = (self.latencies(), &other.latencies) {
            // Both histograms have the same bounds, so every value fits.
            let _ = all.add(more);
        }
    }

    fn all_failed(&self) -> u64 {
        self.failures.values().sum()
    }

    fn latencies(&mut self) -> Option<&mut Histogram<u64>> {
        if self.latencies.is_none() {
            self.latencies = Histogram::new_with_bounds(1, LONGEST, DIGITS).ok();
        }
        self.latencies.as_mut()
    }
}

/// The results of a finished run.
#[derive(Debug)]
pub(super) struct Report<'t> {
    url: &'t str,
    concurrency: u16,
    rate: Option<u32>,
    tally: &'t Tally,
    took: Duration,
}

impl<'t> Report<'t> {
    pub(super) fn new(
        url: &'t str,
        concurrency: u16,
        rate: Option<u32>,
        tally: &'t Tally,
        took: Duration,
    ) -> Self {
        Self { url, concurrency, rate, tally, took }
    }

    pub(super) fn failed(&self) -> u64 {
        self.tally.all_failed()
    }

    pub(super) fn requests(&self) -> u64 {
        self.tally.requests()
    }

    /// Returns how many requests failed and, if a connection failed, why.
    pub(super) fn complaint(&self) -> String {
        let told = format!("{} of {} requests failed", self.failed(), self.requests());
        match &self.tally.trouble {
            Some(why) => format!("{told}; no connection to `{}`: {why}", self.url),
            None => told,
        }
    }

    fn per_second(&self) -> f64 {
        let answered = (self.tally.allowed + self.tally.denied) as f64;
        answered / self.took.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// Returns the name and the milliseconds of each percentile; empty if no request was answered.
    fn latencies(&self) -> Vec<(&'static str, f64)> {
        let answered = self.tally.latencies.as_ref().filter(|latencies| !latencies.is_empty());
        let Some(latencies) = answered else { return Vec::new() };
        let milli = |micros: u64| micros as f64 / 1_000.0;
        let mut all = vec![("min", milli(latencies.min())), ("mean", latencies.mean() / 1_000.0)];
        all.extend(
            QUANTILES.iter().map(|(name, quantile)| (*name, milli(latencies.value_at_quantile(*quantile)))),
        );
        all.push(("max", milli(latencies.max())));
        all
    }

    pub(super) fn json(&self) -> Value {
        let Tally { allowed, denied, connections, failures, trouble: _, latencies } = self.tally;
        let failures: BTreeMap<String, u64> =
            failures.iter().map(|(failure, count)| (failure.label(), *count)).collect();
        let quantiles: BTreeMap<&str, f64> = self.latencies().into_iter().collect();
        // Buckets are powers of two of microseconds, as in a Prometheus histogram.
        let histogram: Vec<Value> = latencies
            .iter()
            .flat_map(|all| all.iter_log(1, 2.0))
            .filter(|step| step.count_since_last_iteration() > 0)
            .map(|step| {
                json!({
                    "upToMs": step.value_iterated_to() as f64 / 1_000.0,
                    "count": step.count_since_last_iteration(),
                })
            })
            .collect();
        json!({
            "url": self.url,
            "concurrency": self.concurrency,
            "rate": self.rate,
            "seconds": self.took.as_secs_f64(),
            "requests": self.requests(),
            "requestsPerSecond": self.per_second(),
            "connections": connections,
            "allowed": allowed,
            "denied": denied,
            "failed": self.failed(),
            "failures": failures,
            "latencyMs": quantiles,
            "histogram": histogram,
        })
    }

    pub(super) fn text(&self) -> String {
        let Tally { allowed, denied, connections, failures, .. } = self.tally;
        let mut text = format!(
            "{} requests in {:.2} s over {connections} connections: {:.0} a second\n\
             {allowed} allowed, {denied} denied, {} failed\n",
            self.requests(),
            self.took.as_secs_f64(),
            self.per_second(),
            self.failed(),
        );
        for (failure, count) in failures {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {count} {}", failure.label());
        }
        for (name, milliseconds) in self.latencies() {
            let _ = writeln!(text, "{name:>6} {milliseconds:>10.3} ms");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tallies_of_connections_add_up() {
        let mut all = Tally::default();
        for (allowed, millis) in [(true, 1), (true, 2), (false, 100)] {
            let mut one = Tally::default();
            one.connected();
            one.answered(allowed, Duration::from_millis(millis));
            one.failed(Failure::Status(429));
            all.merge(&one);
        }
        let report = Report::new("https://x/", 3, None, &all, Duration::from_secs(2));
        let json = report.json();
        assert_eq!((&json["allowed"], &json["denied"], &json["failed"]), (&2.into(), &1.into(), &3.into()));
        assert_eq!(json["requests"], 6);
        assert_eq!(json["requestsPerSecond"], 1.5);
        assert_eq!(json["failures"], json!({"status 429": 3}));
        let counts = json["histogram"].as_array().unwrap().iter();
        assert_eq!(counts.map(|step| step["count"].as_u64().unwrap()).sum::<u64>(), 3);
        let median = json["latencyMs"]["p50"].as_f64().unwrap();
        assert!((median - 2.0).abs() < 0.01, "{median}");
        let text = report.text();
        assert!(text.starts_with("6 requests in 2.00 s over 3 connections: 2 a second\n"), "{text}");
        assert!(text.contains("\n  3 status 429\n"), "{text}");
    }

    #[test]
    fn what_nobody_answered_took_no_time() {
        let mut all = Tally::default();
        let mut one = Tally::default();
        one.failed(Failure::Connect);
        all.merge(&one);
        let report = Report::new("https://x/", 1, None, &all, Duration::from_secs(1));
        assert_eq!(report.json()["latencyMs"], json!({}));
        assert_eq!(
            report.text(),
            "1 requests in 1.00 s over 0 connections: 0 a second\n0 allowed, 0 denied, 1 failed\n  1 connect\n"
        );
    }
}
