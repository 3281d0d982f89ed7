//! Records which Secrets each pipeline reads, including missing ones, so that a change of a Secret triggers a
//! reconciliation of exactly the pipelines that use it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::{Stream, stream};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{self, Sender};

use crate::controllers::kit::key::Key;

/// Wake-ups that wait for a controller that is slow to take them. Those that are lost come with its next look anyway.
const WAITING: usize = 256;

/// Namespace and name of a Secret, and who reads it.
type Readers = BTreeMap<(String, String), BTreeSet<Key>>;

/// Shared by the controllers of pipelines: one of them watches Secrets, and tells the other.
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

    /// Who reads a Secret that has changed. The other controller is told as well.
    pub(super) fn changed(&self, namespace: &str, name: &str) -> Vec<Key> {
        let place = (namespace.to_owned(), name.to_owned());
        let concerned: Vec<Key> = self.readers().get(&place).into_iter().flatten().cloned().collect();
        for key in &concerned {
            // Nobody listens where only one controller runs.
            drop(self.told.send(key.clone()));
        }
        concerned
    }

    /// Those who read Secrets that change from now on.
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
