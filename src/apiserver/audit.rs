//! Writes the audit log, one event a line, on a thread of its own, so that a slow or full disk delays no request.
//!
//! The bytes that wait to be written are bounded. An event that exceeds the bound or cannot be written is lost; the log of the
//! process reports when losses begin and end, and how many events were lost.

mod policy;

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

pub use self::policy::{AuditPolicy, AuditPolicyError, AuditPolicyErrorKind};
pub(crate) use self::policy::{Level, Recorded, Stage};

/// The most bytes of events that wait to be written.
const WAITING: usize = 32 << 20;
/// How long an ending process waits for its last events to be written.
const PATIENCE: Duration = Duration::from_secs(5);

/// An audit log that servers write to. Clones write to the same log.
///
/// ```
/// use admit_apiserver::{AuditLog, Server};
/// use axum::body::Body;
/// use http::Request;
/// use tower::ServiceExt as _;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (mut read, write) = std::io::pipe()?;
/// let log = AuditLog::to(write)?;
/// let server = Server::builder().audit_log(log.clone()).build().await?;
/// server.router().oneshot(Request::get("/api/v1/namespaces/default").body(Body::empty())?).await?;
/// // The log ends with the last server that writes to it.
/// log.settle();
/// drop((server, log));
/// let mut log = String::new();
/// std::io::Read::read_to_string(&mut read, &mut log)?;
/// assert!(log.starts_with(r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Request""#), "{log}");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct AuditLog {
    entries: Sender<Entry>,
    waiting: Arc<AtomicUsize>,
    /// The number of events lost since the last report.
    lost: Arc<AtomicU64>,
    /// Decides what is written. Without a policy each request is written once, at a level that depends on its resource and verb.
    policy: Option<Arc<AuditPolicy>>,
    format: AuditFormat,
}

/// The format of a line of an audit log.
///
/// [`AuditLog::formatted`] has an example.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuditFormat {
    /// The event as JSON.
    #[default]
    Json,
    /// A short line of text: user, request, address, time and response code.
    Legacy,
}

/// A message to the writing thread.
#[derive(Debug)]
enum Entry {
    Line(Vec<u8>),
    /// Asks for a reply once everything before it has been written or lost.
    Settled(Sender<()>),
}

impl AuditLog {
    /// Starts the thread that writes to `writer`. It ends when the last clone of the log is dropped.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub fn to(writer: impl Write + Send + 'static) -> io::Result<Self> {
        let (entries, coming) = channel();
        let (waiting, lost) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicU64::new(0)));
        let counted = Arc::clone(&waiting);
        let keep = move || keep(writer, &coming, &counted);
        thread::Builder::new().name("audit log".to_owned()).spawn(keep)?;
        Ok(Self { entries, waiting, lost, policy: None, format: AuditFormat::Json })
    }

    /// Returns the log with a policy that decides what is written, and at which stages.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use admit_apiserver::{AuditLog, AuditPolicy, Server};
    ///
    /// let policy = "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Metadata}]}";
    /// let log = AuditLog::to(std::io::stderr())?.following(AuditPolicy::parse(policy)?);
    /// let server = Server::builder().audit_log(log);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn following(mut self, policy: AuditPolicy) -> Self {
        self.policy = Some(Arc::new(policy));
        self
    }

    /// Returns the log with lines of this format.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// use admit_apiserver::{AuditFormat, AuditLog, Server};
    ///
    /// let log = AuditLog::to(std::io::stderr())?.formatted(AuditFormat::Legacy);
    /// let server = Server::builder().audit_log(log);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn formatted(mut self, format: AuditFormat) -> Self {
        self.format = format;
        self
    }

    pub(crate) const fn format(&self) -> AuditFormat {
        self.format
    }

    pub(crate) fn policy(&self) -> Option<&AuditPolicy> {
        self.policy.as_deref()
    }

    /// Waits until all added events are written, at most some seconds; to be called last before the process ends.
    pub fn settle(&self) {
        let (settled, is_settled) = channel();
        if self.entries.send(Entry::Settled(settled)).is_ok() {
            let _ = is_settled.recv_timeout(PATIENCE);
        }
    }

    /// Adds a line that ends with a line feed. Never waits.
    pub(crate) fn add(&self, line: Vec<u8>) {
        let length = line.len();
        if self.waiting.fetch_add(length, Ordering::AcqRel).saturating_add(length) > WAITING
            || self.entries.send(Entry::Line(line)).is_err()
        {
            self.waiting.fetch_sub(length, Ordering::AcqRel);
            if self.lost.fetch_add(1, Ordering::AcqRel) == 0 {
                tracing::error!("the audit log is written too slowly: events are lost");
            }
            return;
        }
        let lost = self.lost.swap(0, Ordering::AcqRel);
        if lost > 0 {
            tracing::warn!(lost, "events found no room in the audit log");
        }
    }
}

fn keep(mut writer: impl Write, entries: &Receiver<Entry>, waiting: &AtomicUsize) {
    let mut lost = 0_u64;
    for entry in entries {
        let line = match entry {
            Entry::Line(line) => line,
            Entry::Settled(settled) => {
                let _ = settled.send(());
                continue;
            }
        };
        waiting.fetch_sub(line.len(), Ordering::AcqRel);
        // A line that was cut off when the disk was full is ended here.
        let begun = if lost > 0 { writer.write_all(b"\n") } else { Ok(()) };
        match begun.and_then(|()| writer.write_all(&line)).and_then(|()| writer.flush()) {
            Ok(()) if lost > 0 => {
                tracing::warn!(lost, "the audit log is written again");
                lost = 0;
            }
            Ok(()) => {}
            Err(error) => {
                if lost == 0 {
                    tracing::error!(%error, "the audit log cannot be written: requests go on, and their events are lost");
                }
                lost = lost.saturating_add(1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::sync::mpsc;

    use super::*;

    /// Simulates a disk that is full until it is freed.
    struct Full {
        free: mpsc::Receiver<()>,
        is_free: bool,
        pipe: io::PipeWriter,
        tried: mpsc::Sender<()>,
    }

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.is_free |= self.free.try_recv().is_ok();
            if self.is_free {
                return self.pipe.write(bytes);
            }
            let _ = self.tried.send(());
            Err(io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_loses_events_until_there_is_room() {
        let (mut read, pipe) = io::pipe().unwrap();
        let ((free, is_freed), (tried, was_tried)) = (mpsc::channel(), mpsc::channel());
        let log = AuditLog::to(Full { free: is_freed, is_free: false, pipe, tried }).unwrap();
        log.add(b"a\n".to_vec());
        was_tried.recv().unwrap();
        free.send(()).unwrap();
        log.add(b"b\n".to_vec());
        log.settle();
        assert!(was_tried.try_recv().is_err(), "the second is written by now");
        drop(log);
        let mut text = String::new();
        read.read_to_string(&mut text).unwrap();
        assert_eq!(text, "\nb\n");
    }

    #[test]
    fn what_waits_is_bounded() {
        let (mut read, pipe) = io::pipe().unwrap();
        let log = AuditLog::to(pipe).unwrap();
        // Nobody reads: what exceeds the pipe's buffer waits.
        let line = [vec![b'x'; (1 << 20) - 1], b"\n".to_vec()].concat();
        for _ in 0..100 {
            log.add(line.clone());
        }
        assert!(log.lost.load(Ordering::Acquire) > 60 && log.waiting.load(Ordering::Acquire) <= WAITING);
        drop(log);
        let mut text = Vec::new();
        read.read_to_end(&mut text).unwrap();
        assert!(text.len() >= 30 << 20 && text.len() % (1 << 20) == 0, "{}", text.len());
    }
}
