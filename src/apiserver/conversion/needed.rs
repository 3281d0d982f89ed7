//! Supplies conversions to functions that do no I/O: policies and matching rules that see a request in another
//! version, and field managers in the version that they wrote in. A missing conversion is recorded and fetched, and
//! the function is run again with it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::{Failed, Webhook};
use crate::digest::sha256_hex;
use crate::objects::Objects;

/// The most runs: each finds at least one conversion more than the one before, and no useful function needs so many.
const MOST_RUNS: usize = 32;

/// The objects that were converted for one request. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conversions(Arc<Mutex<Memo>>);

/// Digest of the text of an object, and the version that it is wanted in.
type Key = (String, String);

#[derive(Debug, Default)]
struct Memo {
    known: HashMap<Key, Result<Arc<Value>, Failed>>,
    missing: Vec<Wanted>,
    /// The first requested conversion that failed.
    failed: Option<Failed>,
}

#[derive(Debug)]
struct Wanted {
    webhook: Arc<Webhook>,
    key: Key,
    object: Value,
}

impl Conversions {
    /// Returns `object` converted to `api_version`, which is not its own.
    ///
    /// # Errors
    /// If the conversion failed, or is not there yet: the caller is run again then.
    pub(crate) fn of(
        &self,
        webhook: &Arc<Webhook>,
        object: &Value,
        api_version: &str,
    ) -> Result<Arc<Value>, Failed> {
        let key = (sha256_hex(object.to_string().as_bytes()), api_version.to_owned());
        let mut memo = self.memo();
        match memo.known.get(&key).cloned() {
            Some(Ok(converted)) => Ok(converted),
            Some(Err(failed)) => {
                memo.failed.get_or_insert_with(|| failed.clone());
                Err(failed)
            }
            None => {
                if memo.missing.iter().all(|wanted| wanted.key != key) {
                    let (webhook, object) = (Arc::clone(webhook), object.clone());
                    memo.missing.push(Wanted { webhook, key, object });
                }
                Err(Failed("the conversion is under way".to_owned()))
            }
        }
    }

    fn memo(&self) -> MutexGuard<'_, Memo> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn missing(&self) -> Vec<Wanted> {
        std::mem::take(&mut self.memo().missing)
    }

    /// Returns why a conversion failed, if one did; only once.
    pub(crate) fn failure(&self) -> Option<Failed> {
        self.memo().failed.take()
    }

    /// Runs `work`, and again until all conversions that it needs are available; returns its last result.
    pub(crate) async fn provide<T>(&self, objects: &dyn Objects, mut work: impl FnMut() -> T) -> T {
        for _ in 1..MOST_RUNS {
            let made = work();
            let missing = self.missing();
            if missing.is_empty() {
                return made;
            }
            drop(made);
            self.fetch(objects, missing).await;
        }
        let made = work();
        self.missing();
        made
    }

    /// Fetches missing conversions, together for each webhook and version.
    async fn fetch(&self, objects: &dyn Objects, mut missing: Vec<Wanted>) {
        while let Some(first) = missing.first() {
            let (webhook, version) = (Arc::clone(&first.webhook), first.key.1.clone());
            let (together, others): (Vec<_>, Vec<_>) = missing
                .into_iter()
                .partition(|wanted| Arc::ptr_eq(&wanted.webhook, &webhook) && wanted.key.1 == version);
            missing = others;
            let (keys, wanted): (Vec<_>, Vec<_>) =
                together.into_iter().map(|wanted| (wanted.key, wanted.object)).unzip();
            let converted = webhook.convert(objects, &wanted, &version).await;
            let mut memo = self.memo();
            match converted {
                Ok(converted) => {
                    memo.known.extend(keys.into_iter().zip(converted.into_iter().map(|one| Ok(one.into()))));
                }
                Err(failed) => {
                    memo.known.extend(keys.into_iter().map(|key| (key, Err(failed.clone()))));
                }
            }
        }
    }
}
