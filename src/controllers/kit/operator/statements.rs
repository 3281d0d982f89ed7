//! Holds the current statements of a controller's parts about their state.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tokio::time::Instant;

use super::combine::{Aspect, Word};
use crate::controllers::kit::conditions::{Statement, Truth};

/// The current statements, shared by the parts of a controller and the reporter. Clones share the same state.
#[derive(Clone, Debug)]
pub struct Says {
    said: Arc<Mutex<Said>>,
    changed: Arc<watch::Sender<()>>,
}

/// All statements.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Said {
    /// The statements by aspect and part.
    pub(super) words: BTreeMap<(Aspect, &'static str), Word>,
    /// Additional conditions by type.
    pub(super) shown: BTreeMap<&'static str, Statement>,
}

impl Default for Says {
    fn default() -> Self {
        Self { said: Arc::default(), changed: Arc::new(watch::Sender::new(())) }
    }
}

/// The part name of the kit's own statements.
const CONTROLLER: &str = "Controller";
const AS_EXPECTED: &str = "AsExpected";

impl Says {
    /// Sets the statement of `part` on one aspect. A part that stays bad keeps the time since when it is.
    pub fn say(
        &self,
        part: &'static str,
        aspect: Aspect,
        truth: Truth,
        reason: &str,
        message: impl Into<String>,
    ) {
        self.change(|said| {
            let before = said.words.get(&(aspect, part));
            let since =
                before.filter(|word| word.truth == truth).map_or_else(Instant::now, |word| word.since);
            let word = Word { truth, reason: reason.to_owned(), message: message.into(), since };
            said.words.insert((aspect, part), word);
        });
    }

    /// Like [`Self::say`], and also shows `statement` as a condition of its own type, such as `UploadDegraded`.
    pub fn say_and_show(&self, part: &'static str, aspect: Aspect, statement: Statement) {
        self.say(part, aspect, statement.truth, &statement.reason, statement.message.clone());
        self.show(statement);
    }

    /// Adds a condition that belongs to no aspect.
    pub fn show(&self, statement: Statement) {
        self.change(|said| drop(said.shown.insert(statement.type_, statement)));
    }

    /// States that the controller works: its objects are known, and none of them failed.
    pub fn works(&self) {
        self.say(CONTROLLER, Aspect::Available, Truth::True, AS_EXPECTED, "its objects are watched");
        self.say(CONTROLLER, Aspect::Progressing, Truth::False, AS_EXPECTED, "");
        self.say(CONTROLLER, Aspect::Degraded, Truth::False, AS_EXPECTED, "");
    }

    /// States that the controller cannot work, and why.
    pub fn cannot_work(&self, reason: &str, message: impl Into<String>) {
        self.say(CONTROLLER, Aspect::Available, Truth::False, reason, message);
        self.say(CONTROLLER, Aspect::Progressing, Truth::False, AS_EXPECTED, "");
        self.say(CONTROLLER, Aspect::Degraded, Truth::False, AS_EXPECTED, "");
    }

    /// States that reconciliations of `objects` objects fail, with `error` as an example.
    pub fn fails(&self, objects: usize, error: &str) {
        let message = format!("looks at {objects} objects fail, for example: {error}");
        self.say(CONTROLLER, Aspect::Degraded, Truth::True, "ReconcileFailed", message);
    }

    /// States that reconciliations no longer fail.
    pub fn recovers(&self) {
        self.say(CONTROLLER, Aspect::Degraded, Truth::False, AS_EXPECTED, "");
    }

    /// Returns the statement of `part` on `aspect`.
    #[must_use]
    pub fn said(&self, part: &str, aspect: Aspect) -> Option<Word> {
        let said = self.lock();
        said.words.iter().find(|((of, by), _)| *of == aspect && *by == part).map(|(_, word)| word.clone())
    }

    /// Returns the additional condition of this type.
    #[must_use]
    pub fn shown(&self, type_: &str) -> Option<Statement> {
        self.lock().shown.get(type_).cloned()
    }

    pub(super) fn all(&self) -> Said {
        self.lock().clone()
    }

    /// Returns a receiver of changes from now on.
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    fn change(&self, change: impl FnOnce(&mut Said)) {
        let changed = {
            let mut said = self.lock();
            let before = said.clone();
            change(&mut said);
            *said != before
        };
        if changed {
            self.changed.send_replace(());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
