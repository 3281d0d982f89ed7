//! Collects the texts of `Warning` headers while a request runs: each once, and no more than a response has room for.

use std::sync::{Arc, Mutex, PoisonError};

use admit_apimachinery::findings::Room;
use indexmap::IndexSet;

/// Texts for `Warning` headers, gathered while a request runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Warnings(Arc<Mutex<Gathered>>);

/// The distinct texts. Responses have room for 4,096 characters of them, so the bound drops none that would be sent.
#[derive(Debug, Default)]
struct Gathered {
    texts: IndexSet<String>,
    room: Room,
    /// The audit annotations, by key.
    annotations: Vec<(String, String)>,
}

impl Warnings {
    /// Adds a text unless it is there already.
    pub(crate) fn add(&self, text: impl Into<String>) {
        let text = text.into();
        let mut gathered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Gathered { texts, room, .. } = &mut *gathered;
        if !room.is_full() && !texts.contains(&text) {
            room.take(text.len());
            texts.insert(text);
        }
    }

    /// Adds audit annotations.
    pub(crate) fn annotate(&self, annotations: impl IntoIterator<Item = (String, String)>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).annotations.extend(annotations);
    }

    #[must_use]
    pub(crate) fn take_annotations(&self) -> Vec<(String, String)> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).annotations)
    }

    #[must_use]
    pub(crate) fn take(&self) -> Vec<String> {
        let mut gathered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        gathered.room = Room::default();
        std::mem::take(&mut gathered.texts).into_iter().collect()
    }
}
