//! Creates the folders that hold private keys and other secrets: the state folder of `admit up`, and the output
//! folder of `admit certs`.

use std::ffi::OsStr;
use std::path::Path;

use admit_apiserver::store::{RedbBackend, Store};

use super::process::Fault;
use crate::private::{self, Note};

/// The files of the state folder of `admit up`, including temporary names.
const STATE: &[&str] = &[
    "archives",
    "ca.crt",
    "ca.key",
    "ca.new",
    "data.redb",
    "data.redb.new",
    "data.redb.room",
    "demo",
    "kubeconfig",
    "kubeconfig.new",
    "local",
    "service-account.key",
    "service-account.new",
];

/// The same for `admit certs`.
const CERTIFICATES: &[&str] = &["ca.crt", "ca.key", "ca.new", "tls.crt", "tls.key", "tls.new"];

/// Creates the state folder if it is missing, with access for its owner only, or tightens the permissions of an
/// existing one.
///
/// # Errors
/// When it can be neither created nor read.
pub(super) fn folder(path: &Path) -> Result<Vec<Note>, Fault> {
    closed(path, STATE)
}

/// Like [`folder`], for a folder of certificates.
///
/// # Errors
/// As [`folder`].
pub(super) fn certificates(path: &Path) -> Result<Vec<Note>, Fault> {
    closed(path, CERTIFICATES)
}

fn closed(path: &Path, own: &[&str]) -> Result<Vec<Note>, Fault> {
    let is_own = |name: &OsStr| {
        let left = private::left_beside(name);
        own.iter().any(|own| name == *own || left == Some(*own))
    };
    private::make_folder(path).and_then(|()| private::mend(path, is_own)).map_err(|error| {
        let path = path.display();
        Fault::usage(format!("cannot write `{path}`: {error}; make the folder writable, or choose another"))
    })
}

/// Logs which permissions were changed.
pub(super) fn tell(notes: &[Note]) {
    for note in notes {
        match note {
            Note::Closed { .. } => tracing::warn!("{note}"),
            Note::Shared { .. } => tracing::info!("{note}"),
        }
    }
}

/// Opens the store with the objects of earlier runs.
///
/// # Errors
/// When the file is in use, damaged, or cannot be read.
pub(super) fn store(folder: &Path) -> Result<Store, Fault> {
    let path = folder.join("data.redb");
    RedbBackend::open(&path).and_then(|backend| Store::open(Box::new(backend))).map_err(|error| {
        let hint = "end the `admit up` that uses it, delete it if it is damaged, or choose another folder with --state-dir";
        Fault::usage(format!("{error}; {hint}"))
    })
}
