//! Compares an answer with a recorded one: a placeholder stands for the value at its first occurrence, and must be the same
//! everywhere else in the sequence. What has no order is sorted, random values are masked.

use std::collections::BTreeMap;

use serde_json::Value;

/// Values behind placeholders, as they were met in this sequence.
#[derive(Debug, Default)]
pub(in crate::kinds) struct Bindings {
    values: BTreeMap<String, String>,
    /// What a generated name begins with, while a request that asks for one is compared.
    generated: Option<String>,
}

/// The letters of generated names.
const RANDOM: &str = "bcdfghjklmnpqrstvwxz2456789";

/// Placeholders that stand for one value, but not for one that has to return: times may be equal by chance.
const LOOSE: [&str; 7] = ["<time>", "<time:", "<microtime:", "<age>", "<date>", "<audit-id>", "<hash:"];

impl Bindings {
    /// The text with every placeholder that is known put in.
    pub(super) fn fill(&self, text: &str) -> String {
        let mut out = text.to_owned();
        for (placeholder, value) in &self.values {
            out = out.replace(placeholder.as_str(), value);
        }
        out
    }

    /// From here on what follows `prefix` in texts is random: the server made a name of it. None: nothing is.
    pub(in crate::kinds) fn generating(&mut self, prefix: Option<&str>) {
        self.generated = prefix.map(str::to_owned);
    }

    /// The text with the random letters of a generated name made equal, which recorded texts hold as they were.
    pub(in crate::kinds) fn masked(&self, text: &str) -> String {
        let Some(prefix) = self.generated.as_deref() else { return text.to_owned() };
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(prefix) {
            let (before, tail) = rest.split_at(at + prefix.len());
            out.push_str(before);
            let random = tail.find(|c: char| !RANDOM.contains(c)).unwrap_or(tail.len());
            rest = tail.get(5..).filter(|_| random >= 5).inspect(|_| out.push_str("?????")).unwrap_or(tail);
        }
        out + rest
    }

    pub(super) fn fill_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.fill(text)),
            Value::Array(items) => items.iter().map(|item| self.fill_value(item)).collect(),
            Value::Object(members) => {
                members.iter().map(|(key, value)| (self.fill(key), self.fill_value(value))).collect()
            }
            other => other.clone(),
        }
    }

    /// # Errors
    /// Where the first difference is.
    pub(in crate::kinds) fn same(&mut self, expected: &Value, found: &Value, at: &str) -> Result<(), String> {
        match (expected, found) {
            (Value::Object(expected), Value::Object(found)) => {
                for (key, value) in expected {
                    let key = self.fill(key);
                    let other = found.get(&key).ok_or_else(|| format!("{at}.{key} is missing"))?;
                    let at = format!("{at}.{key}");
                    match key.as_str() {
                        "managedFields" => self.same(&by_manager(value), &by_manager(other), &at)?,
                        "causes" => self.same(&conflicts_sorted(value), &conflicts_sorted(other), &at)?,
                        // Rules come out of bindings in the order of an unordered map.
                        "resourceRules" | "nonResourceRules" => {
                            self.same(&by_text(value), &by_text(other), &at)?;
                        }
                        // Allotted by chance.
                        "healthCheckNodePort" if other.is_u64() => {}
                        "gitVersion" => same_release(value, other, &at)?,
                        // Who built a server, when and with what is its own.
                        "gitCommit" | "gitTreeState" | "buildDate" | "goVersion" | "compiler"
                        | "platform"
                            if other.is_string() => {}
                        _ => self.same(value, other, &at)?,
                    }
                }
                let expected: Vec<String> = expected.keys().map(|key| self.fill(key)).collect();
                match found.keys().find(|key| !expected.contains(*key)) {
                    Some(extra) => Err(format!("{at}.{extra} is too much: {}", found[extra])),
                    None => Ok(()),
                }
            }
            (Value::Array(expected), Value::Array(found)) => {
                if expected.len() != found.len() {
                    return Err(format!("{at} has {} items, not {}", found.len(), expected.len()));
                }
                for (index, (expected, found)) in expected.iter().zip(found).enumerate() {
                    self.same(expected, found, &format!("{at}[{index}]"))?;
                }
                Ok(())
            }
            (Value::String(expected), Value::String(found)) => self.same_text(expected, found, at),
            // Numbers that the server allots stand behind placeholders too.
            (Value::String(expected), Value::Number(found)) if expected == "<port>" && found.is_u64() => {
                Ok(())
            }
            (expected, found) if expected == found => Ok(()),
            (expected, found) => Err(format!("{at}: expected {expected}, found {found}")),
        }
    }

    /// # Errors
    /// Where the first difference is.
    pub(super) fn same_text(&mut self, expected: &str, found: &str, at: &str) -> Result<(), String> {
        let (expected, found) = match expected.contains("<gen:") {
            true => (expected.to_owned(), found.to_owned()),
            false => (self.masked(expected), self.masked(found)),
        };
        let mut rest = found.as_str();
        let mut pattern = expected.as_str();
        let differs = || Err(format!("{at}: expected {expected:?}, found {found:?}"));
        while let Some((before, placeholder, after)) = next_placeholder(pattern) {
            let Some(tail) = rest.strip_prefix(before) else { return differs() };
            let known = self.values.get(placeholder).cloned();
            let length = match &known {
                Some(value) if tail.starts_with(value.as_str()) => value.len(),
                Some(_) if !is_loose(placeholder) => return differs(),
                _ => value_length(placeholder, tail, after),
            };
            let (value, tail) = tail.split_at(length);
            if value.is_empty() {
                return differs();
            }
            if known.is_none() {
                self.values.insert(placeholder.to_owned(), value.to_owned());
            }
            rest = tail;
            pattern = after;
        }
        if rest == pattern { Ok(()) } else { differs() }
    }
}

/// Entries in an order that does not depend on times: those of the recording were seconds apart, ours are not.
fn by_manager(entries: &Value) -> Value {
    let Value::Array(entries) = entries else { return entries.clone() };
    let mut sorted: Vec<Value> = entries.iter().map(without_times).collect();
    sorted.sort_by_key(|entry| {
        ["operation", "manager", "apiVersion", "subresource"].map(|field| entry[field].to_string())
    });
    Value::Array(sorted)
}

/// Times have whole seconds: whether a write changed one, and so owns it, is chance.
fn without_times(entry: &Value) -> Value {
    let Value::Object(members) = entry else { return entry.clone() };
    let is_time =
        |name: &str| name.starts_with("f:") && (name.ends_with("Time") || name.ends_with("Timestamp"));
    let kept = members.iter().filter(|(name, _)| !is_time(name));
    kept.map(|(name, value)| (name.clone(), without_times(value))).collect()
}

fn by_text(rules: &Value) -> Value {
    let mut sorted = rules.as_array().cloned().unwrap_or_default();
    sorted.sort_by_key(Value::to_string);
    Value::Array(sorted)
}

/// A build of a release has its version, and may add to it.
fn same_release(expected: &Value, found: &Value, at: &str) -> Result<(), String> {
    let release = |version: &Value| {
        version.as_str().unwrap_or_default().split('+').next().unwrap_or_default().to_owned()
    };
    if release(expected) == release(found) {
        return Ok(());
    }
    Err(format!("{at}: expected {expected}, found {found}"))
}

/// Conflicts with several managers are listed in no order.
fn conflicts_sorted(causes: &Value) -> Value {
    let mut sorted = causes.as_array().cloned().unwrap_or_default();
    if sorted.iter().all(|cause| cause["reason"] == "FieldManagerConflict") {
        sorted.sort_by_key(|cause| ["message", "field"].map(|part| cause[part].to_string()));
    }
    Value::Array(sorted)
}

fn is_loose(placeholder: &str) -> bool {
    LOOSE.iter().any(|prefix| placeholder.starts_with(prefix))
}

/// Up to what follows in the pattern, and no further than such a value can be.
fn value_length(placeholder: &str, tail: &str, after: &str) -> usize {
    let end = |fits: fn(char) -> bool| tail.find(|c: char| !fits(c)).unwrap_or(tail.len());
    if placeholder.starts_with("<rv:") {
        return end(|c| c.is_ascii_digit());
    }
    if placeholder.starts_with("<uid:") {
        return end(|c| c.is_ascii_hexdigit() || c == '-');
    }
    if placeholder.starts_with("<gen:") {
        return end(char::is_alphanumeric).min(5);
    }
    let stop: String = after.chars().take_while(|c| *c != '<').collect();
    if stop.is_empty() { tail.len() } else { tail.find(&stop).unwrap_or(0) }
}

fn next_placeholder(pattern: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    loop {
        let start = from + pattern[from..].find('<')?;
        let end = start + pattern[start..].find('>')? + 1;
        let inner = &pattern[start + 1..end - 1];
        let name = inner.split(':').next().unwrap_or_default();
        let known = [
            "rv",
            "uid",
            "time",
            "microtime",
            "gen",
            "continue",
            "token",
            "hash",
            "age",
            "server",
            "ip",
            "date",
            "audit-id",
        ];
        if known.contains(&name) {
            return Some((&pattern[..start], &pattern[start..end], &pattern[end..]));
        }
        from = start + 1;
    }
}
