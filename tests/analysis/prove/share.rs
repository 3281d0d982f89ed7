//! How many rules of real definitions are decided, and how long that takes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use admit_analysis::prove::{Inquiry, Question, Side, Subject, Unconfirmed, Verdict};
use admit_policy::manifest;
use serde_json::Value;

use super::solvers::{Both, tell};

/// The places of all rules below a schema.
fn rules(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, child) in map {
                let at = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
                if key == "x-kubernetes-validations"
                    && let Some(list) = child.as_array()
                {
                    found.extend((0..list.len()).map(|index| format!("{at}/{index}")));
                } else {
                    rules(child, &at, found);
                }
            }
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| rules(item, &format!("{at}/{index}"), found));
        }
        _ => {}
    }
}

/// The definition with this rule alone.
fn with_rule_alone(definition: &Value, at: &str) -> Option<Value> {
    fn clear(value: &mut Value) {
        match value {
            Value::Object(map) => {
                map.shift_remove("x-kubernetes-validations");
                map.values_mut().for_each(clear);
            }
            Value::Array(items) => items.iter_mut().for_each(clear),
            _ => {}
        }
    }
    let rule = definition.pointer(at)?.clone();
    let (list, _) = at.rsplit_once('/')?;
    let (node, _) = list.rsplit_once('/')?;
    let mut alone = definition.clone();
    clear(&mut alone);
    alone.pointer_mut(node)?.as_object_mut()?.insert("x-kubernetes-validations".into(), vec![rule].into());
    Some(alone)
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "yaml") {
            found.push(path);
        }
    }
}

/// What became of a claim; why it is undecided is counted.
fn word_of(outcome: &Result<Verdict, Unconfirmed>, why: &mut BTreeMap<String, usize>) -> &'static str {
    match outcome {
        Ok(Verdict::Holds { .. }) => "holds",
        Ok(Verdict::Refuted(_)) => "refuted",
        Ok(Verdict::Undecided(undecided)) => {
            for one in undecided.iter().take(1) {
                *why.entry(one.what.chars().take(90).collect()).or_default() += 1;
            }
            "undecided"
        }
        Err(_) => "unconfirmed",
    }
}

/// `ADMIT_CORPORA=… cargo test -p admit-analysis --test analysis share_of_rules -- --ignored --nocapture`: every distinct rule of the
/// definitions below `openshift-api/crds`, by whether it may ever deny; of
/// `ADMIT_FIRST` the ones before are left out.
#[test]
#[ignore = "measures; takes minutes"]
fn share_of_rules_that_are_decided() {
    let corpora = std::env::var("ADMIT_CORPORA").expect("ADMIT_CORPORA names a folder");
    let mut paths = Vec::new();
    files(&Path::new(&corpora).join("openshift-api/crds"), &mut paths);
    let mut solver = Both::default();
    let first = std::env::var("ADMIT_FIRST").ok().and_then(|first| first.parse().ok()).unwrap_or(0);
    let begin = Instant::now();
    let most = std::env::var("ADMIT_MINUTES").ok().and_then(|minutes| minutes.parse().ok()).unwrap_or(60);
    let (mut seen, mut times, mut why) = (Vec::new(), Vec::new(), BTreeMap::<String, usize>::new());
    let mut counts = BTreeMap::<&str, usize>::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("a file");
        let Ok(documents) = manifest::read("crd.yaml", &text) else { continue };
        for definition in documents.iter().map(|document| &document.value) {
            let (mut places, Ok(subject)) = (Vec::new(), Subject::new(definition, None)) else { continue };
            rules(definition, "", &mut places);
            for place in places {
                let key = (
                    definition["metadata"]["name"].clone(),
                    definition.pointer(&place).cloned(),
                    place.clone(),
                );
                if seen.contains(&key) {
                    continue;
                }
                seen.push(key);
                if seen.len() <= first {
                    continue;
                }
                if begin.elapsed() > Duration::from_secs(60 * most) {
                    continue;
                }
                let Some(alone) = with_rule_alone(definition, &place) else { continue };
                let Ok(side) = Side::definition(&alone, &subject) else { continue };
                let question = Question::NeverDenies;
                let inquiry =
                    Inquiry { question, subject: &subject, left: &side, right: None, that: None, items: 3 };
                let start = Instant::now();
                let end = start + Duration::from_secs(60);
                let outcome = inquiry.decide(Some(&mut solver), &|| Instant::now() > end);
                times.push(start.elapsed());
                let word = word_of(&outcome, &mut why);
                if word == "unconfirmed" {
                    tell(&format!("NOT CONFIRMED {} {place}: {outcome:?}", path.display()));
                }
                if word == "undecided" && std::env::var_os("ADMIT_SHOW").is_some() {
                    tell(&format!(
                        "undecided: {}: {outcome:?}",
                        definition.pointer(&place).unwrap_or(&Value::Null)["rule"]
                    ));
                }
                *counts.entry(word).or_default() += 1;
            }
        }
    }
    let all: Duration = times.iter().sum();
    tell(&format!("{all:?} in all, {:?} of them solvers", solver.spent));
    times.sort();
    let at = |share: usize| times[(times.len() * share / 100).min(times.len() - 1)];
    let mut why: Vec<(usize, String)> = why.into_iter().map(|(what, count)| (count, what)).collect();
    why.sort();
    why.iter().rev().take(25).for_each(|(count, what)| tell(&format!("{count:5} {what}")));
    tell(&format!(
        "{} rules, of {}: {counts:?}; p50 {:?}, p99 {:?}",
        times.len(),
        seen.len(),
        at(50),
        at(99)
    ));
    assert_eq!(counts.get("unconfirmed"), None);
}
