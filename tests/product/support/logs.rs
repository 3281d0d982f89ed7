//! What the current thread logs, at every level, of what a process of admit ever writes. One subscriber serves the whole test program: subscribers that come
//! and go with tests would change under each other which events are on at all.

use std::cell::RefCell;
use std::io::{self, Write};
use std::sync::Once;

use admit::telemetry::may_be_told;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

thread_local! {
    static CAPTURED: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

static SUBSCRIBER: Once = Once::new();

/// Logs of this thread from [`capture`] on.
pub(crate) struct Logs(());

pub(crate) fn capture() -> Logs {
    SUBSCRIBER.call_once(|| {
        let lines = tracing_subscriber::fmt::layer().with_writer(|| Sink);
        let all = tracing_subscriber::registry().with(lines).with(filter_fn(may_be_told));
        all.init();
    });
    CAPTURED.set(Some(Vec::new()));
    Logs(())
}

impl Logs {
    /// What was logged; nothing more is kept.
    pub(crate) fn take(self) -> String {
        let Self(()) = self;
        String::from_utf8_lossy(&CAPTURED.take().unwrap_or_default()).into_owned()
    }
}

struct Sink;

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        CAPTURED.with_borrow_mut(|captured| captured.as_mut().map(|text| text.extend_from_slice(bytes)));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
