//! Generates the load: each connection posts one review after the other, until the number of requests or the time limit is
//! reached.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::pace::Pace;
use super::report::{ConnectError, Failure, Tally};
use super::review::Review;
use super::target::Target;

/// How long requests may still start after the time limit: otherwise the last ones, due a moment before it, would fail
/// on any machine that wakes late.
const LATENESS: Duration = Duration::from_millis(250);
/// The delay between two attempts to connect.
const RECONNECT: Duration = Duration::from_millis(20);

/// The parameters of a run.
pub(super) struct Load {
    pub(super) target: Target,
    pub(super) review: Review,
    pub(super) requests: Option<u64>,
    pub(super) duration: Option<Duration>,
    pub(super) concurrency: u16,
    /// Requests per second.
    pub(super) rate: Option<u32>,
    pub(super) timeout: Duration,
}

/// The fields of a response that are read.
#[derive(Deserialize)]
struct Answer {
    response: Verdict,
}

#[derive(Deserialize)]
struct Verdict {
    uid: String,
    allowed: bool,
}

/// The state that all connections share.
struct Run {
    load: Arc<Load>,
    /// None if each request follows a response.
    pace: Option<Pace>,
    /// The total number of requests, if it is known in advance.
    count: Option<u64>,
    /// No request is started after this time, if there is a time limit.
    end: Option<Instant>,
    /// The number of the next request.
    next: AtomicU64,
    stop: CancellationToken,
}

/// A connection, and the task that drives it.
struct Connection {
    sender: SendRequest<Full<Bytes>>,
    /// Aborted when the value is dropped.
    _task: JoinSet<()>,
}

impl Load {
    /// Runs until the number of requests or the time is reached, or `stop` is cancelled, and returns the counts and
    /// the duration. Requests that were due within the time and found no free connection count as failed.
    ///
    /// # Errors
    /// When the thread for the clock of `rate` cannot be started.
    pub(super) async fn run(self: Arc<Self>, stop: CancellationToken) -> io::Result<(Tally, Duration)> {
        // A rate and a time limit give the number of requests.
        let within = self.rate.zip(self.duration).map(|(rate, time)| u64::from(rate) * time.as_secs());
        let count = self.requests.or(within);
        let pace = self.rate.map(|rate| Pace::start(rate, count.unwrap_or(u64::MAX), stop.clone()));
        let begin = Instant::now();
        let lateness = if pace.is_some() { LATENESS } else { Duration::ZERO };
        let end = self.duration.map(|duration| begin + duration + lateness);
        let next = AtomicU64::new(0);
        let run = Arc::new(Run { load: Arc::clone(&self), pace: pace.transpose()?, count, end, next, stop });
        let mut workers = JoinSet::new();
        for _ in 0..self.concurrency {
            workers.spawn(Arc::clone(&run).work());
        }
        let mut tally = Tally::default();
        while let Some(ended) = workers.join_next().await {
            match ended {
                Ok(one) => tally.merge(&one),
                Err(error) => tracing::error!(%error, "a connection's task ended"),
            }
        }
        if let Some(due) = within.filter(|_| !run.stop.is_cancelled()) {
            tally.not_started(due.saturating_sub(tally.requests()));
        }
        Ok((tally, begin.elapsed()))
    }
}

impl Run {
    async fn work(self: Arc<Self>) -> Tally {
        let mut tally = Tally::default();
        let mut connection = None;
        while let Some((number, due)) = self.due().await {
            let started = due.unwrap_or_else(Instant::now);
            let outcome = timeout(self.load.timeout, self.one(number, &mut connection, &mut tally)).await;
            match outcome {
                Ok(Ok(allowed)) => tally.answered(allowed, started.elapsed()),
                Ok(Err(failure)) => tally.failed(failure),
                Err(_) => {
                    connection = None;
                    tally.failed(Failure::Timeout);
                }
            }
        }
        tally
    }

    /// Waits until the next request is due; returns its number and the time when it was due. None when the run is over.
    async fn due(&self) -> Option<(u64, Option<Instant>)> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if self.stop.is_cancelled() || self.count.is_some_and(|count| number >= count) {
            return None;
        }
        let due = match &self.pace {
            None => None,
            Some(pace) => Some(self.stop.run_until_cancelled(pace.wait(number)).await?),
        };
        let over = self.end.is_some_and(|end| Instant::now() >= end);
        (!over).then_some((number, due))
    }

    /// Posts one review, and returns whether it was allowed.
    async fn one(
        &self,
        number: u64,
        connection: &mut Option<Connection>,
        tally: &mut Tally,
    ) -> Result<bool, Failure> {
        let usable = self.usable(connection.take(), tally).await?;
        let open = connection.insert(usable);
        let uid = Review::uid(number);
        let answered = self.post(open, &uid).await;
        if matches!(answered, Err(Failure::Broken)) {
            *connection = None;
        }
        answered
    }

    /// Returns the kept connection if it is still open, or else a new one.
    async fn usable(&self, kept: Option<Connection>, tally: &mut Tally) -> Result<Connection, Failure> {
        if let Some(mut kept) = kept
            && kept.sender.ready().await.is_ok()
        {
            return Ok(kept);
        }
        tally.connected();
        match self.connect().await {
            Ok(made) => Ok(made),
            Err(why) => {
                tally.not_connected(&why);
                // Otherwise refused connections would be retried without a pause.
                sleep(RECONNECT).await;
                Err(Failure::Connect)
            }
        }
    }

    /// Connects to the endpoint.
    async fn connect(&self) -> Result<Connection, ConnectError> {
        let stream = self.load.target.connect().await?;
        let (sender, carried) = handshake(TokioIo::new(stream)).await?;
        let mut task = JoinSet::new();
        task.spawn(async move {
            if let Err(error) = carried.await {
                tracing::debug!(%error, "a connection broke");
            }
        });
        Ok(Connection { sender, _task: task })
    }

    async fn post(&self, connection: &mut Connection, uid: &str) -> Result<bool, Failure> {
        let Target { authority, path, .. } = &self.load.target;
        let request = Request::builder()
            .method(Method::POST)
            .uri(path)
            .header(header::HOST, authority)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json")
            .body(Full::new(self.load.review.body(uid)))
            .map_err(|_| Failure::Broken)?;
        let response = connection.sender.send_request(request).await.map_err(|_| Failure::Broken)?;
        let status = response.status();
        let body = response.into_body().collect().await.map_err(|_| Failure::Broken)?.to_bytes();
        if status != StatusCode::OK {
            return Err(Failure::Status(status.as_u16()));
        }
        let Answer { response } = serde_json::from_slice(&body).map_err(|_| Failure::Malformed)?;
        if response.uid == uid { Ok(response.allowed) } else { Err(Failure::Uid) }
    }
}
