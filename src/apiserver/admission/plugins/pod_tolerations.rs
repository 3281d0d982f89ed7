//! Implements `PodTolerationRestriction`: annotations of a namespace, or else the [settings](super::settings), give default
//! tolerations and a whitelist for its pods. Off by default.
//!
//! Read from plugin/pkg/admission/podtolerationrestriction and pkg/util/tolerations of releases before 1.36; no recorded
//! answers of 1.36 are at hand.

use admit_apimachinery::pointer::text;
use serde_json::{Value, json};

use super::alone::{Alone, known_namespace};
use super::settings::Toleration;
use super::{Plugin, Request};
use crate::kinds;
use crate::object;
use crate::status::Refusal;

pub(super) const PLUGIN: Plugin = Plugin {
    name: "PodTolerationRestriction",
    mutate: Some(admit),
    validate: Some(validate),
    alone: Alone::By(known_namespace),
};

/// The annotations of a namespace: default tolerations, and the whitelist.
const DEFAULT: &str = "scheduler.alpha.kubernetes.io/defaultTolerations";
const WHITELIST: &str = "scheduler.alpha.kubernetes.io/tolerationsWhitelist";
const MEMORY_PRESSURE: &str = "node.kubernetes.io/memory-pressure";

fn admit(request: &mut Request<'_>) -> Result<(), Refusal> {
    let is_new = request.creates("", "pods");
    if !is_new && !request.updates("", "pods") {
        return Ok(());
    }
    let mut more = Vec::new();
    if is_new {
        let given = of_namespace(request, DEFAULT)?;
        more.extend(given.or_else(|| request.live.settings.tolerations.default.clone()).unwrap_or_default());
    }
    if !is_best_effort(request.object()) {
        more.push(Toleration {
            key: MEMORY_PRESSURE.to_owned(),
            operator: EXISTS.to_owned(),
            effect: "NoSchedule".to_owned(),
            ..Toleration::default()
        });
    }
    if !more.is_empty() {
        let own = own(request.object());
        let merged = merged(&[own.clone(), more].concat());
        if merged != own {
            let spec = object::member_mut(object::map_of(request.object_mut()), "spec");
            spec.insert("tolerations".to_owned(), json!(merged));
        }
    }
    validate(request)
}

fn validate(request: &Request<'_>) -> Result<(), Refusal> {
    if !request.creates("", "pods") && !request.updates("", "pods") {
        return Ok(());
    }
    let own = own(request.object());
    if own.is_empty() {
        return Ok(());
    }
    let (scope, allowed) = match of_namespace(request, WHITELIST)? {
        Some(allowed) => ("namespace", allowed),
        None => ("cluster", request.live.settings.tolerations.whitelist.clone().unwrap_or_default()),
    };
    let is_allowed = |one: &Toleration| allowed.iter().any(|allowed| covers(allowed, one));
    if allowed.is_empty() || own.iter().all(is_allowed) {
        return Ok(());
    }
    // Upstream returns a plain error here, which becomes code 500 with its text.
    Err(Refusal::unclassified(format!(
        "pod tolerations (possibly merged with namespace default tolerations) conflict with its {scope} whitelist"
    )))
}

/// Returns the tolerations that an annotation of the namespace lists, if it exists.
fn of_namespace(request: &Request<'_>, annotation: &str) -> Result<Option<Vec<Toleration>>, Refusal> {
    let name = request.namespace();
    let Some(namespace) = request.stored("namespaces", "", name) else {
        let served = request.cluster.resources();
        let namespaces = served.find("", "v1", "namespaces").unwrap_or(&request.review.call.info);
        return Err(Refusal::not_found(namespaces, name));
    };
    let found = object::meta_map(&namespace, "annotations").find(|(key, _)| *key == annotation);
    match found {
        None => Ok(None),
        Some((_, "")) => Ok(Some(Vec::new())),
        // The message for an invalid list is that of this parser, not Go's.
        Some((_, text)) => serde_json::from_str::<Option<Vec<Toleration>>>(text)
            .map_err(|error| Refusal::unclassified(error.to_string())),
    }
}

fn own(pod: &Value) -> Vec<Toleration> {
    let list = pod.pointer("/spec/tolerations").cloned().unwrap_or_default();
    serde_json::from_value::<Option<Vec<Toleration>>>(list).ok().flatten().unwrap_or_default()
}

fn is_best_effort(pod: &Value) -> bool {
    let known = text(pod, "/status/qosClass");
    let quality = if known.is_empty() { kinds::core::quality_of_service(pod) } else { known };
    quality == "BestEffort"
}

const EXISTS: &str = "Exists";

/// Removes tolerations that others cover; of equal ones the first stays.
fn merged(all: &[Toleration]) -> Vec<Toleration> {
    let mut merged: Vec<Toleration> = Vec::new();
    for (at, one) in all.iter().enumerate() {
        let later = all.iter().skip(at.saturating_add(1));
        let is_covered = merged.iter().any(|known| covers(known, one))
            || later.into_iter().any(|other| other != one && covers(other, one));
        if !is_covered {
            merged.push(one.clone());
        }
    }
    merged
}

/// Returns whether `all` tolerates every taint that `one` tolerates.
fn covers(all: &Toleration, one: &Toleration) -> bool {
    if all == one {
        return true;
    }
    let is_any_key = all.key.is_empty() && all.operator == EXISTS;
    if all.key != one.key && !is_any_key || all.effect != one.effect && !all.effect.is_empty() {
        return false;
    }
    if all.effect == "NoExecute"
        && let Some(seconds) = all.toleration_seconds
        && one.toleration_seconds.is_none_or(|own| own > seconds)
    {
        return false;
    }
    match all.operator.as_str() {
        "" | "Equal" => one.operator == "Equal" && one.value == all.value,
        EXISTS => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a toleration from the parts of its name: key, value, effect and seconds, as in the reference's tables.
    fn named(name: &str) -> Toleration {
        let (key, value, effect, seconds) = match name {
            "all" => ("", None, "", None),
            "all-nosched" => ("", None, "NoSchedule", None),
            "all-noexec" => ("", None, "NoExecute", None),
            "foo" => ("foo", None, "", None),
            "foo-bar" => ("foo", Some("bar"), "", None),
            "foo-nosched" => ("foo", None, "NoSchedule", None),
            "foo-bar-nosched" => ("foo", Some("bar"), "NoSchedule", None),
            "foo-baz-nosched" => ("foo", Some("baz"), "NoSchedule", None),
            "faz-nosched" => ("faz", None, "NoSchedule", None),
            "foo-prefnosched" => ("foo", None, "PreferNoSchedule", None),
            "foo-noexec" => ("foo", None, "NoExecute", None),
            "foo-bar-noexec" => ("foo", Some("bar"), "NoExecute", None),
            "foo-noexec-10" => ("foo", None, "NoExecute", Some(10)),
            "foo-noexec-0" => ("foo", None, "NoExecute", Some(0)),
            "foo-bar-noexec-10" => ("foo", Some("bar"), "NoExecute", Some(10)),
            other => panic!("there is no {other}"),
        };
        Toleration {
            key: key.to_owned(),
            operator: if value.is_some() { "Equal" } else { EXISTS }.to_owned(),
            value: value.unwrap_or_default().to_owned(),
            effect: effect.to_owned(),
            toleration_seconds: seconds,
        }
    }

    const NAMES: &str = "all all-nosched all-noexec foo foo-bar foo-nosched foo-bar-nosched foo-baz-nosched faz-nosched \
                         foo-prefnosched foo-noexec foo-bar-noexec foo-noexec-10 foo-noexec-0 foo-bar-noexec-10";

    #[test]
    fn one_toleration_covers_others() {
        let all = NAMES.split(' ');
        for (name, covered) in [
            ("all", NAMES),
            ("all-nosched", "all-nosched foo-nosched foo-bar-nosched foo-baz-nosched faz-nosched"),
            (
                "all-noexec",
                "all-noexec foo-noexec foo-bar-noexec foo-noexec-10 foo-noexec-0 foo-bar-noexec-10",
            ),
            (
                "foo",
                "foo foo-bar foo-nosched foo-bar-nosched foo-baz-nosched foo-prefnosched foo-noexec foo-bar-noexec \
                 foo-noexec-10 foo-noexec-0 foo-bar-noexec-10",
            ),
            ("foo-bar", "foo-bar foo-bar-nosched foo-bar-noexec foo-bar-noexec-10"),
            ("foo-nosched", "foo-nosched foo-bar-nosched foo-baz-nosched"),
            ("foo-bar-nosched", "foo-bar-nosched"),
            ("foo-noexec", "foo-noexec foo-bar-noexec foo-noexec-10 foo-noexec-0 foo-bar-noexec-10"),
            ("foo-bar-noexec", "foo-bar-noexec foo-bar-noexec-10"),
            ("foo-noexec-10", "foo-noexec-10 foo-noexec-0 foo-bar-noexec-10"),
            ("foo-noexec-0", "foo-noexec-0"),
        ] {
            let found: Vec<&str> = all.clone().filter(|other| covers(&named(name), &named(other))).collect();
            assert_eq!(found.join(" "), covered, "{name}");
        }
    }

    #[test]
    fn what_others_cover_is_left_out() {
        for (given, expected) in [
            ("foo foo", "foo"),
            ("foo-bar foo foo-nosched", "foo"),
            ("foo-bar-nosched faz-nosched", "foo-bar-nosched faz-nosched"),
            ("foo-noexec-0 foo-noexec-10", "foo-noexec-10"),
            ("foo all", "all"),
        ] {
            let all: Vec<Toleration> = given.split(' ').map(named).collect();
            let merged = merged(&all);
            assert_eq!(merged, expected.split(' ').map(named).collect::<Vec<_>>(), "{given}");
        }
    }
}
