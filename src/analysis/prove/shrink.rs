//! Makes a counterexample small: whatever can go, goes, as long as the engine still confirms it.

use serde_json::Value;

use super::Counterexample;

/// Requests that are tried.
const MOST_TRIES: usize = 3_000;

type Request = (Value, Option<Value>);

/// The smallest that steps lead to.
pub(super) fn shrunk(
    found: Counterexample,
    confirm: impl Fn(&Request) -> Option<Counterexample>,
    over: &dyn Fn() -> bool,
) -> Counterexample {
    let mut best = found;
    let mut tries = 0_usize;
    loop {
        let mut better = None;
        for request in smaller_requests(&best) {
            tries = tries.saturating_add(1);
            if tries > MOST_TRIES || over() {
                return best;
            }
            // Defaults come back: what is as it was is no progress.
            better = confirm(&request).filter(|found| weight(found) < weight(&best));
            if better.is_some() {
                break;
            }
        }
        match better {
            Some(found) => best = found,
            None => return best,
        }
    }
}

fn weight(found: &Counterexample) -> usize {
    let old = found.old_object.as_ref().map_or(0, weight_of);
    weight_of(&found.object).saturating_add(old)
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
            // A letter is simpler than what has to be quoted.
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

/// Requests that are smaller in one place.
fn smaller_requests(found: &Counterexample) -> Vec<Request> {
    let old = found.old_object.clone();
    let mut requests: Vec<Request> = Vec::new();
    if let Some(before) = &old {
        for (small, small_old) in smaller(&found.object).into_iter().zip(smaller(before)) {
            requests.push((small, Some(small_old)));
        }
        requests.extend(smaller(before).into_iter().map(|before| (found.object.clone(), Some(before))));
    }
    requests.extend(smaller(&found.object).into_iter().map(|object| (object, old.clone())));
    requests
}

/// Values that are smaller in one place, the greatest steps first.
fn smaller(value: &Value) -> Vec<Value> {
    match value {
        Value::Null => Vec::new(),
        Value::Bool(value) => {
            if *value {
                vec![false.into()]
            } else {
                Vec::new()
            }
        }
        Value::Number(number) => smaller_numbers(number.as_i64()),
        Value::String(text) => smaller_texts(text),
        Value::Array(items) => {
            let mut found = Vec::new();
            for at in 0..items.len() {
                let mut fewer = items.clone();
                fewer.remove(at);
                found.push(Value::Array(fewer));
            }
            for (at, item) in items.iter().enumerate() {
                for small in smaller(item) {
                    let mut other = items.clone();
                    if let Some(place) = other.get_mut(at) {
                        *place = small;
                    }
                    found.push(Value::Array(other));
                }
            }
            found
        }
        Value::Object(map) => {
            let mut found = Vec::new();
            for key in map.keys() {
                let mut fewer = map.clone();
                fewer.shift_remove(key);
                found.push(Value::Object(fewer));
            }
            for (key, child) in map {
                if key == "apiVersion" || key == "kind" {
                    continue;
                }
                for small in smaller(child) {
                    let mut other = map.clone();
                    other.insert(key.clone(), small);
                    found.push(Value::Object(other));
                }
            }
            found
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
    // Each character of a long text would be too many.
    for at in 0..chars.len().min(64) {
        let others = chars.iter().enumerate().filter(|(place, _)| *place != at).map(|(_, c)| *c);
        found.push(others.collect());
        let with_letter = chars.iter().enumerate().map(|(place, c)| if place == at { 'a' } else { *c });
        found.push(with_letter.collect());
    }
    found.retain(|small| small != text);
    found.into_iter().map(Value::from).collect()
}
