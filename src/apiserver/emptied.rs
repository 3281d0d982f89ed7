//! Remembers the lists and maps that were empty in an object that a client sent.
//!
//! Decoded and stored objects omit them. While it answers a request, upstream distinguishes them from fields that were not
//! sent: defaults do not replace them, errors show them as `[]` and `{}`, and an atomic list counts as changed if one of
//! them was added inside it.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value};

/// The number of places that are remembered for one object; further ones count as not sent.
pub(crate) const MOST: usize = 1_000;

/// One step from a value to a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Name(Cow<'static, str>),
    Index(usize),
}

/// The place of an empty list or map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) path: Vec<Step>,
    pub(crate) is_map: bool,
    /// Whether errors show its owner without empty fields: types with only one form in all
    /// versions, such as label selectors.
    pub(crate) is_unwritten: bool,
}

impl Place {
    fn empty(&self) -> Value {
        if self.is_map { Value::Object(Map::new()) } else { Value::Array(Vec::new()) }
    }

    /// Returns whether it is in the metadata.
    pub(crate) fn is_metadata(&self) -> bool {
        matches!(self.path.first(), Some(Step::Name(name)) if name == "metadata")
    }

    /// Returns whether it is still unset in `object`: defaults may have set it.
    pub(crate) fn is_empty_in(&self, object: &Value) -> bool {
        let mut value = object;
        for step in &self.path {
            let part = match step {
                Step::Name(name) => value.get(&**name),
                Step::Index(index) => value.get(*index),
            };
            let Some(part) = part.filter(|part| !part.is_null()) else { return true };
            value = part;
        }
        *value == self.empty()
    }

    /// Restores it in `root`, the value at the first `depth` steps of the path, unless something is there.
    fn restore(&self, depth: usize, root: &mut Value) {
        let Some((name, owner)) = self.owner(depth, root) else { return };
        if owner.get(name).is_none_or(Value::is_null) {
            owner.insert(name.to_owned(), self.empty());
        }
    }

    fn remove(&self, root: &mut Value) {
        let Some((name, owner)) = self.owner(0, root) else { return };
        if owner.get(name) == Some(&self.empty()) {
            owner.shift_remove(name);
        }
    }

    /// Returns the member's name, and the map that holds it.
    fn owner<'v>(&self, depth: usize, root: &'v mut Value) -> Option<(&str, &'v mut Map<String, Value>)> {
        let (last, steps) = self.path.get(depth..)?.split_last()?;
        let mut value = root;
        for step in steps {
            value = match step {
                Step::Name(name) => value.get_mut(&**name)?,
                Step::Index(index) => value.get_mut(*index)?,
            };
        }
        match last {
            Step::Name(name) => Some((name, value.as_object_mut()?)),
            Step::Index(_) => None,
        }
    }
}

/// The empty places of the object that a request is about.
#[derive(Clone, Debug, Default)]
pub(crate) struct Emptied(Arc<Mutex<Arc<[Place]>>>);

thread_local! {
    /// The empty places of the object that is being validated.
    static CURRENT: RefCell<Arc<[Place]>> = RefCell::new(Arc::default());
}

impl Emptied {
    /// Sets the places of a decoded object.
    pub(crate) fn set(&self, places: Vec<Place>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = places.into();
    }

    pub(crate) fn places(&self) -> Arc<[Place]> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns whether there is one at the end of the path of `names`.
    pub(crate) fn has(&self, names: &[&str]) -> bool {
        let is = |(step, name): (&Step, &&str)| matches!(step, Step::Name(own) if own == name);
        self.places()
            .iter()
            .any(|place| place.path.len() == names.len() && place.path.iter().zip(names).all(is))
    }

    /// Runs `change` on `object` as it was sent, with its empty lists and maps.
    pub(crate) fn put_back_for(&self, object: &mut Value, change: impl FnOnce(&mut Value)) {
        let places = self.places();
        places.iter().for_each(|place| place.restore(0, object));
        change(object);
        places.iter().for_each(|place| place.remove(object));
    }

    /// Runs `work`, in which errors show the object as it was sent.
    pub(crate) fn shown_by<T>(&self, work: impl FnOnce() -> T) -> T {
        /// Restores the previous places, also when `work` unwinds.
        struct Before(Arc<[Place]>);
        impl Drop for Before {
            fn drop(&mut self) {
                CURRENT.set(std::mem::take(&mut self.0));
            }
        }
        let _before = Before(CURRENT.replace(self.places()));
        work()
    }
}

/// Returns a part of the object being validated as it was sent; `path` is called only if there is anything to restore.
pub(crate) fn as_sent<'v>(value: &'v Value, path: impl FnOnce() -> Vec<Step>) -> Cow<'v, Value> {
    let places = CURRENT.with_borrow(Arc::clone);
    if places.is_empty() {
        return Cow::Borrowed(value);
    }
    let path = path();
    let mut sent = Cow::Borrowed(value);
    for place in places.iter().filter(|place| place.path.starts_with(&path)) {
        if place.path.len() > path.len() && !place.is_unwritten {
            place.restore(path.len(), sent.to_mut());
        } else if place.path.len() == path.len() && sent.is_null() {
            sent = Cow::Owned(place.empty());
        }
    }
    sent
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn named(name: &'static str) -> Step {
        Step::Name(name.into())
    }

    #[test]
    fn what_was_sent_is_put_back_for_a_while() {
        let emptied = Emptied::default();
        emptied.set(vec![
            Place { path: vec![named("a"), Step::Index(1), named("b")], is_map: false, is_unwritten: false },
            Place { path: vec![named("c")], is_map: true, is_unwritten: false },
            Place { path: vec![named("a"), Step::Index(0), named("e")], is_map: true, is_unwritten: true },
            Place { path: vec![named("gone"), named("d")], is_map: true, is_unwritten: false },
        ]);
        let object = json!({"a": [{}, {}]});
        let mut seen = object.clone();
        emptied.put_back_for(&mut seen, |object| {
            assert_eq!(*object, json!({"a": [{"e": {}}, {"b": []}], "c": {}}));
            object["c"]["x"] = json!(1);
        });
        assert_eq!(seen, json!({"a": [{}, {}], "c": {"x": 1}}));
        emptied.shown_by(|| {
            let list = as_sent(&object["a"], || vec![named("a")]);
            assert_eq!(*list, json!([{}, {"b": []}]));
            assert_eq!(*as_sent(&Value::Null, || vec![named("c")]), json!({}));
            assert_eq!(*as_sent(&Value::Null, || vec![named("d")]), Value::Null);
        });
        assert_eq!(*as_sent(&Value::Null, || vec![named("c")]), Value::Null);
    }
}
