//! Streams a watch as a response: one event per line of JSON or per frame of protobuf, with bookmarks in between,
//! until the watch's timeout, or the server's end.

use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures::stream;
use http::{HeaderValue, header};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::accept::Form;
use crate::builtin::encode::watch_event;
use crate::builtin::tables;
use crate::call::ListOptions;
use crate::clock::Clock;
use crate::flowcontrol::watchers::{Ticket, TooSlow};
use crate::metrics::Counter;
use crate::registry::{Told, WatchEvent, Watching};
use crate::resources::ResourceInfo;
use crate::server::Server;
use crate::status::Refusal;
use crate::table;
use std::sync::Arc;

/// Without a timeout a watch lasts between one and two of these, at random, so that clients do not all reconnect at once.
const DEFAULT_LIFE: Duration = Duration::from_secs(30 * 60);
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// The estimated bytes of events that are rendered and sent together: the least that a client that does not read costs.
const CHUNK: usize = 64 << 10;
/// The bytes of events that are filtered in one go, in memory size: if nothing is selected, others run
/// in between.
const SIGHT: usize = 2 << 20;
/// The time between the last bookmark and the end.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);

/// The form in which events are shown.
pub(super) struct Presentation {
    pub(super) info: Arc<ResourceInfo>,
    pub(super) clock: Clock,
    pub(super) form: Form,
    pub(super) include: table::Include,
    pub(super) protobuf: bool,
}

impl Presentation {
    /// Returns whether objects are shown as their stored JSON.
    fn shows_texts(&self) -> bool {
        self.form == Form::Whole && !self.protobuf
    }
}

/// Adds an event whose object is JSON already; the result equals that of [`State::rendered`].
fn write_event(text: &mut Vec<u8>, kind: &str, object: &[u8]) {
    text.reserve(object.len() + 64);
    for part in [b"{\"type\":\"", kind.as_bytes(), b"\",\"object\":", object, b"}\n"] {
        text.extend_from_slice(part);
    }
}

struct State {
    server: Server,
    /// Counts the events that were sent.
    sent: Counter,
    watching: Watching,
    ticket: Ticket,
    presentation: Presentation,
    bookmarks: bool,
    headers_sent: bool,
    next_bookmark: Instant,
    /// The earliest time of the next chunk; events before are gathered.
    next_chunk: Instant,
    end: Instant,
    /// Signals the end of the server.
    ending: watch::Receiver<bool>,
    /// Whether the last event was sent.
    over: bool,
}

pub(super) fn respond(
    server: &Server,
    watching: Watching,
    options: &ListOptions,
    presentation: Presentation,
    ticket: Ticket,
) -> Response {
    let now = Instant::now();
    let life =
        options.timeout_seconds.filter(|seconds| *seconds > 0).map_or_else(default_life, Duration::from_secs);
    let state = State {
        server: server.clone(),
        sent: server.measures().events(&presentation.info),
        watching,
        ticket,
        presentation,
        bookmarks: options.allow_bookmarks,
        headers_sent: false,
        next_bookmark: now + life.saturating_sub(BOOKMARK_BEFORE_END).min(BOOKMARK_EVERY),
        next_chunk: now,
        end: now + life,
        ending: server.ending(),
        over: false,
    };
    // A life shorter than the lead of the last bookmark has none; one as long has only the bookmark that ends the initial state.
    let long = life > BOOKMARK_BEFORE_END || (life == BOOKMARK_BEFORE_END && !state.watching.tells_end());
    let state = State { bookmarks: state.bookmarks && long, ..state };
    let content_type = match state.presentation.protobuf {
        true => "application/vnd.kubernetes.protobuf;stream=watch",
        false => "application/json",
    };
    let chunks = stream::unfold(state, |mut state| async move {
        let chunk = state.next().await?;
        Some((Ok::<Bytes, std::convert::Infallible>(chunk), state))
    });
    let mut response = Response::new(Body::from_stream(chunks));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// Completes when the server ends, or drains the port of the watch's connection.
async fn ended(ending: &mut watch::Receiver<bool>, ticket: &Ticket) {
    let server = async {
        if ending.wait_for(|ends| *ends).await.is_err() {
            // The sender is gone: the watch ends by its timeout.
            std::future::pending().await
        }
    };
    tokio::select! {
        () = server => {}
        () = ticket.leaves() => {}
    }
}

/// Completes when something has changed and the time of the next chunk has come.
async fn gathered(watching: &mut Watching, next_chunk: Instant) {
    watching.changed().await;
    if next_chunk > Instant::now() {
        sleep_until(next_chunk).await;
    }
}

fn default_life() -> Duration {
    let byte = uuid::Uuid::new_v4().as_bytes().first().copied().unwrap_or(0);
    DEFAULT_LIFE + DEFAULT_LIFE.mul_f32(f32::from(byte) / 256.0)
}

impl State {
    async fn next(&mut self) -> Option<Bytes> {
        while !self.over {
            if let Some(bytes) = self.watching.due() {
                if self.watching.needs_conversion() {
                    tokio::select! {
                        biased;
                        () = sleep_until(self.end) => return None,
                        () = ended(&mut self.ending, &self.ticket) => return None,
                        TooSlow = self.ticket.too_slow() => return Some(self.last_words()),
                        () = self.watching.convert(self.server.registry()) => {}
                    }
                    continue;
                }
                let room = tokio::select! {
                    room = self.ticket.room(bytes.max(CHUNK)) => room,
                    () = sleep_until(self.end) => return None,
                    () = ended(&mut self.ending, &self.ticket) => return None,
                };
                let Ok(room) = room else { return Some(self.last_words()) };
                let text = self.chunk();
                if !text.is_empty() {
                    self.next_chunk = self.ticket.next_chunk();
                    return Some(self.ticket.chunk(text, room));
                }
                drop(room);
                tokio::task::yield_now().await;
                continue;
            }
            if self.watching.is_over() {
                return None;
            }
            tokio::select! {
                biased;
                () = sleep_until(self.end) => return None,
                () = ended(&mut self.ending, &self.ticket) => return None,
                TooSlow = self.ticket.too_slow() => return Some(self.last_words()),
                () = sleep_until(self.next_bookmark), if self.bookmarks => return Some(self.bookmark()),
                () = gathered(&mut self.watching, self.next_chunk) => {}
            }
        }
        None
    }

    /// Returns a bookmark. INVARIANT: nothing is due, so that everything up to the bookmark was sent.
    fn bookmark(&mut self) -> Bytes {
        self.next_bookmark = (self.next_bookmark + BOOKMARK_EVERY).min(self.end - BOOKMARK_BEFORE_END);
        if self.next_bookmark <= Instant::now() {
            self.bookmarks = false;
        }
        let bookmark = self.watching.bookmark();
        self.rendered(bookmark).into()
    }

    /// Renders due events up to the size of a chunk, or one larger event; empty if nothing was selected so far.
    fn chunk(&mut self) -> Vec<u8> {
        let (mut text, mut seen) = (Vec::new(), 0);
        while let Some(bytes) = self.watching.due() {
            if seen > SIGHT
                || !text.is_empty() && text.len() + bytes > CHUNK
                || self.watching.needs_conversion()
            {
                break;
            }
            seen += bytes;
            match self.presentation.shows_texts() {
                true => match self.watching.take_text() {
                    Some(Told::Stored(kind, object)) => {
                        self.sent.inc();
                        write_event(&mut text, kind, object.text());
                    }
                    Some(Told::Made(event)) => text.extend(self.rendered(event)),
                    None => {}
                },
                false => text
                    .extend(self.watching.take_next().map(|event| self.rendered(event)).unwrap_or_default()),
            }
        }
        text
    }

    /// Returns the error event (410) with which kube-apiserver makes a client start again with a list.
    fn last_words(&mut self) -> Bytes {
        self.over = true;
        let refusal =
            Refusal::expired("the client does not read what it watches, and others wait: start a new watch");
        self.rendered(WatchEvent { kind: "ERROR", object: refusal.to_value() }).into()
    }

    fn rendered(&mut self, event: WatchEvent) -> Vec<u8> {
        self.sent.inc();
        let WatchEvent { kind, object } = event;
        let object = if kind == "ERROR" { object } else { self.shown(&object) };
        if self.presentation.protobuf {
            return watch_event(tables(), kind, &object).unwrap_or_default();
        }
        format!("{}\n", json!({"type": kind, "object": object})).into_bytes()
    }

    fn shown(&mut self, object: &Value) -> Value {
        let Presentation { info, clock, form, include, protobuf: _ } = &self.presentation;
        match form {
            Form::Whole => object.clone(),
            Form::Metadata(version, _) => table::partial_metadata(info, object, version),
            Form::Table(version) => {
                let headers = !std::mem::replace(&mut self.headers_sent, true);
                let options = table::Options { include: *include, version, headers, now: clock.now() };
                table::render(info, object, &options)
            }
        }
    }
}
