//! Collects the objects of one kind, page by page, each into its file. Secrets lose their contents, wherever these are.

use admit_apimachinery::yaml;
use http::Request;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::discover::Kind;
use super::logs::Pod;
use super::{CollectError, Run};

/// The objects of the first page: of the largest objects that servers store, 30 MB.
const FIRST_PAGE: usize = 20;
/// The intended size of a page in bytes. Larger pages save few requests, and take more memory.
const PAGE_BYTES: usize = 4 * 1024 * 1024;
const MAX_PAGE: usize = 500;
/// The most pages of one kind, in case a server's list never ends.
const MAX_PAGES: usize = 1_000_000;
/// The annotation of `kubectl apply`, which has the whole contents of a Secret.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

#[derive(Deserialize)]
struct Page<'p> {
    #[serde(default)]
    metadata: Listed,
    #[serde(borrow, default)]
    items: Option<Vec<&'p RawValue>>,
}

#[derive(Default, Deserialize)]
struct Listed {
    #[serde(default, rename = "continue")]
    token: Option<String>,
}

/// The objects found of a kind.
#[derive(Debug, PartialEq)]
pub(super) struct Found {
    pub(super) objects: u64,
    /// Whether the list is complete.
    pub(super) whole: bool,
}

/// Writes the objects of `kind`; Pods are also added to `pods`.
pub(super) async fn collect(run: &Run<'_>, kind: &Kind, pods: &mut Vec<Pod>) -> Result<Found, CollectError> {
    let mut found = Found { objects: 0, whole: false };
    let (mut limit, mut token) = (FIRST_PAGE, String::new());
    for _ in 0..MAX_PAGES {
        let text = match page(run, kind, limit, &token).await {
            Ok(text) => text,
            Err(error) => {
                run.missed(
                    format!("{} {} behind {}", kind.api_version(), kind.plural, found.objects),
                    &error,
                );
                return Ok(found);
            }
        };
        let page: Page<'_> = match serde_json::from_str(&text) {
            Ok(page) => page,
            Err(error) => {
                run.teller.tell(format!("left out: {} {}: {error}", kind.api_version(), kind.plural));
                return Ok(found);
            }
        };
        let items = page.items.unwrap_or_default();
        for item in &items {
            if let Ok(Value::Object(object)) = serde_json::from_str(item.get()) {
                write(run, kind, object, pods)?;
                found.objects += 1;
            }
        }
        match page.metadata.token.filter(|token| !token.is_empty()) {
            Some(next) => token = next,
            None => {
                found.whole = true;
                return Ok(found);
            }
        }
        let each = text.len() / items.len().max(1);
        limit = (PAGE_BYTES / each.max(1)).clamp(1, MAX_PAGE);
    }
    Ok(found)
}

async fn page(run: &Run<'_>, kind: &Kind, limit: usize, token: &str) -> Result<String, kube::Error> {
    let mut path = format!("{}?limit={limit}", kind.path());
    if !token.is_empty() {
        let token: String = token.bytes().map(encoded).collect();
        path = format!("{path}&continue={token}");
    }
    let request = Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
    run.client.request_text(request).await
}

fn encoded(byte: u8) -> String {
    match byte {
        byte if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    }
}

fn write(
    run: &Run<'_>,
    kind: &Kind,
    object: Map<String, Value>,
    pods: &mut Vec<Pod>,
) -> Result<(), CollectError> {
    let object = shown(kind, object);
    let of = |field: &str| {
        let value = object.get("metadata").and_then(|metadata| metadata.get(field)).and_then(Value::as_str);
        value.unwrap_or_default().to_owned()
    };
    let (namespace, name) = (of("namespace"), of("name"));
    if kind.is("", "pods") {
        pods.push(Pod::of(&namespace, &name, &object));
    }
    let plural = format!("{}.yaml", kind.plural);
    let object = Value::Object(object);
    if !kind.namespaced {
        let file = format!("{name}.yaml");
        let parts = ["cluster-scoped-resources", kind.folder(), &kind.plural, &file];
        let (mut out, path) = run.folder.create(&parts)?;
        return std::io::Write::write_all(&mut out, format!("---\n{}", yaml::write(&object)).as_bytes())
            .map_err(|source| CollectError::Disk { path, source });
    }
    let parts = ["namespaces", &namespace, kind.folder(), &plural];
    let head = format!("---\napiVersion: {}\nkind: {}List\nitems:\n", kind.api_version(), kind.kind);
    run.folder.append(&parts, &head, &yaml::write(&Value::Array(vec![object])))
}

/// Prepares an object for disk: adds version and kind, which lists omit, and removes the contents of Secrets.
fn shown(kind: &Kind, mut object: Map<String, Value>) -> Map<String, Value> {
    if kind.is("", "secrets") {
        object.remove("data");
        object.remove("stringData");
        let annotations = object.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations"));
        if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
            annotations.remove(LAST_APPLIED);
        }
    }
    let mut whole = Map::new();
    whole.insert("apiVersion".to_owned(), Value::String(kind.api_version()));
    whole.insert("kind".to_owned(), Value::String(kind.kind.clone()));
    whole.extend(object.into_iter().filter(|(field, _)| !["apiVersion", "kind"].contains(&field.as_str())));
    whole
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn secrets() -> Kind {
        Kind {
            group: String::new(),
            version: "v1".to_owned(),
            plural: "secrets".to_owned(),
            kind: "Secret".to_owned(),
            namespaced: true,
        }
    }

    #[test]
    fn a_secret_loses_what_it_holds() {
        let object = json!({
            "metadata": {"name": "a", "annotations": {LAST_APPLIED: "{\"data\":{\"k\":\"canary\"}}", "b": "c"}},
            "type": "Opaque", "data": {"k": "canary"}, "stringData": {"k": "canary"},
        });
        let shown = Value::Object(shown(&secrets(), object.as_object().unwrap().clone()));
        let expected = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "annotations": {"b": "c"}}, "type": "Opaque",
        });
        assert_eq!(shown, expected);
    }
}
