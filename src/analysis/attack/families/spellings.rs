//! Family `spellings`: writes the same value differently: quantities in other units, images with their defaults written out, paths with
//! redundant steps.
//!
//! The effect is the same because of the meaning of the field's type; all other strings are compared exactly.

use std::collections::BTreeSet;

use admit_policy::FieldType;
use serde_json::{Value, json};

use super::super::finding::Family;
use super::super::path::{Path, Step};
use super::super::scene::{Answer, Neighbour, Scene, of};
use super::super::types::Kind;

/// The registry, repository prefix and tag that short image names imply.
const REGISTRY: &str = "docker.io";
const FOLDER: &str = "library";
const TAG: &str = "latest";

pub(super) fn find(scene: &Scene<'_>, out: &mut Vec<Neighbour>) {
    let Some(kind) = scene.types.kind(&scene.base.kind()) else { return };
    let Some(value) = &scene.offence.value else { return };
    for (path, written) in spelled(kind, &scene.offence.path, value) {
        for other in written {
            let mut object = scene.object.clone();
            if (scene.over)() || !path.set(&mut object, other.clone()) {
                continue;
            }
            let ask = scene.base.with(object);
            if of(&scene.judge.ask(&ask)) == Answer::Admitted {
                let before = path.get(scene.object).cloned().unwrap_or_default();
                let what = format!("{before} is denied, and {other}, which is the same, admitted");
                out.push(Neighbour {
                    family: Family::Spellings,
                    path: path.to_string(),
                    what,
                    ask,
                    first: None,
                });
                break;
            }
        }
    }
}

/// Finds the strings and numbers in a value that have other spellings.
fn spelled(kind: Kind<'_>, path: &Path, value: &Value) -> Vec<(Path, Vec<Value>)> {
    let mut found = Vec::new();
    let mut open = vec![(path.clone(), value)];
    while let Some((path, value)) = open.pop() {
        match value {
            Value::Array(list) => {
                open.extend(list.iter().enumerate().map(|(at, value)| (path.child(Step::At(at)), value)));
            }
            Value::Object(map) => {
                open.extend(map.iter().map(|(name, value)| (path.child(Step::Name(name.clone())), value)));
            }
            Value::Null | Value::Bool(_) => {}
            Value::Number(_) | Value::String(_) => {
                let others = others(kind, &path, value);
                if !others.is_empty() {
                    found.push((path, others));
                }
            }
        }
    }
    found
}

fn others(kind: Kind<'_>, path: &Path, value: &Value) -> Vec<Value> {
    let pattern = path.pattern();
    let Some((of, field)) = kind.at(&pattern) else { return Vec::new() };
    let text = value.as_str().unwrap_or_default();
    let name = field.map(|field| field.name.as_str()).unwrap_or_default();
    // Finds the type that contains the field, further up if it is a list item.
    let around = (0..pattern.len()).rev().find_map(|length| kind.shape_at(pattern.get(..length)?));
    let has =
        |field: &str| around.is_some_and(|shape| kind.fields(shape).iter().any(|own| own.name == field));
    let is_of = |shape: &str| {
        let own = around.and_then(|shape| kind.catalogue.shape(shape));
        own.is_some_and(|own| own.name.rsplit('.').next() == Some(shape))
    };
    let texts = match of {
        FieldType::Quantity => return quantities(value),
        FieldType::Text if name == "image" && has("imagePullPolicy") => images(text),
        FieldType::Text if name == "reference" && has("pullPolicy") => images(text),
        FieldType::Text if name == "path" && is_of("HostPathVolumeSource") => paths(text),
        // Container runtimes ignore the case of capabilities.
        FieldType::Text if is_of("Capabilities") => vec![text.to_lowercase(), text.to_uppercase()],
        _ => Vec::new(),
    };
    let distinct: BTreeSet<String> =
        texts.into_iter().filter(|other| other != text && !other.is_empty()).collect();
    let mut nearest: Vec<String> = distinct.into_iter().collect();
    nearest.sort_by_key(|other| distance(text, other));
    nearest.into_iter().map(Value::from).collect()
}

/// Counts the characters after the common prefix of two strings.
fn distance(one: &str, other: &str) -> usize {
    let different = one.chars().zip(other.chars()).filter(|(one, other)| one != other).count();
    different.saturating_add(one.chars().count().abs_diff(other.chars().count()))
}

/// Expands a short image name, and uses other names of its registry.
fn images(text: &str) -> Vec<String> {
    let (rest, digest) = match text.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (text, None),
    };
    let (rest, tag) = match rest.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (rest, None),
    };
    let (host, path) = match rest.split_once('/') {
        Some((host, path)) if host.contains(['.', ':']) || host == "localhost" => (host, path),
        _ => (REGISTRY, rest),
    };
    if path.is_empty() {
        return Vec::new();
    }
    let mut names = vec![format!("{host}/{path}"), format!("{}/{path}", host.to_uppercase())];
    if host == REGISTRY || host == "index.docker.io" {
        let bare = path.strip_prefix("library/").unwrap_or(path);
        if bare.contains('/') {
            names.push(bare.to_owned());
        } else {
            names.extend([bare.to_owned(), format!("{FOLDER}/{bare}"), format!("{REGISTRY}/{bare}")]);
        }
        let full = if bare.contains('/') { bare.to_owned() } else { format!("{FOLDER}/{bare}") };
        names.extend([format!("{REGISTRY}/{full}"), format!("index.docker.io/{full}")]);
    }
    let tags: Vec<Option<&str>> = match (tag, digest) {
        // With a digest, the tag is ignored.
        (_, Some(_)) => vec![tag, None, Some(TAG)],
        (None | Some(TAG), None) => vec![None, Some(TAG)],
        (Some(tag), None) => vec![Some(tag)],
    };
    let with = |name: &String, tag: &Option<&str>| {
        let tag = tag.map(|tag| format!(":{tag}")).unwrap_or_default();
        let digest = digest.map(|digest| format!("@{digest}")).unwrap_or_default();
        format!("{name}{tag}{digest}")
    };
    names.iter().flat_map(|name| tags.iter().map(move |tag| with(name, tag))).collect()
}

fn paths(text: &str) -> Vec<String> {
    let trimmed = text.trim_end_matches('/');
    let Some(rest) = trimmed.strip_prefix('/') else { return Vec::new() };
    vec![
        trimmed.to_owned(),
        format!("{trimmed}/"),
        format!("//{rest}"),
        format!("/./{rest}"),
        format!("{trimmed}/."),
    ]
}

/// Returns the same amount in other units.
fn quantities(value: &Value) -> Vec<Value> {
    const UNITS: [(&str, i128); 14] = [
        ("m", 1),
        ("", 1_000),
        ("k", 1_000_000),
        ("M", 1_000_000_000),
        ("G", 1_000_000_000_000),
        ("T", 1_000_000_000_000_000),
        ("Ki", 1_024_000),
        ("Mi", 1_048_576_000),
        ("Gi", 1_073_741_824_000),
        ("Ti", 1_099_511_627_776_000),
        ("e3", 1_000_000),
        ("e6", 1_000_000_000),
        ("E3", 1_000_000),
        ("E6", 1_000_000_000),
    ];
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (Some(number), Some(unit)) = (text.get(..end), text.get(end..)) else { return Vec::new() };
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{part}");
    let Some(size) = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, size)| *size) else {
        return Vec::new();
    };
    let power = u32::try_from(part.len()).ok().and_then(|power| 10_i128.checked_pow(power));
    let thousandths = digits.parse::<i128>().ok().zip(power).and_then(|(digits, power)| {
        digits.checked_mul(size).filter(|sum| sum.checked_rem(power) == Some(0))?.checked_div(power)
    });
    let Some(thousandths) = thousandths else { return Vec::new() };
    let exact = UNITS.iter().filter(|(_, size)| thousandths.checked_rem(*size) == Some(0));
    let written = exact.filter_map(|(name, size)| Some(format!("{}{name}", thousandths.checked_div(*size)?)));
    let mut all: Vec<Value> = written.filter(|other| *other != text).map(Value::from).collect();
    if let (Value::String(_), Ok(number)) = (value, text.parse::<i64>()) {
        all.push(json!(number));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_written_in_other_units() {
        let texts: Vec<String> = quantities(&json!("1Gi")).iter().map(ToString::to_string).collect();
        assert!(
            texts.contains(&"\"1024Mi\"".to_owned()) && texts.contains(&"\"1073741824\"".to_owned()),
            "{texts:?}"
        );
        assert!(quantities(&json!("0.5")).contains(&json!("500m")));
        assert!(quantities(&json!("much")).is_empty());
    }

    #[test]
    fn images_are_written_with_what_they_stand_for() {
        let all = images("nginx");
        for text in [
            "docker.io/library/nginx:latest",
            "library/nginx",
            "nginx:latest",
            "index.docker.io/library/nginx",
        ] {
            assert!(all.contains(&text.to_owned()), "{text} {all:?}");
        }
        assert!(images("localhost:5000/a:1").contains(&"LOCALHOST:5000/a:1".to_owned()));
        assert!(!images("a.example/b:1").iter().any(|text| text.contains("latest")));
    }

    #[test]
    fn steps_that_lead_nowhere_are_left_out_of_paths() {
        assert!(paths("/etc").contains(&"/etc/".to_owned()));
        assert!(paths("etc").is_empty());
    }
}
