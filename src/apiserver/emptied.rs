//! Lists and maps that a client sent with nothing in them.
//!
//! What is stored does not have them, and no more has an object that was decoded. Upstream tells them from those that
//! were not sent while it answers a request: defaults are not put in their place, errors show them as `[]` and `{}`,
//! and a list that is owned as a whole has changed where one of them came into it.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value};

/// So many are remembered of one object; what is beyond counts as not sent.
pub(crate) const MOST: usize = 1_000;

/// One step from a value to a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Name(Cow<'static, str>),
    Index(usize),
}

/// Where an empty list or map was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) path: Vec<Step>,
    pub(crate) is_map: bool,
    /// Whether its owner is shown as it is written, without anything empty: types that have no other form than that of
    /// their version, such as label selectors.
    pub(crate) is_unwritten: bool,
}

impl Place {
    fn empty(&self) -> Value {
        if self.is_map { Value::Object(Map::new()) } else { Value::Array(Vec::new()) }
    }

    /// Whether it was in the metadata.
    pub(crate) fn is_metadata(&self) -> bool {
        matches!(self.path.first(), Some(Step::Name(name)) if name == "metadata")
    }

    /// Whether nothing has taken its place in `object`, as defaults do.
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

    /// Puts it back into `root`, a value at the first `depth` steps of the path, unless something is there by now.
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

    /// The member's name, and the map that it is or was in.
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

/// Those of the object that a request is about.
#[derive(Clone, Debug, Default)]
pub(crate) struct Emptied(Arc<Mutex<Arc<[Place]>>>);

thread_local! {
    /// Those of the object that is being validated.
    static CURRENT: RefCell<Arc<[Place]>> = RefCell::new(Arc::default());
}

impl Emptied {
    /// Takes over those of an object that was read.
    pub(crate) fn set(&self, places: Vec<Place>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = places.into();
    }

    pub(crate) fn places(&self) -> Arc<[Place]> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether there is one at the end of the path of `names`.
    pub(crate) fn has(&self, names: &[&str]) -> bool {
        let is = |(step, name): (&Step, &&str)| matches!(step, Step::Name(own) if own == name);
        self.places()
            .iter()
            .any(|place| place.path.len() == names.len() && place.path.iter().zip(names).all(is))
    }

    /// Lets `change` see `object` as it was sent.
    pub(crate) fn put_back_for(&self, object: &mut Value, change: impl FnOnce(&mut Value)) {
        let places = self.places();
        places.iter().for_each(|place| place.restore(0, object));
        change(object);
        places.iter().for_each(|place| place.remove(object));
    }

    /// Lets what `work` shows of the object be shown as it was sent.
    pub(crate) fn shown_by<T>(&self, work: impl FnOnce() -> T) -> T {
        /// Work may be unwound from.
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

/// A part of the object that is being validated, as it was sent; `path` is asked only where there is anything to put back.
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
