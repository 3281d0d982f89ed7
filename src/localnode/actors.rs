//! Runs one task for each object with work to do: the task receives the object's newest state, and tasks of different objects
//! do not wait for each other.

use std::collections::HashMap;
use std::hash::Hash;
use std::panic::AssertUnwindSafe;

use futures::FutureExt as _;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::error;

/// The tasks, by the keys of their objects; `V` is the value that a task receives.
#[derive(Debug)]
pub(super) struct Actors<K, V> {
    known: HashMap<K, watch::Sender<V>>,
    tasks: JoinSet<K>,
}

impl<K: Clone + Eq + Hash + Send + 'static, V: Send + Sync + 'static> Actors<K, V> {
    pub(super) fn new() -> Self {
        Self { known: HashMap::new(), tasks: JoinSet::new() }
    }

    pub(super) fn get(&self, key: &K) -> Option<&watch::Sender<V>> {
        self.known.get(key)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&K, &watch::Sender<V>)> {
        self.known.iter()
    }

    /// Starts the task of an object; `work` creates its future.
    pub(super) fn start<F>(&mut self, key: K, value: V, work: impl FnOnce(watch::Receiver<V>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (sender, receiver) = watch::channel(value);
        self.known.insert(key.clone(), sender);
        let work = work(receiver);
        self.tasks.spawn(async move {
            if AssertUnwindSafe(work).catch_unwind().await.is_err() {
                error!("work on an object ended by a panic");
            }
            key
        });
    }

    pub(super) fn forget(&mut self, key: &K) {
        self.known.remove(key);
    }

    /// Waits for the next task that ends; for ever if there is none.
    pub(super) async fn ended(&mut self) -> K {
        loop {
            match self.tasks.join_next().await {
                Some(Ok(key)) => return key,
                Some(Err(error)) => error!(%error, "work on an object was cut off"),
                None => std::future::pending().await,
            }
        }
    }

    /// Aborts all tasks at their next await point.
    pub(super) async fn abort(&mut self) {
        self.tasks.shutdown().await;
    }

    /// Waits for all tasks.
    pub(super) async fn join(&mut self) {
        while self.tasks.join_next().await.is_some() {}
    }
}
