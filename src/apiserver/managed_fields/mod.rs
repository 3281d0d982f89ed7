//! Field ownership: what `metadata.managedFields` of a changed object says, and server-side apply.
//!
//! ```text
//! Writer ──► updater ──► typed (compare, merge, owned, without) ──► schema
//!    │          └──► conflict                └──► path (elements, sets, fieldsV1)
//!    └──► managers, upkeep, last_applied
//! ```
//!
//! Pure functions of the live object, the sent one and the time. Decoding, defaults, validation and storing are left to
//! the registry.

mod conflict;
mod last_applied;
pub mod managers;
pub mod path;
pub mod scale;
pub mod schema;
pub mod typed;
mod updater;
mod upkeep;

use serde_json::Value;

pub use conflict::{Conflict, Conflicts};
pub use updater::Versions;

use self::managers::{Manager, Managers, Operation, Owned};
use self::path::FieldSet;
use self::typed::Duplicates;
use self::updater::Updater;
use crate::object;

/// The manager that is given what an object held before anybody applied it.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// The subresource whose managers are kept without a time, as upstream keeps them.
const UNTIMED: &str = "scale";

/// Why a configuration is not applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    #[error("{0}")]
    Conflicts(Conflicts),
    /// The configuration is of another kind, or of none.
    #[error("invalid object type: {0}")]
    Kind(String),
    #[error("metadata.managedFields must be nil")]
    ManagedFields,
    /// What does not fit the schema, in whole sentences.
    #[error("{0}")]
    Untyped(String),
}

/// One write: by whom, through what, when.
#[derive(Clone, Copy, Debug)]
pub struct Writer<'w> {
    pub versions: &'w dyn Versions,
    /// The version that the request is in; `versions` knows it.
    pub api_version: &'w str,
    pub kind: &'w str,
    /// Empty for the object itself.
    pub subresource: &'w str,
    /// What the registry resets after a write of this sort, whatever was sent.
    pub ignored: &'w FieldSet,
    /// Empty for an unknown one.
    pub manager: &'w str,
    /// UTC with whole seconds.
    pub now: &'w str,
}

impl Writer<'_> {
    /// Sets the `managedFields` of `new`, which is to replace `live`. An object that is created replaces the empty object
    /// of its kind. Objects that nobody tracked when they were created are not tracked from an update on.
    pub fn updated(&self, live: &Value, new: &mut Value) {
        let managers = self.known_managers(live, new);
        object::set_meta(new, "managedFields", None);
        let before = without_entries(live);
        let entries = if managers.is_empty() && !object::uid(live).is_empty() || self.is_lost(&managers) {
            None
        } else {
            match self.updated_managers(&before, new, managers, self.manager) {
                Some(managers) => managers::encode(&upkeep::capped(managers)),
                None => live.pointer("/metadata/managedFields").cloned(),
            }
        };
        object::set_meta(new, "managedFields", entries);
    }

    /// The object that `live` becomes by `config`. What the configuration owned before and says no more is gone, where
    /// nobody else owns it.
    ///
    /// # Errors
    /// Conflicts where `force` does not settle them, and configurations that cannot be typed.
    pub fn applied(&self, live: &Value, config: &Value, force: bool) -> Result<Value, ApplyError> {
        self.same_kind(config)?;
        let (before, managers) = self.tracked(live)?;
        if config.pointer("/metadata/managedFields").is_some_and(|entries| !entries.is_null()) {
            return Err(ApplyError::ManagedFields);
        }
        let applier = Manager::new(self.manager, Operation::Apply, self.api_version, self.subresource);
        let updater = self.updater().ok_or_else(|| self.untyped("typed", config, "no type"))?;
        self.fits(config, "typed patch", Duplicates::Refused)?;
        self.fits(&before, "typed live", Duplicates::Allowed)?;
        let apply = |managers, force| updater.apply(&before, config, managers, &applier, force);
        let merged = match apply(managers.clone(), force) {
            Err(conflicts) if self.manager == last_applied::MANAGER => {
                let allowed = last_applied::owned(updater.typing, &before, self.api_version);
                match conflicts.beyond(&allowed) {
                    Some(conflicts) => Err(conflicts),
                    None => apply(managers, true),
                }
            }
            other => other,
        }
        .map_err(ApplyError::Conflicts)?;
        let mut managers = upkeep::stripped(merged.managers, &applier);
        let changed = merged.object.is_some();
        if let Some(entry) = managers.get_mut(&applier).filter(|_| changed) {
            entry.time = Some(self.now.to_owned());
        }
        let mut object = merged.object.unwrap_or(before);
        if self.manager == last_applied::MANAGER {
            last_applied::renew(&mut object, config);
        }
        object::set_meta(&mut object, "managedFields", managers::encode(&managers));
        Ok(object)
    }

    /// Whether a manager's version is one that the object cannot even be asked for in.
    fn is_lost(&self, managers: &Managers) -> bool {
        let mut versions = managers.values().map(|owned| owned.api_version.as_str());
        versions.any(|version| self.versions.typing(version).is_none() && !self.versions.forgets(version))
    }

    /// The managers to start an update from: those that the client sent, unless it sent none that can be read.
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

    /// The managers after an update by `name`; None for objects that the schema does not fit.
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
        let (mut managers, taken) = updater.update(before, new, managers);
        let taken = upkeep::without_common(&taken.recursive_difference(self.ignored));
        if !taken.is_empty() {
            let me = Manager::new(name, Operation::Update, self.api_version, self.subresource);
            let set = managers.get(&me).map_or_else(|| taken.clone(), |owned| owned.set.union(&taken));
            let time = (self.subresource != UNTIMED).then(|| self.now.to_owned());
            managers.insert(me, Owned { set, api_version: self.api_version.to_owned(), time });
        }
        Some(managers)
    }

    /// The live object and its managers. Where nobody was tracked, what it holds is given to one that stands for all.
    fn tracked(&self, live: &Value) -> Result<(Value, Managers), ApplyError> {
        let before = without_entries(live);
        let managers = managers::decode(live)
            .map_err(|why| ApplyError::Untyped(format!("failed to decode managed fields: {why}")))?;
        if !managers.is_empty() || object::uid(live).is_empty() {
            return Ok((before, managers));
        }
        let empty = self.versions.empty(self.api_version);
        let managers = self.updated_managers(&empty, &before, managers, BEFORE_FIRST_APPLY);
        Ok((before, managers.unwrap_or_default()))
    }

    fn updater(&self) -> Option<Updater<'_>> {
        let typing = self.versions.typing(self.api_version)?;
        Some(Updater {
            versions: self.versions,
            api_version: self.api_version,
            typing,
            ignored: self.ignored,
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
        let problems =
            self.versions.typing(self.api_version).map(|typing| typing.problems(object, duplicates));
        match problems {
            Some(problems) if !problems.is_empty() => Err(self.untyped(what, object, &problems.to_string())),
            _ => Ok(()),
        }
    }

    fn untyped(&self, what: &str, object: &Value, why: &str) -> ApplyError {
        let (namespace, name) = (object::namespace(object), object::name(object));
        let kind = kind_text(self.api_version, self.kind);
        ApplyError::Untyped(format!("failed to create {what} object ({namespace}/{name}; {kind}): {why}"))
    }
}

/// `batch/v1, Kind=Job`; the core group is empty, but its slash is there.
pub(crate) fn kind_text(api_version: &str, kind: &str) -> String {
    let slash = if api_version.contains('/') { "" } else { "/" };
    format!("{slash}{api_version}, Kind={kind}")
}

fn without_entries(object: &Value) -> Value {
    let mut without = object.clone();
    if managers::entries(object).is_some() {
        object::set_meta(&mut without, "managedFields", None);
    }
    without
}
