//! A watch as a response: one event per line of JSON, or per frame of protobuf, until the time is over, with bookmarks in
//! between.

use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures::stream;
use http::{HeaderValue, header};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::accept::Form;
use crate::builtin::encode::watch_event;
use crate::builtin::tables;
use crate::clock::Clock;
use crate::registry::{ListOptions, WatchEvent, Watching};
use crate::resources::ResourceInfo;
use crate::table;
use std::sync::Arc;

/// Without a timeout a watch lives between one and two of these, so that clients do not all come back at once.
const DEFAULT_LIFE: Duration = Duration::from_secs(30 * 60);
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// A last bookmark comes this long before the end.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);

/// How events are shown.
pub(super) struct Presentation {
    pub(super) info: Arc<ResourceInfo>,
    pub(super) clock: Clock,
    pub(super) form: Form,
    pub(super) include: table::Include,
    pub(super) protobuf: bool,
}

struct State {
    watching: Watching,
    presentation: Presentation,
    bookmarks: bool,
    started: bool,
    headers_sent: bool,
    next_bookmark: Instant,
    end: Instant,
}

pub(super) fn respond(watching: Watching, options: &ListOptions, presentation: Presentation) -> Response {
    let now = Instant::now();
    let life =
        options.timeout_seconds.filter(|seconds| *seconds > 0).map_or_else(default_life, Duration::from_secs);
    let state = State {
        watching,
        presentation,
        bookmarks: options.allow_bookmarks,
        started: false,
        headers_sent: false,
        next_bookmark: now + life.saturating_sub(BOOKMARK_BEFORE_END).min(BOOKMARK_EVERY),
        end: now + life,
    };
    // A life shorter than the last bookmark's lead has none.
    let state = State { bookmarks: state.bookmarks && life >= BOOKMARK_BEFORE_END, ..state };
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

fn default_life() -> Duration {
    let byte = uuid::Uuid::new_v4().as_bytes().first().copied().unwrap_or(0);
    DEFAULT_LIFE + DEFAULT_LIFE.mul_f32(f32::from(byte) / 256.0)
}

impl State {
    async fn next(&mut self) -> Option<Bytes> {
        if !self.started {
            self.started = true;
            let initial = self.watching.initial();
            if !initial.is_empty() {
                return Some(self.lines(initial));
            }
        }
        tokio::select! {
            biased;
            () = sleep_until(self.end) => None,
            () = sleep_until(self.next_bookmark), if self.bookmarks => {
                self.next_bookmark = (self.next_bookmark + BOOKMARK_EVERY).min(self.end - BOOKMARK_BEFORE_END);
                if self.next_bookmark <= Instant::now() {
                    self.bookmarks = false;
                }
                let bookmark = self.watching.bookmark();
                Some(self.lines(vec![bookmark]))
            }
            events = self.watching.next() => {
                let events = events?;
                Some(self.lines(events))
            }
        }
    }

    fn lines(&mut self, events: Vec<WatchEvent>) -> Bytes {
        if self.presentation.protobuf {
            let frames = events.iter().filter_map(|event| watch_event(tables(), event.kind, &event.object));
            return frames.collect::<Vec<_>>().concat().into();
        }
        let mut out = String::new();
        for WatchEvent { kind, object } in events {
            let object = if kind == "ERROR" { object } else { self.shown(&object) };
            out.push_str(&json!({"type": kind, "object": object}).to_string());
            out.push('\n');
        }
        out.into()
    }

    fn shown(&mut self, object: &Value) -> Value {
        let Presentation { info, clock, form, include, protobuf: _ } = &self.presentation;
        match form {
            Form::Whole => object.clone(),
            Form::Metadata(version, _) => table::partial_metadata(object, version),
            Form::Table(version) => {
                let headers = !std::mem::replace(&mut self.headers_sent, true);
                let options = table::Options { include: *include, version, headers, now: clock.now() };
                table::render(info, object, &options)
            }
        }
    }
}
