//! Prepares objects of built-in kinds as a server does before it evaluates policies, without a store: decoding, defaults,
//! immutable fields and validation.

use std::sync::{Arc, LazyLock};

use admit_apimachinery::go;
use admit_apimachinery::suggest::{did_you_mean, nearest};
use admit_policy::{
    Builtins, Catalogue, GroupVersionKind, Prepared, Reason, Status, StrategicError, Unmade, crd,
};
use serde_json::Value;

use super::catalogue::CATALOGUE;
use super::kinds;
use super::mutations::{settle, typed};
use super::reset_fields;
use super::smallest::smallest;
use super::storage_version::empty_status;
use super::update::{carry_over, count_generation};
use crate::builtin::tables;
use crate::call::Call;
use crate::clock::Clock;
use crate::codec::recheck;
use crate::conversion::Conversions;
use crate::emptied::Emptied;
use crate::identity::Identity;
use crate::kinds::{Habit, has};
use crate::managed_fields::configuration::merged;
use crate::managed_fields::schema::Schema;
use crate::managed_fields::typed::Typing;
use crate::object;
use crate::patch::applied::applied;
use crate::patch::strategic;
use crate::resources::{ResourceInfo, ResourceTable, Scope, Subresource, builtin_rows};
use crate::served::ScalePaths;
use crate::status::Refusal;
use crate::warning::Warnings;

pub(super) static TABLE: LazyLock<Arc<ResourceTable>> =
    LazyLock::new(|| Arc::new(ResourceTable::new(builtin_rows(), 0)));

/// The built-in kinds, as the embedded server knows them.
#[derive(Clone, Copy, Debug)]
pub struct BuiltinKinds;

impl BuiltinKinds {
    /// Returns whether kinds of this `GROUP/VERSION` (of the core group: `VERSION`) are served.
    ///
    /// ```
    /// use admit_apiserver::BuiltinKinds;
    ///
    /// assert!(BuiltinKinds.has_version("apps/v1") && BuiltinKinds.has_version("v1"));
    /// assert!(!BuiltinKinds.has_version("apps/v1beta1"));
    /// ```
    #[must_use]
    pub fn has_version(self, api_version: &str) -> bool {
        TABLE.rows().iter().any(|row| row.api_version() == api_version)
    }

    /// Returns the error of clients for an unknown kind, with a suggestion if a name is similar: for groups of Kubernetes
    /// and names without a domain, which no other group can have. None for kinds that are served, and for other
    /// groups.
    ///
    /// ```
    /// use admit_apiserver::BuiltinKinds;
    ///
    /// assert_eq!(
    ///     BuiltinKinds.unknown("apps/v1", "Deploymnet").unwrap(),
    ///     "no matches for kind \"Deploymnet\" in version \"apps/v1\"; did you mean `Deployment`?"
    /// );
    /// assert!(BuiltinKinds.unknown("v1", "Deployment").unwrap().ends_with("did you mean `apps/v1`?"));
    /// assert_eq!(BuiltinKinds.unknown("apps/v1", "Deployment"), None);
    /// assert_eq!(BuiltinKinds.unknown("example.dev/v1", "Deploymnet"), None);
    /// ```
    #[must_use]
    pub fn unknown(self, api_version: &str, kind: &str) -> Option<String> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let is_known = |kind: &str| tables().kind(group, version, kind).is_some();
        if is_known(kind) || kind.strip_suffix("List").is_some_and(is_known) {
            return None;
        }
        let rows = || TABLE.rows().iter();
        let elsewhere = rows().find(|row| row.kind == kind).map(|row| row.api_version());
        let is_ours = rows().any(|row| row.group == group);
        // Groups of CRDs are domains, so a name without a dot is none of theirs.
        let is_nobodys = !group.contains('.');
        let is_slip = || {
            let home = rows().find(|row| row.kind == kind).map(|row| row.group.as_str());
            home.is_some_and(|home| nearest(group, [home]).is_some())
        };
        if !is_ours && !is_nobodys && !is_slip() {
            return None;
        }
        let in_group = rows().filter(|row| row.group == group && row.version == version);
        let meant = elsewhere
            .or_else(|| nearest(kind, in_group.map(|row| row.kind.as_str())).map(str::to_owned))
            .or_else(|| nearest(kind, rows().map(|row| row.kind.as_str())).map(str::to_owned));
        // Such a document may still be a configuration file that is not sent to a cluster.
        if meant.is_none() && !is_ours {
            return None;
        }
        let meant = meant.map(|meant| format!("; {}", did_you_mean(Some(&meant)))).unwrap_or_default();
        let (kind, version) = (go::quote(kind), go::quote(api_version));
        Some(format!("no matches for kind {kind} in version {version}{meant}"))
    }
}

impl Builtins for BuiltinKinds {
    fn applied(&self, manifest: &Value, live: &Value, last: &Value) -> Option<Value> {
        let (group, version, kind) = type_of(manifest);
        let kind = tables().kind(group, version, kind)?;
        Some(applied(tables(), kind, manifest, live, last))
    }

    fn patched(&self, object: &Value, patch: &Value) -> Option<Result<Value, StrategicError>> {
        let (group, version, kind) = type_of(object);
        let kind = tables().kind(group, version, kind)?;
        let (object, patch) = (object.as_object()?, patch.as_object()?);
        let made = strategic::apply(tables(), kind, object.clone(), &mut patch.clone());
        Some(made.map(Value::Object).map_err(|error| StrategicError(error.to_string())))
    }

    fn scale(&self, object: &Value, paths: Option<&crd::ScalePaths>) -> Option<Value> {
        let paths = match paths {
            Some(paths) => ScalePaths::from(paths),
            None => {
                let (group, version, kind) = type_of(object);
                let info = TABLE.find_kind(group, version, kind);
                info.filter(|info| info.serves(Subresource::Scale)).map(|_| ScalePaths::builtin().clone())?
            }
        };
        Some(paths.scale_of(object))
    }

    fn merged(
        &self,
        kind: &GroupVersionKind,
        outline: Option<&Value>,
        live: &Value,
        configuration: &Value,
    ) -> Option<Result<Value, Unmade>> {
        let made = match outline {
            Some(outline) => {
                let (schema, root) = Schema::of_definition(outline);
                merged(Typing { schema: &schema, root }, live, configuration)
            }
            None => merged(typed(&kind.group, &kind.version, &kind.kind)?, live, configuration),
        };
        Some(made.map_err(|error| Unmade::Failed(error.to_string())))
    }

    fn settled(&self, kind: &GroupVersionKind, object: Value, strict: bool) -> Result<Value, Unmade> {
        settle(&TABLE, kind, object, strict)
    }

    fn kind_of(&self, group: &str, version: &str, resource: &str) -> Option<GroupVersionKind> {
        let is_asked = |asked: &str, there: &str| asked == "*" || asked == there;
        let row = TABLE.rows().iter().find(|row| {
            row.plural == resource && is_asked(group, &row.group) && is_asked(version, &row.version)
        })?;
        Some(GroupVersionKind::new(row.group.as_str(), row.version.as_str(), row.kind.as_str()))
    }

    fn prepare(&self, new: &Value, old: Option<&Value>, status: bool) -> Option<Prepared> {
        prepared(new, old, status.then_some(Subresource::Status))
    }

    fn catalogue(&self) -> Option<&Catalogue> {
        Some(&CATALOGUE)
    }

    fn smallest(&self, kind: &GroupVersionKind) -> Vec<Value> {
        smallest(kind)
    }

    fn written(&self, new: &Value, old: Option<&Value>, subresource: &str) -> Option<Prepared> {
        if subresource.is_empty() {
            return prepared(new, old, None);
        }
        let subresource = Subresource::named(subresource).filter(|named| named.is_stored())?;
        prepared(new, Some(old?), Some(subresource))
    }
}

fn prepared(new: &Value, old: Option<&Value>, subresource: Option<Subresource>) -> Option<Prepared> {
    let (group, version, kind) = type_of(new);
    let info = TABLE.find_kind(group, version, kind).filter(|info| !info.storage_key.is_empty())?;
    if subresource.is_some_and(|subresource| subresource != Subresource::Status && !info.serves(subresource))
    {
        return None;
    }
    let call = call_about(info, object::namespace(new).to_owned(), subresource, Identity::new("admin", []));
    let old = old.map(|old| read_back(&call, old));
    let mut new = new.clone();
    if info.scope == Scope::Cluster {
        // Requests for cluster-scoped objects have no namespace, and the object's is removed.
        object::set_meta(&mut new, "namespace", None);
    }
    Some(match recheck(info, None, new.clone()) {
        Ok(read) => written(&call, read.object, old, read.strict),
        Err(error) => {
            let ResourceInfo { kind, version, .. } = &**info;
            let message = format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {error}");
            let refusal = Some(Status::new(Reason::BadRequest, message));
            Prepared { object: new, old, strict: Vec::new(), refusal, warnings: Vec::new() }
        }
    })
}

/// Builds a call for objects of the kind outside of a server.
pub(super) fn call_about(
    info: &Arc<ResourceInfo>,
    namespace: String,
    subresource: Option<Subresource>,
    identity: Identity,
) -> Call {
    Call {
        info: Arc::clone(info),
        custom: None,
        namespace,
        subresource,
        identity,
        warnings: Warnings::default(),
        emptied: Emptied::default(),
        conversions: Conversions::default(),
        clock: Clock::default(),
        admitted: false,
    }
}

/// Decodes an object as if it had been stored. Objects that cannot be decoded are kept as they are.
pub(super) fn read_back(call: &Call, object: &Value) -> Value {
    let mut read =
        recheck(&call.info, None, object.clone()).map_or_else(|_| object.clone(), |read| read.object);
    kinds::default(call, &mut read);
    read
}

fn type_of(object: &Value) -> (&str, &str, &str) {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = text("apiVersion").rsplit_once('/').unwrap_or(("", text("apiVersion")));
    (group, version, text("kind"))
}

fn written(call: &Call, mut new: Value, old: Option<Value>, strict: Vec<String>) -> Prepared {
    let prefix = object::meta_str(&new, "generateName").to_owned();
    if object::name(&new).is_empty() && !prefix.is_empty() {
        let rest = if has(&call.info, Habit::PrefixIsName) { "" } else { "xxxxx" };
        object::set_meta(&mut new, "name", Some(format!("{prefix}{rest}").into()));
    }
    kinds::default(call, &mut new);
    match &old {
        Some(old) => {
            carry_over(&mut new, old);
            reset_fields::reset(call, &mut new, old);
            kinds::prepare_update(call, &mut new, old);
            count_generation(call, &mut new, old);
        }
        None => {
            if call.info.serves(Subresource::Status) && !kinds::status_is_kept(&call.info) {
                object::set_field(&mut new, "status", empty_status(&call.info));
            }
            kinds::prepare_create(call, &mut new);
        }
    }
    let causes = kinds::validate(call, None, &new, old.as_ref());
    kinds::warnings(call, &new, old.as_ref());
    let refusal =
        (!causes.is_empty()).then(|| Refusal::invalid(&call.info, object::name(&new), causes).into_status());
    Prepared { object: new, old, strict, refusal, warnings: call.warnings.take() }
}
