//! Dispatches requests to resources: determines the verb, the resource, and the form of the response.

use admit_apimachinery::names::path_segment;
use std::future::Future;
use std::sync::Arc;

use axum::response::Response;
use http::{Method, StatusCode};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::accept::{Accepted, Form};
use super::audited::Annotations;
use super::measured::Reached;
use super::packed::packed;
use super::path::Place;
use super::presentation::{include, include_is_known, shown, shown_as};
use super::{Failure, Incoming, body, components, connect, deadline, respond, reviews, stream};
use crate::call::{Call, DeleteOptions, ListOptions, Query, WriteOptions, check_export};
use crate::codec;
use crate::conversion::Conversions;
use crate::emptied::Emptied;
use crate::flowcontrol::answers;
use crate::flowcontrol::budget::Reservation;
use crate::registry::{PatchFormat, Watching};
use crate::resources::{BINDING, ResourceInfo, SCALE, Scope, Subresource};
use crate::server::Server;
use crate::status::Refusal;
use crate::warning::Warnings;

/// A request to a resource that is served.
struct Asked<'a> {
    server: &'a Server,
    call: Call,
    name: Option<String>,
    query: Query,
    accepted: &'a Accepted,
    incoming: Incoming,
    legacy_watch: bool,
    /// The rest of the path after the subresource.
    rest: Option<String>,
}

pub(super) async fn answer(
    server: &Server,
    place: Place,
    incoming: Incoming,
    accepted: &Accepted,
) -> Result<Response, Failure> {
    if place.proxy {
        return Err(Refusal::unknown_path().into());
    }
    let served = server.registry().served();
    let Some(info) = served.table.find(&place.group, &place.version, &place.plural) else {
        let known = served.table.rows().iter().any(|row| row.builtin && row.group == place.group);
        return unserved(server, &place, known || place.group.is_empty());
    };
    let custom = served.custom_version(info);
    if custom.is_none() && !info.builtin {
        return Err(Failure::NoSuchPage);
    }
    let subresource = scope_and_subresource(info, &place)?;
    let reached = Reached::resource(server, info, &place, &incoming);
    let query = Query::parse(&incoming.query);
    let warnings = Warnings::default();
    let call = Call {
        info: Arc::clone(info),
        custom,
        namespace: place.namespace.unwrap_or_default(),
        subresource,
        identity: incoming.identity.clone(),
        warnings: warnings.clone(),
        emptied: Emptied::default(),
        conversions: Conversions::default(),
        clock: server.clock().clone(),
        admitted: false,
    };
    let served_as = match info.builtin {
        true => accepted.clone(),
        false => Accepted::parse(&incoming.headers, &incoming.query, false),
    };
    let asked = Asked {
        server,
        call,
        name: place.name,
        query,
        accepted: &served_as,
        incoming,
        legacy_watch: place.watch,
        rest: place.rest,
    };
    let told_in = Accepted::parse_whole(&asked.incoming.headers, &asked.incoming.query);
    let outcome = asked.answer().await;
    let response = match outcome {
        Ok(response) => response,
        Err(Failure::Refused(refusal)) => respond::refusal(&refusal, &told_in),
        Err(Failure::NoSuchPage) => respond::page_not_found(),
    };
    Ok(completed(server, info, response, (&warnings, reached)))
}

/// Adds what goes with a response: warnings, audit annotations, and what the request is counted as.
fn completed(
    server: &Server,
    info: &ResourceInfo,
    mut response: Response,
    (warnings, reached): (&Warnings, Reached),
) -> Response {
    // No deprecation warning for a built-in kind if no verb was reached.
    let unreached = [StatusCode::METHOD_NOT_ALLOWED, StatusCode::NOT_ACCEPTABLE].contains(&response.status());
    let deprecation = info.deprecation.clone().filter(|_| !(info.builtin && unreached));
    if let Some(why) = &deprecation {
        reached.deprecated(server, info, why);
    }
    let told: Vec<String> = deprecation.into_iter().chain(warnings.take()).collect();
    respond::warn(&mut response, &told);
    let annotations = warnings.take_annotations();
    if !annotations.is_empty() {
        response.extensions_mut().insert(Annotations(annotations));
    }
    // Upstream's router answers these before a request is counted.
    if !unreached || (!info.builtin && response.status() != StatusCode::METHOD_NOT_ALLOWED) {
        response.extensions_mut().insert(reached);
    }
    response
}

/// Answers a request for an unknown resource; `known` is whether the server has its group.
fn unserved(server: &Server, place: &Place, known: bool) -> Result<Response, Failure> {
    if server.registry().is_served_elsewhere(&place.group, &place.version) {
        return Ok(respond::service_unavailable());
    }
    Err(if known { Refusal::unknown_path().into() } else { Failure::NoSuchPage })
}

/// Checks that the path matches the scope of the resource, and returns the subresource.
fn scope_and_subresource(info: &ResourceInfo, place: &Place) -> Result<Option<Subresource>, Failure> {
    let missing = || if info.builtin { Refusal::unknown_path().into() } else { Failure::NoSuchPage };
    let across = place.namespace.is_none() && place.name.is_none();
    match info.scope {
        Scope::Cluster if place.namespace.is_some() => return Err(missing()),
        Scope::Namespaced if place.namespace.is_none() && !across => return Err(missing()),
        Scope::Cluster | Scope::Namespaced => {}
    }
    let Some(subresource) = &place.subresource else { return Ok(None) };
    if place.watch {
        return Err(missing());
    }
    match Subresource::named(subresource).filter(|subresource| info.serves(*subresource)) {
        Some(subresource) if place.rest.is_some() && info.builtin && subresource != Subresource::Proxy => {
            Err(Refusal::unknown_path().into())
        }
        Some(subresource) => Ok(Some(subresource)),
        None if info.builtin => Err(Refusal::unknown_path().into()),
        None => Err(Refusal::not_found(info, place.name.as_deref().unwrap_or_default()).into()),
    }
}

/// Opens a watch. Building its first state takes a turn in the lane of lists; waiting for a conversion webhook
/// does not.
async fn watching(server: &Server, call: &Call, options: &ListOptions) -> Result<Watching, Refusal> {
    let until = Instant::now() + deadline::LONGEST;
    if call.custom.is_none() || call.converter().is_some() {
        return by(until, server.registry().watch(call, options)).await;
    }
    let (shared, of, options) = (server.clone(), call.clone(), options.clone());
    let watch = move || async move { shared.registry().watch(&of, &options).await };
    server.turns().list(&call.identity, until, watch).await?
}

/// Returns the result of `work`, or 504 after the deadline.
async fn by<T>(until: Instant, work: impl Future<Output = Result<T, Refusal>>) -> Result<T, Refusal> {
    timeout_at(until, work).await.unwrap_or_else(|_| Err(Refusal::timed_out()))
}

impl Asked<'_> {
    async fn answer(self) -> Result<Response, Failure> {
        let info = &self.call.info;
        if info.storage_key.is_empty() {
            return self.answer_unstored().await;
        }
        if let Some(name) = &self.name
            && let [problem, ..] = path_segment(name, false).as_slice()
        {
            let why = format!("Name parameter invalid: \"{name}\": {problem}");
            return Err(Refusal::bad_request(why).into());
        }
        if let (Some(subresource), Some(name)) = (self.call.subresource, &self.name)
            && !subresource.is_stored()
            && subresource != Subresource::Finalize
        {
            let asked = connect::Asked {
                server: self.server,
                call: &self.call,
                name,
                query: &self.query,
                rest: self.rest.as_deref(),
            };
            return asked.answer(subresource, self.incoming, self.accepted).await;
        }
        let across = info.scope == Scope::Namespaced && self.call.namespace.is_empty();
        if self.legacy_watch && !matches!(self.incoming.method, Method::GET | Method::HEAD) {
            return Err(self.not_allowed(across));
        }
        // Changes are boxed: their futures are large, and those of reads should not be.
        match (self.incoming.method.clone(), self.name.is_some()) {
            (Method::GET, _) if self.call.subresource != Some(Subresource::Finalize) => self.read().await,
            (Method::HEAD, _) if !info.builtin => self.read().await,
            (Method::POST, false) if !across => Box::pin(self.create()).await,
            (Method::POST, true) if !info.builtin && self.call.subresource.is_none() => {
                Box::pin(self.create()).await
            }
            (Method::PUT, true) => Box::pin(self.update()).await,
            (Method::PATCH, true) if self.call.subresource != Some(Subresource::Finalize) => {
                Box::pin(self.patch()).await
            }
            (Method::DELETE, true) if self.call.subresource.is_none() => Box::pin(self.delete()).await,
            (Method::DELETE, false) if !across && self.collection_deletable() => {
                Box::pin(self.delete()).await
            }
            (Method::PUT | Method::PATCH, false) if !info.builtin && !across => {
                if self.incoming.method == Method::PATCH {
                    body::patch_format(info, &self.incoming.headers)?;
                }
                Err(Refusal::bad_request("name must be provided").into())
            }
            _ => Err(self.not_allowed(across)),
        }
    }

    /// Answers kinds that are not stored: reviews, component statuses and bindings.
    async fn answer_unstored(self) -> Result<Response, Failure> {
        let Self { server, call, name, query, accepted, incoming, .. } = self;
        match (call.info.kind.as_str(), &incoming.method) {
            ("ComponentStatus", &Method::GET) => {
                let headers = &incoming.headers;
                components::answer(&call, name.as_deref(), &query, (accepted, headers)).await
            }
            ("ComponentStatus", _) => Err(Refusal::method_not_allowed().into()),
            // These kinds have no names, and namespaced ones exist only within a namespace.
            _ if call.info.scope == Scope::Namespaced && call.namespace.is_empty() => {
                Err(Refusal::unknown_path().into())
            }
            _ if name.is_some() => Err(Refusal::unknown_path().into()),
            (kind, &Method::POST) if kind == BINDING.2 => {
                connect::bind(server, &call, incoming, accepted).await
            }
            (_, &Method::POST) => reviews::answer(server, &call, incoming, accepted).await,
            _ => Err(Refusal::method_not_allowed().into()),
        }
    }

    fn collection_deletable(&self) -> bool {
        self.call.info.verbs.iter().any(|verb| verb == "deletecollection")
    }

    fn not_allowed(&self, across: bool) -> Failure {
        let info = &self.call.info;
        if info.builtin {
            return Refusal::method_not_allowed().into();
        }
        if across
            && matches!(self.incoming.method, Method::POST | Method::DELETE | Method::PUT | Method::PATCH)
        {
            return Failure::NoSuchPage;
        }
        let verb = match self.incoming.method {
            Method::POST => "create",
            Method::DELETE => "delete",
            Method::PUT => "update",
            Method::PATCH => "patch",
            _ => "",
        };
        Refusal::verb_not_supported(info, verb).into()
    }

    async fn read(self) -> Result<Response, Failure> {
        let registry = self.server.registry();
        match &self.name {
            Some(name) if !self.legacy_watch => {
                self.accepted.check_for(&self.call.info, &self.incoming.headers, false)?;
                check_export(&self.query)?;
                registry.check_version(&self.query.text("resourceVersion"))?;
                // Converted before memory is reserved, which others need while a webhook is called.
                let converted = match self.call.converter() {
                    Some(_) => Some(by(self.incoming.until, registry.get(&self.call, name)).await?),
                    None => None,
                };
                let bytes = registry.weight_of(&self.call, name);
                let room = room(self.server, &self.call, bytes).await?;
                if *self.accepted == Accepted::Json(Form::Whole)
                    && let Some(kept) = registry.get_stored(&self.call, name)?
                {
                    let text = [kept.object.text(), b"\n"].concat();
                    let shown = packed(respond::json_text(200, text), &self.incoming.headers).await;
                    return Ok(answers::kept(shown, room, self.incoming.hangup.as_ref()).await);
                }
                let object = match converted {
                    Some(object) => object,
                    None => registry.get(&self.call, name).await?,
                };
                self.accepted.check_shape(&self.call.info, false)?;
                include_is_known(self.accepted, &self.query)?;
                let shown = packed(self.show(&object), &self.incoming.headers).await;
                Ok(answers::kept(shown, room, self.incoming.hangup.as_ref()).await)
            }
            _ if self.legacy_watch || ListOptions::wants_watch(&self.query) => self.watch().await,
            _ => {
                self.accepted.check_for(&self.call.info, &self.incoming.headers, true)?;
                let options = ListOptions::parse(&self.query, false)?;
                // Converted first, as for a single object.
                let converted = match self.call.converter() {
                    Some(_) => Some(by(self.incoming.until, registry.list(&self.call, &options)).await?),
                    None => None,
                };
                let room = room(self.server, &self.call, registry.weight(&self.call, &options)).await?;
                let (server, call) = (self.server.clone(), self.call.clone());
                let (query, accepted) = (self.query.clone(), self.accepted.clone());
                let headers = self.incoming.headers.clone();
                let make = move || async move {
                    if accepted == Accepted::Json(Form::Whole)
                        && let Some(text) = server.registry().list_text(&call, &options)?
                    {
                        return Ok(packed(respond::json_text(200, text), &headers).await);
                    }
                    let listing = match converted {
                        Some(listing) => listing,
                        None => server.registry().list(&call, &options).await?,
                    };
                    accepted.check_shape(&call.info, true)?;
                    include_is_known(&accepted, &query)?;
                    let list = listing.into_value(&call.info);
                    Ok(packed(shown_as(&call, &query, &accepted, &list), &headers).await)
                };
                let turns = self.server.turns();
                let shown = turns.list(&self.call.identity, self.incoming.until, make).await;
                let shown: Response = shown.map_err(Refusal::from)?.map_err(Failure::Refused)?;
                Ok(answers::kept(shown, room, self.incoming.hangup.as_ref()).await)
            }
        }
    }

    async fn watch(self) -> Result<Response, Failure> {
        self.accepted.check_for(&self.call.info, &self.incoming.headers, true)?;
        if let Accepted::Yaml(_) = self.accepted {
            let types = ["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];
            return Err(Refusal::not_acceptable(&types).into());
        }
        let mut options = ListOptions::parse(&self.query, true)?;
        if let Some(name) = &self.name {
            options.field_selector = format!("metadata.name={name}");
        }
        let watching = watching(self.server, &self.call, &options).await?;
        let presentation = stream::Presentation {
            info: Arc::clone(&self.call.info),
            clock: self.call.clock.clone(),
            form: self.accepted.form(),
            include: include(&self.query),
            protobuf: matches!(self.accepted, Accepted::Protobuf(_)),
        };
        let ticket = self.server.watchers().open(&self.call.identity, self.incoming.hangup.clone())?;
        Ok(stream::respond(self.server, watching, &options, presentation, ticket))
    }

    async fn create(self) -> Result<Response, Failure> {
        self.accepted.check()?;
        let options = self.write_options("CreateOptions");
        let Self { server, call, query, accepted, incoming, .. } = self;
        // Errors of the body come before those of the options.
        let sent = body::object(&call.info, &incoming.headers, incoming.body).await?;
        let options = options?;
        let object = received(&call, &options, &sent)?;
        let answer = server.registry().create(&call, object, &options).await?;
        Ok(shown(&call, &query, accepted, &answer))
    }

    async fn update(self) -> Result<Response, Failure> {
        self.accepted.check()?;
        let options = self.write_options("UpdateOptions");
        let Self { server, call, query, accepted, incoming, name, .. } = self;
        let name = name.unwrap_or_default();
        let bytes = body::read(incoming.body).await?;
        let options = options?;
        let sent = codec::Body { format: body::format(&call.info, &incoming.headers)?, bytes };
        let object = received(&call, &options, &sent)?;
        let answer = server.registry().update(&call, &name, object, &options).await?;
        Ok(shown(&call, &query, accepted, &answer))
    }

    async fn patch(self) -> Result<Response, Failure> {
        self.accepted.check()?;
        let format = body::patch_format(&self.call.info, &self.incoming.headers)?;
        let apply = format == PatchFormat::Apply;
        let options = WriteOptions::parse_patch(&self.query, self.incoming.user_agent(), apply);
        let Self { server, call, query, accepted, incoming, name, .. } = self;
        let bytes = body::read(incoming.body).await?;
        let options = options?;
        let name = name.unwrap_or_default();
        let answer = match format {
            PatchFormat::Apply => server.registry().apply(&call, &name, &bytes, &options).await?,
            _ => server.registry().patch(&call, &name, format, &bytes, &options).await?,
        };
        Ok(shown(&call, &query, accepted, &answer))
    }

    async fn delete(self) -> Result<Response, Failure> {
        self.accepted.check()?;
        let Self { server, call, query, accepted, incoming, name, .. } = self;
        let list = if name.is_none() { ListOptions::parse(&query, false)? } else { ListOptions::default() };
        let document = body::options(&incoming.headers, incoming.body).await?;
        let options = DeleteOptions::parse(&query, document)?;
        let registry = server.registry();
        let answer = match name {
            Some(name) => registry.delete(&call, &name, &options).await?,
            None => registry.delete_collection(&call, &list, &options).await?,
        };
        Ok(shown(&call, &query, accepted, &answer))
    }

    fn write_options(&self, kind: &'static str) -> Result<WriteOptions, Refusal> {
        self.incoming.write_options(kind)
    }

    fn show(&self, object: &Value) -> Response {
        shown_as(&self.call, &self.query, self.accepted, object)
    }
}

/// Reserves memory for a response with objects of so many bytes.
async fn room(server: &Server, call: &Call, bytes: usize) -> Result<Reservation, Refusal> {
    server.answers().room(&call.identity.username, bytes).await
}

/// Upstream's message for any invalid Scale of a custom resource: it fails to encode the actual error.
const UNREAD_SCALE: &str = "no kind is registered for the type v1.Scale in scheme \
                            \"k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go:781\"";

/// Decodes a body as an object, applying the client's field validation.
fn received(call: &Call, options: &WriteOptions, sent: &codec::Body) -> Result<Value, Refusal> {
    let info = &call.info;
    if call.subresource == Some(Subresource::Scale) {
        let read = codec::receive_kind(info, SCALE, sent);
        let read = read.and_then(|received| body::known(call, SCALE, options, sent, received));
        return read.map_err(|why| if info.builtin { why } else { Refusal::bad_request(UNREAD_SCALE) });
    }
    let mut received = codec::receive(info, call.custom.as_deref(), sent)?;
    call.emptied.set(std::mem::take(&mut received.emptied));
    body::known(call, (&info.group, &info.version, &info.kind), options, sent, received)
}
