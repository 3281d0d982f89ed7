//! Reports documents that do not compile, so that no claim can be checked.

use admit_analysis::prove::SideError;
use admit_policy::manifest::Document;

use crate::cli::process::Fault;

/// Creates the error about a document, with its line.
pub(super) fn not_compiled(document: &Document, error: &SideError) -> Fault {
    let at = if error.field.is_empty() { document.here() } else { document.position(&error.field) };
    Fault::not_compiled(format!("{}:{}:{}: {error}", document.file, at.line, at.column))
}
