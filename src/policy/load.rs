//! Documents of manifest files to a [`PolicySet`]: everything wrong with any of them, each with its place.

use crate::manifest::{Document, LoadError};
use crate::set::{LoadErrorKind, PolicySet};
use crate::suite::Suite;

impl PolicySet {
    /// Compiles policies, bindings, CRDs, and the objects that policies use as params. Suites are passed over, as are
    /// kustomize's own files, so that a folder can hold all of them.
    ///
    /// # Errors
    /// Every mistake of every document; none is loaded then.
    pub fn load<'a>(documents: impl IntoIterator<Item = &'a Document>) -> Result<Self, Vec<LoadError>> {
        let mut builder = Self::builder();
        let mut errors = Vec::new();
        // By the builder's number: documents that it counts, in order.
        let mut counted: Vec<&Document> = Vec::new();
        for document in documents {
            if is_aside(document) {
                continue;
            }
            counted.push(document);
            if let Err(kinds) = builder.add(&document.value) {
                errors.extend(kinds.iter().map(|kind| placed(document, kind)));
            }
        }
        // With a policy missing, its params would seem to be of no use.
        if errors.is_empty() {
            let unused = builder.unused();
            errors.extend(unused.filter_map(|(number, kind)| Some(placed(counted.get(number)?, &kind))));
        }
        if errors.is_empty() { Ok(builder.finish()) } else { Err(errors) }
    }
}

fn is_aside(document: &Document) -> bool {
    let api_version =
        document.value.get("apiVersion").and_then(serde_json::Value::as_str).unwrap_or_default();
    Suite::is(&document.value) || api_version.starts_with("kustomize.config.k8s.io/")
}

fn placed(document: &Document, kind: &LoadErrorKind) -> LoadError {
    match kind {
        LoadErrorKind::Field(error) => document.error(error),
        LoadErrorKind::NoKind
        | LoadErrorKind::Mutating(_)
        | LoadErrorKind::UnknownKind(_)
        | LoadErrorKind::Duplicate(_) => document.mistake(kind.to_string()),
    }
}
