//! Dispatches requests to resources: determines the verb, the resource, and the form of the response.

use std::future::Future;
use std::sync::Arc;

use axum::response::Response;
use http::{Method, StatusCode};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::accept::{Accepted, Form, Offered};
use super::audited::Annotations;
use super::measured::Reached;
use super::packed::packed;
use super::path::Place;
use super::presentation::{include, shown, shown_as};
use super::{
    Failure, Incoming, access, body, components, connect, deadline, respond, reviews, route, stream,
};
use crate::call::{Call, DeleteOptions, ListOptions, Query, WriteOptions, check_export};
use crate::codec;
use crate::conversion::Conversions;
use crate::emptied::Emptied;
use crate::flowcontrol::answers;
use crate::flowcontrol::budget::Reservation;
use crate::registry::selector::{self, Selector};
use crate::registry::{PatchFormat, Watching};
use crate::resources::{BINDING, ResourceInfo, SCALE, Subresource};
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
    /// The verb as authorization sees it.
    verb: &'static str,
    legacy_watch: bool,
    /// The rest of the path after the subresource.
    rest: Option<String>,
}

pub(super) async fn answer(server: &Server, place: Place, incoming: Incoming) -> Result<Response, Failure> {
    let served = server.registry().served();
    let Some(info) = served.table.find(&place.group, &place.version, &place.plural) else {
        let known = served.table.rows().iter().any(|row| row.builtin && row.group == place.group);
        return unserved(server, &place, known || place.group.is_empty());
    };
    let custom = served.custom_version(info);
    if custom.is_none() && !info.builtin {
        return Err(Failure::NoSuchPage);
    }
    let query = Query::parse(&incoming.query);
    let place = if info.builtin { place } else { place.filled() };
    let verb = access::verb(&incoming.method, &place, &query);
    let found = match info.builtin {
        true => route::builtin(info, &place, (&incoming.method, &incoming.headers))?.map(Some),
        false => route::custom(info, &place, verb)?,
    };
    let reached = Reached::resource(server, info, &place, &incoming);
    let warnings = Warnings::default();
    let call = Call {
        info: Arc::clone(info),
        custom,
        namespace: place.namespace.unwrap_or_default(),
        subresource: found.flatten(),
        identity: incoming.identity.clone(),
        warnings: warnings.clone(),
        emptied: Emptied::default(),
        conversions: Conversions::default(),
        clock: server.clock().clone(),
        admitted: false,
    };
    let offered = Offered { protobuf: info.builtin, tables: route::has_tables(info, call.subresource) };
    let accepted = Accepted::parse(&incoming.headers, &incoming.query, offered);
    let asked = Asked {
        server,
        call,
        name: place.name,
        query,
        accepted: &accepted,
        incoming,
        verb,
        legacy_watch: place.watch,
        rest: place.rest,
    };
    let told_in = Accepted::parse_whole(&asked.incoming.headers, &asked.incoming.query);
    let is_unknown = found == Some(None);
    let outcome = match is_unknown {
        true => Err(Refusal::not_found(info, asked.name.as_deref().unwrap_or_default()).into()),
        false => asked.answer().await,
    };
    let response = match outcome {
        Ok(response) => response,
        Err(Failure::Refused(refusal)) => respond::refusal(&refusal, &told_in),
        Err(Failure::NoSuchPage) => respond::page_not_found(),
    };
    Ok(completed(server, info, response, (&warnings, reached, is_unknown)))
}

/// Adds what goes with a response: warnings, audit annotations, and what the request is counted as, unless its subresource is
/// unknown.
fn completed(
    server: &Server,
    info: &ResourceInfo,
    mut response: Response,
    (warnings, reached, is_unknown): (&Warnings, Reached, bool),
) -> Response {
    if let Some(why) = &info.deprecation {
        reached.deprecated(server, info, why);
    }
    let told: Vec<String> = info.deprecation.clone().into_iter().chain(warnings.take()).collect();
    respond::warn(&mut response, &told);
    let annotations = warnings.take_annotations();
    if !annotations.is_empty() {
        response.extensions_mut().insert(Annotations(annotations));
    }
    // Upstream refuses methods of custom resources before they are counted.
    let is_counted = info.builtin || response.status() != StatusCode::METHOD_NOT_ALLOWED;
    if is_counted && !is_unknown {
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
        if !self.call.info.builtin {
            return self.answer_custom().await;
        }
        let connects = self.call.subresource.is_some_and(Subresource::is_connected);
        if connects && self.query.get("dryRun").is_some() {
            return Err(Refusal::bad_request("dryRun is not supported").into());
        }
        if self.name.as_deref() == Some("") {
            return Err(unnamed().into());
        }
        if self.call.info.storage_key.is_empty() {
            return self.answer_unstored().await;
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
        // Whether the resource has the verb is known by its route. Changes are boxed: their futures are large, and those of reads
        // should not be.
        match self.incoming.method {
            Method::GET => self.read().await,
            Method::POST => Box::pin(self.create()).await,
            Method::PUT => Box::pin(self.update()).await,
            Method::PATCH => Box::pin(self.patch()).await,
            Method::DELETE => Box::pin(self.delete()).await,
            _ => Err(Refusal::method_not_allowed().into()),
        }
    }

    async fn answer_custom(self) -> Result<Response, Failure> {
        let info = &self.call.info;
        let is_whole = self.call.subresource.is_none();
        match self.verb {
            "get" => self.read().await,
            "list" | "watch" if is_whole => self.read().await,
            "create" if is_whole => Box::pin(self.create()).await,
            "update" | "patch" if self.name.is_none() => {
                if self.verb == "patch" {
                    body::patch_format(info, &self.incoming.headers)?;
                }
                Err(unnamed().into())
            }
            "update" => Box::pin(self.update()).await,
            "patch" => Box::pin(self.patch()).await,
            "delete" | "deletecollection" if is_whole => Box::pin(self.delete()).await,
            verb => Err(Refusal::verb_not_supported(info, verb).into()),
        }
    }

    /// Answers kinds that are not stored: reviews, component statuses and bindings.
    async fn answer_unstored(self) -> Result<Response, Failure> {
        let Self { server, call, name, query, accepted, incoming, .. } = self;
        match (call.info.kind.as_str(), &incoming.method) {
            (_, &Method::GET) => components::answer(&call, name.as_deref(), &query, accepted).await,
            (kind, _) if kind == BINDING.2 => connect::bind(server, &call, incoming, accepted).await,
            _ => reviews::answer(server, &call, incoming, accepted).await,
        }
    }

    async fn read(self) -> Result<Response, Failure> {
        let registry = self.server.registry();
        match &self.name {
            Some(name) if !self.legacy_watch => {
                self.accepted.check()?;
                check_export(&self.query)?;
                self.call.check_name(name)?;
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
                let shown = packed(self.show(&object)?, &self.incoming.headers).await;
                Ok(answers::kept(shown, room, self.incoming.hangup.as_ref()).await)
            }
            _ if self.legacy_watch || ListOptions::wants_watch(&self.query) => self.watch().await,
            _ => {
                self.accepted.check()?;
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
                    let list = listing.into_value(&call.info);
                    Ok(packed(shown_as(&call, &query, &accepted, (200, &list))?, &headers).await)
                };
                let turns = self.server.turns();
                let shown = turns.list(&self.call.identity, self.incoming.until, make).await;
                let shown: Response = shown.map_err(Refusal::from)?.map_err(Failure::Refused)?;
                Ok(answers::kept(shown, room, self.incoming.hangup.as_ref()).await)
            }
        }
    }

    async fn watch(self) -> Result<Response, Failure> {
        self.accepted.check()?;
        // A path that watches does not make the options those of a watch.
        let mut options = ListOptions::parse(&self.query, ListOptions::wants_watch(&self.query))?;
        if let Some(name) = &self.name {
            Selector::parse(&self.call.info, &options.label_selector, &options.field_selector)?;
            if options.field_selector.is_empty() {
                options.field_selector = format!("metadata.name={name}");
            } else if selector::exact_name(&options.field_selector).as_ref() != Some(name) {
                let why = "fieldSelector metadata.name doesn't match requested name";
                return Err(Refusal::bad_request(why).into());
            }
        }
        let watching = watching(self.server, &self.call, &options).await?;
        if let Accepted::Yaml(_) = self.accepted {
            let types = ["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];
            return Err(Refusal::not_acceptable(&types).into());
        }
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
        Ok(shown(&call, &query, accepted, &answer)?)
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
        Ok(shown(&call, &query, accepted, &answer)?)
    }

    async fn patch(self) -> Result<Response, Failure> {
        let format = body::patch_format(&self.call.info, &self.incoming.headers)?;
        self.accepted.check()?;
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
        Ok(shown(&call, &query, accepted, &answer)?)
    }

    async fn delete(self) -> Result<Response, Failure> {
        self.accepted.check()?;
        let Self { server, call, query, accepted, incoming, name, .. } = self;
        let list = match name {
            None => ListOptions::parse(&query, ListOptions::wants_watch(&query))?,
            Some(_) => ListOptions::default(),
        };
        let document = body::options(&incoming.headers, incoming.body).await?;
        let options = DeleteOptions::parse(&query, document)?;
        let registry = server.registry();
        let answer = match name {
            Some(name) => registry.delete(&call, &name, &options).await?,
            None => registry.delete_collection(&call, &list, &options).await?,
        };
        Ok(shown(&call, &query, accepted, &answer)?)
    }

    fn write_options(&self, kind: &'static str) -> Result<WriteOptions, Refusal> {
        self.incoming.write_options(kind)
    }

    fn show(&self, object: &Value) -> Result<Response, Refusal> {
        shown_as(&self.call, &self.query, self.accepted, (200, object))
    }
}

fn unnamed() -> Refusal {
    Refusal::bad_request("name must be provided")
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
