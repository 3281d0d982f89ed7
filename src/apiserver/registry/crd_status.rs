//! Computes the status of a stored CRD: accepted names, whether it is established, and whether its API is approved by
//! the Kubernetes project. Input: the CRD and all stored CRDs; output: the CRD with its new status.

use std::collections::BTreeSet;

use admit_policy::crd::{Approval, Definition};
use indexmap::IndexSet;
use serde_json::{Map, Value, json};

use crate::clock::Clock;
use crate::kinds::apiextensions::custom_resource_definition::{condition, set_condition};

/// Returns the definition with its status, given `all` definitions of every group, including itself.
pub(super) fn settled<'d>(definition: &Value, all: impl Iterator<Item = &'d Value>, clock: &Clock) -> Value {
    let mut next = definition.clone();
    let taken = Taken::of(definition, all);
    let (names, conflict) = accepted_names(definition, &taken);
    next["status"]["acceptedNames"] = names;
    match conflict {
        None => {
            set_condition(&mut next, clock, "NamesAccepted", "True", "NoConflicts", "no conflicts found");
            if condition(&next, "Established") != Some("True") {
                establish(&mut next, clock);
            }
        }
        Some(Conflict { reason, message }) => {
            set_condition(&mut next, clock, "NamesAccepted", "False", reason, &message);
            if condition(&next, "Established").is_none() {
                set_condition(
                    &mut next,
                    clock,
                    "Established",
                    "False",
                    "NotAccepted",
                    "not all names are accepted",
                );
            }
        }
    }
    approve(&mut next, clock);
    next
}

fn establish(definition: &mut Value, clock: &Clock) {
    let unsound = Definition::read(definition).is_ok_and(|read| !read.has_sound_certificates());
    let (status, reason, message) = if unsound {
        ("False", "InvalidCABundle", "The conversion webhook CABundle is invalid")
    } else {
        ("True", "InitialNamesAccepted", "the initial names have been accepted")
    };
    set_condition(definition, clock, "Established", status, reason, message);
}

/// The names of the group that other definitions hold.
struct Taken<'d> {
    resources: BTreeSet<&'d str>,
    kinds: BTreeSet<&'d str>,
}

impl<'d> Taken<'d> {
    fn of(definition: &Value, all: impl Iterator<Item = &'d Value>) -> Self {
        let mut taken = Self { resources: BTreeSet::new(), kinds: BTreeSet::new() };
        let same_group = |other: &&Value| other["spec"]["group"] == definition["spec"]["group"];
        for other in all.filter(same_group) {
            if other["metadata"]["name"] == definition["metadata"]["name"] {
                continue;
            }
            let names = &other["status"]["acceptedNames"];
            let text = |field: &str| names[field].as_str().filter(|name| !name.is_empty());
            taken.resources.extend(["plural", "singular"].into_iter().filter_map(text));
            taken.resources.extend(list(&names["shortNames"]));
            taken.kinds.extend(["kind", "listKind"].into_iter().filter_map(text));
        }
        taken
    }
}

/// Says why a name is not accepted; of several reasons the last one.
struct Conflict {
    reason: &'static str,
    message: String,
}

/// Returns the accepted names: requested ones that are free, and otherwise the previously accepted
/// ones.
fn accepted_names(definition: &Value, taken: &Taken<'_>) -> (Value, Option<Conflict>) {
    let (wanted, held) = (&definition["spec"]["names"], &definition["status"]["acceptedNames"]);
    let mut conflict = None;
    let mut single = |field: &str, reason: &'static str, used: &BTreeSet<&str>| -> Value {
        let name = wanted[field].as_str().unwrap_or_default();
        let own = held[field].as_str().unwrap_or_default();
        if name == own || !used.contains(name) {
            return name.into();
        }
        conflict = Some(Conflict { reason, message: in_use(name) });
        own.into()
    };
    let plural = single("plural", "PluralConflict", &taken.resources);
    let singular = single("singular", "SingularConflict", &taken.resources);
    let (short_names, short_conflict) = short_names(wanted, held, taken);
    let kind = single("kind", "KindConflict", &taken.kinds);
    let list_kind = single("listKind", "ListKindConflict", &taken.kinds);
    let is_of_kinds = conflict.as_ref().is_some_and(|conflict| conflict.reason.contains("Kind"));
    let conflict = if is_of_kinds { conflict } else { short_conflict.or(conflict) };
    let mut names = Map::new();
    let fields = [
        ("plural", plural, true),
        ("singular", singular, false),
        ("shortNames", short_names, false),
        ("kind", kind, true),
        ("listKind", list_kind, false),
        ("categories", wanted["categories"].clone(), false),
    ];
    for (field, value, always) in fields {
        let empty = value.is_null() || value == "" || value.as_array().is_some_and(Vec::is_empty);
        if always || !empty {
            names.insert(field.to_owned(), value);
        }
    }
    (names.into(), conflict)
}

fn short_names(wanted: &Value, held: &Value, taken: &Taken<'_>) -> (Value, Option<Conflict>) {
    let (wanted, held) = (&wanted["shortNames"], &held["shortNames"]);
    let own: BTreeSet<&str> = list(held).collect();
    let mut problems: IndexSet<String> = IndexSet::new();
    for name in list(wanted).filter(|name| !own.contains(name) && taken.resources.contains(name)) {
        problems.insert(in_use(name));
    }
    let problems: Vec<String> = problems.into_iter().collect();
    let message = match problems.as_slice() {
        [] => return (wanted.clone(), None),
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    };
    (held.clone(), Some(Conflict { reason: "ShortNamesConflict", message }))
}

fn in_use(name: &str) -> String {
    format!("{} is already in use", json!(name))
}

fn list(names: &Value) -> impl Iterator<Item = &str> {
    names.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Sets the condition of approval for groups of the Kubernetes project from the annotation.
fn approve(definition: &mut Value, clock: &Clock) {
    const CONDITION: &str = "KubernetesAPIApprovalPolicyConformant";
    let Ok(read) = Definition::read(definition) else { return };
    let Some(approval) = read.approval() else { return };
    let (status, reason) = match approval {
        Approval::Given => ("True", "ApprovedAnnotation"),
        Approval::Bypassed => ("False", "UnapprovedAnnotation"),
        Approval::Missing => ("False", "MissingAnnotation"),
        Approval::Invalid => ("False", "InvalidAnnotation"),
    };
    set_condition(definition, clock, CONDITION, status, reason, &read.approval_text());
}
