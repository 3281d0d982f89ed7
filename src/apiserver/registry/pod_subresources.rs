//! Implements `pods/binding`, which assigns a pod to a node, and `pods/eviction`, which deletes it if its disruption budget
//! allows; and admission of streams.

use std::sync::Arc;

use admit_apimachinery::go;
use admit_apimachinery::pointer;
use admit_apimachinery::selector::LabelSelector;
use serde_json::{Map, Value, json};

use super::Registry;
use super::delete;
use super::field_ownership::Ownership;
use super::update::{self, Change};
use crate::admission::Review;
use crate::call::{Call, DeleteOptions, ListOptions, Query, WriteOptions};
use crate::clock::Clock;
use crate::object;
use crate::resources::{BINDING, EVICTION, Subresource};
use crate::status::{Cause, Refusal};

/// The most evicted pods that a budget tracks until its controller has counted again.
const MAX_DISRUPTED: usize = 2000;
/// The type of the budget's condition that says whether a disruption is allowed.
const ALLOWED: &str = "DisruptionAllowed";
const VIOLATED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

impl Registry {
    /// Assigns the pod `name` to the node that `binding` names; `call` is for the pod's binding, and `asked` is the request
    /// as it was made.
    ///
    /// # Errors
    /// 400 for a binding of another pod, 404, 409 for a pod that has a node, 422 for a target that is not a node.
    pub(crate) async fn bind(
        &self,
        (call, asked): (&Call, &Call),
        name: &str,
        binding: &Value,
        options: &WriteOptions,
    ) -> Result<Value, Refusal> {
        let review = Review::create(asked, name, binding, options.dry_run, options.to_value());
        let changed = self.mutate(&review).await?;
        let binding = changed.as_ref().map_or(binding, |changed| &changed.object);
        named_alike(name, binding, BINDING.2)?;
        let node = target(binding)?;
        self.admit(&review.with_object(binding)).await?;
        if name.is_empty() {
            return Err(Refusal::bad_request("Name parameter required."));
        }
        call.check_name(name)?;
        let make = |pod: &mut Arc<Value>| {
            is_meant(call, name, (binding, &**pod), options.dry_run)?;
            bound(call, pod, (binding, node))
        };
        // What a binding sets has no field manager.
        let change = Change { make: &make, uid_is_precondition: true, ownership: Ownership::Settled };
        self.change(&call.clone().admitted(), name, &change, options).await?;
        Ok(created())
    }

    /// Runs admission for a stream to the pod or other object `name`, as `asked` describes it.
    ///
    /// # Errors
    /// The refusal of admission.
    pub(crate) async fn connect(&self, call: &Call, name: &str, asked: &Value) -> Result<(), Refusal> {
        let review = Review::connect(call, name, asked);
        match self.mutate(&review).await? {
            Some(changed) => self.admit(&review.with_object(&changed.object)).await,
            None => self.admit(&review).await,
        }
    }

    /// Deletes the pod `name` unless its disruption budget forbids it.
    ///
    /// # Errors
    /// 400 for an eviction of another pod, 404, 429 when too few pods would be left, 500 for a pod of several budgets.
    pub(crate) async fn evict(
        &self,
        call: &Call,
        name: &str,
        eviction: Value,
        options: &WriteOptions,
    ) -> Result<Value, Refusal> {
        named_alike(name, &eviction, EVICTION.2)?;
        let breaking = "ignoreStoreReadErrorWithClusterBreakingPotential";
        if eviction.pointer(&format!("/deleteOptions/{breaking}")) == Some(&Value::Bool(true)) {
            let why = "can not be set for pod eviction, try after removing the option";
            let cause = Cause::invalid(format!("deleteOptions.{breaking}"), &true.into(), why);
            return Err(Refusal::invalid_kind(EVICTION.0, EVICTION.2, name, vec![cause]));
        }
        // Before the pod is looked for, as upstream.
        let eviction = self.admitted(call, name, eviction, options).await?;
        let main = call.on(None);
        let pod = self.get_builtin(&main, name)?;
        let given = eviction.get("deleteOptions").filter(|given| given.is_object()).cloned();
        let mut given = given.unwrap_or_else(|| json!({}));
        if options.dry_run {
            given["dryRun"] = json!(["All"]);
        }
        let mut deletion = DeleteOptions::parse(&Query::parse(""), Some(given))?;
        if !is_gone(&pod) {
            self.take_from_budget(&main, &pod, deletion.dry_run).await?;
        }
        let main = main.admitted();
        if !deletion.dry_run {
            self.note_disruption(&main, name, &mut deletion).await?;
        }
        self.delete(&main, name, &deletion).await?;
        Ok(created())
    }

    /// Records in the pod's status why it is deleted, as that may take time. A resourceVersion precondition of the deletion then
    /// means the version of this change.
    async fn note_disruption(
        &self,
        call: &Call,
        name: &str,
        deletion: &mut DeleteOptions,
    ) -> Result<(), Refusal> {
        let asked = deletion.clone();
        let make = |pod: &mut Arc<Value>| {
            delete::preconditions(call, name, pod, &asked)?;
            Ok(disrupted(pod, &call.clock))
        };
        let change = Change { make: &make, uid_is_precondition: true, ownership: Ownership::Settled };
        let status = call.on(Some(Subresource::Status));
        let changed = self.change(&status, name, &change, &WriteOptions::own()).await?;
        if let Some(version) = &mut deletion.resource_version {
            object::resource_version(&changed.object).clone_into(version);
        }
        Ok(())
    }

    async fn take_from_budget(&self, call: &Call, pod: &Value, dry_run: bool) -> Result<(), Refusal> {
        let served = self.served();
        let Some(info) = served.table.find("policy", "v1", "poddisruptionbudgets") else { return Ok(()) };
        let about = call.about(info, &call.namespace).on(Some(Subresource::Status));
        let budgets = self.list_unconverted(&about, &ListOptions::default())?.items;
        let concerned: Vec<_> = budgets.iter().filter(|budget| selects(budget, pod)).collect();
        let budget = match concerned.as_slice() {
            [] => return Ok(()),
            [one] => one,
            _ => {
                return Err(Refusal::unclassified(
                    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
                ));
            }
        };
        if is_ready(pod) || !evicts_unready(budget) {
            let options = WriteOptions { dry_run, ..WriteOptions::own() };
            let make = |budget: &mut Arc<Value>| taken(budget, object::name(pod), &self.clock);
            let change = Change { make: &make, uid_is_precondition: true, ownership: Ownership::Tracked };
            self.change(&about, object::name(budget), &change, &options).await?;
        }
        Ok(())
    }
}

fn created() -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
}

fn named_alike(name: &str, sent: &Value, kind: &str) -> Result<(), Refusal> {
    if object::name(sent) == name {
        return Ok(());
    }
    Err(Refusal::bad_request(format!("name in URL does not match name in {kind} object")))
}

/// Returns the node that a binding names.
fn target(binding: &Value) -> Result<&str, Refusal> {
    let text = |field: &str| pointer::text(binding, &format!("/target/{field}"));
    let mut causes = Vec::new();
    if !["", "Node"].contains(&text("kind")) {
        causes.push(Cause::unsupported("target.kind", &text("kind").into(), &["Node", "<empty>"]));
    }
    if text("name").is_empty() {
        causes.push(Cause::required("target.name", ""));
    }
    // Upstream returns these errors as plain text, not as an invalid object.
    let texts: Vec<String> =
        causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
    match texts.as_slice() {
        [] => Ok(text("name")),
        [one] => Err(Refusal::unclassified(one)),
        _ => Err(Refusal::unclassified(format!("[{}]", texts.join(", ")))),
    }
}

/// Checks that a binding with a uid or resourceVersion is for this pod.
fn is_meant(call: &Call, name: &str, (binding, pod): (&Value, &Value), dry_run: bool) -> Result<(), Refusal> {
    let both = [
        ("UID", object::uid(binding), object::uid(pod)),
        ("ResourceVersion", object::resource_version(binding), object::resource_version(pod)),
    ];
    match both.into_iter().find(|(_, meant, own)| !meant.is_empty() && meant != own) {
        Some(unlike) => Err(update::unlike(call, name, unlike, dry_run)),
        None => Ok(()),
    }
}

/// Returns the pod on the node, with the labels and annotations of the binding.
fn bound(call: &Call, pod: &Value, (binding, node): (&Value, &str)) -> Result<Value, Refusal> {
    let name = object::name(pod);
    let refused = |why: String| Refusal::conflict_below(&call.info, "binding", name, &why);
    if object::is_terminating(pod) {
        return Err(refused(format!("pod {name} is being deleted, cannot be assigned to a host")));
    }
    if let Some(taken) = pod.pointer("/spec/nodeName").and_then(Value::as_str).filter(|node| !node.is_empty())
    {
        return Err(refused(format!("pod {name} is already assigned to node {}", go::quote(taken))));
    }
    let gates = pod.pointer("/spec/schedulingGates").and_then(Value::as_array);
    if gates.is_some_and(|gates| !gates.is_empty()) {
        return Err(refused(format!("pod {name} has non-empty .spec.schedulingGates")));
    }
    let mut bound = pod.clone();
    bound["spec"]["nodeName"] = node.into();
    for field in ["labels", "annotations"] {
        let given: Vec<(&str, &str)> = object::meta_map(binding, field).collect();
        if !given.is_empty() {
            let own = object::member_mut(object::meta_mut(&mut bound), field);
            own.extend(given.into_iter().map(|(key, value)| (key.to_owned(), value.into())));
            own.sort_keys();
        }
    }
    let status = object::member_mut(object::map_of(&mut bound), "status");
    // The nomination is obsolete.
    status.shift_remove("nominatedNodeName");
    set_condition(status, json!({"type": "PodScheduled", "status": "True"}), &call.clock);
    Ok(bound)
}

/// Sets a true condition of a pod, replacing the one of its type, whose transition time is kept if it was true.
fn set_condition(status: &mut Map<String, Value>, mut condition: Value, clock: &Clock) {
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(conditions) = conditions.as_array_mut() else { return };
    let old = conditions.iter_mut().find(|old| old["type"] == condition["type"]);
    let since = old.as_ref().filter(|old| old["status"] == condition["status"]);
    let since = since.map_or_else(|| clock.stamp().into(), |old| old["lastTransitionTime"].clone());
    condition["lastProbeTime"] = Value::Null;
    condition["lastTransitionTime"] = since;
    match old {
        Some(old) => *old = condition,
        None => conditions.push(condition),
    }
}

/// Returns the pod with the condition of its disruption.
fn disrupted(pod: &Value, clock: &Clock) -> Value {
    let mut disrupted = pod.clone();
    let condition = json!({"type": "DisruptionTarget", "status": "True",
        "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"});
    set_condition(object::member_mut(object::map_of(&mut disrupted), "status"), condition, clock);
    disrupted
}

/// Returns whether the eviction needs no budget: for pods that have terminated, are pending, or are being deleted.
fn is_gone(pod: &Value) -> bool {
    let phase = pointer::text(pod, "/status/phase");
    matches!(phase, "Succeeded" | "Failed" | "Pending") || object::is_terminating(pod)
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pointer::items(pod, "/status/conditions").iter();
    conditions.into_iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

fn selects(budget: &Value, pod: &Value) -> bool {
    budget
        .pointer("/spec/selector")
        .filter(|selector| selector.is_object())
        .is_some_and(|selector| LabelSelector::read(selector).matches_labels_of(Some(pod)))
}

fn count(budget: &Value, field: &str) -> i64 {
    budget.pointer(&format!("/status/{field}")).and_then(Value::as_i64).unwrap_or(0)
}

/// Returns whether unready pods may be evicted without being counted: always, or while enough others are healthy.
fn evicts_unready(budget: &Value) -> bool {
    match budget.pointer("/spec/unhealthyPodEvictionPolicy").and_then(Value::as_str) {
        Some("AlwaysAllow") => true,
        _ => {
            let desired = count(budget, "desiredHealthy");
            desired > 0 && count(budget, "currentHealthy") >= desired
        }
    }
}

/// Returns why a budget allows no disruption.
fn unallowed(budget: &Value) -> String {
    let name = object::name(budget);
    let conditions = pointer::items(budget, "/status/conditions").iter();
    let mut conditions = conditions.filter(|condition| condition["type"] == ALLOWED);
    let told = conditions.next().filter(|condition| condition["status"] == "False");
    let told = told.map(|condition| {
        (pointer::text(condition, "/reason").to_owned(), pointer::text(condition, "/message").to_owned())
    });
    let told = told.filter(|(_, message)| !message.is_empty());
    let (needed, healthy) = (count(budget, "desiredHealthy"), count(budget, "currentHealthy"));
    match told {
        Some((reason, message)) if reason == "SyncFailed" => format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
        ),
        _ if healthy <= needed => {
            format!("The disruption budget {name} needs {needed} healthy pods and has {healthy} currently")
        }
        Some((reason, message)) => format!(
            "The disruption budget {name} does not allow evicting pods currently ({reason}): {message}"
        ),
        None => format!("The disruption budget {name} does not allow evicting pods currently"),
    }
}

/// Sets the budget's condition that no disruption is allowed.
fn none_allowed(budget: &mut Value, clock: &Clock) {
    let observed = count(budget, "observedGeneration");
    let status = object::member_mut(object::map_of(budget), "status");
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    let Some(conditions) = conditions.as_array_mut() else { return };
    let old = conditions.iter_mut().find(|old| old["type"] == ALLOWED);
    let since = old.as_ref().filter(|old| old["status"] == "False");
    let since = since.map_or_else(|| clock.stamp().into(), |old| old["lastTransitionTime"].clone());
    let condition = json!({"type": ALLOWED, "status": "False", "observedGeneration": observed,
        "lastTransitionTime": since, "reason": "InsufficientPods", "message": ""});
    match old {
        Some(old) => *old = condition,
        None => conditions.push(condition),
    }
}

/// Returns the budget with one allowed disruption less, for this pod.
fn taken(budget: &Value, pod: &str, clock: &Clock) -> Result<Value, Refusal> {
    let name = object::name(budget);
    let refused = |message: String, seconds: u32| {
        let cause = Cause { reason: "DisruptionBudget".into(), field: String::new(), message };
        Err(Refusal::too_many_requests(VIOLATED, seconds).caused_by(cause))
    };
    let forbidden = |why| Refusal::resource_forbidden("policy", "poddisruptionbudget", name, why);
    let known = budget.pointer("/status/disruptedPods").and_then(Value::as_object);
    if count(budget, "observedGeneration") < object::generation(budget) {
        let why = format!("The disruption budget {name} is still being processed by the server.");
        return refused(why, 10);
    }
    let allowed = count(budget, "disruptionsAllowed");
    if allowed < 0 {
        return Err(forbidden("pdb disruptions allowed is negative"));
    }
    if known.is_some_and(|pods| pods.len() > MAX_DISRUPTED) {
        let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Err(forbidden(why));
    }
    if allowed == 0 {
        return refused(unallowed(budget), 0);
    }
    let mut next = budget.clone();
    next["status"]["disruptionsAllowed"] = (allowed - 1).into();
    if allowed == 1 {
        none_allowed(&mut next, clock);
    }
    next["status"]["disruptedPods"][pod] = clock.stamp().into();
    Ok(next)
}
