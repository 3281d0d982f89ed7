//! Implements PUT, and the common path of every change to an existing object: read, change, validate, admit, write, and
//! retry if another write came in between.

use std::sync::Arc;

use admit_apimachinery::go;
use serde_json::Value;

use super::allotments::Allotment;
use super::field_ownership::{self, Ownership};
use super::updated_object::UpdatedObject;
use super::written::{belongs_to_path, remade};
use super::{Answer, Registry, kinds, reset_fields, storage_version, stored_text};
use crate::admission::Review;
use crate::call::{Call, WriteOptions};
use crate::conversion::version_of;
use crate::kinds::{Habit, has};
use crate::object;
use crate::resources::Subresource;
use crate::status::{Cause, Refusal};
use crate::store::{Expect, Revision, StoreError};
use crate::validation::metadata;

/// The number of attempts if the object is changed concurrently.
const ATTEMPTS: usize = 32;

/// A change of an existing object.
pub(super) struct Change<'c> {
    /// Makes the wanted object from the live one, as the caller sees it. It may take the live object apart.
    pub(super) make: &'c (dyn Fn(&mut Arc<Value>) -> Result<Value, Refusal> + Send + Sync),
    /// Whether another uid is a failed precondition; otherwise it is a change of an immutable field.
    pub(super) uid_is_precondition: bool,
    pub(super) ownership: Ownership,
}

impl Registry {
    /// Replaces the object `name` with `object`, which was decoded as the call's kind.
    ///
    /// # Errors
    /// 400 for an object that does not match the path, 404, 409 for a stale resourceVersion, 422.
    pub(crate) async fn update(
        &self,
        call: &Call,
        name: &str,
        mut object: Value,
        options: &WriteOptions,
    ) -> Result<Answer, Refusal> {
        belongs_to_path(call, &mut object)?;
        named(&object, name)?;
        call.check_name(name)?;
        if self.store.latest(&call.key(name)).is_none() && has(&call.info, Habit::CreatedByUpdate) {
            return self.create(call, object, options).await;
        }
        if call.scale().is_some() && call.info.builtin {
            let causes = metadata::validate_scale(&call.info, &object);
            if !causes.is_empty() {
                return Err(kinds::invalid(call, &object, name, causes));
            }
        }
        let wanted = UpdatedObject::new(object);
        let make = |live: &mut Arc<Value>| {
            let object = wanted.take();
            Ok(match call.scale() {
                Some(paths) => {
                    let mut scaled = paths.with_scale(live, &object);
                    if !object::uid(&object).is_empty() {
                        object::copy_meta(&object, &mut scaled, "uid");
                    }
                    scaled
                }
                None => object,
            })
        };
        let change = Change { make: &make, uid_is_precondition: true, ownership: Ownership::Tracked };
        self.change(call, name, &change, options).await
    }

    pub(super) async fn change(
        &self,
        call: &Call,
        name: &str,
        change: &Change<'_>,
        options: &WriteOptions,
    ) -> Result<Answer, Refusal> {
        let key = call.key(name);
        for _ in 0..ATTEMPTS {
            let live = self.store.latest(&key).ok_or_else(|| Refusal::not_found(&call.info, name))?;
            let outdated =
                kinds::reads_otherwise(&call.info, &live.object) || is_outdated(call, &live.object);
            let revision = live.revision;
            let mut old = self.shown(call, live.object).await?;
            let wanted = self.made(call, change, &mut old).await?;
            if change.uid_is_precondition {
                same_object(call, name, (&wanted, &*old), options.dry_run)?;
            }
            newest_version(call, name, &wanted, &old)?;
            let new = self.owned(call, wanted, &old, options, change.ownership).await?;
            let review = Review::update(call, name, (&new, &*old), options.dry_run, options.to_value());
            let new = match self.mutate(&review).await? {
                Some(changed) => remade(call, &new, changed)?,
                None => new,
            };
            let (mut new, allotment) = self.checked(call, name, new, &old, options).await?;
            kinds::default_stored(call, &mut new);
            let new = storage_version::arranged(&call.info, new);
            if !outdated && new == *old {
                return Ok(Answer::ok(answered(call, new.into())));
            }
            let charge = self.charge(call, &new, Some(&old), options.dry_run).await?;
            if options.dry_run {
                let shown = storage_version::arranged(&call.info, self.as_if_stored(call, new).await?);
                return Ok(Answer::ok(answered(call, shown.into())));
            }
            // Frees a copy of a possibly large object.
            drop(old);
            match self.write(call, name, revision, new).await? {
                Ok(object) => {
                    if let Some(charge) = charge {
                        charge.settle();
                    }
                    if let Some(allotment) = allotment {
                        self.settle_allotment(allotment, &call.namespace, name).await;
                    }
                    self.recount(call);
                    let kept = self.after_write(call, name).await;
                    let stored = stored_text::seen(call, kept, &object);
                    return Ok(Answer { code: 200, object: answered(call, object), stored });
                }
                // Retried: if the client named a version, it is stale now and refused.
                Err(StoreError::Conflict(_)) => {}
                Err(other) => return Err(super::store_failed(&other)),
            }
        }
        Err(Refusal::modified(&call.info, name))
    }

    /// Returns what the client wants in place of `old`.
    async fn made(&self, call: &Call, change: &Change<'_>, old: &mut Arc<Value>) -> Result<Value, Refusal> {
        if call.converter().is_none() {
            return (change.make)(old);
        }
        let wanted = call.conversions.provide(self, || (change.make)(&mut Arc::clone(old))).await;
        // An apply merges in the versions of all managers.
        call.conversions.failure().map_or(wanted, |failed| Err(failed.into()))
    }

    /// Returns the wanted object with defaults and its new managed fields.
    async fn owned(
        &self,
        call: &Call,
        mut wanted: Value,
        old: &Value,
        options: &WriteOptions,
        ownership: Ownership,
    ) -> Result<Value, Refusal> {
        if let Some(warning) = metadata::dedup_owners(&mut wanted) {
            call.warnings.add(warning);
        }
        kinds::default(call, &mut wanted);
        match (ownership, call.scale()) {
            (Ownership::Settled, _) => Ok(wanted),
            (Ownership::Tracked, Some(paths)) => self.track_scale(call, (paths, old), &wanted, options),
            (Ownership::Tracked, None) => self.tracked(call, Some(old), wanted, options).await,
        }
    }

    async fn checked(
        &self,
        call: &Call,
        name: &str,
        wanted: Value,
        old: &Value,
        options: &WriteOptions,
    ) -> Result<(Value, Option<Allotment<'_>>), Refusal> {
        let mut new = wanted;
        carry_over(&mut new, old);
        reset_fields::reset(call, &mut new, old);
        kinds::prepare_update(call, &mut new, old);
        count_generation(call, &mut new, old);
        field_ownership::keep_times(&mut new, old);
        let allotment = self.allot(call, &mut new, Some(old), options.dry_run)?;
        self.authorization.refuse_escalation(self, call, &new, Some(old))?;
        let causes = kinds::validate(call, Some(self), &new, Some(old));
        if !causes.is_empty() {
            return Err(kinds::invalid(call, &new, name, causes));
        }
        kinds::warnings(call, &new, Some(old));
        let review = Review::update(call, name, (&new, old), options.dry_run, options.to_value());
        self.admit(&review).await?;
        Ok((new, allotment))
    }

    /// Writes the change and returns the result; removes an object that only waited for its last finalizer.
    async fn write(
        &self,
        call: &Call,
        name: &str,
        revision: Revision,
        new: Value,
    ) -> Result<Result<Arc<Value>, StoreError>, Refusal> {
        let key = call.key(name);
        if kinds::is_finished(&call.info, &new) {
            // Watchers see the object as it was stored last, not the change that ended it.
            let Some(live) = self.store.latest(&key).filter(|live| live.revision == revision) else {
                return Ok(Err(StoreError::Conflict(None)));
            };
            return Ok(match self.store.delete_unchanged(&key, revision).await {
                Ok(_) => {
                    self.after_delete(call, &live.object).await;
                    Ok(new.into())
                }
                Err(error) => Err(error),
            });
        }
        let form = self.stored_form(call, new).await?;
        match self.store.put(&key, Expect::Revision(revision), form).await {
            Ok(stored) => Ok(Ok(self.shown(call, stored.object).await?)),
            Err(error) => Ok(Err(error)),
        }
    }
}

/// Returns whether the object is stored in an old storage version: even a change without effect then rewrites it in the
/// current one, which is how stored versions are migrated.
fn is_outdated(call: &Call, stored: &Value) -> bool {
    call.custom.is_some() && version_of(stored) != call.info.stored_as()
}

/// Checks that the object has the name in the path.
pub(super) fn named(object: &Value, name: &str) -> Result<(), Refusal> {
    match object::name(object) {
        "" => Err(Refusal::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        ))),
        own if own == name => Ok(()),
        own => Err(Refusal::bad_request(format!(
            "the name of the object ({own}) does not match the name on the URL ({name})"
        ))),
    }
}

fn same_object(
    call: &Call,
    name: &str,
    (wanted, old): (&Value, &Value),
    dry_run: bool,
) -> Result<(), Refusal> {
    let (uid, own) = (object::uid(wanted), object::uid(old));
    if uid.is_empty() || uid == own {
        return Ok(());
    }
    Err(unlike(call, name, ("UID", uid, own), dry_run))
}

/// Builds the refusal of a change for an object with another uid or version, from what was named, expected and found.
/// The message has the key's prefix, except for a dry run.
pub(super) fn unlike(
    call: &Call,
    name: &str,
    (what, meant, own): (&str, &str, &str),
    dry_run: bool,
) -> Refusal {
    let prefix = if dry_run { "" } else { "/registry" };
    let at = if call.namespace.is_empty() { name.to_owned() } else { format!("{}/{name}", call.namespace) };
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {prefix}/{}/{at}, ResourceVersion: 0, AdditionalErrorMsg: \
         Precondition failed: {what} in precondition: {meant}, {what} in object meta: {own}",
        call.info.storage_key,
    );
    Refusal::conflict(&call.info, name, &why)
}

/// Checks that a resourceVersion, if the client names one, is the latest.
fn newest_version(call: &Call, name: &str, wanted: &Value, old: &Value) -> Result<(), Refusal> {
    match object::resource_version(wanted) {
        "" | "0" if kinds::needs_resource_version(&call.info) => {
            let field = "metadata.resourceVersion";
            let cause = Cause::invalid(field, &0.into(), "must be specified for an update");
            // Only this refusal names the resource instead of the kind.
            Err(Refusal::invalid_kind(&call.info.group, &call.info.plural, name, vec![cause]))
        }
        "" | "0" => Ok(()),
        version if version == object::resource_version(old) => Ok(()),
        version => match go::integer::parse_uint_or_error(version) {
            Ok(_) => Err(Refusal::modified(&call.info, name)),
            Err(why) => Err(Refusal::unclassified(why.to_string())),
        },
    }
}

fn answered(call: &Call, object: Arc<Value>) -> Arc<Value> {
    call.scale().map(|paths| paths.scale_of(&object).into()).unwrap_or(object)
}

/// Copies metadata that an update cannot change from the old object.
pub(super) fn carry_over(new: &mut Value, old: &Value) {
    object::set_meta(new, "selfLink", None);
    for field in ["creationTimestamp", "generation", "resourceVersion"] {
        object::copy_meta(old, new, field);
    }
    // A deletion in progress stays; its grace period can be omitted, but not changed.
    if object::is_terminating(old) {
        object::copy_meta(old, new, "deletionTimestamp");
    }
    if object::meta(new, "deletionGracePeriodSeconds").is_none() {
        object::copy_meta(old, new, "deletionGracePeriodSeconds");
    }
    if object::uid(new).is_empty() {
        object::copy_meta(old, new, "uid");
    }
}

pub(super) fn count_generation(call: &Call, new: &mut Value, old: &Value) {
    let uncounted = matches!(call.subresource, Some(Subresource::Status | Subresource::Binding));
    if !kinds::has_generation(&call.info) || uncounted {
        return;
    }
    let has_status = call.info.serves(Subresource::Status);
    let counts = |name: &str| name != "metadata" && !(has_status && name == "status");
    // A Deployment's annotations are copied to its ReplicaSets.
    let annotations_count = call.info.builtin && call.info.plural == "deployments";
    let annotated = |object: &Value| object::meta(object, "annotations").cloned();
    let same = same_members(call, new, old, counts) && !kinds::counts_emptied(call, new);
    let changed = !same || (annotations_count && annotated(new) != annotated(old));
    if changed {
        let generation = object::generation(old) + 1;
        object::set_meta(new, "generation", Some(generation.into()));
    }
}

/// Returns whether the counting members of two objects are equal, by meaning for built-in kinds.
fn same_members(call: &Call, one: &Value, other: &Value, counts: impl Fn(&str) -> bool) -> bool {
    let (Value::Object(one), Value::Object(other)) = (one, other) else { return one == other };
    let mut names = one.keys().chain(other.keys()).filter(|name| counts(name));
    names.all(|name| {
        let [one, other] = [one, other].map(|members| members.get(name));
        one == other || kinds::alike(&call.info, name, one, other)
    })
}
