//! Field ownership of what is written: which versions an object has, what a path cannot own, and when nothing changed.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value};

use super::options::WriteOptions;
use super::served::Served;
use super::{Call, Registry, kinds, views};
use crate::builtin::decode::decode;
use crate::builtin::tables;
use crate::managed_fields::path::{Element, FieldSet};
use crate::managed_fields::schema::{Schema, builtin};
use crate::managed_fields::typed::Typing;
use crate::managed_fields::{ApplyError, Versions, Writer};
use crate::object;
use crate::resources::{ResourceInfo, Subresource};

/// Where the managers of a changed object come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ownership {
    /// From what changes.
    Tracked,
    /// The object was applied and brings them along.
    Settled,
}

impl Registry {
    /// Sets the managers of `new`, which replaces `old` or is created.
    pub(crate) fn track(&self, call: &Call, old: Option<&Value>, new: &mut Value, options: &WriteOptions) {
        let scope = Scope::new(call, self.served());
        let live = old.map_or_else(|| Cow::Owned(scope.empty(&scope.api_version)), Cow::Borrowed);
        scope.writer(call, options, &call.clock.stamp()).updated(&live, new);
    }

    /// What `live`, or the empty object of the kind, becomes by the configuration.
    pub(super) fn merged(
        &self,
        call: &Call,
        live: Option<&Value>,
        config: &Value,
        options: &WriteOptions,
    ) -> Result<Value, ApplyError> {
        let scope = Scope::new(call, self.served());
        let live = live.map_or_else(|| Cow::Owned(scope.empty(&scope.api_version)), Cow::Borrowed);
        scope.writer(call, options, &call.clock.stamp()).applied(&live, config, options.force)
    }
}

/// A resource with all its versions, seen from the one that a request is in.
#[derive(Debug)]
struct Scope {
    served: Arc<Served>,
    info: Arc<ResourceInfo>,
    api_version: String,
    ignored: FieldSet,
}

impl Scope {
    fn new(call: &Call, served: Arc<Served>) -> Self {
        let ignored = unownable(call).into_iter().collect();
        Self { served, info: Arc::clone(&call.info), api_version: call.info.api_version(), ignored }
    }

    fn writer<'w>(&'w self, call: &'w Call, options: &'w WriteOptions, now: &'w str) -> Writer<'w> {
        Writer {
            versions: self,
            api_version: &self.api_version,
            kind: &self.info.kind,
            subresource: call.subresource.map_or("", Subresource::name),
            ignored: &self.ignored,
            manager: &options.manager,
            now,
        }
    }

    /// The row of the same resource in another version.
    fn row(&self, api_version: &str) -> Option<&Arc<ResourceInfo>> {
        let rows = self.served.table.rows().iter();
        rows.filter(|row| row.storage_key == self.info.storage_key && row.kind == self.info.kind)
            .find(|row| row.api_version() == api_version)
    }
}

/// Kinds without field tables are typed by their values.
static DEDUCED: LazyLock<(Schema, crate::managed_fields::schema::TypeId)> =
    LazyLock::new(|| Schema::of_definition(&Value::Null));

impl Versions for Scope {
    fn typing(&self, api_version: &str) -> Option<Typing<'_>> {
        let row = self.row(api_version)?;
        if !row.builtin {
            let kind = self.served.custom_kind(&row.group, &row.plural)?;
            let version = kind.versions.iter().find(|version| version.info.version == row.version)?;
            let (schema, root) = &version.typing;
            return Some(Typing { schema, root: *root });
        }
        let (schema, root) = builtin(&row.group, &row.version, &row.kind).unwrap_or((&DEDUCED.0, DEDUCED.1));
        Some(Typing { schema, root })
    }

    fn forgets(&self, api_version: &str) -> bool {
        self.info.builtin && api_version.matches('/').count() < 2
    }

    fn convert(&self, object: &Value, api_version: &str) -> Value {
        let from = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        match (self.row(from), self.row(api_version)) {
            (Some(from), Some(to)) if from.api_version() != api_version => views::converted(from, to, object),
            _ => object.clone(),
        }
    }

    fn empty(&self, api_version: &str) -> Value {
        let mut empty = Map::new();
        empty.insert("kind".to_owned(), self.info.kind.as_str().into());
        empty.insert("apiVersion".to_owned(), api_version.into());
        let empty = Value::Object(empty);
        let typed = self.row(api_version).filter(|row| row.builtin);
        let typed = typed.and_then(|row| tables().kind(&row.group, &row.version, &row.kind));
        typed.and_then(|id| decode(tables(), id, &empty).ok()).map_or(empty, |decoded| decoded.value)
    }
}

/// A built-in kind that is sent and answered, and has no row: it has one version.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rowless {
    pub(super) group: &'static str,
    pub(super) version: &'static str,
    pub(super) kind: &'static str,
}

impl Rowless {
    pub(super) fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }

    /// Writes now; clients own all but the status.
    fn write<T>(
        &self,
        call: &Call,
        subresource: Subresource,
        options: &WriteOptions,
        write: impl FnOnce(&Writer<'_>) -> T,
    ) -> T {
        write(&Writer {
            versions: self,
            api_version: &self.api_version(),
            kind: self.kind,
            subresource: subresource.name(),
            ignored: &[[Element::Field("status".to_owned())]].into_iter().collect(),
            manager: &options.manager,
            now: &call.clock.stamp(),
        })
    }
}

impl Versions for Rowless {
    fn typing(&self, api_version: &str) -> Option<Typing<'_>> {
        let (schema, root) = builtin(self.group, self.version, self.kind)?;
        (api_version == self.api_version()).then_some(Typing { schema, root })
    }

    fn forgets(&self, _api_version: &str) -> bool {
        true
    }

    fn convert(&self, object: &Value, _api_version: &str) -> Value {
        object.clone()
    }

    fn empty(&self, api_version: &str) -> Value {
        let empty = serde_json::json!({"kind": self.kind, "apiVersion": api_version});
        let typed = tables().kind(self.group, self.version, self.kind);
        typed.and_then(|id| decode(tables(), id, &empty).ok()).map_or(empty, |decoded| decoded.value)
    }
}

/// Sets the managers of a TokenRequest, which no row serves.
pub(super) fn track_request(call: &Call, request: &mut Value, options: &WriteOptions) {
    let kind = Rowless { group: "authentication.k8s.io", version: "v1", kind: "TokenRequest" };
    let empty = kind.empty(&kind.api_version());
    kind.write(call, Subresource::Token, options, |writer| writer.updated(&empty, request));
}

/// What a Scale, which no row serves, becomes by the configuration.
pub(super) fn applied_scale(
    call: &Call,
    scale: &Value,
    config: &Value,
    options: &WriteOptions,
) -> Result<Value, ApplyError> {
    let kind = Rowless { group: "autoscaling", version: "v1", kind: "Scale" };
    kind.write(call, Subresource::Scale, options, |writer| writer.applied(scale, config, options.force))
}

/// Fields of the object that this path puts back whatever the client sent.
fn unownable(call: &Call) -> Vec<Vec<Element>> {
    let field = |name: &str| Element::Field(name.to_owned());
    match call.subresource {
        Some(Subresource::Status) => {
            let kept = call.info.status_keeps.iter().map(|kept| match kept.as_str() {
                "metadata" => vec![field("metadata")],
                kept => vec![field("metadata"), field(kept)],
            });
            let mut paths: Vec<Vec<Element>> = kept.collect();
            if kinds::disowns_metadata(&call.info) {
                paths.push(vec![field("metadata")]);
            }
            paths.push(vec![field("spec")]);
            paths
        }
        Some(Subresource::Finalize) => vec![vec![field("status")]],
        None if call.info.serves(Subresource::Status) && !kinds::status_is_kept(&call.info) => {
            vec![vec![field("status")]]
        }
        _ => Vec::new(),
    }
}

/// A change of nothing but the times at which managers changed is none.
pub(super) fn keep_times(new: &mut Value, old: &Value) {
    let entries = |object: &Value| object.pointer("/metadata/managedFields").cloned();
    let (Some(Value::Array(before)), Some(Value::Array(after))) = (entries(old), entries(new)) else {
        return;
    };
    let untimed = |entries: &[Value]| -> Vec<Value> {
        let mut entries = entries.to_vec();
        entries.iter_mut().for_each(|entry| object::set_field(entry, "time", None));
        entries
    };
    if before.len() != after.len() || untimed(&before) != untimed(&after) {
        return;
    }
    let mut retimed = new.clone();
    object::copy_meta(old, &mut retimed, "managedFields");
    if retimed == *old {
        *new = retimed;
    }
}
