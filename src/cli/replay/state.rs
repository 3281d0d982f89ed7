//! Reads dumps of a cluster's objects: all of them one by one, and those that policies ask for.

use std::collections::HashSet;
use std::path::PathBuf;

use admit_apimachinery::pointer;
use admit_policy::manifest::Document;
use admit_policy::patch::text_len;
use admit_policy::{GroupVersionKind, PolicySet};
use serde_json::Value;

use crate::cli::Exit;
use crate::cli::load;
use crate::cli::process::Fault;

/// Bytes of JSON of the params, Namespaces and roles that are held.
const MOST: usize = 32 << 20;

/// Calls `take` with every object.
///
/// # Errors
/// For what cannot be read.
pub(super) fn each(paths: &[PathBuf], take: &mut dyn FnMut(&Value)) -> Result<(), Fault> {
    let beside = load::each_document(paths, &mut |document: Document| {
        take(&document.value);
        Ok(())
    });
    beside.map_err(unreadable)?.tell();
    Ok(())
}

/// The objects that decisions by `set` look up, but for those that `documents` have.
///
/// # Errors
/// For what cannot be read, and for more than can be held.
pub(super) fn asked_for(
    paths: &[PathBuf],
    set: &PolicySet,
    documents: &[Document],
) -> Result<Vec<Document>, Fault> {
    let mut known: HashSet<_> = documents.iter().map(|document| identity(&document.value)).collect();
    let (mut found, mut bytes) = (Vec::new(), 0_usize);
    load::each_document(paths, &mut |document: Document| {
        if set.looks_up(&GroupVersionKind::of(&document.value)) && known.insert(identity(&document.value)) {
            bytes = bytes.saturating_add(text_len(&document.value));
            if bytes > MOST {
                return Err(Fault::usage(format!(
                    "{}: the Namespaces, roles and params of --state are more than {MOST} bytes; leave out those that no \
                     request is about",
                    document.file
                )));
            }
            found.push(document);
        }
        Ok(())
    })
    .map_err(unreadable)?;
    Ok(found)
}

fn identity(object: &Value) -> (GroupVersionKind, String, String) {
    let text = |pointer: &str| pointer::text(object, pointer).to_owned();
    (GroupVersionKind::of(object), text("/metadata/namespace"), text("/metadata/name"))
}

/// Dumps are input, unlike policies.
fn unreadable(fault: Fault) -> Fault {
    Fault { exit: Exit::Usage, ..fault }
}
