//! Routes the requests of the page: its three files, the modes with their examples, and evaluations while somebody types.

use std::sync::Arc;

use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, State};
use axum::response::{IntoResponse, Response, Sse};
use axum::routing::{get, post};
use axum::{Json, Router, middleware};
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, StatusCode};
use serde::Serialize;
use serde_json::json;

use super::guard;
use super::listening::Listening;
use super::live::{LISTENERS, Live};
use super::modes::{self, Mode};
use super::request::{Question, Texts};
use super::work::{Bounds, Undone};

/// The longest question in bytes: enough for a few definitions, policies and objects.
const MAX_BODY: usize = 1 << 20;

const INDEX: (&str, &str) = ("text/html; charset=utf-8", include_str!("page/index.html"));
const STYLE: (&str, &str) = ("text/css; charset=utf-8", include_str!("page/play.css"));
const SCRIPT: (&str, &str) = ("text/javascript; charset=utf-8", include_str!("page/play.js"));

/// Creates the router for the page; with `live` also for the state of a server.
pub(super) fn router(bounds: Bounds, live: Option<Live>) -> Router {
    let is_live = live.is_some();
    let router = match live {
        Some(live) => {
            let listened = live.clone();
            Router::new()
                .route("/live", get(move || seen(live.clone())))
                .route("/live/events", get(move || events(listened.clone())))
        }
        None => Router::new(),
    };
    router
        .route("/", get(|| async { file(INDEX) }))
        .route("/play.css", get(|| async { file(STYLE) }))
        .route("/play.js", get(|| async { file(SCRIPT) }))
        .route("/modes", get(move || async move { Json(json!({"modes": modes::ALL, "live": is_live})) }))
        .route("/evaluate", post(evaluate))
        .route("/pictures", post(pictures))
        .with_state(Arc::new(bounds))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(middleware::from_fn(guard::guarded))
}

fn file((kind, text): (&'static str, &'static str)) -> Response {
    ([(CONTENT_TYPE, kind)], text).into_response()
}

async fn seen(live: Live) -> Response {
    match live.seen().await {
        Ok(seen) => Json(seen).into_response(),
        Err(error) => refused(StatusCode::BAD_GATEWAY, &error.to_string()),
    }
}

/// Streams the state of the server as events, unless too many streams are open.
async fn events(live: Live) -> Response {
    match Listening::begin(live) {
        Some(listening) => Sse::new(listening.events()).into_response(),
        None => {
            let why = format!("{LISTENERS} pages listen already: this one can look at /live");
            refused(StatusCode::SERVICE_UNAVAILABLE, &why)
        }
    }
}

type Asked = Result<Json<Question>, JsonRejection>;

async fn evaluate(State(bounds): State<Arc<Bounds>>, asked: Asked) -> Response {
    answer(&bounds, asked, |mode, texts| (mode.evaluate)(texts)).await
}

async fn pictures(State(bounds): State<Arc<Bounds>>, asked: Asked) -> Response {
    answer(&bounds, asked, |mode, texts| mode.pictures.map(|pictures| pictures(texts)).unwrap_or_default())
        .await
}

/// Answers a question with the result of `work`, or with an HTTP error.
async fn answer<T: Serialize + Send + 'static>(
    bounds: &Bounds,
    asked: Asked,
    work: fn(&Mode, &Texts) -> T,
) -> Response {
    let Question { mode, fields } = match asked {
        Ok(Json(question)) => question,
        Err(rejection) => return refused(rejection.status(), &rejection.body_text()),
    };
    let Some(mode) = modes::named(&mode) else {
        return refused(StatusCode::NOT_FOUND, &format!("there is no mode `{mode}`; GET /modes lists them"));
    };
    if let [unknown, ..] = fields.beside(&mode.panes()).as_slice() {
        let why = format!("mode `{}` has no field `{unknown}`; GET /modes lists them", mode.name);
        return refused(StatusCode::UNPROCESSABLE_ENTITY, &why);
    }
    match bounds.run(move || work(mode, &fields)).await {
        Ok(answer) => Json(answer).into_response(),
        Err(Undone::Busy) => {
            let why = "other evaluations are under way; try again";
            let mut response = refused(StatusCode::TOO_MANY_REQUESTS, why);
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
            response
        }
        Err(Undone::TimedOut) => {
            let seconds = bounds.time().as_secs_f64();
            let why = format!("not decided within {seconds} s; start `admit play` with a longer --timeout");
            refused(StatusCode::GATEWAY_TIMEOUT, &why)
        }
        Err(Undone::Internal) => {
            refused(StatusCode::INTERNAL_SERVER_ERROR, "the evaluation failed: this is a mistake of admit")
        }
    }
}

fn refused(code: StatusCode, why: &str) -> Response {
    (code, Json(json!({"error": why}))).into_response()
}
