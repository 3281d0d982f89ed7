//! One room for each built-in kind: what Kubernetes calls its strategy.
//!
//! `kinds/<group>/<kind>.rs` holds all that the server knows of a kind beyond its schema: defaults, what it sets
//! itself, validation of creations, updates and statuses, warnings. `kinds/<group>/mod.rs` lists the group's rows. The
//! verbs of the registry ask [`strategy`] and know no kind by name.
//!
//! Parts that several kinds share (the template of pods, label selectors, ports) stand in `kinds/shared`.
//!
//! # For the next Kubernetes
//!
//! Each room says which file of the reference it was read from (pkg/apis/GROUP/validation, pkg/registry/GROUP/KIND,
//! and the declarative tags of staging/src/k8s.io/api/GROUP/VERSION/types.go). Record the answers of the new release to
//! the requests of the corpus `fresh`, run the conformance tool on them, and read those files again for what differs.
//!
//! No file outside names a kind, but for those that `tests/product/architecture/kinds.rs` lists with their reasons.

mod admissionregistration;
pub(crate) mod apiextensions;
mod apiregistration;
mod apps;
mod autoscaling;
mod batch;
mod certificates;
mod coordination;
pub(crate) mod core;
mod discovery;
mod events;
pub(crate) mod field;
mod flowcontrol;
mod networking;
mod node;
mod policy;
mod rbac;
mod resource;
mod scheduling;
pub(crate) mod shared;
mod storage;

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::names::NameRule;
use serde_json::Value;

use crate::clock::Clock;
use crate::identity::Identity;
use crate::resources::{ResourceInfo, Subresource};
use crate::status::Causes;

/// Who asks for a new object, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'r> {
    pub(crate) identity: &'r Identity,
    pub(crate) clock: &'r Clock,
}

/// What is wrong with the name of an object, or with the prefix of one.
type NameProblems = fn(&Value, &str, bool) -> Vec<String>;

/// What the names of a kind are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Naming {
    /// What a rule allows.
    Rule(NameRule),
    /// Judged by the kind itself.
    Own(NameProblems),
}

impl Naming {
    /// What is wrong with a name, or with the prefix of one.
    pub(crate) fn problems(self, object: &Value, name: &str, is_prefix: bool) -> Vec<String> {
        match self {
            Self::Rule(rule) => rule.problems(name, is_prefix),
            Self::Own(problems) => problems(object, name, is_prefix),
        }
    }
}

/// Warnings about an object, and the one that it replaces.
type Warnings = fn(&Value, Option<&Value>) -> Vec<String>;

/// What is wrong with a change at a subresource, given the new and the old object.
type ValidateBelow = fn(Subresource, &Value, &Value, &mut FieldErrors);

/// An object that is written, and where it lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed<'o> {
    pub(crate) subresource: Option<Subresource>,
    pub(crate) object: &'o Value,
    pub(crate) old: Option<&'o Value>,
    pub(crate) namespace: Option<&'o Value>,
}

/// What is wrong with an object where it lies.
type ValidatePlaced = fn(&Placed<'_>, &mut FieldErrors);

/// What is wrong with an object, given the one that it replaces.
type Compile = fn(&Value, Option<&Value>) -> Causes;

/// What is true of the objects of a few kinds, where most are otherwise.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Habit {
    /// A client may give the status together with the rest.
    StatusIsKept,
    /// Nobody owns metadata that came with the status, although it is changed by it.
    DisownsMetadata,
    /// Nobody owns what clients say of the object: it never changes.
    DisownsAll,
    /// PUT of an object that is not there creates it.
    CreatedByUpdate,
    /// PUT has to name the resourceVersion that it replaces.
    NeedsVersion,
    /// DELETE answers the object that it removed, and not a Status.
    AnswersDeleted,
    /// OpenAPI says that DELETE answers a Status, though it answers the object.
    PublishedAsTold,
    /// A deletion that ends at once is marked like one that takes its time.
    Graceful,
    /// A deletion that has begun does not tell how long it may take.
    HidesGrace,
    /// What DELETE marks is all of a deletion, which ends in a way of its own.
    EndsByItself,
    /// Dependents of such objects are not looked after.
    Uncollected,
    /// DELETE that names no policy leaves the dependents alone.
    OrphansByDefault,
    /// New objects are validated by rules of their own, which leave the metadata alone; the common rules are silent
    /// where those find something, and finalizers need no domain.
    JudgedApart,
    /// The beginning of a name that is to be made is all of it.
    PrefixIsName,
    /// Answers about field selectors say that it was this kind that does not know the field.
    NamedByFieldLabels,
    /// The same, with its group and version.
    PlacedByFieldLabels,
    /// A table shows what is matched first before the others.
    ShownByPrecedence,
    /// Its own validation of a change leaves out the metadata of the change. Those of most kinds cover it once more,
    /// beside the common validation, which answers show.
    ChangeOnce,
    /// Its own validation of a change covers all metadata of the changed object once more.
    ObjectAgain,
    /// The same twice: as if the object was new, and as a change, which begins as if it was.
    ObjectTwice,
    /// Answers about its status cannot be Tables.
    StatusHasNoTable,
    /// A change of its status is validated as any other change.
    StatusAlike,
    /// A change of its status is validated by the rules of all kinds alone.
    StatusUnjudged,
    /// Something empty that was sent makes a change of a specification in which there was nothing: what is in memory is
    /// compared, and what was stored has nothing empty in it.
    CountsEmpty,
}

/// What the server does with objects of one kind. Functions that a kind does not need are left out.
#[derive(Clone, Copy)]
pub(crate) struct Strategy {
    /// `Pod`.
    pub(crate) kind: &'static str,
    /// What is otherwise than with most kinds.
    pub(crate) habits: &'static [Habit],
    /// Why an object that a client sends has no form of its own upstream, where an annotation is a field.
    pub(crate) inconvertible: Option<fn(&Value) -> Option<String>>,
    /// Fills in what a client may leave out, in objects of the version given (`v1`).
    pub(crate) default: Option<fn(&str, &mut Value)>,
    /// Brings a new object into the form that is stored: what clients may not set goes, what the server sets comes.
    pub(crate) prepare_create: Option<fn(&mut Value)>,
    /// Warnings about a new object that `prepare_create` leaves no trace of.
    pub(crate) warnings_before: Option<fn(&Value) -> Vec<String>>,
    /// Writes into a new object what only the request tells, before `prepare_create`.
    pub(crate) stamp: Option<fn(&mut Value, &Request<'_>)>,
    /// Writes into a changed object what only the time of the request tells, before `prepare_update`.
    pub(crate) stamp_change: Option<fn(&mut Value, &Clock)>,
    /// Brings a changed object into the form that is stored, given the old one.
    pub(crate) prepare_update: Option<fn(&mut Value, &Value)>,
    /// As `prepare_update`, for an object whose status was written.
    pub(crate) prepare_status: Option<fn(&mut Value, &Value, &Clock)>,
    /// As `prepare_update`, for an object whose approval was written.
    pub(crate) prepare_approval: Option<fn(&mut Value, &Value, &Clock)>,
    /// As `prepare_update`, for an object whose own list of finalizers was written.
    pub(crate) prepare_finalize: Option<fn(&mut Value)>,
    /// Marks what DELETE marks beside the common metadata.
    pub(crate) mark_deleted: Option<fn(&mut Value, &Clock)>,
    /// Whether something beside `metadata.finalizers` holds an object that is deleted.
    pub(crate) is_held: Option<fn(&Value) -> bool>,
    /// How many seconds the deletion of the object takes, given how many were asked for; none where it is left out.
    pub(crate) grace_period: Option<fn(&Value, Option<i64>) -> i64>,
    /// What is read of a stored object that is not stored.
    pub(crate) reading: Option<Reading>,
    /// Members of the object that nobody comes to own by writing it: the server resets them in changes.
    pub(crate) unowned: &'static [&'static str],
    /// Annotations that are a field upstream, which are not shown where only the metadata are.
    pub(crate) derived_annotations: &'static [&'static str],
    /// What is wrong with a name, given the object, the name (or the prefix of one that is to be made) and whether it is
    /// a prefix. In place of the rule that most kinds follow.
    pub(crate) name: Option<Naming>,
    /// What is wrong with an object, whether it is new or changed. Metadata are validated by the registry.
    pub(crate) validate: Option<fn(&Value, &mut FieldErrors)>,
    /// What is wrong with a new object only, after `validate`.
    pub(crate) validate_create: Option<fn(&Value, &mut FieldErrors)>,
    /// What is wrong with a change, given the new and the old object. It stands in place of `validate`, which it calls
    /// where upstream does.
    pub(crate) validate_update: Option<fn(&Value, &Value, &mut FieldErrors)>,
    /// What is wrong with a new status, given the new and the old object.
    pub(crate) validate_status: Option<fn(&Value, &Value, &mut FieldErrors)>,
    /// What is wrong with a change that is made at a path of its own below the object, given the new and the old object.
    pub(crate) validate_below: Option<ValidateBelow>,
    /// What is wrong with an object in its namespace, before all that is wrong with it anywhere.
    pub(crate) validate_placed: Option<ValidatePlaced>,
    /// What those find who compile the object, given the one that it replaces. They look at its metadata, too.
    pub(crate) compile: Option<Compile>,
    /// What is wrong with a changed object as if it was new, given the old one as well, before its metadata and the
    /// change are looked at.
    pub(crate) judged_as_new: Option<fn(&Value, &Value, &mut FieldErrors)>,
    /// Warnings about an accepted object, given the new and, for a change, the old one.
    pub(crate) warnings: Option<Warnings>,
    /// Warnings about an object whose status was written.
    pub(crate) status_warnings: Option<fn(&Value) -> Vec<String>>,
}

/// Fields that are read and not stored.
#[derive(Clone, Copy)]
pub(crate) struct Reading {
    /// Whether a stored object is read with other fields than it is stored with.
    pub(crate) differs: fn(&Value) -> bool,
    /// Fills these in.
    pub(crate) read: fn(&mut Value),
}

impl Strategy {
    /// A kind of which nothing is known beyond its schema.
    pub(crate) const PLAIN: Self = Self {
        kind: "",
        habits: &[],
        inconvertible: None,
        default: None,
        warnings_before: None,
        prepare_create: None,
        stamp: None,
        stamp_change: None,
        prepare_update: None,
        prepare_status: None,
        prepare_approval: None,
        prepare_finalize: None,
        mark_deleted: None,
        is_held: None,
        grace_period: None,
        reading: None,
        unowned: &[],
        derived_annotations: &[],
        name: None,
        validate: None,
        validate_create: None,
        validate_update: None,
        validate_status: None,
        validate_below: None,
        validate_placed: None,
        compile: None,
        judged_as_new: None,
        warnings: None,
        status_warnings: None,
    };

    /// What is wrong with `object`, which replaces `old` if there is one.
    pub(crate) fn errors(&self, object: &Value, old: Option<&Value>) -> FieldErrors {
        let mut errors = FieldErrors::default();
        match (old, self.validate_update) {
            (Some(old), Some(validate_update)) => validate_update(object, old, &mut errors),
            _ => {
                if let Some(validate) = self.validate {
                    validate(object, &mut errors);
                }
                if let Some(validate_create) = self.validate_create.filter(|_| old.is_none()) {
                    validate_create(object, &mut errors);
                }
            }
        }
        errors
    }

    /// What is wrong with the status of `object`, which replaces that of `old`.
    pub(crate) fn status_errors(&self, object: &Value, old: &Value) -> FieldErrors {
        let mut errors = FieldErrors::default();
        if let Some(validate_status) = self.validate_status {
            validate_status(object, old, &mut errors);
        }
        errors
    }
}

/// What the rooms of pods and of Services use, which are still to come.
const _: (Key, Error, Warning) =
    (field::Field::key, field::Field::not_found, shared::network::address_warning);
type Key = for<'a, 'b> fn(&'a field::Field<'static>, &'b str) -> field::Field<'static>;
type Error = for<'a> fn(&'a field::Field<'static>) -> FieldError;
type Warning = for<'a> fn(&'a field::Field<'static>) -> Option<String>;

/// A group, and the rows of its kinds.
type Group = (&'static str, &'static [Strategy]);

const GROUPS: &[Group] = &[
    ("", core::KINDS),
    ("", events::CORE),
    ("admissionregistration.k8s.io", admissionregistration::KINDS),
    ("apiextensions.k8s.io", apiextensions::KINDS),
    ("apiregistration.k8s.io", apiregistration::KINDS),
    ("apps", apps::KINDS),
    ("autoscaling", autoscaling::KINDS),
    ("batch", batch::KINDS),
    ("certificates.k8s.io", certificates::KINDS),
    ("coordination.k8s.io", coordination::KINDS),
    ("discovery.k8s.io", discovery::KINDS),
    ("events.k8s.io", events::KINDS),
    ("flowcontrol.apiserver.k8s.io", flowcontrol::KINDS),
    ("networking.k8s.io", networking::KINDS),
    ("node.k8s.io", node::KINDS),
    ("policy", policy::KINDS),
    ("rbac.authorization.k8s.io", rbac::KINDS),
    ("resource.k8s.io", resource::KINDS),
    ("scheduling.k8s.io", scheduling::KINDS),
    ("storage.k8s.io", storage::KINDS),
];

/// The row of a built-in kind, if it has one.
pub(crate) fn strategy(info: &ResourceInfo) -> Option<&'static Strategy> {
    if !info.builtin {
        return None;
    }
    let groups = GROUPS.iter().filter(|(group, _)| *group == info.group);
    groups.flat_map(|(_, kinds)| *kinds).find(|strategy| strategy.kind == info.kind)
}

/// Whether that is so of the objects of a kind.
pub(crate) fn has(info: &ResourceInfo, habit: Habit) -> bool {
    strategy(info).is_some_and(|strategy| strategy.habits.contains(&habit))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::resources::builtin_rows;

    /// The texts of what is wrong with `object`, which replaces `old` if there is one.
    pub(crate) fn told(strategy: &Strategy, object: &Value, old: Option<&Value>) -> Vec<String> {
        strategy.errors(object, old).into_iter().map(|error| error.to_string()).collect()
    }

    #[test]
    fn every_row_is_of_a_kind_that_is_served() {
        let served = builtin_rows();
        for (group, kinds) in GROUPS {
            for (at, strategy) in kinds.iter().enumerate() {
                let is_served = served.iter().any(|info| info.group == *group && info.kind == strategy.kind);
                assert!(is_served, "{group}/{} is not served", strategy.kind);
                let again = kinds.iter().skip(at + 1).any(|other| other.kind == strategy.kind);
                assert!(!again, "{group}/{} has two rows", strategy.kind);
            }
        }
    }
}
