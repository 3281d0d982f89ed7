//! Limits how long a client may take to send the head of a request, separately from how long a connection may be
//! idle.
//!
//! hyper has one timer for both: an idle connection of an API server would be closed after the few seconds that a
//! slow head may take, and the next request on it would sometimes see a reset. Here the timer of the head starts with
//! its first byte and is stopped by the request's handler, which runs once the head is complete.
//!
//! A client that does not read its responses has the same time: hyper has no timer for that at all and would keep the
//! connection for as long as the client does.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use crate::activity::Activity;

/// A stream that fails when a request's head takes too long, or when the client does not read a piece of a response
/// for too long.
#[derive(Debug)]
pub struct Paced<S> {
    stream: S,
    activity: Activity,
    head_limit: Duration,
    /// None if another layer ensures that responses are read.
    untaken_limit: Option<Duration>,
    /// When the request head that is arriving began.
    begun: Option<Instant>,
    /// The request count when it began: if the count has changed, that head is complete, even if nothing was read meanwhile.
    head: u64,
    /// Wakes the task at the end of the head's time limit. It stays set from one head to the next, and is reset if it fires too early:
    /// setting a timer that is the earliest of all wakes the runtime, and that would happen for every head.
    alarm: Option<Pin<Box<Sleep>>>,
    /// Runs while the other side reads nothing.
    stuck: Option<Pin<Box<Sleep>>>,
}

impl<S> Paced<S> {
    /// Creates a stream; `head` limits the time for a request head from its first byte, and `untaken` the time for reading a chunk.
    pub fn new(stream: S, activity: Activity, head: Duration, untaken: Option<Duration>) -> Self {
        Self {
            stream,
            activity,
            head_limit: head,
            untaken_limit: untaken,
            begun: None,
            head: 0,
            alarm: None,
            stuck: None,
        }
    }

    /// Whether the time limit of a head that began at `begun` is over; otherwise the task is woken then.
    fn is_over(&mut self, begun: Instant, cx: &mut Context<'_>) -> bool {
        let end = begun + self.head_limit;
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep_until(end)));
        while alarm.as_mut().poll(cx).is_ready() {
            if Instant::now() >= end {
                return true;
            }
            alarm.as_mut().reset(end);
        }
        false
    }

    /// Returns the result of a write, or an error if no write has made progress for too long.
    fn within_limit<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stuck = None;
            return written;
        }
        let Some(limit) = self.untaken_limit else { return Poll::Pending };
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
        let count = this.activity.turns();
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
            this.activity.stirs();
            // Registers the task, which may only wait for the next byte from now on.
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
        let activity = Activity::since(Instant::now());
        let mut paced = Paced::new(server, activity.clone(), LIMIT, Some(LIMIT));
        let mut byte = [0];
        // An idle connection: nothing arrives for long, and it is not closed.
        assert!(timeout(LIMIT * 10, paced.read(&mut byte)).await.is_err());

        client.write_all(b"PO").await.unwrap();
        paced.read_exact(&mut byte).await.unwrap();
        let under_way = activity.begin();
        paced.read_exact(&mut byte).await.unwrap();
        assert!(timeout(LIMIT * 2, paced.read(&mut byte)).await.is_err(), "a body has its own clock");

        drop(under_way);
        client.write_all(b"P").await.unwrap();
        paced.read_exact(&mut byte).await.unwrap();
        // Answered immediately, before anything else was read.
        drop(activity.begin());
        assert!(timeout(LIMIT * 10, paced.read(&mut byte)).await.is_err(), "idle again");

        client.write_all(b"PO").await.unwrap();
        paced.read_exact(&mut [0; 2]).await.unwrap();
        let error = timeout(LIMIT * 2, paced.read(&mut byte)).await.unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_not_taken_ends_the_connection() {
        let (_client, server) = duplex(4);
        let mut paced = Paced::new(server, Activity::since(Instant::now()), LIMIT, Some(LIMIT));
        paced.write_all(b"four").await.unwrap();
        let error = timeout(LIMIT * 2, paced.write_all(b"more")).await.unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);

        // A slow reader makes progress.
        let (mut client, server) = duplex(4);
        let mut paced = Paced::new(server, Activity::since(Instant::now()), LIMIT, Some(LIMIT));
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
        let mut paced = Paced::new(server, Activity::since(Instant::now()), LIMIT, Some(LIMIT));
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
        let activity = Activity::since(Instant::now());
        let mut paced = Paced::new(server, activity.clone(), LIMIT, Some(LIMIT));
        for _ in 0..3 {
            client.write_all(b"P").await.unwrap();
            paced.read_exact(&mut [0]).await.unwrap();
            drop(activity.begin());
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
