//! The priority of a pod, which its class says (plugin/pkg/admission/priority of Kubernetes 1.36).

use std::sync::Arc;

use serde_json::Value;

use crate::call::Call;
use crate::object;
use crate::objects::Objects;
use crate::status::Refusal;
use crate::store::Key;

const CLASSES: &str = "priorityclasses";
const PREEMPTS: &str = "PreemptLowerPriority";
/// Classes that are there from the beginning, and their values.
const OF_THE_SYSTEM: [(&str, i64); 2] =
    [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];

/// What a class says.
struct Priority {
    /// Empty where there is no class.
    class: String,
    value: i64,
    /// None where the class does not say it.
    preemption: Option<String>,
}

impl Priority {
    fn of(class: &Value) -> Self {
        let preemption = class.get("preemptionPolicy").and_then(Value::as_str).map(str::to_owned);
        let value = class.get("value").and_then(Value::as_i64).unwrap_or_default();
        Self { class: object::name(class).to_owned(), value, preemption }
    }

    fn of_the_system(name: &str) -> Option<Self> {
        let (class, value) = OF_THE_SYSTEM.into_iter().find(|(class, _)| *class == name)?;
        Some(Self { class: class.to_owned(), value, preemption: Some(PREEMPTS.to_owned()) })
    }
}

/// Writes its priority into a new pod.
///
/// # Errors
/// 403 for a class that is not there, and for a priority that is not that of the class.
pub(super) fn admit(objects: &dyn Objects, call: &Call, pod: &mut Value) -> Result<(), Refusal> {
    let forbidden = |why: String, pod: &Value| Err(Refusal::forbidden(&call.info, object::name(pod), &why));
    let asked = text(pod, "priorityClassName");
    let priority = match asked.as_deref() {
        None | Some("") => usual(objects)?,
        Some(name) => match named(objects, name) {
            Some(priority) => priority,
            None => return forbidden(format!("no PriorityClass with name {name} was found"), pod),
        },
    };
    let Priority { class, value, preemption } = priority;
    let by_class = |what: &str, computed: &dyn std::fmt::Display| {
        format!(
            "the {what} must not be provided in pod spec; priority admission controller computed {computed} from the given \
             PriorityClass name"
        )
    };
    let given = pod.pointer("/spec/priority").and_then(Value::as_i64);
    if let Some(given) = given.filter(|given| *given != value) {
        return forbidden(by_class(&format!("integer value of priority ({given})"), &value), pod);
    }
    if let Some(computed) = &preemption
        && let Some(given) = text(pod, "preemptionPolicy").filter(|given| given != computed)
    {
        return forbidden(by_class(&format!("string value of PreemptionPolicy ({given})"), computed), pod);
    }
    let spec = &mut pod["spec"];
    if asked.is_none_or(|asked| asked.is_empty()) && !class.is_empty() {
        object::set_field(spec, "priorityClassName", Some(class.into()));
    }
    object::set_field(spec, "priority", Some(value.into()));
    if let Some(preemption) = preemption {
        object::set_field(spec, "preemptionPolicy", Some(preemption.into()));
    }
    Ok(())
}

fn text(pod: &Value, field: &str) -> Option<String> {
    pod.get("spec")?.get(field)?.as_str().map(str::to_owned)
}

fn named(objects: &dyn Objects, name: &str) -> Option<Priority> {
    let key = Key { resource: CLASSES.into(), namespace: String::new(), name: name.to_owned() };
    let stored = objects.latest_object(&key).map(|stored| Priority::of(&stored.object));
    stored.or_else(|| Priority::of_the_system(name))
}

/// The lowest of the classes that are for all pods; without one, pods have no class.
fn usual(objects: &dyn Objects) -> Result<Priority, Refusal> {
    let mut lowest: Option<Priority> = None;
    let mut look = |class: &Value| {
        let is_usual = class.get("globalDefault").and_then(Value::as_bool).unwrap_or_default();
        let found = Priority::of(class);
        if is_usual && lowest.as_ref().is_none_or(|lowest| found.value < lowest.value) {
            lowest = Some(found);
        }
    };
    objects
        .each_object(CLASSES, None, &mut |kept| {
            let class: Arc<Value> = kept.object.values();
            look(&class);
        })
        .map_err(|error| Refusal::internal(error.to_string()))?;
    let none = || Priority { class: String::new(), value: 0, preemption: Some(PREEMPTS.to_owned()) };
    Ok(lowest.unwrap_or_else(none))
}

/// Refuses a second class that is for all pods.
///
/// # Errors
/// 403 when there is another one.
pub(super) fn one_usual(objects: &dyn Objects, call: &Call, class: &Value) -> Result<(), Refusal> {
    if class.get("globalDefault").and_then(Value::as_bool) != Some(true) {
        return Ok(());
    }
    match usual(objects)?.class {
        other if other.is_empty() || other == object::name(class) => Ok(()),
        other => {
            let why =
                format!("PriorityClass {other} is already marked as default. Only one default can exist");
            Err(Refusal::forbidden(&call.info, object::name(class), &why))
        }
    }
}
