//! Finds which Kubernetes objects a file contains without loading it: reads only the relevant lines of YAML, or fields of JSON.
//!
//! INVARIANT: a file that cannot be understood is never reported as empty: it is [`Objects::Unclear`].

use std::io::{self, BufRead as _, BufReader, Read};

use serde::Deserialize;

/// How many bytes of a line are inspected.
const LINE: usize = 512;
/// The most objects of one file.
const MAX_OBJECTS: usize = 1_000_000;

#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(super) struct Object {
    #[serde(default)]
    pub(super) kind: Option<String>,
    #[serde(default)]
    pub(super) api_version: Option<String>,
}

#[derive(Debug, Eq, PartialEq)]
pub(super) enum Objects {
    Known(Vec<Object>),
    Unclear,
}

/// The relevant fields of a JSON document.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    #[serde(default)]
    kind: Option<String>,
    #[serde(default)]
    api_version: Option<String>,
    #[serde(default)]
    items: Option<Vec<Object>>,
}

/// Returns the objects in a file, including the items of lists.
pub(super) fn objects(from: &mut impl Read) -> io::Result<Objects> {
    let mut from = BufReader::with_capacity(64 * 1024, from);
    let first = loop {
        let bytes = from.fill_buf()?;
        if bytes.is_empty() {
            return Ok(Objects::Known(Vec::new()));
        }
        match bytes.iter().position(|byte| !byte.is_ascii_whitespace()) {
            Some(at) => break bytes.get(at).copied().unwrap_or_default(),
            None => {
                let all = bytes.len();
                from.consume(all);
            }
        }
    };
    if matches!(first, b'{' | b'[') { Ok(of_json(from)) } else { of_yaml(from) }
}

fn of_json(from: impl Read) -> Objects {
    let mut found = Vec::new();
    for document in serde_json::Deserializer::from_reader(from).into_iter::<Document>() {
        let Ok(Document { kind, api_version, items }) = document else { return Objects::Unclear };
        found.push(Object { kind, api_version });
        found.extend(items.unwrap_or_default());
    }
    Objects::Known(found)
}

/// Parses lines: the fields of a document begin in the first column, those of an item of `items` after the dash.
fn of_yaml(mut from: impl io::BufRead) -> io::Result<Objects> {
    let (mut found, mut top, mut item) = (Vec::new(), Object::default(), Object::default());
    // The column of the fields of an item, after the first item.
    let (mut in_items, mut column) = (false, None);
    let mut line = Vec::new();
    while next_line(&mut from, &mut line)? {
        let text = String::from_utf8_lossy(&line);
        let indent = text.len() - text.trim_start_matches(' ').len();
        let rest = text.trim_start_matches(' ');
        let dash = rest.strip_prefix("- ");
        if text.starts_with("---") || (indent == 0 && dash.is_none() && !rest.trim().is_empty()) {
            if text.starts_with("---") {
                found.push(std::mem::take(&mut item));
                found.push(std::mem::take(&mut top));
            }
            in_items = rest.trim_end() == "items:";
            column = None;
            note(&mut top, rest);
        } else if in_items
            && let Some(field) = dash
            && column.is_none_or(|column| column == indent + 2)
        {
            column = Some(indent + 2);
            found.push(std::mem::take(&mut item));
            note(&mut item, field);
        } else if in_items && dash.is_none() && column == Some(indent) {
            note(&mut item, rest);
        }
        if found.len() > MAX_OBJECTS {
            return Ok(Objects::Unclear);
        }
    }
    found.extend([item, top]);
    found.retain(|object| *object != Object::default());
    Ok(Objects::Known(found))
}

/// Reads the beginning of the next line; returns whether there is one.
fn next_line(from: &mut impl io::BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let mut any = false;
    loop {
        let bytes = from.fill_buf()?;
        if bytes.is_empty() {
            return Ok(any);
        }
        any = true;
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let whole = end.unwrap_or(bytes.len());
        let room = LINE.saturating_sub(line.len()).min(whole);
        line.extend_from_slice(bytes.get(..room).unwrap_or_default());
        from.consume(end.map_or(whole, |end| end + 1));
        if end.is_some() {
            return Ok(true);
        }
    }
}

fn note(object: &mut Object, field: &str) {
    let Some((name, value)) = field.split_once(':') else { return };
    let value = value.split(" #").next().unwrap_or_default().trim().trim_matches(['"', '\'']);
    let value = (!value.is_empty()).then(|| value.to_owned());
    match name.trim_matches(['"', '\'']) {
        "kind" => object.kind = value,
        "apiVersion" => object.api_version = value,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<String> {
        match objects(&mut text.as_bytes()).unwrap() {
            Objects::Known(found) => {
                let mut kinds: Vec<_> = found.into_iter().filter_map(|object| object.kind).collect();
                kinds.sort();
                kinds
            }
            Objects::Unclear => vec!["?".to_owned()],
        }
    }

    #[test]
    fn objects_are_known_by_their_own_kind_alone() {
        for (text, expected) in [
            ("apiVersion: v1\nkind: Secret\ndata: {a: b}\n", vec!["Secret"]),
            ("---\nkind: 'Secret' # x\n---\nkind: \"ConfigMap\"\n", vec!["ConfigMap", "Secret"]),
            (
                "---\napiVersion: v1\nkind: SecretList\nitems:\n- apiVersion: v1\n  kind: Secret\n  metadata:\n    ownerReferences:\n    - kind: Deployment\n- kind: Secret\n",
                vec!["Secret", "Secret", "SecretList"],
            ),
            (
                "items:\n  - data: {}\n    kind: Secret\n  - kind: Pod\nkind: List\n",
                vec!["List", "Pod", "Secret"],
            ),
            // Objects that are only referred to.
            ("kind: Event\ninvolvedObject:\n  kind: Secret\nitems: 1\n", vec!["Event"]),
            ("kind: Pod\nspec:\n  volumes:\n  - kind: Secret\n", vec!["Pod"]),
            (
                "  {\"kind\": \"List\", \"items\": [{\"kind\": \"Secret\", \"x\": {\"kind\": \"Y\"}}]}",
                vec!["List", "Secret"],
            ),
            ("{\"kind\": \"A\"}\n{\"kind\": \"B\"}\n", vec!["A", "B"]),
            ("[1, 2]", vec!["?"]),
            ("{\"kind\": \"Secret\", \"data\"", vec!["?"]),
            ("", vec![]),
        ] {
            assert_eq!(kinds(text), expected, "{text}");
        }
        let long = format!("a: {}\nkind: Secret\n", "b".repeat(100_000));
        assert_eq!(kinds(&long), ["Secret"]);
    }
}
