//! Implements DELETE of one object and of a collection: preconditions, finalizers, grace periods, and propagation.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{Answer, Registry, kinds};
use crate::admission::Review;
use crate::call::{Call, DeleteOptions, ListOptions, Propagation};
use crate::conversion::Conversions;
use crate::kinds::{Habit, has};
use crate::status::{Refusal, deleted};
use crate::store::{Expect, StoreError, Stored};
use crate::{interrupt, object};

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";
const ATTEMPTS: usize = 32;

/// The response to a DELETE.
enum Answered {
    /// The object in its stored form.
    Shown(Arc<Value>),
    /// A Status that it was removed.
    Told(Value),
}

impl Registry {
    /// # Errors
    /// 404, 403, 409 if a precondition does not hold.
    pub(crate) async fn delete(
        &self,
        call: &Call,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Answer, Refusal> {
        self.delete_named(call, (name, name), options).await
    }

    /// Deletes the object `name`. `told` is the name in admission reviews: empty for an object that is deleted with its
    /// collection, as the request has no name.
    async fn delete_named(
        &self,
        call: &Call,
        (name, told): (&str, &str),
        options: &DeleteOptions,
    ) -> Result<Answer, Refusal> {
        let key = call.key(name);
        warn_of_orphans(call, options);
        call.check_name(name)?;
        for _ in 0..ATTEMPTS {
            let live = self.store.latest_once(&key);
            let live = live.ok_or_else(|| Refusal::not_found(&call.info, name))?;
            preconditions(call, name, &live.object, options)?;
            let old = self.shown(call, Arc::clone(&live.object)).await?;
            let review = Review::delete(call, told, &old, options);
            self.mutate(&review).await?;
            self.admit(&review).await?;
            drop(review);
            drop(old);
            match self.delete_once(call, name, live, options).await {
                Err(StoreError::Conflict(_)) => {}
                Err(other) => return Err(super::store_failed(&other)),
                Ok(Answered::Shown(object)) => return Ok(Answer::ok(self.shown(call, object).await?)),
                Ok(Answered::Told(status)) => return Ok(Answer::ok(status)),
            }
        }
        Err(Refusal::modified(&call.info, name))
    }

    async fn delete_once(
        &self,
        call: &Call,
        name: &str,
        live: Stored,
        options: &DeleteOptions,
    ) -> Result<Answered, StoreError> {
        let key = call.key(name);
        let Stored { revision, object: live } = live;
        let mut marked = object::copied(&live);
        kinds::read(&call.info, &mut marked);
        let grace = mark(call, &mut marked, options);
        let kept =
            !object::finalizers(&marked).is_empty() || grace > 0 || kinds::is_held(&call.info, &marked);
        if !kept {
            let mut last = marked;
            if !options.dry_run {
                // Watchers see the object as it was stored last, without deletion marks; graceful kinds are stored with
                // these first, even if the grace period is zero.
                let is_told = has(&call.info, Habit::Graceful) && !has(&call.info, Habit::HidesGrace);
                let revision = if is_told && last != *live {
                    let told = self.store.put_once(&key, Expect::Revision(revision), last).await?;
                    last = Arc::unwrap_or_clone(told.object);
                    told.revision
                } else {
                    revision
                };
                let removed = self.store.delete_unchanged(&key, revision).await?;
                object::set_meta(&mut last, "resourceVersion", Some(removed.to_string().into()));
                self.after_delete(call, &live).await;
            }
            return Ok(if has(&call.info, Habit::AnswersDeleted) {
                Answered::Shown(last.into())
            } else {
                Answered::Told(deleted(&call.info, name, object::uid(&last)))
            });
        }
        if options.dry_run || marked == *live {
            return Ok(Answered::Shown(marked.into()));
        }
        drop(live);
        let stored = self.store.put(&key, Expect::Revision(revision), marked).await?;
        self.after_write(call, name).await;
        Ok(Answered::Shown(stored.object))
    }

    /// Deletes everything that `list` selects; returns the list of the deleted objects.
    ///
    /// # Errors
    /// The first refusal; what was deleted before stays deleted.
    pub(crate) async fn delete_collection(
        &self,
        call: &Call,
        list: &ListOptions,
        options: &DeleteOptions,
    ) -> Result<Answer, Refusal> {
        let listing = self.list(call, list).await?;
        warn_of_orphans(call, options);
        for item in &listing.items {
            // Without a namespace everything is listed, and nothing can be deleted.
            call.check_name(object::name(item))?;
            let about = Call {
                namespace: object::namespace(item).to_owned(),
                // Conversions of one object are of no use for the next.
                conversions: Conversions::default(),
                ..call.clone()
            };
            match self.delete_named(&about, (object::name(item), ""), options).await {
                Ok(_) => {}
                // Another request deleted it first.
                Err(gone) if gone.code() == 404 => {}
                Err(other) => return Err(other),
            }
            // A deletion that has begun is completed; the rest stays if the request's time is over.
            interrupt::withdraw();
            interrupt::checkpoint();
        }
        Ok(Answer::ok(listing.into_value(&call.info)))
    }
}

fn warn_of_orphans(call: &Call, options: &DeleteOptions) {
    if call.info.builtin && call.info.plural == "jobs" && options.propagation.is_none() {
        call.warnings.add(
            "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove \
             them or set propagationPolicy=Orphan to suppress this warning",
        );
    }
}

pub(super) fn preconditions(
    call: &Call,
    name: &str,
    live: &Value,
    options: &DeleteOptions,
) -> Result<(), Refusal> {
    if let Some(uid) = &options.uid
        && uid != object::uid(live)
    {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been \
             deleted and then recreated",
            object::uid(live)
        );
        return Err(Refusal::precondition_failed(&call.info, name, &why));
    }
    if let Some(version) = &options.resource_version
        && version != object::resource_version(live)
    {
        let why = format!(
            "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({}). The \
             object might have been modified",
            object::resource_version(live)
        );
        return Err(Refusal::precondition_failed(&call.info, name, &why));
    }
    Ok(())
}

/// Marks the object as terminating; returns the remaining grace period in seconds.
fn mark(call: &Call, object: &mut Value, options: &DeleteOptions) -> i64 {
    let grace = kinds::grace_period(&call.info, object, options.grace_period_seconds);
    // For kinds with a termination of their own the first DELETE does not involve the garbage collector.
    if object::is_terminating(object) || !has(&call.info, Habit::EndsByItself) {
        finalizers(call, object, options.propagation);
    }
    if object::is_terminating(object) {
        return shortened(object, grace);
    }
    if kinds::mark_deleted(call, object) {
        return grace;
    }
    let held = grace > 0 || !object::finalizers(object).is_empty() || kinds::is_held(&call.info, object);
    if held || has(&call.info, Habit::Graceful) {
        let at = call.clock.now().saturating_add(SignedDuration::from_secs(grace)).unwrap_or(Timestamp::MAX);
        object::set_meta(object, "deletionTimestamp", Some(object::seconds(at).into()));
        if !has(&call.info, Habit::HidesGrace) {
            object::set_meta(object, "deletionGracePeriodSeconds", Some(grace.into()));
        }
        if object::generation(object) > 0 {
            let generation = object::generation(object) + 1;
            object::set_meta(object, "generation", Some(generation.into()));
        }
    }
    grace
}

/// Applies the grace period of a later DELETE, which can only shorten the remaining one.
fn shortened(object: &mut Value, grace: i64) -> i64 {
    let before = object::meta(object, "deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0);
    if grace >= before {
        return before;
    }
    if let Ok(at) = object::meta_str(object, "deletionTimestamp").parse::<Timestamp>() {
        let earlier = at.saturating_sub(SignedDuration::from_secs(before - grace)).unwrap_or(at);
        object::set_meta(object, "deletionTimestamp", Some(object::seconds(earlier).into()));
    }
    object::set_meta(object, "deletionGracePeriodSeconds", Some(grace.into()));
    grace
}

/// Sets the finalizers that tell the garbage collector what to do with dependents.
fn finalizers(call: &Call, object: &mut Value, propagation: Option<Propagation>) {
    let current: Vec<String> = object::finalizers(object).into_iter().map(str::to_owned).collect();
    let holds = |name: &str| current.iter().any(|finalizer| finalizer == name);
    let wanted = match propagation.filter(|_| !has(&call.info, Habit::Uncollected)) {
        Some(Propagation::Orphan) => Some(ORPHAN),
        Some(Propagation::Foreground) => Some(FOREGROUND),
        Some(Propagation::Background) => None,
        None if has(&call.info, Habit::Uncollected) => None,
        None if holds(ORPHAN) => Some(ORPHAN),
        None if holds(FOREGROUND) => Some(FOREGROUND),
        None => has(&call.info, Habit::OrphansByDefault).then_some(ORPHAN),
    };
    let mut next: Vec<String> = current
        .iter()
        .filter(|name| (*name != ORPHAN && *name != FOREGROUND) || wanted == Some(name.as_str()))
        .cloned()
        .collect();
    if let Some(wanted) = wanted.filter(|wanted| !holds(wanted)) {
        next.push(wanted.to_owned());
    }
    if next != current {
        let value = (!next.is_empty()).then(|| json!(next));
        object::set_meta(object, "finalizers", value);
    }
}
