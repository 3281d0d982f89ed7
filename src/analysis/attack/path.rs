//! Defines paths in objects: reads, sets and removes values, and counts differences.

use std::fmt;

use serde_json::{Map, Value};

use crate::reads::EACH;

/// The maximum number of paths of one pattern in one object.
const MOST_PLACES: usize = 64;
/// The maximum number of leaves that are compared; larger objects count as very different.
const MOST_LEAVES: usize = 10_000;

/// One segment of a path.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Step {
    Name(String),
    At(usize),
}

/// A path in an object.
#[derive(Clone, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Path(pub(super) Vec<Step>);

impl Path {
    pub(super) fn of_names<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        Self(names.into_iter().map(|name| Step::Name(name.to_owned())).collect())
    }

    pub(super) fn get<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(value, |value, step| match step {
            Step::Name(name) => value.get(name),
            Step::At(at) => value.get(*at),
        })
    }

    /// Sets the value, creating maps and lists on the way. Returns false if the path cannot exist; one past the end of a list can.
    pub(super) fn set(&self, object: &mut Value, value: Value) -> bool {
        let mut here = object;
        for step in &self.0 {
            if here.is_null() {
                *here = match step {
                    Step::Name(_) => Value::Object(Map::new()),
                    Step::At(_) => Value::Array(Vec::new()),
                };
            }
            here = match (step, here) {
                (Step::Name(name), Value::Object(map)) => map.entry(name.clone()).or_insert(Value::Null),
                (Step::At(at), Value::Array(list)) => {
                    if *at == list.len() {
                        list.push(Value::Null);
                    }
                    let Some(item) = list.get_mut(*at) else { return false };
                    item
                }
                _ => return false,
            };
        }
        *here = value;
        true
    }

    /// Removes the value; returns whether there was one.
    pub(super) fn remove(&self, object: &mut Value) -> bool {
        let Some((last, parents)) = self.0.split_last() else { return false };
        let parent = parents.iter().try_fold(object, |value, step| match step {
            Step::Name(name) => value.get_mut(name),
            Step::At(at) => value.get_mut(*at),
        });
        match (parent, last) {
            (Some(Value::Object(map)), Step::Name(name)) => map.shift_remove(name).is_some(),
            (Some(Value::Array(list)), Step::At(at)) if *at < list.len() => {
                list.remove(*at);
                true
            }
            _ => false,
        }
    }

    pub(super) fn child(&self, step: Step) -> Self {
        Self(self.0.iter().cloned().chain([step]).collect())
    }

    /// Returns the first `length` segments.
    pub(super) fn prefix(&self, length: usize) -> Self {
        Self(self.0.iter().take(length).cloned().collect())
    }

    /// Returns the segments after the first `length`.
    pub(super) fn rest(&self, length: usize) -> Self {
        Self(self.0.iter().skip(length).cloned().collect())
    }

    pub(super) fn join(&self, more: &Self) -> Self {
        Self(self.0.iter().chain(&more.0).cloned().collect())
    }

    /// Returns the path with every index replaced by "all items".
    pub(super) fn pattern(&self) -> Vec<String> {
        let step = |step: &Step| match step {
            Step::Name(name) => name.clone(),
            Step::At(_) => EACH.to_owned(),
        };
        self.0.iter().map(step).collect()
    }

    pub(super) fn starts_with(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.0.iter().enumerate() {
            match step {
                Step::Name(name) if name.contains(['.', '/']) => write!(f, "[{name}]")?,
                Step::Name(name) if index == 0 => write!(f, "{name}")?,
                Step::Name(name) => write!(f, ".{name}")?,
                Step::At(at) => write!(f, "[{at}]")?,
            }
        }
        Ok(())
    }
}

/// Returns the paths of an object that match a pattern, including missing fields of existing parents.
pub(super) fn expand(pattern: &[String], object: &Value) -> Vec<Path> {
    let mut found = vec![Path::default()];
    for name in pattern {
        let mut next = Vec::new();
        for path in found {
            if name != EACH {
                next.push(path.child(Step::Name(name.clone())));
                continue;
            }
            match path.get(object) {
                Some(Value::Array(list)) => {
                    next.extend((0..list.len()).map(|at| path.child(Step::At(at))));
                }
                Some(Value::Object(map)) => {
                    next.extend(map.keys().map(|key| path.child(Step::Name(key.clone()))));
                }
                _ => {}
            }
        }
        next.truncate(MOST_PLACES);
        found = next;
    }
    found
}

/// Counts the leaves that only one object has, or that differ.
pub(super) fn differences(one: &Value, other: &Value) -> usize {
    let (mut open, mut count, mut looked_at) = (vec![(Some(one), Some(other))], 0_usize, 0_usize);
    while let Some((one, other)) = open.pop() {
        looked_at = looked_at.saturating_add(1);
        if looked_at > MOST_LEAVES {
            return usize::MAX;
        }
        if one == other {
            continue;
        }
        let before = open.len();
        match (one, other) {
            (Some(Value::Object(one)), Some(Value::Object(other))) => {
                open.extend(one.iter().map(|(name, value)| (Some(value), other.get(name))));
                let more = other.iter().filter(|(name, _)| !one.contains_key(*name));
                open.extend(more.map(|(_, value)| (None, Some(value))));
            }
            (Some(Value::Array(one)), Some(Value::Array(other))) => {
                let longest = one.len().max(other.len());
                open.extend((0..longest).map(|at| (one.get(at), other.get(at))));
            }
            (Some(value), None) | (None, Some(value)) => match value {
                Value::Object(map) => open.extend(map.values().map(|value| (Some(value), None))),
                Value::Array(list) => open.extend(list.iter().map(|value| (Some(value), None))),
                _ => {}
            },
            _ => {}
        }
        if open.len() == before {
            count = count.saturating_add(1);
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn path(steps: &[&str]) -> Path {
        let step = |text: &&str| text.parse().map_or_else(|_| Step::Name((*text).to_owned()), Step::At);
        Path(steps.iter().map(step).collect())
    }

    #[test]
    fn places_are_written_and_taken_away() {
        let mut object = json!({"a": [{"b": 1}]});
        assert!(path(&["a", "0", "c", "d"]).set(&mut object, json!(2)));
        assert!(path(&["a", "1"]).set(&mut object, json!(3)));
        assert!(!path(&["a", "7"]).set(&mut object, json!(3)));
        assert_eq!(object, json!({"a": [{"b": 1, "c": {"d": 2}}, 3]}));
        assert!(path(&["a", "1"]).remove(&mut object) && !path(&["a", "1"]).remove(&mut object));
        assert_eq!(path(&["a", "0", "c", "x/y"]).to_string(), "a[0].c[x/y]");
    }

    #[test]
    fn patterns_name_places_that_are_there_or_could_be() {
        let object = json!({"spec": {"containers": [{"name": "a"}, {"name": "b"}]}});
        let pattern: Vec<String> = ["spec", "containers", EACH, "image"].map(str::to_owned).into();
        let found: Vec<String> = expand(&pattern, &object).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["spec.containers[0].image", "spec.containers[1].image"]);
        let none: Vec<String> = ["spec", "initContainers", EACH, "image"].map(str::to_owned).into();
        assert!(expand(&none, &object).is_empty());
    }

    #[test]
    fn leaves_are_compared() {
        assert_eq!(differences(&json!({"a": 1}), &json!({"a": 1})), 0);
        assert_eq!(differences(&json!({"a": 1, "b": {"c": 1, "d": 2}}), &json!({"a": 2})), 3);
        assert_eq!(differences(&json!([1, 2]), &json!([1, 3, {}])), 2);
    }
}
