//! Collects the texts of `Warning` headers while a request runs: each once, and no more than an answer has room for.

use std::sync::{Arc, Mutex, PoisonError};

use admit_apimachinery::findings::Room;
use indexmap::IndexSet;

/// Texts for `Warning` headers, gathered while a request runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Warnings(Arc<Mutex<Gathered>>);

/// Each text once. Answers have room for 4,096 characters of them, so that none is missed of those beyond the bound.
#[derive(Debug, Default)]
struct Gathered {
    texts: IndexSet<String>,
    room: Room,
    /// What policies write into the audit log, by key.
    annotations: Vec<(String, String)>,
}

impl Warnings {
    /// A text that is there already is not repeated.
    pub(crate) fn add(&self, text: impl Into<String>) {
        let text = text.into();
        let mut gathered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Gathered { texts, room, .. } = &mut *gathered;
        if !room.is_full() && !texts.contains(&text) {
            room.take(text.len());
            texts.insert(text);
        }
    }

    /// Notes what policies write into the audit log.
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
