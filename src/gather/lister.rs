//! Paged reads of Kubernetes resources for gatherers: a resource named by constants in, plain JSON objects out.
//!
//! A resource that the server does not serve (404 on the collection) is its own failure, because it says something
//! about the cluster and nothing about the gathering.

use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use serde_json::Value;

use super::gatherer::{Context, Failure};

const PAGE: u32 = 500;

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
}

/// Objects of one resource; `more` tells that the cap was reached and the server had more.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) objects: Vec<Value>,
    pub(super) more: bool,
}

/// All objects of `resource` over all namespaces, at most `cap`.
///
/// # Errors
/// [`Failure::MissingApi`] when the server does not serve the resource, [`Failure::Api`] otherwise.
pub(super) async fn list(context: &Context, resource: Resource, cap: usize) -> Result<Listed, Failure> {
    let api = Api::all_with(context.client.clone(), &resource.api_resource());
    pages(&api, resource, cap).await
}

/// All objects of `resource` in one namespace, at most `cap`.
///
/// # Errors
/// As [`list`].
pub(super) async fn list_in(
    context: &Context,
    namespace: &str,
    resource: Resource,
    cap: usize,
) -> Result<Listed, Failure> {
    let api = Api::namespaced_with(context.client.clone(), namespace, &resource.api_resource());
    pages(&api, resource, cap).await
}

/// One cluster-scoped object, `None` where there is none of that name.
///
/// # Errors
/// As [`list`].
pub(super) async fn get(context: &Context, resource: Resource, name: &str) -> Result<Option<Value>, Failure> {
    let api: Api<DynamicObject> = Api::all_with(context.client.clone(), &resource.api_resource());
    let found = api.get_opt(name).await.map_err(|error| resource.failure(error))?;
    Ok(found.map(|object| document(object, resource)))
}

async fn pages(api: &Api<DynamicObject>, resource: Resource, cap: usize) -> Result<Listed, Failure> {
    let mut objects = Vec::new();
    let mut token: Option<String> = None;
    loop {
        let mut params = ListParams::default().limit(PAGE);
        params.continue_token = token.take();
        let page = api.list(&params).await.map_err(|error| resource.failure(error))?;
        let next = page.metadata.continue_.filter(|token| !token.is_empty());
        let room = cap - objects.len();
        let more = page.items.len() > room || (page.items.len() == room && next.is_some());
        objects.extend(page.items.into_iter().take(room).map(|item| document(item, resource)));
        match next {
            Some(_) if more => return Ok(Listed { objects, more }),
            Some(next) => token = Some(next),
            None => return Ok(Listed { objects, more }),
        }
    }
}

/// Items of a list carry no `apiVersion` and `kind`; an archived object without them could not be read back.
fn document(object: DynamicObject, resource: Resource) -> Value {
    let DynamicObject { types: _, metadata, data } = object;
    let api_version = match resource.group {
        "" => resource.version.to_owned(),
        group => format!("{group}/{}", resource.version),
    };
    let mut document = serde_json::Map::new();
    document.insert("apiVersion".to_owned(), Value::String(api_version));
    document.insert("kind".to_owned(), Value::String(resource.kind.to_owned()));
    document.insert("metadata".to_owned(), serde_json::to_value(metadata).unwrap_or_default());
    if let Value::Object(fields) = data {
        document.extend(fields);
    }
    Value::Object(document)
}
