//! Finds suite files: files that are named, and in folders those whose name or location marks them as suites.

use std::path::{Path, PathBuf};

use crate::cli::load;
use crate::cli::process::Fault;

/// The contents of one suite file.
#[derive(Debug)]
pub(in crate::cli) struct Source {
    pub(in crate::cli) file: String,
    pub(in crate::cli) text: String,
    /// The folder that relative paths in the suite start from.
    pub(super) folder: PathBuf,
}

/// Finds the suites at `paths`, in order. With `any_name`, also files whose contents mark them as suites of a definition.
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
        // A named file is always a suite; in a folder the name decides.
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

/// Whether the path is `…/tests/widgets.example.dev/a.yaml`, the layout of suites in the OpenShift API project.
fn in_tests_folder(file: &Path) -> bool {
    file.ancestors().nth(2).is_some_and(|folder| folder.ends_with("tests"))
}

/// Whether the file has the field that marks a suite of a definition; it is not parsed.
fn names_definition(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("crdName:"))
}
