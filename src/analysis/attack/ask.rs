//! Represents an admission request that the search tries, reports, and writes into test suites.

use std::sync::Arc;

use admit_policy::{GroupVersionKind, GroupVersionResource, Object, Operation, Request, UserInfo};
use serde_json::{Map, Value, json};

use super::path::{self, Path};

/// An admission request, together with objects that exist when it is made.
///
/// [`Inquiry`](super::Inquiry) has an example.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// The operation.
    pub operation: Operation,
    /// The resource of the object.
    pub resource: GroupVersionResource,
    /// The subresource; empty for the object itself.
    pub subresource: String,
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// The name of the target if the object does not name it, as for the options of `exec`; else empty.
    pub name: String,
    /// The new object.
    pub object: Option<Value>,
    /// The existing object.
    pub old_object: Option<Value>,
    /// The requesting user.
    pub user: UserInfo,
    /// Namespaces and params that exist; they replace loaded ones of the same name.
    pub existing: Vec<Arc<Value>>,
    /// Answers of the authorizer, in the format of `authorizer` in suites.
    pub authorizer: Option<Value>,
}

impl Ask {
    /// Builds a request to create an object, by an authenticated user named `someone`.
    #[must_use]
    pub fn creation(object: Value, resource: GroupVersionResource) -> Self {
        let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default();
        let user = UserInfo {
            username: "someone".to_owned(),
            groups: vec!["system:authenticated".to_owned()],
            ..UserInfo::default()
        };
        Self {
            operation: Operation::Create,
            resource,
            subresource: String::new(),
            namespace: namespace.to_owned(),
            name: String::new(),
            object: Some(object),
            old_object: None,
            user,
            existing: Vec::new(),
            authorizer: None,
        }
    }

    /// Takes a given request and the objects that exist beside it; an object without namespace gets that of the request.
    ///
    /// [`Inquiry`](super::Inquiry) has an example of a request.
    #[must_use]
    pub fn of(
        request: &Request<'_>,
        namespaced: bool,
        existing: &[Arc<Value>],
        authorizer: Option<Value>,
    ) -> Self {
        let place = |object: &Object<'_>| {
            let mut object = object.value().into_owned();
            let path = Path::of_names(["metadata", "namespace"]);
            // Connect options are not namespaced themselves.
            if namespaced && request.operation != Operation::Connect && path.get(&object).is_none() {
                path.set(&mut object, json!(request.namespace));
            }
            object
        };
        let mut ask = Self {
            operation: request.operation,
            resource: request.resource.clone(),
            subresource: request.subresource.clone(),
            namespace: request.namespace.clone(),
            name: String::new(),
            object: request.object.as_ref().map(place),
            old_object: request.old_object.as_ref().map(place),
            user: request.user.clone(),
            existing: existing.to_vec(),
            authorizer,
        };
        if ask.name() != request.name {
            ask.name.clone_from(&request.name);
        }
        ask
    }

    /// Returns the kind of the object.
    #[must_use]
    pub fn kind(&self) -> GroupVersionKind {
        self.object.as_ref().or(self.old_object.as_ref()).map(GroupVersionKind::of).unwrap_or_default()
    }

    /// Returns the name of the target: that of the object, unless it has none.
    #[must_use]
    pub fn name(&self) -> &str {
        if !self.name.is_empty() {
            return &self.name;
        }
        let object = self.object.as_ref().or(self.old_object.as_ref());
        object.and_then(|object| object.pointer("/metadata/name")).and_then(Value::as_str).unwrap_or_default()
    }

    /// Reports whether it is an update that changes name or namespace, which no server accepts.
    pub(super) fn is_renaming(&self) -> bool {
        let (Some(new), Some(old)) = (&self.object, &self.old_object) else { return false };
        let is_other = |pointer: &str| new.pointer(pointer) != old.pointer(pointer);
        self.operation == Operation::Update && (is_other("/metadata/name") || is_other("/metadata/namespace"))
    }

    /// Returns the request for another name.
    pub(super) fn named(&self, name: &str) -> Self {
        let mut ask = self.clone();
        if self.operation == Operation::Connect {
            name.clone_into(&mut ask.name);
            return ask;
        }
        let path = Path::of_names(["metadata", "name"]);
        for object in [&mut ask.object, &mut ask.old_object].into_iter().flatten() {
            path.set(object, json!(name));
        }
        ask
    }

    /// Returns the request in another namespace.
    pub(super) fn placed(&self, namespace: &str) -> Self {
        let mut ask = self.clone();
        namespace.clone_into(&mut ask.namespace);
        if self.operation == Operation::Connect {
            return ask;
        }
        let path = Path::of_names(["metadata", "namespace"]);
        for object in [&mut ask.object, &mut ask.old_object].into_iter().flatten() {
            path.set(object, json!(namespace));
        }
        ask
    }

    /// Returns the request with another new object.
    pub(super) fn with(&self, object: Value) -> Self {
        Self { object: Some(object), ..self.clone() }
    }

    /// Returns an update of `old` to `new`, through a subresource if one is named.
    pub(super) fn update(&self, old: Value, new: Value, subresource: &str) -> Self {
        Self {
            operation: Operation::Update,
            subresource: subresource.to_owned(),
            old_object: Some(old),
            object: Some(new),
            ..self.clone()
        }
    }

    /// Counts the places where two requests differ.
    pub(super) fn differences(&self, other: &Self) -> usize {
        let objects = match (&self.object, &other.object) {
            (Some(one), Some(other)) => path::differences(one, other),
            (None, None) => 0,
            _ => 1,
        };
        [
            self.operation != other.operation,
            self.subresource != other.subresource,
            self.resource != other.resource,
            self.namespace != other.namespace,
            self.name != other.name,
            self.existing != other.existing,
        ]
        .into_iter()
        .fold(objects, |count, differs| count.saturating_add(usize::from(differs)))
    }

    /// Writes the request as a test case of a suite.
    ///
    /// [`Inquiry`](super::Inquiry) has an example.
    #[must_use]
    pub fn case(&self, name: &str, policies: &[&str], expect: &str) -> Value {
        let mut case = Map::new();
        let mut put = |field: &str, value: Value| case.insert(field.to_owned(), value);
        put("name", json!(name));
        if !policies.is_empty() {
            put("policies", json!(policies));
        }
        put("operation", json!(self.operation.as_str()));
        let GroupVersionResource { group, version, resource } = &self.resource;
        let target = format!("{resource}.{version}.{group}");
        put("resource", json!(if group.is_empty() { resource.as_str() } else { target.as_str() }));
        if !self.subresource.is_empty() {
            put("subresource", json!(self.subresource));
        }
        put("namespace", json!(self.namespace));
        if !self.name.is_empty() {
            put("requestName", json!(self.name));
        }
        let UserInfo { username, uid, groups, extra } = &self.user;
        let mut user = json!({"username": username, "groups": groups});
        if let Some(fields) = user.as_object_mut() {
            if !uid.is_empty() {
                fields.insert("uid".to_owned(), json!(uid));
            }
            if !extra.is_empty() {
                fields.insert("extra".to_owned(), json!(extra));
            }
        }
        put("user", user);
        if let Some(old) = &self.old_object {
            put("oldObject", old.clone());
        }
        if let Some(object) = &self.object {
            put("object", object.clone());
        }
        let is_namespace = |object: &&Arc<Value>| object.get("kind") == Some(&json!("Namespace"));
        let named = |is_wanted: bool| -> Vec<&Value> {
            let all = self.existing.iter().filter(|object| is_namespace(object) == is_wanted);
            all.map(|object| &**object).collect()
        };
        for (field, objects) in [("namespaces", named(true)), ("params", named(false))] {
            if !objects.is_empty() {
                put(field, json!(objects));
            }
        }
        if let Some(answers) = &self.authorizer {
            put("authorizer", answers.clone());
        }
        put("expect", json!(expect));
        Value::Object(case)
    }

    /// Formats it in one line: `CREATE pods`, `UPDATE pods/ephemeralcontainers`.
    #[must_use]
    pub fn title(&self) -> String {
        let resource = self.resource.group_resource();
        let (plural, group) = resource.split_once('.').unwrap_or((&resource, ""));
        let slash = if self.subresource.is_empty() { "" } else { "/" };
        let dot = if group.is_empty() { "" } else { "." };
        format!("{} {plural}{slash}{}{dot}{group}", self.operation.as_str(), self.subresource)
    }
}
