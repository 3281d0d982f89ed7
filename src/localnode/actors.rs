//! One task for each object that something has to be done about: it hears of the object's newest state, and nothing of one
//! object waits for another.

use std::collections::HashMap;
use std::hash::Hash;
use std::panic::AssertUnwindSafe;

use futures::FutureExt as _;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::error;

/// The tasks, by what their objects are called; `V` is what a task is told.
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

    /// Starts the task of an object, which `work` makes.
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

    /// The next task that ends; never, while there is none.
    pub(super) async fn ended(&mut self) -> K {
        loop {
            match self.tasks.join_next().await {
                Some(Ok(key)) => return key,
                Some(Err(error)) => error!(%error, "work on an object was cut off"),
                None => std::future::pending().await,
            }
        }
    }

    /// Ends all tasks where they wait.
    pub(super) async fn abort(&mut self) {
        self.tasks.shutdown().await;
    }

    /// Waits for all tasks.
    pub(super) async fn join(&mut self) {
        while self.tasks.join_next().await.is_some() {}
    }
}
