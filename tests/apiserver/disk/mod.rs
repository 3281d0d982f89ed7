//! The store and its disk: full and with room again, damaged, cut off, of an older version, made by somebody else.

mod beginning;
mod cut;
mod damage;
mod full;

use std::path::Path;
use std::time::Duration;

use admit_apiserver::store::{Backend as _, Expect, Key, Range, RedbBackend, Revision, Store};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_mins(1);

pub(super) fn key(name: &str) -> Key {
    Key { resource: "things".into(), namespace: "here".to_owned(), name: name.to_owned() }
}

pub(super) fn thing(name: &str, size: usize) -> Value {
    json!({"metadata": {"name": name, "namespace": "here"}, "text": "x".repeat(size)})
}

pub(super) fn names(store: &Store) -> Vec<String> {
    let page = store.list("things", Range::default(), 0, &mut |_| true).unwrap();
    let name = |value: &Value| value["metadata"]["name"].as_str().unwrap().to_owned();
    page.items.iter().map(|item| name(&item.object.values())).collect()
}

/// Waits until `done`, which another thread brings about.
pub(super) async fn until(what: &str, done: impl Fn() -> bool) {
    let waited = timeout(PATIENCE, async {
        while !done() {
            tokio::task::yield_now().await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("{what}"));
}

/// A store in a folder, closed.
pub(super) async fn closed_store(objects: usize) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(Box::new(RedbBackend::open(&path(&folder)).unwrap())).unwrap();
    for n in 0..objects {
        let name = format!("t{n:05}");
        store.put(&key(&name), Expect::Absent, thing(&name, 700)).await.unwrap();
    }
    drop(store);
    until("the store is not closed", || RedbBackend::open(&path(&folder)).is_ok()).await;
    folder
}

pub(super) fn path(folder: &TempDir) -> std::path::PathBuf {
    folder.path().join("store.redb")
}

/// The state of the store, or the message that it cannot be had.
pub(super) fn state(path: &Path) -> Result<(Revision, Vec<(String, Value)>), String> {
    let image =
        RedbBackend::open(path).and_then(|backend| backend.load()).map_err(|error| error.to_string())?;
    let objects =
        image.objects.into_iter().map(|(key, stored)| (key.name, (*stored.object.values()).clone()));
    Ok((image.revision, objects.collect()))
}

/// xorshift: numbers below a bound, the same in every run.
pub(super) fn random(mut state: u64) -> impl FnMut(usize) -> usize {
    move |bound| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 16).unwrap() % bound
    }
}
