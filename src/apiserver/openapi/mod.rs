//! Serves OpenAPI documents, which `kubectl apply`, `create` and `explain` read before they work with objects.
//!
//! `/openapi/v3` lists one document per group and version under a URL that contains a digest of the document, so
//! that clients may cache it for a long time. Documents are built from the resource rows on first use. `/openapi/v2` has
//! the same contents, with less of custom kinds, for clients that need a kind which no v3 document has.

mod custom;
mod discovery;
mod older_schemas;
mod operations;
mod parameters;
mod paths;
mod registered;
mod schemas;
mod v2;
mod v2_json;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use jiff::{Span, Timestamp, tz::TimeZone};
use serde_json::{Map, Value, json};

use crate::clock::Clock;
use crate::digest;
use crate::resources::ResourceInfo;

/// The documents built so far. One per server.
#[derive(Debug, Default)]
pub struct OpenApi {
    clock: Clock,
    documents: Mutex<HashMap<String, Document>>,
    /// The v2 document, and the hashes of the v3 documents that it was made from.
    second: Mutex<HashMap<Second, (Vec<String>, Bytes)>>,
}

/// The formats of the v2 document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Second {
    Json,
    Protobuf,
}

impl Second {
    /// Returns the format that the `Accept` header prefers; ranges of media types mean JSON. None if it lists neither.
    fn accepted(headers: &HeaderMap) -> Option<Self> {
        let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if accept.trim().is_empty() {
            return Some(Self::Json);
        }
        let quality = |clause: &&str| {
            let quality = clause.split(';').find_map(|part| part.trim().strip_prefix("q=")?.parse().ok());
            quality.unwrap_or(1.0_f32)
        };
        let mut clauses: Vec<&str> = accept.split(',').collect();
        clauses.sort_by(|one, other| quality(other).total_cmp(&quality(one)));
        clauses.into_iter().find_map(|clause| match clause.split(';').next().unwrap_or_default().trim() {
            "*/*" | "application/*" | "application/json" => Some(Self::Json),
            "application/com.github.proto-openapi.spec.v2@v1.0+protobuf" | v2::CONTENT_TYPE => {
                Some(Self::Protobuf)
            }
            _ => None,
        })
    }

    fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Protobuf => v2::CONTENT_TYPE,
        }
    }

    /// Renders documents one by one: all of them in memory take many times the size of their text.
    fn render(self, documents: impl Iterator<Item = Value>) -> Vec<u8> {
        match self {
            Self::Json => v2_json::render(documents),
            Self::Protobuf => v2::render(documents),
        }
    }
}

/// The document of one group and version, valid while the rows that it was built from are served.
#[derive(Clone, Debug)]
struct Document {
    rows: Vec<Arc<ResourceInfo>>,
    body: Bytes,
    hash: String,
}

impl OpenApi {
    /// Creates the documents; clients may cache them for a year from the time of `clock`.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self { clock, ..Self::default() }
    }

    /// Copies this for another server; the documents are shared.
    pub(crate) fn fork(&self) -> Self {
        let documents = self.documents.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let second = self.second.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Self { clock: self.clock.clone(), documents: Mutex::new(documents), second: Mutex::new(second) }
    }

    /// Answers `GET` of a path below `/openapi`; `None` means 404.
    #[must_use]
    pub fn handle(
        &self,
        rows: &[Arc<ResourceInfo>],
        path: &str,
        query: &str,
        headers: &HeaderMap,
    ) -> Option<Response<Bytes>> {
        if path == "/openapi/v2" {
            return Some(self.version_two(rows, headers));
        }
        let name = path.strip_prefix("/openapi/v3")?.trim_start_matches('/');
        if name.is_empty() {
            return Some(self.index(rows));
        }
        let document = self.document(rows, name)?;
        Some(respond(&document, (name, query), headers, self.clock.now()))
    }

    fn index(&self, rows: &[Arc<ResourceInfo>]) -> Response<Bytes> {
        let entry = |(name, document): (String, Document)| {
            let entry = json!({"serverRelativeURL": address(&name, &document.hash)});
            (name, entry)
        };
        let paths: Map<_, _> = self.all(rows).into_iter().map(entry).collect();
        let index = json!({"paths": paths});
        let mut response = Response::new(Bytes::from(index.to_string()));
        // The index has the recorded type of upstream, although clients parse it as JSON.
        set(&mut response, header::CONTENT_TYPE, "text/plain; charset=utf-8");
        set(&mut response, header::CACHE_CONTROL, "no-cache, private");
        response
    }

    fn version_two(&self, rows: &[Arc<ResourceInfo>], headers: &HeaderMap) -> Response<Bytes> {
        let Some(form) = Second::accepted(headers) else {
            let mut response = Response::new(Bytes::new());
            *response.status_mut() = StatusCode::NOT_ACCEPTABLE;
            set(&mut response, header::CACHE_CONTROL, "no-cache, private");
            set(&mut response, header::VARY, "Accept");
            return response;
        };
        let documents = self.all(rows);
        let hashes: Vec<String> = documents.iter().map(|(_, document)| document.hash.clone()).collect();
        let mut second = self.second.lock().unwrap_or_else(PoisonError::into_inner);
        let body = match second.get(&form).filter(|(made_from, _)| *made_from == hashes) {
            Some((_, body)) => body.clone(),
            None => {
                let parsed = documents.iter().filter_map(|(_, document)| {
                    let mut document: Value = serde_json::from_slice(&document.body).ok()?;
                    older_schemas::replace(&mut document, rows);
                    registered::tell_all(&mut document);
                    Some(document)
                });
                let body = Bytes::from(form.render(parsed));
                second.insert(form, (hashes, body.clone()));
                body
            }
        };
        let etag = format!("\"{}\"", digest::hex_upper(&body));
        let mut response = Response::new(body);
        set(&mut response, header::ETAG, &etag);
        set(&mut response, header::CACHE_CONTROL, "no-cache, private");
        set(&mut response, header::VARY, "Accept");
        unless_known(&mut response, &etag, form.content_type(), headers);
        response
    }

    /// Returns every v3 document with its name.
    fn all(&self, rows: &[Arc<ResourceInfo>]) -> Vec<(String, Document)> {
        self.forget_gone(rows);
        let mut served: BTreeMap<String, Vec<Arc<ResourceInfo>>> =
            discovery::names(rows).map(|name| (name, Vec::new())).collect();
        for row in rows {
            served.entry(document_name(&row.group, &row.version)).or_default().push(Arc::clone(row));
        }
        let made = |(name, rows): (String, _)| {
            let document = self.made_of(rows, &name);
            (name, document)
        };
        served.into_iter().map(made).collect()
    }

    fn document(&self, rows: &[Arc<ResourceInfo>], name: &str) -> Option<Document> {
        let is_of = |row: &&Arc<ResourceInfo>| {
            let root = if row.group.is_empty() {
                name.strip_prefix("api/")
            } else {
                name.strip_prefix("apis/").and_then(|name| name.strip_prefix(&*row.group)?.strip_prefix('/'))
            };
            root == Some(&*row.version)
        };
        let served: Vec<Arc<ResourceInfo>> = rows.iter().filter(is_of).cloned().collect();
        let is_there = !served.is_empty() || discovery::names(rows).any(|known| known == name);
        if is_there {
            self.forget_gone(rows);
        }
        is_there.then(|| self.made_of(served, name))
    }

    /// Drops the documents of versions that are no longer served, once there are more documents than resources and discovery
    /// documents, so that creating and deleting CRDs does not fill the memory.
    fn forget_gone(&self, rows: &[Arc<ResourceInfo>]) {
        let mut documents = self.documents.lock().unwrap_or_else(PoisonError::into_inner);
        if documents.len() <= rows.len() + discovery::names(rows).count() {
            return;
        }
        let served: HashSet<String> = rows
            .iter()
            .map(|row| document_name(&row.group, &row.version))
            .chain(discovery::names(rows))
            .collect();
        documents.retain(|name, _| served.contains(name));
    }

    /// Returns the document of a version with these resources, or without resources a document of discovery.
    fn made_of(&self, served: Vec<Arc<ResourceInfo>>, name: &str) -> Document {
        let mut documents = self.documents.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = documents.get(name) {
            let same = known.rows.len() == served.len()
                && known.rows.iter().zip(&served).all(|(left, right)| Arc::ptr_eq(left, right));
            if same {
                return known.clone();
            }
        }
        let rendered = if served.is_empty() { of_discovery(name) } else { of_version(&served) };
        let body = Bytes::from(rendered.to_string());
        let document = Document { rows: served, hash: digest::hex_upper(&body), body };
        documents.insert(name.to_owned(), document.clone());
        document
    }
}

fn of_discovery(name: &str) -> Value {
    let (paths, schemas) = discovery::document(name);
    let mut components = Map::new();
    if !schemas.is_empty() {
        components.insert("schemas".into(), sorted(schemas).into());
    }
    document(true, paths, components)
}

fn of_version(rows: &[Arc<ResourceInfo>]) -> Value {
    let built_in = rows.iter().find(|row| row.builtin);
    let mut schemas = schemas::Schemas::default();
    let mut paths = Map::new();
    if let Some(row) = built_in {
        paths.extend([discovery::resources(row, &mut schemas)]);
    }
    for row in rows {
        paths.append(&mut paths::of_resource(row, &mut schemas));
    }
    let schemas = sorted(schemas.finish()).into();
    document(built_in.is_some(), sorted(paths), Map::from_iter([("schemas".into(), schemas)]))
}

/// Assembles a document. Those of built-in kinds also describe how requests are authenticated.
fn document(built_in: bool, paths: Map<String, Value>, mut components: Map<String, Value>) -> Value {
    let info = if built_in {
        components.insert("securitySchemes".into(), json!({"BearerToken": bearer_token()}));
        json!({"title": "Kubernetes", "version": "1.36"})
    } else {
        json!({"title": "Kubernetes CRD Swagger", "version": "v0.1.0"})
    };
    let parts: [(&str, Value); 4] = [
        ("openapi", "3.0.0".into()),
        ("info", info),
        ("paths", paths.into()),
        ("components", components.into()),
    ];
    parts.into_iter().map(|(name, part)| (name.to_owned(), part)).collect::<Map<_, _>>().into()
}

fn bearer_token() -> Value {
    json!({"type": "apiKey", "description": "Bearer Token authentication", "name": "authorization", "in": "header"})
}

fn sorted(members: Map<String, Value>) -> Map<String, Value> {
    let mut members: Vec<_> = members.into_iter().collect();
    members.sort_by(|(left, _), (right, _)| left.cmp(right));
    members.into_iter().collect()
}

/// Names a document: `api/v1` or `apis/GROUP/VERSION`.
fn document_name(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

fn address(name: &str, hash: &str) -> String {
    format!("/openapi/v3/{name}?hash={hash}")
}

/// Responds to a request for a document. With the current hash it may be cached for a year; with an old hash it is redirected
/// to the new URL; without a hash it must be revalidated each time.
fn respond(
    document: &Document,
    (name, query): (&str, &str),
    headers: &HeaderMap,
    now: Timestamp,
) -> Response<Bytes> {
    let asked = query.split('&').find_map(|pair| pair.strip_prefix("hash="));
    let etag = format!("\"{}\"", document.hash);
    let mut response = Response::new(document.body.clone());
    if asked.is_some_and(|hash| hash != document.hash) {
        *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
        *response.body_mut() = Bytes::new();
        set(&mut response, header::LOCATION, &address(name, &document.hash));
        return response;
    }
    let expires = asked.and_then(|_| a_year_after(now));
    set(
        &mut response,
        header::CACHE_CONTROL,
        if expires.is_some() { "public, immutable" } else { "no-cache, private" },
    );
    if let Some(expires) = expires {
        set(&mut response, header::EXPIRES, &expires);
    }
    set(&mut response, header::ETAG, &etag);
    set(&mut response, header::VARY, "Accept");
    unless_known(&mut response, &etag, "application/json", headers);
    response
}

/// Sets the status 304 and an empty body if the client has the document already.
fn unless_known(response: &mut Response<Bytes>, etag: &str, content_type: &str, headers: &HeaderMap) {
    if headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == etag.as_bytes()) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        *response.body_mut() = Bytes::new();
    } else {
        set(response, header::CONTENT_TYPE, content_type);
    }
}

fn a_year_after(now: Timestamp) -> Option<String> {
    let then = now.to_zoned(TimeZone::UTC).checked_add(Span::new().years(1)).ok()?;
    Some(then.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string())
}

fn set(response: &mut Response<Bytes>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}
