//! Holds the objects of manifests in compact form until they are decided, since there may be as many as in a cluster.

use std::sync::Arc;

use admit_apimachinery::weight;
use admit_policy::apply;
use admit_policy::manifest::{Document, LoadError, Position};
use admit_policy::suite::Suite;
use serde_json::Value;

use crate::cli::process::Fault;

/// The largest number of bytes for all objects, packed and unpacked: enough for four hundred thousand objects of 2.5 kB.
const MAX_HELD: usize = 1 << 30;

/// The objects of manifests, in order.
#[derive(Debug)]
pub(super) struct Store {
    pub(super) objects: Vec<Held>,
    /// Unpacked copies of objects that decisions about others may need, such as CRDs and params.
    pub(super) configuration: Vec<Document>,
    pub(super) room: Room,
}

/// The remaining memory budget, in bytes.
#[derive(Debug)]
pub(super) struct Room(usize);

/// An object with its position.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) file: Arc<str>,
    pub(super) position: Position,
    object: Packed,
}

/// A packed object: parsed, it takes three to ten times the memory of its JSON.
#[derive(Debug)]
enum Packed {
    Text(Box<str>),
    /// An object that cannot be parsed back from JSON, since it is nested too deeply.
    Whole(Arc<Value>),
}

impl Store {
    pub(super) fn new() -> Self {
        Self::within(MAX_HELD)
    }

    fn within(most: usize) -> Self {
        Self { objects: Vec::new(), configuration: Vec::new(), room: Room(most) }
    }

    /// Adds an object; test suites among the manifests are skipped.
    ///
    /// # Errors
    /// When the memory budget is exceeded.
    pub(super) fn add(&mut self, document: Document) -> Result<(), Fault> {
        if Suite::is(&document.value) {
            return Ok(());
        }
        let (file, position) = (Arc::clone(&document.file), document.here());
        if apply::may_be_in_force(&document.value) {
            self.room.take(weight::of(&document.value), &file, position)?;
            self.configuration.push(document.clone());
        }
        let object = Packed::new(document.value);
        self.room.take(object.weight(), &file, position)?;
        self.objects.push(Held { file, position, object });
        Ok(())
    }
}

impl Room {
    /// Charges the budget for an unpacked copy of `object`, read from `held`.
    ///
    /// # Errors
    /// When the memory budget is exceeded.
    pub(super) fn unpacked(&mut self, held: &Held, object: &Value) -> Result<(), Fault> {
        self.take(weight::of(object), &held.file, held.position)
    }

    fn take(&mut self, bytes: usize, file: &str, position: Position) -> Result<(), Fault> {
        let Some(left) = self.0.checked_sub(bytes) else {
            let line = position.line;
            return Err(Fault::usage(format!(
                "{file}:{line}: these are more objects than can be decided at a time; divide them"
            )));
        };
        self.0 = left;
        Ok(())
    }
}

impl Held {
    /// Returns the object, unpacked.
    pub(super) fn object(&self) -> Arc<Value> {
        match &self.object {
            // The JSON was parsed once when it was packed.
            Packed::Text(text) => serde_json::from_str(text).map(Arc::new).unwrap_or_default(),
            Packed::Whole(value) => Arc::clone(value),
        }
    }

    /// Creates an error with `message` about the object as a whole.
    pub(super) fn mistake(&self, message: String) -> LoadError {
        LoadError { file: Arc::clone(&self.file), position: self.position, field: String::new(), message }
    }
}

impl Packed {
    fn new(value: Value) -> Self {
        let text = value.to_string();
        let same = serde_json::from_str::<Value>(&text).is_ok_and(|read| read == value);
        if same { Self::Text(text.into()) } else { Self::Whole(Arc::new(value)) }
    }

    fn weight(&self) -> usize {
        match self {
            Self::Text(text) => weight::of_text(text.len()),
            Self::Whole(value) => weight::of(value),
        }
        .saturating_add(size_of::<Held>())
    }
}

#[cfg(test)]
mod tests {
    use admit_policy::manifest;
    use serde_json::json;

    use super::*;

    fn documents(text: &str) -> Vec<Document> {
        manifest::read("a.yaml", text).unwrap()
    }

    #[test]
    fn objects_are_unpacked_as_they_were() {
        let deep = format!("a: {}1{}", "[".repeat(200), "]".repeat(200));
        let numbers = "{z: 18446744073709551615, a: -9223372036854775808, m: 0.1, n: 1e300, o: -0.0, p: 1.5}";
        let text = format!("{numbers}\n---\n{deep}\n---\na: \"\\u2028\\0\\n'\"\n");
        let mut store = Store::new();
        for document in documents(&text) {
            let value = document.value.clone();
            store.add(document).unwrap();
            let back = store.objects.last().unwrap().object();
            assert_eq!(*back, value);
            assert_eq!(
                back.to_string(),
                value.to_string(),
                "the order of fields, and the spelling of numbers"
            );
        }
        let whole: Vec<_> =
            store.objects.iter().map(|held| matches!(held.object, Packed::Whole(_))).collect();
        assert_eq!(whole, [false, true, false]);
        assert_eq!(store.objects.iter().map(|held| held.position.line).collect::<Vec<_>>(), [1, 3, 5]);
    }

    #[test]
    fn what_may_be_in_force_is_kept_as_it_was_read() {
        let mut store = Store::new();
        for document in documents("kind: CustomResourceDefinition\nspec: {}\n---\nkind: ConfigMap\n") {
            store.add(document).unwrap();
        }
        assert_eq!((store.objects.len(), store.configuration.len()), (2, 1));
        assert_eq!(store.configuration[0].position("spec").line, 2);
    }

    #[test]
    fn all_objects_together_are_bounded() {
        let object = json!({"kind": "A", "data": "x".repeat(1_000)}).to_string();
        let mut store = Store::within(10_000);
        let mut taken = documents(&format!("{object}\n---\n").repeat(10)).into_iter();
        let refused = taken.find_map(|document| store.add(document).err()).unwrap();
        let first = &store.objects[0];
        assert!(store.room.unpacked(first, &first.object()).is_err(), "it is held a second time");
        assert!((7..10).contains(&store.objects.len()), "{}", store.objects.len());
        let line = store.objects.len() * 2 + 1;
        let told =
            format!("a.yaml:{line}: these are more objects than can be decided at a time; divide them");
        assert_eq!(refused.message, told);
    }
}
