//! Shrinks a counterexample: removes and simplifies values as long as the engine still confirms it.
//!
//! A pass visits all places of the request, parents before children, and applies each step that the engine confirms at once, so it asks
//! the engine a few times per place. Passes repeat while they make progress.

use serde_json::Value;

use super::Counterexample;

/// The maximum number of requests to try.
const MOST_TRIES: usize = 2_000;

/// The new and the old object.
pub(super) type Request = (Value, Option<Value>);

/// A failing request that can be replaced by a smaller one.
pub(super) trait Shrinks: Sized {
    /// Returns the current request.
    fn request(&self) -> Request;
}

impl Shrinks for Counterexample {
    fn request(&self) -> Request {
        (self.object.clone(), self.old_object.clone())
    }
}

/// Returns the smallest counterexample that the steps reach.
pub(super) fn shrunk<T: Shrinks>(
    found: T,
    confirm: impl Fn(&Request) -> Option<T>,
    over: &dyn Fn() -> bool,
) -> T {
    let request = found.request();
    let mut search = Search { weight: weight(&request), request, best: found, tries: 0, confirm, over };
    while search.pass() {}
    search.best
}

/// The document that a step changes.
#[derive(Clone, Copy)]
enum Part {
    Both,
    New,
    Old,
}

/// One segment of a path: a name or an index.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Step {
    Name(String),
    Index(usize),
}

struct Search<'o, T, C> {
    best: T,
    request: Request,
    weight: usize,
    tries: usize,
    confirm: C,
    over: &'o dyn Fn() -> bool,
}

impl<T: Shrinks, C: Fn(&Request) -> Option<T>> Search<'_, T, C> {
    /// Makes one pass; returns whether anything became smaller.
    fn pass(&mut self) -> bool {
        let before = self.weight;
        let parts: &[Part] =
            if self.request.1.is_some() { &[Part::Both, Part::Old, Part::New] } else { &[Part::New] };
        for part in parts {
            let mut places = Vec::new();
            let shown = match (part, &self.request.1) {
                (Part::Old, Some(old)) => old,
                _ => &self.request.0,
            };
            all_places(shown, &mut Vec::new(), &mut places);
            // Removing a parent removes its children too. The last items of lists go first, which keeps the indices of the others.
            places.sort_by_key(Vec::len);
            for place in &places {
                if self.is_over() {
                    return false;
                }
                self.smaller_at(*part, place);
            }
        }
        self.weight < before
    }

    fn is_over(&self) -> bool {
        self.tries >= MOST_TRIES || (self.over)()
    }

    fn smaller_at(&mut self, part: Part, place: &[Step]) {
        if self.attempt(part, place, None) {
            return;
        }
        loop {
            let shown = match (part, &self.request.1) {
                (Part::Old, Some(old)) => old,
                _ => &self.request.0,
            };
            let Some(value) = at(shown, place) else { return };
            let simpler = simpler(value);
            if !simpler.into_iter().any(|value| self.attempt(part, place, Some(&value))) {
                return;
            }
        }
    }

    /// Applies a step if the result is smaller and the engine confirms it; defaults may reappear.
    fn attempt(&mut self, part: Part, place: &[Step], value: Option<&Value>) -> bool {
        if self.is_over() {
            return false;
        }
        let (mut new, mut old) = self.request.clone();
        let is_changed = match (part, &mut old) {
            (Part::New, _) | (_, None) => put(&mut new, place, value),
            (Part::Old, Some(old)) => put(old, place, value),
            (Part::Both, Some(old)) => put(&mut new, place, value) && put(old, place, value),
        };
        if !is_changed {
            return false;
        }
        self.tries = self.tries.saturating_add(1);
        let Some(found) = (self.confirm)(&(new, old)) else { return false };
        let request = found.request();
        let weight = weight(&request);
        if weight >= self.weight {
            return false;
        }
        (self.best, self.request, self.weight) = (found, request, weight);
        true
    }
}

fn weight(request: &Request) -> usize {
    let old = request.1.as_ref().map_or(0, weight_of);
    weight_of(&request.0).saturating_add(old)
}

/// Lists the paths of all values below a value.
fn all_places(value: &Value, way: &mut Vec<Step>, places: &mut Vec<Vec<Step>>) {
    let mut below = |step: Step, child: &Value| {
        way.push(step);
        places.push(way.clone());
        all_places(child, way, places);
        way.pop();
    };
    match value {
        Value::Object(map) => {
            let is_named = |key: &&String| way_is_free(key);
            for (key, child) in map.iter().filter(|(key, _)| is_named(key)) {
                below(Step::Name(key.clone()), child);
            }
        }
        Value::Array(items) => {
            for (index, child) in items.iter().enumerate().rev() {
                below(Step::Index(index), child);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Keeps the fields that name the kind.
fn way_is_free(key: &str) -> bool {
    !matches!(key, "apiVersion" | "kind")
}

fn at<'v>(value: &'v Value, place: &[Step]) -> Option<&'v Value> {
    place.iter().try_fold(value, |value, step| match step {
        Step::Name(name) => value.get(name),
        Step::Index(index) => value.get(index),
    })
}

/// Replaces or removes the value at a path; returns whether there was one.
fn put(value: &mut Value, place: &[Step], new: Option<&Value>) -> bool {
    let Some((last, way)) = place.split_last() else { return false };
    let above = way.iter().try_fold(value, |value, step| match step {
        Step::Name(name) => value.get_mut(name),
        Step::Index(index) => value.get_mut(index),
    });
    match (above, last) {
        (Some(Value::Object(map)), Step::Name(name)) => match (map.get_mut(name), new) {
            (Some(known), Some(new)) => *known = new.clone(),
            (Some(_), None) => drop(map.shift_remove(name)),
            (None, _) => return false,
        },
        (Some(Value::Array(items)), Step::Index(index)) => match (items.get_mut(*index), new) {
            (Some(known), Some(new)) => *known = new.clone(),
            (Some(_), None) => drop(items.remove(*index)),
            (None, _) => return false,
        },
        _ => return false,
    }
    true
}

/// Returns simpler replacements of a value, the biggest simplification first.
fn simpler(value: &Value) -> Vec<Value> {
    match value {
        Value::Bool(true) => vec![false.into()],
        Value::Number(number) => smaller_numbers(number.as_i64()),
        Value::String(text) => smaller_texts(text),
        Value::Null | Value::Bool(false) | Value::Array(_) | Value::Object(_) => Vec::new(),
    }
}

fn weight_of(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(false) => 1,
        Value::Bool(true) => 2,
        Value::Number(number) => {
            let size = number.as_i64().map_or(8, |value| {
                value.unsigned_abs().checked_ilog2().map_or(0, |log| log.saturating_add(1))
            });
            let sign = usize::from(number.as_i64().is_some_and(|value| value < 0));
            usize::try_from(size).unwrap_or(8).saturating_add(sign).saturating_add(1)
        }
        Value::String(text) => {
            // Letters are simpler than characters that need quoting.
            let cost = |c: char| {
                if c.is_ascii_lowercase() {
                    3_usize
                } else if c.is_ascii_graphic() {
                    4
                } else {
                    6
                }
            };
            let cost: usize = text.chars().map(|c| if c == 'a' { 2 } else { cost(c) }).sum();
            cost.saturating_add(1)
        }
        Value::Array(items) => items.iter().map(weight_of).sum::<usize>().saturating_add(2),
        Value::Object(map) => {
            map.values().map(|value| weight_of(value).saturating_add(4)).sum::<usize>().saturating_add(2)
        }
    }
}

fn smaller_numbers(value: Option<i64>) -> Vec<Value> {
    let Some(value) = value else { return vec![0.into()] };
    let step = if value > 0 { value.checked_sub(1) } else { value.checked_add(1) };
    let half = value.checked_div(2);
    let all = [Some(0), Some(1), half, value.checked_neg().filter(|value| *value > 0), step];
    all.into_iter().flatten().filter(|small| *small != value).map(Value::from).collect()
}

fn smaller_texts(text: &str) -> Vec<Value> {
    let chars: Vec<char> = text.chars().collect();
    let mut found: Vec<String> = Vec::new();
    if chars.is_empty() {
        return Vec::new();
    }
    found.push(String::new());
    found.push("a".to_owned());
    let half = chars.len().checked_div(2).unwrap_or(0);
    found.push(chars.iter().take(half).collect());
    found.push(chars.iter().skip(half).collect());
    // Only the first characters, since a long string has too many.
    for at in 0..chars.len().min(24) {
        let others = chars.iter().enumerate().filter(|(place, _)| *place != at).map(|(_, c)| *c);
        found.push(others.collect());
        let with_letter = chars.iter().enumerate().map(|(place, c)| if place == at { 'a' } else { *c });
        found.push(with_letter.collect());
    }
    found.retain(|small| small != text);
    found.into_iter().map(Value::from).collect()
}
