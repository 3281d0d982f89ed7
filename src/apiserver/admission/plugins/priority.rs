//! Implements `Priority`: sets a pod's priority and preemption policy from its PriorityClass, and allows one default class.

use std::sync::Arc;

use serde_json::Value;

use super::alone::{Alone, Turn};
use super::pods::text;
use super::{Plugin, Request};
use crate::object;
use crate::status::Refusal;

pub(super) const PLUGIN: Plugin =
    Plugin { name: "Priority", mutate: Some(admit), validate: Some(validate), alone: Alone::By(alone) };

/// The preemption policy where neither the pod nor its class sets one.
const PREEMPTS: &str = "PreemptLowerPriority";
const CLASSES: &str = "priorityclasses";

fn admit(request: &mut Request<'_>) -> Result<(), Refusal> {
    if request.creates("", "pods") {
        return admit_pod(request);
    }
    if request.updates("", "pods") {
        // Both were computed at creation, and a client may omit them.
        for field in ["preemptionPolicy", "priority"] {
            let pointer = format!("/spec/{field}");
            let before = request.old().pointer(&pointer).filter(|before| !before.is_null()).cloned();
            if let Some(before) = before
                && request.object().pointer(&pointer).is_none_or(Value::is_null)
            {
                object::member_mut(object::map_of(request.object_mut()), "spec")
                    .insert(field.to_owned(), before);
            }
        }
    }
    Ok(())
}

/// The class, priority and preemption policy computed for a pod.
struct Computed {
    class: String,
    priority: i64,
    preempts: String,
}

fn admit_pod(request: &mut Request<'_>) -> Result<(), Refusal> {
    let computed = computed(request)?;
    let pod = request.object();
    if let Some(given) = pod.pointer("/spec/priority").and_then(Value::as_i64)
        && given != computed.priority
    {
        return Err(request.forbidden(&format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller \
             computed {} from the given PriorityClass name",
            computed.priority
        )));
    }
    if let Some(given) = pod.pointer("/spec/preemptionPolicy").and_then(Value::as_str)
        && given != computed.preempts
    {
        return Err(request.forbidden(&format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission \
             controller computed {} from the given PriorityClass name",
            computed.preempts
        )));
    }
    let spec = object::member_mut(object::map_of(request.object_mut()), "spec");
    if !computed.class.is_empty() {
        spec.insert("priorityClassName".to_owned(), computed.class.into());
    }
    spec.insert("priority".to_owned(), computed.priority.into());
    spec.insert("preemptionPolicy".to_owned(), computed.preempts.into());
    Ok(())
}

fn computed(request: &Request<'_>) -> Result<Computed, Refusal> {
    let class = match text(request.object(), "/spec/priorityClassName") {
        "" => default_class(request)?,
        name => match request.stored(CLASSES, "", name) {
            Some(class) => Some(class),
            None => {
                return Err(request.forbidden(&format!("no PriorityClass with name {name} was found")));
            }
        },
    };
    let Some(class) = class else {
        return Ok(Computed { class: String::new(), priority: 0, preempts: PREEMPTS.to_owned() });
    };
    let preempts = match text(&class, "/preemptionPolicy") {
        "" => PREEMPTS,
        own => own,
    };
    Ok(Computed {
        class: object::name(&class).to_owned(),
        priority: value(&class),
        preempts: preempts.to_owned(),
    })
}

fn value(class: &Value) -> i64 {
    class.get("value").and_then(Value::as_i64).unwrap_or_default()
}

/// Returns the class that is marked as the default; of several, which a race can leave, the one with the lowest value.
fn default_class(request: &Request<'_>) -> Result<Option<Arc<Value>>, Refusal> {
    let classes = request.all(CLASSES, None)?;
    let marked = classes.into_iter().filter(|class| class.get("globalDefault") == Some(&Value::Bool(true)));
    Ok(marked.min_by_key(|class| value(class)))
}

fn validate(request: &Request<'_>) -> Result<(), Refusal> {
    let group = "scheduling.k8s.io";
    let creates = request.creates(group, CLASSES);
    if !creates && !request.updates(group, CLASSES) {
        return Ok(());
    }
    let class = request.object();
    if class.get("globalDefault") != Some(&Value::Bool(true)) {
        return Ok(());
    }
    match default_class(request)? {
        Some(other) if creates || object::name(&other) != object::name(class) => {
            Err(request.forbidden(&format!(
                "PriorityClass {} is already marked as default. Only one default can exist",
                object::name(&other)
            )))
        }
        _ => Ok(()),
    }
}

/// Without a cluster, a pod that names no class is left as it is unless classes are given: the default is not known.
fn alone(request: &Request<'_>) -> Turn {
    if !request.creates("", "pods") {
        return Turn::Acts;
    }
    match text(request.object(), "/spec/priorityClassName") {
        "" => Turn::acts_if(request.all("priorityclasses", None).is_ok_and(|classes| !classes.is_empty())),
        class => Turn::named(request, "priorityclasses", "", class),
    }
}
