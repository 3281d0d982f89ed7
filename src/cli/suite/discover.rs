//! Finds suite files: those that are named, and in folders those whose name or location marks them as suites.

use std::path::{Path, PathBuf};

use crate::cli::load;
use crate::cli::process::Fault;

/// The text of one suite file.
#[derive(Debug)]
pub(in crate::cli) struct Source {
    pub(in crate::cli) file: String,
    pub(in crate::cli) text: String,
    /// What its documents' paths start from.
    pub(super) folder: PathBuf,
}

/// The suites at `paths`, in order. With `any_name`, also files that are suites of a definition by what is in them.
///
/// # Errors
/// When a path cannot be read, or there is no suite at all.
pub(in crate::cli) fn sources(paths: &[PathBuf], any_name: bool) -> Result<Vec<Source>, Fault> {
    let mut sources = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            let text = load::text(path)?;
            sources.push(Source { file: "-".to_owned(), text, folder: PathBuf::new() });
            continue;
        }
        let files = load::files(path)?;
        // A file that was named is a suite by that; in a folder its name tells.
        for found in files {
            let file = &found.path;
            let by_name = found.named || load::is_suite_name(file);
            if !by_name && !any_name && !in_tests_folder(file) {
                continue;
            }
            let text = found.text()?;
            if by_name || names_definition(&text) {
                let folder = file.parent().unwrap_or(Path::new("")).to_owned();
                sources.push(Source { text, file: load::normal(file).display().to_string(), folder });
            }
        }
    }
    if sources.is_empty() {
        let paths: Vec<String> = paths.iter().map(|path| format!("`{}`", path.display())).collect();
        return Err(Fault::usage(format!(
            "no suites (`*.suite.yaml`, `*.testsuite.yaml`) in {}; `admit init` writes one",
            paths.join(", ")
        )));
    }
    Ok(sources)
}

/// `…/tests/widgets.example.dev/a.yaml`: how the OpenShift API project lays its suites out.
fn in_tests_folder(file: &Path) -> bool {
    file.ancestors().nth(2).is_some_and(|folder| folder.ends_with("tests"))
}

/// The field by which a suite of a definition is known, without reading all of the file.
fn names_definition(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("crdName:"))
}
