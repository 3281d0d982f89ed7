//! Defines a record, one file of an archive: its flat path, its contents and its capture time.
//!
//! A record owns JSON or text until it is written to the archive, where obfuscation and size limits apply.

use jiff::Timestamp;
use serde_json::Value;

/// The longest base name of an archive entry in bytes.
pub const MAX_BASE_NAME: usize = 255;

#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The path in the archive without extension, for example `config/node/worker-1`.
    path: String,
    body: Body,
    captured: Timestamp,
}

/// The contents of a record: JSON gets the extension `.json`, text is stored under its bare path.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    Json(Value),
    Raw(String),
}

impl Record {
    /// Creates a record of a Kubernetes object or another JSON document. `metadata.managedFields` is dropped: it repeats the object's
    /// fields and has no use outside the cluster.
    pub fn json(path: impl Into<String>, mut document: Value, captured: Timestamp) -> Self {
        if let Some(metadata) = document.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.shift_remove("managedFields");
        }
        Self { path: path.into(), body: Body::Json(document), captured }
    }

    /// Creates a record of a text.
    pub fn raw(path: impl Into<String>, text: impl Into<String>, captured: Timestamp) -> Self {
        Self { path: path.into(), body: Body::Raw(text.into()), captured }
    }

    pub fn captured(&self) -> Timestamp {
        self.captured
    }

    /// Returns the path with extension; the base name is shortened to [`MAX_BASE_NAME`] bytes before the extension.
    pub fn file_name(&self) -> String {
        let extension = match &self.body {
            Body::Json(_) => ".json",
            Body::Raw(_) => "",
        };
        capped(&flat(&self.path), extension)
    }

    /// Returns the contents before obfuscation.
    pub fn text(&self) -> String {
        match &self.body {
            Body::Json(value) => value.to_string(),
            Body::Raw(text) => text.clone(),
        }
    }
}

/// Makes the components of a path safe. Object names contain no slash, but ConfigMap keys, hosts and API responses are arbitrary
/// text: a component that would lead out of the archive becomes harmless. A NUL, which names of roles may contain and archive
/// entries may not, is percent-encoded: such names may not contain a `%`, so the result is unique.
fn flat(path: &str) -> String {
    path.split('/')
        .filter(|part| !part.is_empty())
        .map(|part| if part == "." || part == ".." { "_" } else { part })
        .collect::<Vec<_>>()
        .join("/")
        .replace('\0', "%00")
}

fn capped(path: &str, extension: &str) -> String {
    let (folder, base) = match path.rfind('/') {
        Some(at) => path.split_at(at + 1),
        None => ("", path),
    };
    let room = MAX_BASE_NAME - extension.len();
    let cut = base.floor_char_boundary(room.min(base.len()));
    format!("{folder}{}{extension}", &base[..cut])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_long_base_name_keeps_its_extension() {
        let record =
            Record::json(format!("config/node/{}", "ö".repeat(200)), json!({}), Timestamp::UNIX_EPOCH);
        let base = record.file_name().rsplit('/').next().unwrap().to_owned();
        assert!(base.len() <= MAX_BASE_NAME && base.len() > MAX_BASE_NAME - 2, "{}", base.len());
        assert!(base.ends_with("ö.json"));
    }

    #[test]
    fn no_path_leaves_the_root_of_the_archive() {
        let name = |path: &str| Record::raw(path, "", Timestamp::UNIX_EPOCH).file_name();
        assert_eq!(name("/etc/passwd"), "etc/passwd");
        assert_eq!(name("config/configmaps/ns/name/../../../../x"), "config/configmaps/ns/name/_/_/_/_/x");
        assert_eq!(name("a//b/./c"), "a/b/_/c");
        assert_eq!(name("clusterroles/a\0b"), "clusterroles/a%00b");
    }

    #[test]
    fn managed_fields_are_dropped() {
        let object = json!({"metadata": {"name": "a", "managedFields": [{"manager": "m"}]}});
        assert_eq!(Record::json("x", object, Timestamp::UNIX_EPOCH).text(), r#"{"metadata":{"name":"a"}}"#);
    }
}
