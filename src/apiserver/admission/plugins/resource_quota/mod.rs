//! Implements `ResourceQuota`: computes what objects consume and checks it against the quotas of their namespace.
//!
//! This module is pure: it computes an object's usage, the quotas that apply, and their usage afterwards. The caller
//! (`registry::quotas`) charges the quotas before the object is stored. Read from
//! pkg/quota/v1/evaluator and k8s.io/apiserver's plugin resourcequota of Kubernetes 1.36.

mod limited;
mod scopes;
mod usage;

use std::collections::BTreeMap;

use admit_apimachinery::quantity::Quantity;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::pods::items;
use super::resources::amounts;
use crate::object;

pub(crate) use self::limited::Uncovered;
pub(in crate::admission::plugins) use self::limited::uncovered;
pub(crate) use self::usage::Counted;
use self::usage::{Used, usage};

/// The name of the plugin.
pub(crate) const PLUGIN: &str = "ResourceQuota";

/// An object that is to be written, and the one that it replaces.
#[derive(Clone, Copy)]
pub(crate) struct Written<'o> {
    pub(crate) of: Counted<'o>,
    pub(crate) object: &'o Value,
    pub(crate) old: Option<&'o Value>,
    pub(crate) now: Timestamp,
}

/// Says why a quota refuses a write.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Excess {
    /// The object lacks a required request or limit, or the quota's status has no usage yet.
    Unknown(String),
    /// The usage would exceed the quota.
    Exceeded(String),
}

impl Excess {
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Unknown(text) | Self::Exceeded(text) => text,
        }
    }
}

/// Returns the quota's `status.used` with the object added; None if the quota does not apply or usage does not grow.
///
/// # Errors
/// If the object would exceed the quota, or its usage cannot be determined.
pub(crate) fn charged(quota: &Value, written: Written<'_>) -> Result<Option<Map<String, Value>>, Excess> {
    let Written { of, object, old, now } = written;
    let name = object::name(quota);
    let (hard, used) = (amounts(quota, "/status/hard"), amounts(quota, "/status/used"));
    let counted: Vec<&str> = hard.keys().copied().filter(|resource| of.counts(resource)).collect();
    if counted.is_empty() || !scopes::hold(quota, of, object) {
        return Ok(None);
    }
    if let Some(missing) = usage::unspecified(of, object, &counted) {
        return Err(Excess::Unknown(format!("failed quota: {name}: must specify {missing}")));
    }
    if counted.iter().any(|resource| !used.contains_key(resource)) {
        let resources = counted.join(",");
        return Err(Excess::Unknown(format!("status unknown for quota: {name}, resources: {resources}")));
    }
    let mut asked = usage(of, object, now);
    if let Some(old) = old.filter(|old| scopes::hold(quota, of, old)) {
        asked = more(asked, &usage(of, old, now));
    }
    asked.retain(|resource, amount| hard.contains_key(resource.as_str()) && amount.sign().is_gt());
    if asked.is_empty() {
        return Ok(None);
    }
    let mut next: BTreeMap<&str, Quantity<'_>> = used.clone();
    let mut exceeded = Vec::new();
    for (resource, amount) in &asked {
        let resource = resource.as_str();
        let sum =
            next.get(resource).and_then(|used| used.plus(amount).ok()).unwrap_or_else(|| amount.clone());
        if hard.get(resource).is_some_and(|most| sum.compare(most).is_gt()) {
            exceeded.push(resource);
        }
        next.insert(resource, sum);
    }
    if exceeded.is_empty() {
        return Ok(Some(shown(next)));
    }
    let told = |amount: &dyn Fn(&str) -> Option<String>| {
        let told = exceeded.iter().filter_map(|resource| Some(format!("{resource}={}", amount(resource)?)));
        told.collect::<Vec<_>>().join(",")
    };
    Err(Excess::Exceeded(format!(
        "exceeded quota: {name}, requested: {}, used: {}, limited: {}",
        told(&|resource| asked.get(resource).map(ToString::to_string)),
        told(&|resource| used.get(resource).map(ToString::to_string)),
        told(&|resource| hard.get(resource).map(ToString::to_string)),
    )))
}

/// Returns the increase of each amount; amounts that do not grow are left out.
fn more<'v>(new: Used<'v>, old: &Used<'v>) -> Used<'v> {
    let more = new.into_iter().filter_map(|(resource, amount)| match old.get(&resource) {
        None => Some((resource, amount)),
        Some(before) => {
            amount.minus(before).ok().filter(|more| more.sign().is_gt()).map(|more| (resource, more))
        }
    });
    more.collect()
}

fn shown<'v>(amounts: impl IntoIterator<Item = (&'v str, Quantity<'v>)>) -> Map<String, Value> {
    amounts.into_iter().map(|(resource, amount)| (resource.to_owned(), amount.to_string().into())).collect()
}

/// Returns the resources whose objects the quota counts: group (empty for core) and plural.
pub(crate) fn counted(quota: &Value) -> Vec<(String, String)> {
    let hard = quota.pointer("/spec/hard").and_then(Value::as_object);
    let mut found: Vec<(String, String)> =
        hard.into_iter().flatten().filter_map(|(resource, _)| usage::owner(resource)).collect();
    found.sort();
    found.dedup();
    found
}

/// Sums up what the objects of a namespace use of a quota.
pub(crate) struct Tally<'q> {
    quota: &'q Value,
    sums: BTreeMap<&'q str, Quantity<'static>>,
}

impl<'q> Tally<'q> {
    pub(crate) fn new(quota: &'q Value) -> Self {
        let hard = quota.pointer("/spec/hard").and_then(Value::as_object);
        let names = hard.into_iter().flatten().map(|(name, _)| name.as_str());
        let known = names.filter(|name| usage::owner(name).is_some());
        Self { quota, sums: known.map(|name| (name, usage::whole(0))).collect() }
    }

    /// Adds an object, which may be one that the quota does not count.
    pub(crate) fn add(&mut self, of: Counted<'_>, object: &Value, now: Timestamp) {
        if !scopes::hold(self.quota, of, object) {
            return;
        }
        for (resource, amount) in usage(of, object, now) {
            if let Some(sum) = self.sums.get_mut(resource.as_str())
                && let Ok(next) = sum.plus(&amount)
            {
                *sum = next.into_owned();
            }
        }
    }

    /// Returns the status of the quota.
    pub(crate) fn into_status(self) -> Value {
        let hard = self.quota.pointer("/spec/hard").cloned().unwrap_or_else(|| Value::Object(Map::new()));
        serde_json::json!({"hard": hard, "used": shown(self.sums)})
    }
}

/// Returns the scope selectors of a quota, each as its scope name, operator and values.
fn selectors(quota: &Value) -> impl Iterator<Item = (&str, &str, Vec<&str>)> {
    let scopes =
        items(quota, "/spec/scopes").filter_map(Value::as_str).map(|scope| (scope, "Exists", Vec::new()));
    let selected = items(quota, "/spec/scopeSelector/matchExpressions").map(|selector| {
        let text = |field: &str| selector.get(field).and_then(Value::as_str).unwrap_or_default();
        let values = items(selector, "/values").filter_map(Value::as_str).collect();
        (text("scopeName"), text("operator"), values)
    });
    scopes.chain(selected)
}

#[cfg(test)]
mod tests;
