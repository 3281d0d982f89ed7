//! Reads dumps of a cluster's objects: all of them, or those that policies look up.

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

/// The largest size in bytes of the params, Namespaces and roles that are held.
const MOST: usize = 32 << 20;

/// Calls `take` with every object.
///
/// # Errors
/// When a file cannot be read.
pub(super) fn each(paths: &[PathBuf], take: &mut dyn FnMut(&Value)) -> Result<(), Fault> {
    let beside = load::each_document(paths, &mut |document: Document| {
        take(&document.value);
        Ok(())
    });
    beside.map_err(unreadable)?.tell();
    Ok(())
}

/// Returns the objects that policies of `set` look up, except those that `documents` contain.
///
/// # Errors
/// When a file cannot be read, and when the objects are too large to be held.
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

/// Makes an unreadable dump a usage error: dumps are input, unlike policies.
fn unreadable(fault: Fault) -> Fault {
    Fault { exit: Exit::Usage, ..fault }
}
