//! Tracks field ownership of writes: the versions of an object, the fields that a path does not own, and writes that
//! change nothing.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value};

use super::{Registry, storage_version};
use crate::builtin::decode::rewritten;
use crate::builtin::tables;
use crate::call::{Call, WriteOptions};
use crate::conversion::{Conversions, Webhook};
use crate::emptied::Place;
use crate::kinds::{Habit, has, strategy};
use crate::managed_fields::path::{Element, FieldSet};
use crate::managed_fields::scale::Replicas;
use crate::managed_fields::schema::{Schema, builtin};
use crate::managed_fields::typed::Typing;
use crate::managed_fields::{ApplyError, TooHeavy, Versions, Writer};
use crate::object;
use crate::resources::{self, OwnKind, ResourceInfo, Subresource};
use crate::served::{CustomVersion, ScalePaths, Served};
use crate::status::Refusal;

/// The source of a changed object's managed fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ownership {
    /// Computed from the change.
    Tracked,
    /// Already in the object: it was applied, or they stay whatever changes.
    Settled,
}

impl Registry {
    /// Sets the managed fields of `new`, which replaces `old` or is created.
    ///
    /// # Errors
    /// 413 for an object that is too large with them.
    pub(crate) fn track(
        &self,
        call: &Call,
        old: Option<&Value>,
        new: &mut Value,
        options: &WriteOptions,
    ) -> Result<(), Refusal> {
        let scope = Scope::new(call, self.served());
        let live = old.map_or_else(|| Cow::Owned(scope.empty(&scope.api_version)), Cow::Borrowed);
        let scope = scope.rewriting(new, &call.emptied.places());
        scope.writer(call, options, &call.clock.stamp()).updated(&live, new).map_err(too_heavy)
    }

    /// Like [`Self::track`], for an object with managers in versions that a webhook converts. If the conversion fails, all
    /// ownership is dropped, as upstream does.
    ///
    /// # Errors
    /// As of [`Self::track`].
    pub(super) async fn tracked(
        &self,
        call: &Call,
        old: Option<&Value>,
        mut new: Value,
        options: &WriteOptions,
    ) -> Result<Value, Refusal> {
        if call.converter().is_none() {
            self.track(call, old, &mut new, options)?;
            return Ok(new);
        }
        let attempt = || {
            let mut tracked = new.clone();
            self.track(call, old, &mut tracked, options).map(|()| tracked)
        };
        let mut tracked = call.conversions.provide(self, attempt).await?;
        if let Some(why) = call.conversions.failure() {
            tracing::warn!(%why, kind = call.info.kind, "the managers of an object are forgotten");
            object::set_meta(&mut tracked, "managedFields", None);
        }
        Ok(tracked)
    }

    /// Returns the path of the replica count in each version of the call's kind.
    pub(super) fn replicas(&self, call: &Call) -> Replicas {
        let served = self.served();
        match served.custom_kind(&call.info.group, &call.info.plural).filter(|_| !call.info.builtin) {
            Some(kind) => {
                let path = |version: &CustomVersion| version.scale.clone().map(|paths| paths.spec_replicas);
                let versions =
                    kind.versions.iter().map(|version| (version.info.api_version(), path(version)));
                let versions: Vec<(String, Option<String>)> = versions.collect();
                versions.iter().map(|(version, path)| (version.clone(), path.as_deref())).collect()
            }
            None => {
                let rows = served.table.rows().iter();
                let versions = rows.filter(|row| row.is_same_resource(&call.info));
                let path = ScalePaths::builtin().spec_replicas.as_str();
                versions.map(|row| (row.api_version(), Some(path))).collect()
            }
        }
    }

    /// Returns the object with the replica count of `wanted`, and the managed fields that its Scale has then. If nobody owned
    /// the replica count, nobody owns it afterwards.
    ///
    /// # Errors
    /// 413 for an object that is too large with them.
    pub(super) fn track_scale(
        &self,
        call: &Call,
        (paths, old): (&ScalePaths, &Value),
        wanted: &Value,
        options: &WriteOptions,
    ) -> Result<Value, Refusal> {
        let replicas = self.replicas(call);
        let mut scale = paths.scale_of(wanted);
        let before = paths.managed_scale_of(old, &replicas);
        SCALE
            .write(call, Subresource::Scale, options, |writer| writer.updated(&before, &mut scale))
            .map_err(too_heavy)?;
        Ok(paths.with_managed(wanted, &scale, &replicas))
    }

    /// Merges a configuration into `live`, or into an empty object of the kind.
    pub(super) fn merged(
        &self,
        call: &Call,
        live: Option<&mut Value>,
        config: &Value,
        options: &WriteOptions,
    ) -> Result<Value, ApplyError> {
        let scope = Scope::new(call, self.served());
        let now = call.clock.stamp();
        let writer = scope.writer(call, options, &now);
        match live {
            Some(live) => writer.applied(live, config, options.force),
            None => writer.applied(&mut scope.empty(&scope.api_version), config, options.force),
        }
    }
}

/// A resource with all its versions, seen from the one that a request is in.
#[derive(Debug)]
struct Scope {
    served: Arc<Served>,
    info: Arc<ResourceInfo>,
    api_version: String,
    ignored: FieldSet,
    resets_alike: bool,
    rewritten: FieldSet,
    /// The webhook that converts versions, and the conversions made.
    conversions: Option<(Arc<Webhook>, Conversions)>,
}

impl Scope {
    fn new(call: &Call, served: Arc<Served>) -> Self {
        let ignored = unownable(call).into_iter().collect();
        let conversions = call.converter().map(|webhook| (Arc::clone(webhook), call.conversions.clone()));
        let api_version = call.info.api_version();
        let resets_alike = call.info.builtin || call.subresource.is_some();
        Self {
            served,
            info: Arc::clone(&call.info),
            api_version,
            ignored,
            resets_alike,
            rewritten: FieldSet::default(),
            conversions,
        }
    }

    /// Prepares for an update by `new`, which was sent with these places empty.
    fn rewriting(self, new: &Value, places: &[Place]) -> Self {
        let typing = self.typing(&self.api_version).filter(|_| !places.is_empty());
        match typing.map(|typing| typing.wholes_around(new, places)) {
            Some(rewritten) => Self { rewritten, ..self },
            None => self,
        }
    }

    fn writer<'w>(&'w self, call: &'w Call, options: &'w WriteOptions, now: &'w str) -> Writer<'w> {
        Writer {
            versions: self,
            api_version: &self.api_version,
            kind: &self.info.kind,
            subresource: call.subresource.map_or("", Subresource::name),
            ignored: &self.ignored,
            rewritten: &self.rewritten,
            manager: &options.manager,
            now,
        }
    }

    /// Returns the row of the same resource in another version.
    fn row(&self, api_version: &str) -> Option<&Arc<ResourceInfo>> {
        let rows = self.served.table.rows().iter();
        rows.filter(|row| row.is_same_resource(&self.info)).find(|row| row.api_version() == api_version)
    }
}

/// Returns whether the object has only its type; as upstream, no webhook is called for it.
fn is_empty(object: &Value) -> bool {
    object
        .as_object()
        .is_some_and(|members| members.keys().all(|name| name == "kind" || name == "apiVersion"))
}

/// The schema of kinds without field tables, whose types are deduced from values.
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

    /// Returns whether reset fields apply across versions: for custom resources only in status writes, so a write of the object
    /// that omits the status, which is kept, takes its ownership from managers in other versions.
    fn resets_alike(&self) -> bool {
        self.resets_alike
    }

    fn convert<'v>(&self, object: &'v Value, api_version: &str) -> Cow<'v, Value> {
        let from = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        match (self.row(from), self.row(api_version)) {
            (Some(from), Some(to)) if from.api_version() != api_version => {
                let by_webhook = self.conversions.as_ref().filter(|_| !is_empty(object));
                let converted =
                    by_webhook.and_then(|(webhook, known)| known.of(webhook, object, api_version).ok());
                Cow::Owned(match converted {
                    Some(converted) => Arc::unwrap_or_clone(converted),
                    // The result of a failed or missing conversion is not used; the caller reports it.
                    None => storage_version::converted(from, to, object),
                })
            }
            _ => Cow::Borrowed(object),
        }
    }

    fn empty(&self, api_version: &str) -> Value {
        let mut empty = Map::new();
        empty.insert("kind".to_owned(), self.info.kind.as_str().into());
        empty.insert("apiVersion".to_owned(), api_version.into());
        let empty = Value::Object(empty);
        let typed = self.row(api_version).filter(|row| row.builtin);
        let typed = typed.and_then(|row| tables().kind(&row.group, &row.version, &row.kind));
        match typed {
            Some(id) => rewritten(tables(), id, empty),
            None => empty,
        }
    }
}

const SCALE: Rowless = Rowless::of(resources::SCALE);

/// A built-in kind without a row, which has one version.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rowless {
    pub(super) group: &'static str,
    pub(super) version: &'static str,
    pub(super) kind: &'static str,
}

impl Rowless {
    const fn of((group, version, kind): OwnKind) -> Self {
        Self { group, version, kind }
    }

    pub(super) fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }

    /// Runs a write at the current time; clients own everything except the status.
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
            rewritten: &FieldSet::default(),
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

    fn convert<'v>(&self, object: &'v Value, _api_version: &str) -> Cow<'v, Value> {
        Cow::Borrowed(object)
    }

    fn empty(&self, api_version: &str) -> Value {
        let empty = serde_json::json!({"kind": self.kind, "apiVersion": api_version});
        let typed = tables().kind(self.group, self.version, self.kind);
        match typed {
            Some(id) => rewritten(tables(), id, empty),
            None => empty,
        }
    }
}

/// Sets the managed fields of a TokenRequest, which has no row.
///
/// # Errors
/// 413 for one that is too large with them.
pub(super) fn track_request(call: &Call, request: &mut Value, options: &WriteOptions) -> Result<(), Refusal> {
    let kind = Rowless::of(resources::TOKEN_REQUEST);
    let empty = kind.empty(&kind.api_version());
    kind.write(call, Subresource::Token, options, |writer| writer.updated(&empty, request)).map_err(too_heavy)
}

pub(super) fn too_heavy(why: TooHeavy) -> Refusal {
    Refusal::too_large_because(why.to_string())
}

/// Merges a configuration into a Scale, which has no row.
pub(super) fn applied_scale(
    call: &Call,
    scale: &Value,
    config: &Value,
    options: &WriteOptions,
) -> Result<Value, ApplyError> {
    SCALE.write(call, Subresource::Scale, options, |writer| {
        writer.applied(&mut scale.clone(), config, options.force)
    })
}

/// Returns the fields that this path resets whatever the client sent.
fn unownable(call: &Call) -> Vec<Vec<Element>> {
    let field = |name: &str| Element::Field(name.to_owned());
    match call.subresource {
        Some(Subresource::Status) => {
            let kept = call.info.status_keeps.iter().map(|kept| match kept.as_str() {
                "metadata" | "reset-for-status" => vec![field("metadata")],
                kept => vec![field("metadata"), field(kept)],
            });
            let mut paths: Vec<Vec<Element>> = kept.collect();
            if has(&call.info, Habit::DisownsMetadata) {
                paths.push(vec![field("metadata")]);
            }
            paths.push(vec![field("spec")]);
            if has(&call.info, Habit::DisownsAll) {
                paths.push(vec![field("status"), field("conditions")]);
            }
            paths
        }
        Some(Subresource::Approval) => vec![vec![field("spec")], vec![field("status"), field("certificate")]],
        None if has(&call.info, Habit::DisownsAll) => vec![vec![field("spec")], vec![field("status")]],
        Some(Subresource::Finalize) => vec![vec![field("status")]],
        None => {
            // Also if a new object keeps its status.
            let status = call.info.serves(Subresource::Status);
            let own = strategy(&call.info).map(|strategy| strategy.unowned).unwrap_or_default();
            status
                .then_some("status")
                .into_iter()
                .chain(own.iter().copied())
                .map(|name| vec![field(name)])
                .collect()
        }
        _ => Vec::new(),
    }
}

/// Restores the managers' timestamps if nothing else changed.
pub(super) fn keep_times(new: &mut Value, old: &Value) {
    fn entries(object: &Value) -> Option<&Vec<Value>> {
        object::meta(object, "managedFields").and_then(Value::as_array)
    }
    let same = match (entries(old), entries(new)) {
        (Some(before), Some(after)) if before.len() == after.len() => {
            before.iter().zip(after).all(|(before, after)| same_but(before, after, "time", |_, _| true))
        }
        _ => false,
    };
    let rest = |old: &Value, new: &Value| same_but(old, new, "managedFields", |_, _| true);
    if same && same_but(old, new, "metadata", rest) {
        object::copy_meta(old, new, "managedFields");
    }
}

/// Returns whether two maps are equal, where `equal` compares the member `name`.
fn same_but(one: &Value, two: &Value, name: &str, equal: impl Fn(&Value, &Value) -> bool) -> bool {
    let (Value::Object(one), Value::Object(two)) = (one, two) else { return one == two };
    let length = |members: &Map<String, Value>| members.len() - usize::from(members.contains_key(name));
    let null = Value::Null;
    length(one) == length(two)
        && one.iter().all(|(own, value)| own == name || two.get(own) == Some(value))
        && equal(one.get(name).unwrap_or(&null), two.get(name).unwrap_or(&null))
}
