//! Determines what a denied request is denied for: the fields of its object where another value, or none, makes the policy admit it.

use std::collections::BTreeSet;

use serde_json::Value;

use super::ask::Ask;
use super::judge::{Judge, Judged};
use super::path::{Path, Step, differences, expand};
use super::rules::Rules;
use super::values::Values;

/// The maximum number of requests to try, to shrink one and to find its offences.
const MOST_SHRINKS: usize = 160;
const MOST_MENDS: usize = 700;
const MOST_PAIRS: usize = 600;
/// The maximum number of offences per request.
const MOST_OFFENCES: usize = 12;

/// A field for which a request is denied.
#[derive(Clone, Debug)]
pub(super) struct Offence {
    /// Its path in the new object.
    pub(super) path: Path,
    /// Its value; `None` if the field is missing.
    pub(super) value: Option<Value>,
    /// The object with another value there, or none, which the policy admits.
    pub(super) mended: Value,
}

impl Offence {
    /// Returns the offence of a request that is denied regardless of its object.
    pub(super) fn of_request() -> Self {
        Self { path: Path::default(), value: None, mended: Value::Null }
    }

    /// Formats the path for reports.
    pub(super) fn place(&self) -> String {
        if self.is_of_request() { "request".to_owned() } else { self.path.to_string() }
    }

    /// Reports whether the request itself is denied, and not a field of its object.
    pub(super) fn is_of_request(&self) -> bool {
        self.path.0.is_empty()
    }

    /// Reports whether an object has the same offence at a path.
    pub(super) fn is_at(&self, object: &Value, path: &Path) -> bool {
        if self.is_of_request() {
            return true;
        }
        match (&self.value, path.get(object)) {
            (Some(value), Some(there)) => value == there,
            (None, there) => there.is_none_or(Value::is_null),
            (Some(_), None) => false,
        }
    }
}

/// Searches for offences.
#[derive(Debug)]
pub(super) struct Search<'a> {
    pub(super) judge: &'a Judge<'a>,
    pub(super) rules: &'a Rules,
    pub(super) values: &'a Values<'a>,
}

impl Search<'_> {
    /// Removes everything that the denial does not need: first keeping all fields that rules read, then removing those that can be
    /// spared, too.
    pub(super) fn shrunk(&self, ask: &Ask, judged: &Judged, over: &dyn Fn() -> bool) -> Vec<Ask> {
        let patterns = self.rules.patterns(&judged.validations);
        let Some(object) = &ask.object else { return vec![ask.clone()] };
        let read: Vec<Path> = patterns
            .iter()
            .flat_map(|pattern| expand(pattern, object))
            .filter(|path| path.get(object).is_some())
            .collect();
        let is_same = |now: &Judged| {
            now.refused.is_none()
                && now.denies
                && (judged.validations.is_empty()
                    || now.validations.iter().any(|index| judged.validations.contains(index)))
        };
        let first = self.smaller(ask.clone(), &read, &is_same, over);
        let second = self.smaller(first.clone(), &[], &is_same, over);
        if first == second { vec![first] } else { vec![first, second] }
    }

    fn smaller(
        &self,
        mut ask: Ask,
        kept: &[Path],
        is_same: &dyn Fn(&Judged) -> bool,
        over: &dyn Fn() -> bool,
    ) -> Ask {
        let mut open: Vec<Path> =
            ask.object.as_ref().map(|object| below(&Path::default(), object)).unwrap_or_default();
        let mut tried = 0_usize;
        while let Some(path) = open.pop() {
            if tried >= MOST_SHRINKS || over() {
                break;
            }
            let is_kept = kept.iter().any(|kept| kept.starts_with(&path));
            // Removing an item shifts others away from the paths that were read.
            let moves = matches!(path.0.last(), Some(Step::At(_)));
            let Some(object) = &ask.object else { break };
            if is_kept || moves && !kept.is_empty() {
                open.extend(path.get(object).map(|value| below(&path, value)).unwrap_or_default());
                continue;
            }
            let mut smaller = ask.clone();
            let taken = smaller.object.as_mut().is_some_and(|object| path.remove(object));
            if let Some(old) = &mut smaller.old_object {
                path.remove(old);
            }
            tried = tried.saturating_add(1);
            if taken && is_same(&self.judge.ask(&smaller)) {
                ask = smaller;
            } else {
                open.extend(path.get(object).map(|value| below(&path, value)).unwrap_or_default());
            }
        }
        ask
    }

    /// Finds the paths where a single change makes the policy admit the request.
    fn offences(&self, ask: &Ask, judged: &Judged, over: &dyn Fn() -> bool) -> Vec<Offence> {
        let Some(object) = &ask.object else { return Vec::new() };
        let patterns = self.rules.patterns(&judged.validations);
        let places: BTreeSet<Path> = patterns.iter().flat_map(|pattern| expand(pattern, object)).collect();
        let changes: Vec<(Path, Vec<Option<Value>>)> = places
            .into_iter()
            .filter(|path| !path.0.is_empty())
            .map(|path| self.changes(ask, path))
            .collect();
        let mut found: Vec<Offence> = Vec::new();
        let mut tried = 0_usize;
        for (path, values) in &changes {
            for value in values {
                if tried >= MOST_MENDS || found.len() >= MOST_OFFENCES || over() {
                    return sorted(found, object);
                }
                tried = tried.saturating_add(1);
                let Some(mended) = changed(object, [(path, value)]) else { continue };
                if self.judge.ask(&ask.with(mended.clone())).passes() {
                    found.push(Offence { path: path.clone(), value: path.get(object).cloned(), mended });
                    break;
                }
            }
        }
        if found.is_empty() {
            found.extend(self.pair(ask, object, &changes, over));
        }
        sorted(found, object)
    }

    /// Returns the offences: [paths](Self::offences), or the request itself if the rules read no object.
    pub(super) fn reasons(&self, ask: &Ask, judged: &Judged, over: &dyn Fn() -> bool) -> Vec<Offence> {
        let mut found = self.offences(ask, judged, over);
        let sees_none = || !judged.validations.is_empty() && !self.rules.look_at_objects(&judged.validations);
        if found.is_empty() && sees_none() {
            found.push(Offence::of_request());
        }
        found
    }

    /// Tries two changes at once, of which the first counts as the offence.
    fn pair(
        &self,
        ask: &Ask,
        object: &Value,
        changes: &[(Path, Vec<Option<Value>>)],
        over: &dyn Fn() -> bool,
    ) -> Option<Offence> {
        let mut tried = 0_usize;
        for (at, (path, values)) in changes.iter().enumerate() {
            for (other, more) in changes.iter().skip(at.saturating_add(1)) {
                for (value, another) in
                    values.iter().take(4).flat_map(|one| more.iter().take(4).map(move |two| (one, two)))
                {
                    tried = tried.saturating_add(1);
                    if tried > MOST_PAIRS || over() {
                        return None;
                    }
                    let Some(mended) = changed(object, [(path, value), (other, another)]) else { continue };
                    if self.judge.ask(&ask.with(mended.clone())).passes() {
                        return Some(Offence {
                            path: path.clone(),
                            value: path.get(object).cloned(),
                            mended,
                        });
                    }
                }
            }
        }
        None
    }

    fn changes(&self, ask: &Ask, path: Path) -> (Path, Vec<Option<Value>>) {
        let now = ask.object.as_ref().and_then(|object| path.get(object));
        let mut values: Vec<Option<Value>> = Vec::new();
        if now.is_some() {
            values.push(None);
        }
        values.extend(self.values.at(&ask.kind(), &path, now).into_iter().map(Some));
        (path, values)
    }
}

fn changed<'c>(
    object: &Value,
    changes: impl IntoIterator<Item = (&'c Path, &'c Option<Value>)>,
) -> Option<Value> {
    let mut object = object.clone();
    for (path, value) in changes {
        let done = match value {
            Some(value) => path.set(&mut object, value.clone()),
            None => path.remove(&mut object),
        };
        if !done {
            return None;
        }
    }
    Some(object)
}

/// Sorts by how little changes, and then by how specific the path is.
fn sorted(mut found: Vec<Offence>, object: &Value) -> Vec<Offence> {
    found.sort_by_key(|offence| {
        (differences(object, &offence.mended), usize::MAX.saturating_sub(offence.path.0.len()))
    });
    found
}

/// Lists the children that may be removed: all but the identity of the object.
fn below(path: &Path, value: &Value) -> Vec<Path> {
    const IDENTITY: [&str; 4] = ["apiVersion", "kind", "name", "namespace"];
    let is_near = path.0.is_empty() || matches!(path.0.as_slice(), [Step::Name(name)] if name == "metadata");
    match value {
        Value::Object(map) => map
            .keys()
            .filter(|name| !(is_near && IDENTITY.contains(&name.as_str())))
            .map(|name| path.child(Step::Name(name.clone())))
            .collect(),
        // Last items first, which keeps the indices of the others.
        Value::Array(list) => (0..list.len()).map(|at| path.child(Step::At(at))).collect(),
        _ => Vec::new(),
    }
}
