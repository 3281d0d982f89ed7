//! Implements server-side apply: the configuration creates the object, or is merged into it.

use std::sync::Arc;

use admit_apimachinery::go;
use serde_json::{Map, Value, json};

use super::field_ownership::{Ownership, applied_scale, too_heavy};
use super::patch::bounded;
use super::update::Change;
use super::written::belongs_to_path;
use super::{Answer, Registry};
use crate::builtin::{restore, tables};
use crate::call::{Call, FieldValidation, WriteOptions};
use crate::codec::{self, Body, Format, Unread, recheck_merged};
use crate::managed_fields::{ApplyError, kind_text};
use crate::object;
use crate::status::{Cause, Refusal};

/// The number of attempts if the object is created and removed concurrently.
const ATTEMPTS: usize = 8;

/// A parsed configuration.
struct Configuration {
    value: Value,
    /// The unknown and duplicate fields that strict field validation refuses.
    strict: Option<String>,
}

impl Registry {
    /// # Errors
    /// 400 for a configuration of another kind, 409 for conflicts with other managers, 422 for an invalid
    /// result, 500 for a configuration that does not fit the schema, 404 for a subresource of no object.
    pub(crate) async fn apply(
        &self,
        call: &Call,
        name: &str,
        body: &[u8],
        options: &WriteOptions,
    ) -> Result<Answer, Refusal> {
        call.check_name(name)?;
        let config = read(body)?;
        if let Some(paths) = call.scale() {
            let replicas = self.replicas(call);
            let make = |live: &mut Arc<Value>| {
                let scale = paths.managed_scale_of(live, &replicas);
                let applied = applied_scale(call, &scale, &config.value, options);
                if call.custom.is_some() {
                    own_scale(&scale, &config, applied.as_ref())?;
                }
                Ok(paths.with_managed(live, &applied.map_err(refused)?, &replicas))
            };
            let change = Change { make: &make, uid_is_precondition: false, ownership: Ownership::Settled };
            return self.change(call, name, &change, options).await;
        }
        let mut refusal = None;
        for _ in 0..ATTEMPTS {
            let exists = self.store.latest(&call.key(name)).is_some();
            if !exists && call.subresource.is_some() {
                return Err(Refusal::not_found(&call.info, name));
            }
            let outcome = if exists {
                let make = |live: &mut Arc<Value>| {
                    self.configured(call, name, Some(Arc::make_mut(live)), &config, options)
                };
                let change =
                    Change { make: &make, uid_is_precondition: false, ownership: Ownership::Settled };
                self.change(call, name, &change, options).await
            } else {
                let mut object = self.first(call, name, &config, options).await?;
                // An object created by an apply gets a version of its own, whichever was sent; only a dry run
                // shows the version that was sent.
                if !options.dry_run {
                    object::set_meta(&mut object, "resourceVersion", None);
                }
                self.create_as(call, object, options, Ownership::Settled).await
            };
            match outcome {
                Err(raced) if !exists && raced.reason() == "AlreadyExists" => refusal = Some(raced),
                Err(raced) if exists && raced.reason() == "NotFound" => refusal = Some(raced),
                other => return other,
            }
        }
        Err(refusal.unwrap_or_else(|| Refusal::not_found(&call.info, name)))
    }

    /// Applies a status as the server itself; `call` is for the status of the object `name`.
    ///
    /// # Errors
    /// Those of [`Self::apply`].
    pub(super) async fn apply_status(
        &self,
        call: &Call,
        name: &str,
        status: &Value,
        manager: &str,
    ) -> Result<(), Refusal> {
        let config = json!({"apiVersion": call.info.api_version(), "kind": call.info.kind,
            "metadata": {"name": name}, "status": status});
        let options = WriteOptions { force: true, ..WriteOptions::of(manager) };
        self.apply(call, name, config.to_string().as_bytes(), &options).await.map(drop)
    }

    /// Creates the object from the configuration where none exists.
    async fn first(
        &self,
        call: &Call,
        name: &str,
        config: &Configuration,
        options: &WriteOptions,
    ) -> Result<Value, Refusal> {
        let make = || self.configured(call, name, None, config, options);
        let made = call.conversions.provide(self, make).await;
        call.conversions.failure().map_or(made, |failed| Err(failed.into()))
    }

    fn configured(
        &self,
        call: &Call,
        name: &str,
        live: Option<&mut Value>,
        config: &Configuration,
        options: &WriteOptions,
    ) -> Result<Value, Refusal> {
        let is_new = live.is_none();
        let mut merged = self.merged(call, live, &config.value, options).map_err(refused)?;
        bounded(&merged)?;
        match (&config.strict, options.field_validation) {
            (Some(why), FieldValidation::Strict) => {
                return Err(Refusal::bad_request(format!("error strict decoding YAML: {why}")));
            }
            (Some(why), FieldValidation::Warn) => call.warnings.add(why.as_str()),
            _ => {}
        }
        let info = &call.info;
        if let Some(id) = tables().kind(&info.group, &info.version, &info.kind).filter(|_| info.builtin) {
            merged = restore(tables(), id, merged).map_err(|why| {
                let kind = kind_text(&info.api_version(), &info.kind);
                inconvertible(
                    &config.value,
                    &format!("unable to convert unstructured object to {kind}: {why}"),
                )
            })?;
        }
        let received = recheck_merged(&call.info, call.custom.as_deref(), merged)
            .map_err(|why| why.refusal(|why| inconvertible(&config.value, &why)))?;
        call.emptied.set(received.emptied);
        let mut object = received.object;
        let uid = object::uid(&object);
        if is_new && !uid.is_empty() {
            let why = format!(
                "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            );
            return Err(Refusal::conflict(&call.info, name, &why));
        }
        belongs_to_path(call, &mut object)?;
        match object::name(&object) {
            own if own == name => Ok(object),
            own => Err(Refusal::bad_request(format!(
                "the name of the object ({own}) does not match the name on the URL ({name})"
            ))),
        }
    }
}

/// Refuses what upstream fails to convert: the scale of a custom resource where no manager owns any of it, and
/// the configuration changes it.
///
/// # Errors
/// 500 in these cases.
fn own_scale(
    scale: &Value,
    config: &Configuration,
    applied: Result<&Value, &ApplyError>,
) -> Result<(), Refusal> {
    const WHY: &str = "request to convert CR to an invalid group/version: autoscaling/v1";
    let is_owned = object::meta(scale, "managedFields").is_some();
    let parts = |scale: &'_ Value| ["spec", "status"].map(|part| scale.get(part).cloned());
    match applied {
        Err(ApplyError::Kind(_)) => Ok(()),
        _ if !is_owned => Err(Refusal::unclassified(format!(
            "failed to create manager for existing fields: failed to convert live object (/; autoscaling/v1, Kind=Scale) to \
             proper version: {WHY}"
        ))),
        Ok(applied) if parts(applied) != parts(scale) => Err(inconvertible(&config.value, WHY)),
        _ => Ok(()),
    }
}

/// Parses a configuration; JSON is parsed as YAML.
fn read(body: &[u8]) -> Result<Configuration, Refusal> {
    let undecodable = |why: &str| Refusal::bad_request(format!("error decoding YAML: {why}"));
    let body = Body { format: Format::Yaml, bytes: body.to_vec().into() };
    let unread =
        |why: Unread| why.refusal(|why| undecodable(&format!("error converting YAML to JSON: {why}")));
    let document = codec::parse(&body).map_err(unread)?;
    let value = match document.value {
        Value::Null => Value::Object(Map::new()),
        value @ Value::Object(_) => value,
        other => {
            let found = go::json::kind(&other);
            return Err(undecodable(&format!(
                "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {found} into Go value of type \
                 map[string]interface {{}}"
            )));
        }
    };
    let strict = (!document.duplicates.is_empty())
        .then(|| format!("error converting YAML to JSON: {}", codec::yaml_strict_text(&document.duplicates)));
    Ok(Configuration { value, strict })
}

/// Returns the refusal of a merged object that cannot be decoded as its kind.
fn inconvertible(config: &Value, why: &str) -> Refusal {
    let text = |field: &str| config.get(field).and_then(Value::as_str).unwrap_or_default();
    Refusal::unclassified(format!(
        "failed to convert new object ({}/{}; {}) to proper version: {why}",
        object::namespace(config),
        object::name(config),
        kind_text(text("apiVersion"), text("kind"))
    ))
}

fn refused(error: ApplyError) -> Refusal {
    match error {
        ApplyError::Conflicts(conflicts) => {
            let (told, _) = conflicts.told();
            let causes = told.iter().map(|conflict| Cause {
                reason: "FieldManagerConflict".into(),
                field: conflict.field(),
                message: conflict.message(),
            });
            Refusal::apply_conflict(conflicts.to_string(), causes.collect())
        }
        ApplyError::Kind(_) | ApplyError::ManagedFields => Refusal::bad_request(error.to_string()),
        ApplyError::Untyped(why) => Refusal::unclassified(why),
        ApplyError::TooHeavy(why) => too_heavy(why),
    }
}
