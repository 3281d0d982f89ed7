//! How long a caller may take to send the head of a request, told apart from how long a connection may lie idle.
//!
//! hyper has one clock for both: an idle connection of an API server would end after the few seconds that a slow head may
//! take, and an answer to the next request would sometimes be a reset. Here the clock of the head starts with its first
//! byte and is stopped by the request's handler, which runs once the head is whole.
//!
//! A caller that does not take its answers has the same time: hyper has no clock for that at all, and would keep the
//! connection as long as the caller does.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep, sleep_until};

/// Counts the beginnings and ends of requests: while the number is even none is worked on, and bytes that arrive belong to
/// the head of the next.
#[derive(Clone, Debug)]
pub(super) struct Between(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    requests: AtomicU64,
    /// Milliseconds from `began` to when something was last heard from the caller, or answered.
    stirred: AtomicU64,
    began: Instant,
}

impl Between {
    /// Of a connection that begins now; of those with the same `began` it can be told which is idle for longer.
    pub(super) fn since(began: Instant) -> Self {
        let between =
            Self(Arc::new(Counts { requests: AtomicU64::new(0), stirred: AtomicU64::new(0), began }));
        between.stirs();
        between
    }

    /// Idleness begins anew: a handshake is over, or a head begins.
    pub(super) fn stirs(&self) {
        let now = Instant::now().duration_since(self.0.began);
        self.0.stirred.store(u64::try_from(now.as_millis()).unwrap_or(u64::MAX), Ordering::Release);
    }

    /// The head of a request is whole.
    pub(super) fn request_begins(&self) {
        self.0.requests.fetch_add(1, Ordering::AcqRel);
    }

    /// The request is answered.
    pub(super) fn request_ends(&self) {
        self.stirs();
        self.0.requests.fetch_add(1, Ordering::AcqRel);
    }

    /// How long nothing has been under way; none while a request is.
    pub(super) fn idle(&self, now: Instant) -> Option<Duration> {
        let stirred = self.0.began + Duration::from_millis(self.0.stirred.load(Ordering::Acquire));
        self.count().is_multiple_of(2).then(|| now.saturating_duration_since(stirred))
    }

    /// Whether the head of a request has ever come.
    pub(super) fn has_asked(&self) -> bool {
        self.count() > 0
    }

    fn count(&self) -> u64 {
        self.0.requests.load(Ordering::Acquire)
    }
}

/// A stream that fails when a head takes longer than `limit`, or a piece of an answer is not taken for so long.
#[derive(Debug)]
pub(super) struct Paced<S> {
    stream: S,
    between: Between,
    limit: Duration,
    /// When the head began that arrives.
    begun: Option<Instant>,
    /// The count at which it began: with another, that head is whole, even where nothing was read meanwhile.
    head: u64,
    /// Wakes the task at the latest when the time of the head is over. It stays set from one head to the next and is set
    /// anew where it rings too early: to set a timer that is the earliest of all wakes the runtime, and every head's would be.
    alarm: Option<Pin<Box<Sleep>>>,
    /// Runs while the other side takes nothing.
    stuck: Option<Pin<Box<Sleep>>>,
}

impl<S> Paced<S> {
    pub(super) fn new(stream: S, between: Between, limit: Duration) -> Self {
        Self { stream, between, limit, begun: None, head: 0, alarm: None, stuck: None }
    }

    /// Whether the time is over of a head that began then; else the task is woken when it is.
    fn is_over(&mut self, begun: Instant, cx: &mut Context<'_>) -> bool {
        let end = begun + self.limit;
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep_until(end)));
        while alarm.as_mut().poll(cx).is_ready() {
            if Instant::now() >= end {
                return true;
            }
            alarm.as_mut().reset(end);
        }
        false
    }

    /// What came of an attempt to write, unless nothing has come of any for too long.
    fn within_limit<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stuck = None;
            return written;
        }
        let limit = self.limit;
        let clock = self.stuck.get_or_insert_with(|| Box::pin(sleep(limit)));
        ready!(clock.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the answer is not taken")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let count = this.between.count();
        if count != this.head {
            this.begun = None;
            this.head = count;
        }
        if count % 2 == 1 {
            return Pin::new(&mut this.stream).poll_read(cx, buffer);
        }
        if let Some(begun) = this.begun
            && this.is_over(begun, cx)
        {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the head took too long")));
        }
        ready!(Pin::new(&mut this.stream).poll_read(cx, buffer))?;
        if this.begun.is_none() {
            let now = Instant::now();
            this.begun = Some(now);
            this.between.stirs();
            // Registers the task, which may wait for nothing but the next byte from here on.
            this.is_over(now, cx);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.within_limit(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.within_limit(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.within_limit(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
    use tokio::time::timeout;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(5);

    #[tokio::test(start_paused = true)]
    async fn a_head_has_its_time_and_idleness_another() {
        let (mut client, server) = duplex(64);
        let between = Between::since(Instant::now());
        let mut paced = Paced::new(server, between.clone(), LIMIT);
        let mut byte = [0];
        // Idle: nothing arrives for long, and nothing happens.
        assert!(timeout(LIMIT * 10, paced.read(&mut byte)).await.is_err());

        client.write_all(b"PO").await.unwrap();
        paced.read_exact(&mut byte).await.unwrap();
        between.request_begins();
        paced.read_exact(&mut byte).await.unwrap();
        assert!(timeout(LIMIT * 2, paced.read(&mut byte)).await.is_err(), "a body has its own clock");

        between.request_ends();
        client.write_all(b"P").await.unwrap();
        paced.read_exact(&mut byte).await.unwrap();
        // Answered at once, before anything else was read.
        between.request_begins();
        between.request_ends();
        assert!(timeout(LIMIT * 10, paced.read(&mut byte)).await.is_err(), "idle again");

        client.write_all(b"PO").await.unwrap();
        paced.read_exact(&mut [0; 2]).await.unwrap();
        let error = timeout(LIMIT * 2, paced.read(&mut byte)).await.unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_not_taken_ends_the_connection() {
        let (_client, server) = duplex(4);
        let mut paced = Paced::new(server, Between::since(Instant::now()), LIMIT);
        paced.write_all(b"four").await.unwrap();
        let error = timeout(LIMIT * 2, paced.write_all(b"more")).await.unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);

        // Taken a little at a time, it is taken.
        let (mut client, server) = duplex(4);
        let mut paced = Paced::new(server, Between::since(Instant::now()), LIMIT);
        let answering = tokio::spawn(async move { paced.write_all(&[b'a'; 12]).await });
        for _ in 0..12 {
            tokio::time::advance(LIMIT / 2).await;
            client.read_exact(&mut [0]).await.unwrap();
        }
        answering.await.unwrap().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn dribbling_does_not_prolong_a_head() {
        let (mut client, server) = duplex(64);
        let mut paced = Paced::new(server, Between::since(Instant::now()), LIMIT);
        let started = Instant::now();
        loop {
            client.write_all(b"x").await.unwrap();
            if paced.read(&mut [0]).await.is_err() {
                break;
            }
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert!(started.elapsed() <= LIMIT + Duration::from_secs(1), "{:?}", started.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_has_its_whole_time_however_soon_it_follows_another() {
        let (mut client, server) = duplex(64);
        let between = Between::since(Instant::now());
        let mut paced = Paced::new(server, between.clone(), LIMIT);
        for _ in 0..3 {
            client.write_all(b"P").await.unwrap();
            paced.read_exact(&mut [0]).await.unwrap();
            between.request_begins();
            between.request_ends();
            assert!(timeout(LIMIT * 9 / 10, paced.read(&mut [0])).await.is_err(), "between two heads");
        }
        client.write_all(b"P").await.unwrap();
        paced.read_exact(&mut [0]).await.unwrap();
        let begun = Instant::now();
        let error = timeout(LIMIT * 2, paced.read(&mut [0])).await.unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let took = begun.elapsed();
        assert!(took >= LIMIT && took <= LIMIT + Duration::from_millis(10), "{took:?}");
    }
}
