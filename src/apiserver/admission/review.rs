//! Builds the `admission.k8s.io/v1` AdmissionRequest of a write.

use admit_policy::{Object, Request};
use serde_json::{Map, Value, json};

use super::Cluster;
use super::host::StoreHost;
use crate::call::{Call, DeleteOptions};
use crate::resources::Subresource;
use crate::status::Refusal;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

impl Operation {
    #[must_use]
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// A write that is about to happen.
#[derive(Debug)]
pub(crate) struct Review<'a> {
    pub call: &'a Call,
    pub operation: Operation,
    pub name: &'a str,
    pub object: Option<&'a Value>,
    pub old_object: Option<&'a Value>,
    pub dry_run: bool,
    pub options: Value,
}

/// Sets the kind of the options: a patch is reviewed as the creation or update that it results in.
fn of_kind(mut options: Value, kind: &str) -> Value {
    crate::object::set_field(&mut options, "kind", Some(kind.into()));
    options
}

impl<'a> Review<'a> {
    pub(crate) fn create(
        call: &'a Call,
        name: &'a str,
        object: &'a Value,
        dry_run: bool,
        options: Value,
    ) -> Self {
        let operation = Operation::Create;
        let options = of_kind(options, "CreateOptions");
        Self { call, operation, name, object: Some(object), old_object: None, dry_run, options }
    }

    pub(crate) fn update(
        call: &'a Call,
        name: &'a str,
        (object, old): (&'a Value, &'a Value),
        dry_run: bool,
        options: Value,
    ) -> Self {
        let operation = Operation::Update;
        let options = of_kind(options, "UpdateOptions");
        Self { call, operation, name, object: Some(object), old_object: Some(old), dry_run, options }
    }

    /// Returns the same write with another object.
    pub(crate) fn with_object<'b>(&'b self, object: &'b Value) -> Review<'b>
    where
        'a: 'b,
    {
        self.seen_as(Some(object), self.old_object)
    }

    /// Describes a stream (`exec`, `attach`, …) that is about to be opened, with its options as the object.
    pub(crate) fn connect(call: &'a Call, name: &'a str, asked: &'a Value) -> Self {
        let operation = Operation::Connect;
        Self {
            call,
            operation,
            name,
            object: Some(asked),
            old_object: None,
            dry_run: false,
            options: Value::Null,
        }
    }

    /// Returns the same write with both objects in another form.
    pub(crate) fn seen_as<'b>(
        &'b self,
        object: Option<&'b Value>,
        old_object: Option<&'b Value>,
    ) -> Review<'b>
    where
        'a: 'b,
    {
        Review {
            call: self.call,
            operation: self.operation,
            name: self.name,
            object,
            old_object,
            dry_run: self.dry_run,
            options: self.options.clone(),
        }
    }

    pub(crate) fn delete(call: &'a Call, name: &'a str, old: &'a Value, options: &DeleteOptions) -> Self {
        Self {
            call,
            operation: Operation::Delete,
            name,
            object: None,
            old_object: Some(old),
            dry_run: options.dry_run,
            options: options.raw.clone(),
        }
    }

    /// Returns the environment that policies and matching read.
    pub(super) fn host<'r>(&'r self, cluster: &'r dyn Cluster) -> StoreHost<'r> {
        StoreHost { cluster, conversions: &self.call.conversions }
    }

    /// Returns whether admission is skipped: a policy or webhook could otherwise block its own correction.
    pub(crate) fn is_exempt(&self) -> bool {
        let info = &self.call.info;
        self.call.admitted || self.call.custom.is_none() && info.group == "admissionregistration.k8s.io"
    }

    #[must_use]
    pub(crate) fn subresource(&self) -> &'static str {
        self.call.subresource.map_or("", Subresource::name)
    }

    /// Returns the kind of the object: that of the resource, or of the subresource.
    fn kind(&self) -> Value {
        let info = &self.call.info;
        let (group, version, kind) = match self.call.subresource.and_then(|own| own.own_kind(info)) {
            Some((group, "", kind)) => (group, "v1", kind),
            Some(own) => own,
            None => (info.group.as_str(), info.version.as_str(), info.kind.as_str()),
        };
        json!({"group": group, "version": version, "kind": kind})
    }

    /// Returns the `request` of an AdmissionReview in the version of the client's request; `uid` identifies it.
    #[must_use]
    pub(crate) fn to_value(&self, uid: &str) -> Value {
        let whole = |object: Option<&Value>| object.cloned().unwrap_or(Value::Null);
        self.told(uid, whole(self.object), whole(self.old_object))
    }

    /// Returns the request as policies and webhook rules see it. The objects are borrowed.
    pub(super) fn request(&self) -> Result<Request<'_>, Refusal> {
        let seen = |object: Option<&'a Value>| object.filter(|object| !object.is_null()).map(Object::from);
        let rest = Request::from_value(&self.told("", Value::Null, Value::Null))
            .map_err(|error| Refusal::internal(format!("the request cannot be decided on: {error}")))?;
        Ok(Request { object: seen(self.object), old_object: seen(self.old_object), ..rest })
    }

    fn told(&self, uid: &str, object: Value, old_object: Value) -> Value {
        let info = &self.call.info;
        let kind = self.kind();
        let resource = json!({"group": info.group, "version": info.version, "resource": info.plural});
        let mut request = Map::new();
        let mut set = |field: &str, value: Value| {
            request.insert(field.to_owned(), value);
        };
        set("uid", uid.into());
        set("kind", kind.clone());
        set("resource", resource.clone());
        if !self.subresource().is_empty() {
            set("subResource", self.subresource().into());
        }
        set("requestKind", kind);
        set("requestResource", resource);
        if !self.subresource().is_empty() {
            set("requestSubResource", self.subresource().into());
        }
        if !self.name.is_empty() {
            set("name", self.name.into());
        }
        if !self.call.namespace.is_empty() {
            set("namespace", self.call.namespace.as_str().into());
        } else if info.builtin && info.group.is_empty() && info.kind == "Namespace" {
            // The namespace of a Namespace object is its own name.
            set("namespace", self.name.into());
        }
        set("operation", self.operation.as_str().into());
        set("userInfo", self.call.identity.user_info());
        set("object", object);
        set("oldObject", old_object);
        set("dryRun", self.dry_run.into());
        set("options", self.options.clone());
        Value::Object(request)
    }
}
