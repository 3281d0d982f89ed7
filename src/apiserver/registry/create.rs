//! Implements POST: creates an object.

use serde_json::Value;
use uuid::Uuid;

use super::allotments::Allotment;
use super::field_ownership::Ownership;
use super::quotas::Charge;
use super::written::{belongs_to_path, remade};
use super::{Answer, Registry, kinds, storage_version, stored_text};
use crate::admission::Review;
use crate::call::{Call, WriteOptions};
use crate::kinds::{Habit, has};
use crate::object;
use crate::resources::Subresource;
use crate::status::Refusal;
use crate::store::{Expect, StoreError};
use crate::validation::metadata;

/// The metadata that a client cannot set on a new object.
const SYSTEM_FIELDS: [&str; 5] =
    ["selfLink", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"];

/// The number of attempts to generate a name that is free.
const NAME_ATTEMPTS: usize = 8;

impl Registry {
    /// Creates `object`, which was decoded as the call's kind.
    ///
    /// # Errors
    /// 400 for an object that does not match the path, 403, 409 if the name is taken, 422.
    pub(crate) async fn create(
        &self,
        call: &Call,
        object: Value,
        options: &WriteOptions,
    ) -> Result<Answer, Refusal> {
        self.create_as(call, object, options, Ownership::Tracked).await
    }

    pub(super) async fn create_as(
        &self,
        call: &Call,
        object: Value,
        options: &WriteOptions,
        ownership: Ownership,
    ) -> Result<Answer, Refusal> {
        let generated =
            object::name(&object).is_empty() && !object::meta_str(&object, "generateName").is_empty();
        // Only an object with a generated name is kept for another attempt.
        if !generated {
            return self.create_once(call, object, options, ownership).await;
        }
        let mut refusal = None;
        for _ in 0..NAME_ATTEMPTS {
            match self.create_once(call, object.clone(), options, ownership).await {
                Err(taken) if taken.reason() == "AlreadyExists" => refusal = Some(taken),
                other => return other,
            }
        }
        Err(refusal.unwrap_or_else(|| Refusal::internal("no name could be generated")))
    }

    async fn create_once(
        &self,
        call: &Call,
        mut object: Value,
        options: &WriteOptions,
        ownership: Ownership,
    ) -> Result<Answer, Refusal> {
        belongs_to_path(call, &mut object)?;
        let mut given_version = object::resource_version(&object).to_owned();
        for field in SYSTEM_FIELDS {
            object::set_meta(&mut object, field, None);
        }
        if let Some(warning) = metadata::dedup_owners(&mut object) {
            call.warnings.add(warning);
        }
        let is_read_otherwise = kinds::reads_otherwise(&call.info, &object);
        kinds::default(call, &mut object);
        if ownership == Ownership::Tracked {
            object = self.tracked(call, None, object, options).await?;
        }
        let given_name = object::name(&object).to_owned();
        let review = Review::create(call, &given_name, &object, options.dry_run, options.to_value());
        if let Some(changed) = self.mutate(&review).await? {
            object = remade(call, &object, changed)?;
            // What admission set counts as sent.
            if !object::resource_version(&object).is_empty() {
                object::resource_version(&object).clone_into(&mut given_version);
                object::set_meta(&mut object, "resourceVersion", None);
            }
        }
        fill_metadata(call, &mut object);
        if call.info.serves(Subresource::Status) && !kinds::status_is_kept(&call.info) {
            object::set_field(&mut object, "status", storage_version::empty_status(&call.info));
        }
        kinds::prepare_create(call, &mut object);
        if is_read_otherwise {
            kinds::read_anew(&call.info, &mut object);
        }
        kinds::refuse_create(call, &object)?;
        let allotment = self.allot(call, &mut object, None, options.dry_run)?;
        self.authorization.refuse_escalation(self, call, &object, None)?;
        let causes = kinds::validate(call, Some(self), &object, None);
        let name = object::name(&object).to_owned();
        if !causes.is_empty() {
            return Err(kinds::invalid(call, &object, &name, causes));
        }
        kinds::warnings(call, &object, None);
        let review = Review::create(call, &name, &object, options.dry_run, options.to_value());
        self.admit(&review).await?;
        drop(review);
        kinds::default_stored(call, &mut object);
        let charge = self.charge(call, &object, None, options.dry_run).await?;
        let held = Held { charge, allotment };
        self.store_new(call, &name, (object, held), options.dry_run, &given_version).await
    }

    async fn store_new(
        &self,
        call: &Call,
        name: &str,
        (object, held): (Value, Held<'_>),
        dry_run: bool,
        given_version: &str,
    ) -> Result<Answer, Refusal> {
        // Invalid numbers count as none; Go accepts no sign here.
        let is_version = given_version.parse::<u64>().is_ok_and(|version| version != 0);
        let is_version = is_version && !given_version.starts_with('+');
        if is_version && !dry_run {
            return Err(Refusal::unclassified("resourceVersion should not be set on objects to be created"));
        }
        let key = call.key(name);
        if let Some(existing) = self.store.latest(&key) {
            return Err(already_exists(call, name, &existing.object));
        }
        if dry_run {
            let mut object = self.as_if_stored(call, object).await?;
            kinds::read(&call.info, &mut object);
            if !given_version.is_empty() {
                object::set_meta(&mut object, "resourceVersion", Some(given_version.into()));
            }
            let object = storage_version::arranged(&call.info, object).into();
            return Ok(Answer { code: 201, object, stored: None });
        }
        let form = self.stored_form(call, object).await?;
        let stored = match self.store.put(&key, Expect::Absent, form).await {
            Ok(stored) => stored,
            Err(StoreError::Conflict(_)) => return Err(Refusal::already_exists(&call.info, name)),
            Err(other) => return Err(super::store_failed(&other)),
        };
        match held.charge {
            Some(charge) => charge.settle(),
            None => self.recount(call),
        }
        if let Some(allotment) = held.allotment {
            self.settle_allotment(allotment, &call.namespace, name).await;
        }
        let kept = self.after_write(call, name).await;
        let object = self.shown(call, stored.object).await?;
        let stored = stored_text::seen(call, kept, &object);
        Ok(Answer { code: 201, object, stored })
    }
}

/// Holds what was allocated for an object that is about to be stored; released unless settled.
struct Held<'r> {
    charge: Option<Charge<'r>>,
    allotment: Option<Allotment<'r>>,
}

fn already_exists(call: &Call, name: &str, existing: &Value) -> Refusal {
    let refusal = Refusal::already_exists(&call.info, name);
    if object::is_terminating(existing) { refusal.prefixed("object is being deleted: ") } else { refusal }
}

/// Sets the metadata that the server controls, whatever the client sent.
pub(super) fn fill_metadata(call: &Call, object: &mut Value) {
    if object::name(object).is_empty() {
        let prefix = object::meta_str(object, "generateName").to_owned();
        if !prefix.is_empty() {
            let whole = has(&call.info, Habit::PrefixIsName);
            let name = if whole { prefix } else { generated_name(&prefix) };
            object::set_meta(object, "name", Some(name.into()));
        }
    }
    object::set_meta(object, "uid", Some(Uuid::new_v4().to_string().into()));
    object::set_meta(object, "creationTimestamp", Some(call.clock.stamp().into()));
}

/// Generates a name: the prefix and five random characters, at most 63 bytes in all.
fn generated_name(prefix: &str) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    const LONGEST_PREFIX: usize = 58;
    let mut name: String = prefix.chars().take(LONGEST_PREFIX).collect();
    for byte in Uuid::new_v4().as_bytes().iter().take(5) {
        let letter = LETTERS.get(usize::from(*byte) % LETTERS.len()).copied().unwrap_or(b'x');
        name.push(char::from(letter));
    }
    name
}
