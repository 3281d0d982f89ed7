//! Implements field ownership: updates `metadata.managedFields` of changed objects, and server-side apply.
//!
//! ```text
//! Writer ──► updater ──► typed (compare, merge, owned, without) ──► schema
//!    │          └──► conflict                └──► path (elements, sets, fieldsV1)
//!    └──► managers, upkeep, last_applied
//! ```
//!
//! All functions are pure: their inputs are the live object, the sent one and the time. Decoding, defaults, validation and
//! storing are left to the registry.

pub(crate) mod configuration;
mod conflict;
mod last_applied;
pub mod managers;
pub mod path;
pub(crate) mod scale;
pub mod schema;
pub mod typed;
mod updater;
mod upkeep;

use admit_apimachinery::weight;
use serde_json::Value;

pub use conflict::{Conflict, Conflicts};
pub use updater::Versions;

use self::managers::{Entries, Manager, Managers, Operation, Owned};
use self::path::FieldSet;
use self::typed::{Duplicates, Problems};
use self::updater::{Merged, Updater};
use crate::object;

/// The manager of all fields that an object had before its first apply.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Limit of an object's memory in bytes, with its managers. While a small patch is applied to a stored object, the object
/// exists twice, with sets of its fields and its JSON, and a request may take 64 MiB however short it is: patches of objects
/// of this size take 62. The heaviest objects in use within the 1.5 MiB that upstream's store accepts, with 20,000 owners, rules
/// or variables with names, take some 20 MiB.
pub(crate) const MAX_WEIGHT: usize = 23 << 20;

/// The object would exceed `MAX_WEIGHT` with the entries of its managers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the object would take more than {MAX_WEIGHT} bytes of memory with the names of its fields' managers; divide it into \
     several objects"
)]
pub struct TooHeavy;

/// Why a configuration cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    #[error("{0}")]
    Conflicts(Conflicts),
    /// The configuration has another kind, or none.
    #[error("invalid object type: {0}")]
    Kind(String),
    #[error("metadata.managedFields must be nil")]
    ManagedFields,
    /// The object does not fit the schema; holds the whole message.
    #[error("{0}")]
    Untyped(String),
    #[error(transparent)]
    TooHeavy(#[from] TooHeavy),
}

/// One write: its manager, subresource, version and time.
#[derive(Clone, Copy, Debug)]
pub struct Writer<'w> {
    pub versions: &'w dyn Versions,
    /// The version of the request, which must be known to `versions`.
    pub api_version: &'w str,
    pub kind: &'w str,
    /// Empty for the object itself.
    pub subresource: &'w str,
    /// The fields that the registry resets after this kind of write, whatever was sent.
    pub ignored: &'w FieldSet,
    /// Fields that an update counts as changed although their values are equal.
    pub rewritten: &'w FieldSet,
    /// Empty if unknown.
    pub manager: &'w str,
    /// UTC with whole seconds.
    pub now: &'w str,
}

impl Writer<'_> {
    /// Sets the `managedFields` of `new`, which is to replace `live` (on creation, the empty object of its kind). An existing
    /// object without managers stays without.
    ///
    /// # Errors
    /// The object would be too large, and would grow.
    pub fn updated(&self, live: &Value, new: &mut Value) -> Result<(), TooHeavy> {
        let managers = self.known_managers(live, new);
        object::set_meta(new, "managedFields", None);
        let untracked = managers.is_empty() && !object::uid(live).is_empty() || self.is_lost(&managers);
        let tracked = match untracked {
            true => Managers::new(),
            // Where either object does not fit the schema, all managers are dropped.
            false => self
                .updated_managers(live, new, managers, self.manager)
                .map(upkeep::capped)
                .unwrap_or_default(),
        };
        bounded(weight::of(live), new, managers::weight(&tracked))?;
        object::set_meta(new, "managedFields", managers::encode(tracked));
        Ok(())
    }

    /// Applies `config` to `live`. Fields that the configuration owned before and no longer contains are removed,
    /// unless another manager owns them.
    ///
    /// # Errors
    /// Conflicts without `force`, configurations that do not fit the schema, and objects that would be too large.
    ///
    /// The entries of `live` are removed meanwhile: they may be as large as the object, and this saves a copy without them.
    pub fn applied(&self, live: &mut Value, config: &Value, force: bool) -> Result<Value, ApplyError> {
        self.same_kind(config)?;
        let managers = managers::decode(live)
            .map_err(|why| ApplyError::Untyped(format!("failed to decode managed fields: {why}")))?;
        let before = weight::of(live);
        let entries = Entries::taken(live);
        let applied = match self.tracked(live, managers) {
            Ok(managers) => self.applied_to(live, (before, managers), config, force),
            Err(untyped) => Err(untyped),
        };
        entries.put_back(live);
        applied
    }

    /// Applies `config` to an object without entries; `before` is the object's weight with them.
    fn applied_to(
        &self,
        live: &Value,
        (before, managers): (usize, Managers),
        config: &Value,
        force: bool,
    ) -> Result<Value, ApplyError> {
        if object::meta(config, "managedFields").is_some_and(|entries| !entries.is_null()) {
            return Err(ApplyError::ManagedFields);
        }
        let applier = Manager::new(self.manager, Operation::Apply, self.api_version, self.subresource);
        let updater = self.updater().ok_or_else(|| self.untyped("typed", config, "no type"))?;
        self.fits(config, "typed patch", Duplicates::Refused)?;
        self.fits(live, "typed live", Duplicates::Allowed)?;
        let set = updater.configured(config);
        bounded(before, config, path::weight(&set))?;
        let merged = self.merged(updater, live, (config, set), (managers, &applier), force)?;
        let mut managers = upkeep::stripped(merged.managers, &applier);
        let changed = merged.object.is_some();
        if let Some(entry) = managers.get_mut(&applier).filter(|_| changed) {
            entry.time = Some(self.now.to_owned());
        }
        let mut object = match merged.object {
            Some(object) => object,
            None => object::copied(live),
        };
        if self.manager == last_applied::MANAGER {
            last_applied::renew(&mut object, config);
        }
        bounded(before, &object, managers::weight(&managers))?;
        object::set_meta(&mut object, "managedFields", managers::encode(managers));
        Ok(object)
    }

    /// Merges, and retries with force if all conflicts are over fields of kubectl's last-applied annotation.
    fn merged(
        &self,
        updater: Updater<'_>,
        before: &Value,
        (config, set): (&Value, FieldSet),
        (managers, applier): (Managers, &Manager),
        force: bool,
    ) -> Result<Merged, ApplyError> {
        let again =
            (self.manager == last_applied::MANAGER && !force).then(|| (set.clone(), managers.clone()));
        let merged = updater.apply(before, (config, set), managers, applier, force);
        match (merged, again) {
            (Err(ApplyError::Conflicts(conflicts)), Some((set, managers))) => {
                let allowed = last_applied::owned(updater.typing, before, self.api_version);
                match conflicts.beyond(&allowed) {
                    Some(conflicts) => Err(ApplyError::Conflicts(conflicts)),
                    None => updater.apply(before, (config, set), managers, applier, true),
                }
            }
            (merged, _) => merged,
        }
    }

    /// Whether a manager's version is neither served nor forgotten, so that the object cannot be converted to it.
    fn is_lost(&self, managers: &Managers) -> bool {
        let mut versions = managers.values().map(|owned| owned.api_version.as_str());
        versions.any(|version| self.versions.typing(version).is_none() && !self.versions.forgets(version))
    }

    /// Returns the managers before an update: those that the client sent, or those of `live` if the client sent no readable ones.
    fn known_managers(&self, live: &Value, new: &Value) -> Managers {
        let of_live = || managers::decode(live).unwrap_or_default();
        if !self.subresource.is_empty() {
            return of_live();
        }
        if managers::is_reset(new) {
            return Managers::new();
        }
        managers::decode(new).ok().filter(|managers| !managers.is_empty()).unwrap_or_else(of_live)
    }

    /// Returns the managers after an update by `name`; None for objects that do not fit the schema.
    fn updated_managers(
        &self,
        before: &Value,
        new: &Value,
        managers: Managers,
        name: &str,
    ) -> Option<Managers> {
        let updater = self.updater()?;
        let fits = |object| updater.typing.problems(object, Duplicates::Allowed).is_empty();
        if !fits(before) || !fits(new) {
            return None;
        }
        let (mut managers, taken) = updater.update(before, new, managers).ok()?;
        let taken = upkeep::without_common(taken.recursive_difference(self.ignored));
        if !taken.is_empty() {
            let me = Manager::new(name, Operation::Update, self.api_version, self.subresource);
            let set = managers.remove(&me).map_or_else(FieldSet::default, |owned| owned.set).union(taken);
            let time = Some(self.now.to_owned());
            managers.insert(me, Owned { set, api_version: self.api_version.to_owned(), time });
        }
        Some(managers)
    }

    /// Returns the managers of the live object, whose entries are removed. An object without managers gets one that owns all its fields.
    fn tracked(&self, live: &Value, managers: Managers) -> Result<Managers, ApplyError> {
        if !managers.is_empty() || object::uid(live).is_empty() {
            return Ok(managers);
        }
        let problems = self.problems(live, Duplicates::Allowed).filter(|problems| !problems.is_empty());
        if let Some(problems) = problems {
            let why =
                format!("failed to convert new object ({}) to smd typed: {problems}", self.told_as(live));
            return Err(ApplyError::Untyped(format!("failed to create manager for existing fields: {why}")));
        }
        let empty = self.versions.empty(self.api_version);
        Ok(self.updated_managers(&empty, live, managers, BEFORE_FIRST_APPLY).unwrap_or_default())
    }

    fn updater(&self) -> Option<Updater<'_>> {
        let typing = self.versions.typing(self.api_version)?;
        Some(Updater {
            versions: self.versions,
            api_version: self.api_version,
            typing,
            ignored: self.ignored,
            ignores_in_all: self.versions.resets_alike(),
            rewritten: self.rewritten,
        })
    }

    fn same_kind(&self, config: &Value) -> Result<(), ApplyError> {
        let text = |field: &str| config.get(field).and_then(Value::as_str).unwrap_or_default();
        if text("apiVersion") == self.api_version && text("kind") == self.kind {
            return Ok(());
        }
        Err(ApplyError::Kind(kind_text(text("apiVersion"), text("kind"))))
    }

    fn fits(&self, object: &Value, what: &str, duplicates: Duplicates) -> Result<(), ApplyError> {
        match self.problems(object, duplicates) {
            Some(problems) if !problems.is_empty() => Err(self.untyped(what, object, &problems.to_string())),
            _ => Ok(()),
        }
    }

    fn problems(&self, object: &Value, duplicates: Duplicates) -> Option<Problems> {
        self.versions.typing(self.api_version).map(|typing| typing.problems(object, duplicates))
    }

    fn untyped(&self, what: &str, object: &Value, why: &str) -> ApplyError {
        ApplyError::Untyped(format!("failed to create {what} object ({}): {why}", self.told_as(object)))
    }

    /// Formats an object for messages: `NAMESPACE/NAME; GROUP/VERSION, Kind=KIND`.
    fn told_as(&self, object: &Value) -> String {
        let (namespace, name) = (object::namespace(object), object::name(object));
        format!("{namespace}/{name}; {}", kind_text(self.api_version, self.kind))
    }
}

/// Formats a version and kind: `batch/v1, Kind=Job`; the core group gives `/v1, Kind=Pod`.
pub(crate) fn kind_text(api_version: &str, kind: &str) -> String {
    let slash = if api_version.contains('/') { "" } else { "/" };
    format!("{slash}{api_version}, Kind={kind}")
}

/// Checks the size of an object.
///
/// # Errors
/// `object` with `entries` bytes of managers exceeds the limit and the size `before` the change.
fn bounded(before: usize, object: &Value, entries: usize) -> Result<(), TooHeavy> {
    let all = weight::of(object).saturating_add(entries);
    if all > MAX_WEIGHT && all > before { Err(TooHeavy) } else { Ok(()) }
}
