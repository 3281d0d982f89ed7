//! Tracks the usage of quotas for requests that are not stored.

use std::collections::BTreeMap;
use std::sync::Arc;

use admit_policy::{Host, Request};
use serde_json::Value;

use super::given::Given;
use crate::admission::quota::{self, Counted, Excess, Tally, Written};
use crate::clock::Clock;
use crate::identity::Identity;
use crate::object;
use crate::registry::builtin_kinds::{TABLE, call_about, read_back};
use crate::registry::quotas::QUOTAS;

/// The quotas by namespace, each with the status that a server would have written.
#[derive(Debug, Default)]
pub(super) struct Books(BTreeMap<String, Vec<Value>>);

/// Returns whether the object is a ResourceQuota.
pub(super) fn is_quota(object: &Value) -> bool {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let kind = TABLE.find("", "v1", QUOTAS);
    text("apiVersion") == "v1" && kind.is_some_and(|row| row.kind == text("kind"))
}

impl Books {
    /// Creates the books; for quotas without a counted status, `objects` are counted, which are read only then.
    pub(super) fn new(quotas: &[Arc<Value>], objects: impl IntoIterator<Item = Arc<Value>>) -> Self {
        let (told, silent): (Vec<_>, Vec<_>) = quotas.iter().partition(|quota| tells(quota));
        let mut tallies: Vec<(&Value, Tally<'_>)> =
            silent.iter().map(|quota| (&***quota, Tally::new(quota))).collect();
        if !tallies.is_empty() {
            for object in objects {
                add(&mut tallies, &object);
            }
        }
        let mut books = Self::default();
        told.into_iter().for_each(|quota| books.open(quota, None));
        tallies.into_iter().for_each(|(quota, tally)| books.open(quota, Some(tally.into_status())));
        books
    }

    /// Creates the books of one namespace, where the objects of `host` are counted as they are before the request.
    pub(super) fn of_namespace(host: &dyn Host, request: &Request<'_>, namespace: &str) -> Self {
        let given = Given::of(host, request);
        let mut books = Self::default();
        for quota in given.found(QUOTAS, namespace, None) {
            if tells(&quota) {
                books.open(&quota, None);
                continue;
            }
            let mut tally = Tally::new(&quota);
            for (group, plural) in quota::counted(&quota) {
                let mut rows = TABLE.rows().iter();
                let row = rows.find(|row| row.builtin && row.group == group && row.plural == plural);
                let Some(row) = row else { continue };
                let of = Counted { group: &group, plural: &plural };
                for object in given.found(&row.storage_key, namespace, None) {
                    tally.add(of, &object, Clock::default().now());
                }
            }
            let status = tally.into_status();
            books.open(&quota, Some(status));
        }
        books
    }

    fn open(&mut self, quota: &Value, status: Option<Value>) {
        let mut quota = quota.clone();
        match status {
            Some(status) => object::set_field(&mut quota, "status", Some(status)),
            None => {
                let hard = quota.pointer("/spec/hard").cloned();
                let status = object::member_mut(object::map_of(&mut quota), "status");
                status.extend(hard.map(|hard| ("hard".to_owned(), hard)));
            }
        }
        self.0.entry(object::namespace(&quota).to_owned()).or_default().push(quota);
    }

    /// Returns the quotas of a namespace.
    pub(super) fn of(&self, namespace: &str) -> Vec<Arc<Value>> {
        let quotas = self.0.get(namespace).into_iter().flatten();
        quotas.map(|quota| Arc::new(quota.clone())).collect()
    }

    /// Charges each quota of the namespace, or none of them.
    ///
    /// # Errors
    /// If a quota refuses the object.
    pub(super) fn charge(&mut self, namespace: &str, written: Written<'_>) -> Result<(), Excess> {
        let quotas = self.0.get_mut(namespace).map(Vec::as_mut_slice).unwrap_or_default();
        let charged = quotas.iter().map(|quota| quota::charged(quota, written));
        let charged = charged.collect::<Result<Vec<_>, _>>()?;
        for (quota, used) in quotas.iter_mut().zip(charged) {
            if let Some(used) = used {
                let status = object::member_mut(object::map_of(quota), "status");
                status.insert("used".to_owned(), used.into());
            }
        }
        Ok(())
    }
}

/// Returns whether the quota has a status that a server counted.
fn tells(quota: &Value) -> bool {
    quota.pointer("/status/used").is_some_and(Value::is_object)
}

fn add(tallies: &mut [(&Value, Tally<'_>)], object: &Value) {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = text("apiVersion").rsplit_once('/').unwrap_or(("", text("apiVersion")));
    let Some(info) = TABLE.find_kind(group, version, text("kind")) else { return };
    let namespace = object::namespace(object);
    let counted = |quota: &Value| {
        let counted = quota::counted(quota);
        object::namespace(quota) == namespace
            && counted.iter().any(|(group, plural)| (group, plural) == (&info.group, &info.plural))
    };
    let mut read = None;
    for (_, tally) in tallies.iter_mut().filter(|(quota, _)| counted(quota)) {
        let call = || call_about(info, namespace.to_owned(), None, Identity::admin());
        let object = read.get_or_insert_with(|| read_back(&call(), object));
        tally.add(Counted { group: &info.group, plural: &info.plural }, object, Clock::default().now());
    }
}
