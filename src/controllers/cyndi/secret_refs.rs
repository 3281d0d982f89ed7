//! Records which Secrets each pipeline reads, including missing ones, so that a change of a Secret triggers a
//! reconciliation of exactly the pipelines that use it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::{Stream, stream};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{self, Sender};

use crate::controllers::kit::key::Key;

/// The most queued wake-ups for the other controller. Lost ones are covered by its periodic reconciliation.
const WAITING: usize = 256;

/// The pipelines that read a Secret, by its namespace and name.
type Readers = BTreeMap<(String, String), BTreeSet<Key>>;

/// Shared by both controllers: one of them watches Secrets, and notifies the other.
#[derive(Clone, Debug)]
pub(super) struct SecretRefs {
    readers: Arc<Mutex<Readers>>,
    told: Sender<Key>,
}

impl Default for SecretRefs {
    fn default() -> Self {
        Self { readers: Arc::default(), told: broadcast::channel(WAITING).0 }
    }
}

impl SecretRefs {
    pub(super) fn note(&self, reader: Key, namespace: &str, name: &str) {
        let place = (namespace.to_owned(), name.to_owned());
        self.readers().entry(place).or_default().insert(reader);
    }

    pub(super) fn forget(&self, reader: &Key) {
        let mut readers = self.readers();
        readers.retain(|_, those| {
            those.remove(reader);
            !those.is_empty()
        });
    }

    /// Returns the pipelines that read a changed Secret, and notifies the other controller.
    pub(super) fn changed(&self, namespace: &str, name: &str) -> Vec<Key> {
        let place = (namespace.to_owned(), name.to_owned());
        let concerned: Vec<Key> = self.readers().get(&place).into_iter().flatten().cloned().collect();
        for key in &concerned {
            // If only one controller runs, there is no receiver.
            drop(self.told.send(key.clone()));
        }
        concerned
    }

    /// Returns a stream of pipelines whose Secrets change.
    pub(super) fn changes(&self) -> impl Stream<Item = Key> + Send + use<> {
        stream::unfold(self.told.subscribe(), |mut told| async move {
            loop {
                match told.recv().await {
                    Ok(key) => return Some((key, told)),
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return None,
                }
            }
        })
    }

    fn readers(&self) -> MutexGuard<'_, Readers> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt as _;

    use super::*;

    fn key(name: &str) -> Key {
        Key { namespace: "n".to_owned(), name: name.to_owned(), uid: name.to_owned() }
    }

    #[tokio::test]
    async fn those_who_read_a_secret_are_told_of_it() {
        let uses = SecretRefs::default();
        let mut heard = Box::pin(uses.changes());
        for (reader, secret) in [("a", "shared"), ("b", "shared"), ("b", "own")] {
            uses.note(key(reader), "n", secret);
        }
        assert_eq!(uses.changed("n", "shared"), [key("a"), key("b")]);
        assert_eq!((heard.next().await, heard.next().await), (Some(key("a")), Some(key("b"))));
        assert_eq!(uses.changed("other", "shared"), []);
        uses.forget(&key("b"));
        assert_eq!((uses.changed("n", "shared"), uses.changed("n", "own")), (vec![key("a")], vec![]));
        assert_eq!(uses.readers().len(), 1);
    }
}
