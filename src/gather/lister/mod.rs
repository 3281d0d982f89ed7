//! Reads lists of Kubernetes resources page by page for gatherers, and returns one plain JSON object after the other. Only the
//! current object is in memory: responses are split while they arrive.
//!
//! A resource that the server does not serve (404 on the collection) has an error of its own, because it says something
//! about the cluster and is no failure of the gathering.

mod items;
mod reference;

use std::collections::BTreeMap;
use std::pin::Pin;

use futures::{AsyncBufRead, AsyncBufReadExt};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Request};
use kube::core::GroupVersionKind;
use serde_json::{Map, Value};

use self::items::{Items, ListError};
pub(super) use self::reference::{Reference, get_reference};
use super::failure::Failure;
use super::gatherer::Context;

/// The page size, that of kubectl: the server holds a page in memory, and this process one object.
const PAGE: usize = 500;

/// A resource as the API names it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resource {
    pub(super) group: &'static str,
    pub(super) version: &'static str,
    pub(super) kind: &'static str,
    pub(super) plural: &'static str,
}

impl Resource {
    fn api_resource(&self) -> ApiResource {
        ApiResource::from_gvk_with_plural(
            &GroupVersionKind::gvk(self.group, self.version, self.kind),
            self.plural,
        )
    }

    fn describe(&self) -> String {
        match self.group {
            "" => format!("{} {}", self.version, self.plural),
            group => format!("{group}/{} {}", self.version, self.plural),
        }
    }

    fn failure(&self, source: kube::Error) -> Failure {
        match &source {
            kube::Error::Api(status) if status.code == 404 => Failure::MissingApi(self.describe()),
            _ => Failure::Api { what: self.describe(), source: Box::new(source) },
        }
    }

    fn unreadable(&self, error: &dyn std::error::Error) -> Failure {
        Failure::Unreadable { what: self.describe(), why: error.to_string() }
    }

    fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }
}

/// Reads one cluster-scoped object; `None` if there is none of that name.
///
/// # Errors
/// [`Failure::MissingApi`] when the server does not serve the resource, [`Failure::Api`] otherwise.
pub(super) async fn get(context: &Context, resource: Resource, name: &str) -> Result<Option<Value>, Failure> {
    let api: Api<DynamicObject> = Api::all_with(context.client.clone(), &resource.api_resource());
    let found = api.get_opt(name).await.map_err(|error| resource.failure(error))?;
    Ok(found.map(|object| {
        let mut fields = Map::new();
        fields.insert("metadata".to_owned(), serde_json::to_value(&object.metadata).unwrap_or_default());
        if let Value::Object(data) = object.data {
            fields.extend(data);
        }
        document(fields, resource)
    }))
}

/// Whether the server serves `resource`.
pub(super) async fn serves(context: &Context, resource: Resource) -> bool {
    let served = context.client.list_api_group_resources(&resource.api_version()).await;
    served.is_ok_and(|served| served.resources.iter().any(|served| served.name == resource.plural))
}

/// Returns the preferred version of each API group.
///
/// # Errors
/// [`Failure::Api`].
pub(super) async fn versions(context: &Context) -> Result<BTreeMap<String, String>, Failure> {
    let groups = context.client.list_api_groups().await;
    let groups =
        groups.map_err(|source| Failure::Api { what: "/apis".to_owned(), source: Box::new(source) })?;
    let preferred = groups.groups.into_iter().filter_map(|group| {
        let version = group.preferred_version.or_else(|| group.versions.into_iter().next())?;
        Some((group.name, version.version))
    });
    Ok(preferred.collect())
}

/// Lists all objects of `resource` in all namespaces.
pub(super) fn list(context: &Context, resource: Resource) -> Listing {
    Listing::new(context, resource, &Api::all_with(context.client.clone(), &resource.api_resource()))
}

/// Lists all objects of `resource` in one namespace.
pub(super) fn list_in(context: &Context, namespace: &str, resource: Resource) -> Listing {
    let api = Api::namespaced_with(context.client.clone(), namespace, &resource.api_resource());
    Listing::new(context, resource, &api)
}

/// A list that is being read.
pub(super) struct Listing {
    client: Client,
    resource: Resource,
    url: String,
    labels: Option<&'static str>,
    cap: usize,
    page: Page,
    /// The number of objects returned so far.
    count: usize,
    more: bool,
    moved: bool,
}

/// The source of the next object.
enum Page {
    /// A request for the first page, or for the page of a token.
    Ask(Option<String>),
    Read(Answer),
    Done,
}

struct Answer {
    text: Pin<Box<dyn AsyncBufRead + Send>>,
    items: Items,
}

impl Listing {
    fn new(context: &Context, resource: Resource, api: &Api<DynamicObject>) -> Self {
        Self {
            client: context.client.clone(),
            resource,
            url: api.resource_url().to_owned(),
            labels: None,
            cap: usize::MAX,
            page: Page::Ask(None),
            count: 0,
            more: false,
            moved: false,
        }
    }

    /// Limits the list to the first `cap` objects.
    pub(super) fn capped(self, cap: usize) -> Self {
        Self { cap, ..self }
    }

    /// Limits the list to objects whose labels match `selector`.
    pub(super) fn labelled(self, selector: &'static str) -> Self {
        Self { labels: Some(selector), ..self }
    }

    /// Returns the next object, with `apiVersion` and `kind` set: items of a list have none, and an archived object
    /// without them could not be read back.
    ///
    /// # Errors
    /// [`Failure::MissingApi`] when the server does not serve the resource, [`Failure::Api`] or [`Failure::Unreadable`]
    /// otherwise.
    pub(super) async fn next(&mut self) -> Result<Option<Value>, Failure> {
        loop {
            let resource = self.resource;
            let answer = match &mut self.page {
                Page::Done => return Ok(None),
                Page::Read(answer) => answer,
                Page::Ask(token) => {
                    let token = token.take();
                    self.page = self.ask(token).await?;
                    continue;
                }
            };
            let item = answer.next().await.map_err(|error| resource.unreadable(&error))?;
            match item {
                Some(_) if self.count == self.cap => {
                    (self.more, self.page) = (true, Page::Done);
                }
                Some(text) => {
                    self.count += 1;
                    let fields = serde_json::from_slice(&text);
                    let fields: Map<_, _> = fields.map_err(|error| resource.unreadable(&error))?;
                    return Ok(Some(document(fields, resource)));
                }
                None => {
                    let next = answer.items.next_page().map_err(|error| resource.unreadable(&error))?;
                    self.page = next.map_or(Page::Done, |token| Page::Ask(Some(token)));
                }
            }
        }
    }

    async fn ask(&mut self, token: Option<String>) -> Result<Page, Failure> {
        let left = self.cap.saturating_sub(self.count).saturating_add(1).min(PAGE);
        let mut params = ListParams::default().limit(u32::try_from(left).unwrap_or(u32::MAX));
        params.label_selector = self.labels.map(str::to_owned);
        params.continue_token.clone_from(&token);
        let request = Request::new(&self.url).list(&params);
        let request = request.map_err(|error| self.resource.failure(kube::Error::BuildRequest(error)))?;
        match self.client.request_stream(request).await {
            Ok(text) => Ok(Page::Read(Answer { text: Box::pin(text), items: Items::default() })),
            // The token has expired. The server offers one to continue with the list as it is now.
            Err(kube::Error::Api(status)) if status.code == 410 && token.is_some() => {
                let offered = status.metadata.as_ref().and_then(|metadata| metadata.continue_.clone());
                let Some(offered) =
                    offered.filter(|offered| !offered.is_empty() && Some(offered) != token.as_ref())
                else {
                    return Err(self.resource.failure(kube::Error::Api(status)));
                };
                self.moved = true;
                Ok(Page::Ask(Some(offered)))
            }
            Err(error) => Err(self.resource.failure(error)),
        }
    }

    /// Returns warnings for readers if the list is incomplete or inconsistent.
    pub(super) fn warnings(&self) -> impl Iterator<Item = String> {
        let more = self.more.then(|| format!("only the first {} objects were read", self.count));
        let moved = self.moved.then(|| {
            "the list changed while it was read: an object may be missing or be there twice".to_owned()
        });
        more.into_iter().chain(moved)
    }
}

impl Answer {
    /// Returns the text of the next item.
    async fn next(&mut self) -> Result<Option<Vec<u8>>, ListError> {
        loop {
            let text = self.text.fill_buf().await?;
            if text.is_empty() {
                return Ok(None);
            }
            let (taken, item) = self.items.take(text)?;
            self.text.consume_unpin(taken);
            if item.is_some() {
                return Ok(item);
            }
        }
    }
}

fn document(mut fields: Map<String, Value>, resource: Resource) -> Value {
    let mut document = Map::new();
    document.insert("apiVersion".to_owned(), Value::String(resource.api_version()));
    document.insert("kind".to_owned(), Value::String(resource.kind.to_owned()));
    fields.shift_remove("apiVersion");
    fields.shift_remove("kind");
    document.extend(fields);
    Value::Object(document)
}
