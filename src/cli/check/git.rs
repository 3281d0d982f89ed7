//! Runs the `git` on the PATH to resolve revisions and to read manifests at a revision.

use std::path::{Path, PathBuf};
use std::process::Command;

use admit_policy::manifest::Document;

use crate::cli::load;
use crate::cli::process::Fault;

/// Calls `take` with each document of `paths` as it was at `revision`. A path that did not exist then has none.
///
/// # Errors
/// When there is no git, no repository or no such revision, or a file was not a manifest; and the errors of `take`.
pub(super) fn each_document(
    revision: &str,
    paths: &[PathBuf],
    take: &mut impl FnMut(Document) -> Result<(), Fault>,
) -> Result<(), Fault> {
    for path in paths {
        if load::is_stdin(path) {
            return Err(Fault::usage("--old-git needs paths: standard input has no history"));
        }
        let path = load::without_recursion(path);
        let (folder, below) = if path.is_dir() {
            (path, Path::new("."))
        } else {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            (folder.unwrap_or(Path::new(".")), Path::new(path.file_name().unwrap_or_default()))
        };
        let commit = commit(revision, folder)?;
        let below = below.to_string_lossy();
        let tree = run(folder, &["ls-tree", "-r", "-z", &commit, "--", &below])?;
        for (object, name) in tree.split('\0').filter_map(entry) {
            let hidden = name.split('/').any(|part| part.starts_with('.'));
            if below == "." && (hidden || !load::is_manifest_name(Path::new(name))) {
                continue;
            }
            let text = run(folder, &["cat-file", "blob", object])?;
            let shown = format!("{revision}:{}", folder.join(name).display());
            let mistakes = load::each_of(&shown, &text, take)?;
            if !mistakes.is_empty() {
                return Err(load::not_compiled(&mistakes));
            }
        }
    }
    Ok(())
}

/// Returns the error for an unknown revision, with the remedy for shallow clones, which CI services make.
fn no_revision(revision: &str, folder: &Path) -> Fault {
    let shallow =
        run(folder, &["rev-parse", "--is-shallow-repository"]).is_ok_and(|said| said.trim() == "true");
    let remedy = if shallow {
        ": this clone is shallow, without the history; fetch it whole (`fetch-depth: 0` of actions/checkout, \
         `GIT_DEPTH: 0` of GitLab, or `git fetch --unshallow`)"
    } else {
        ""
    };
    Fault::usage(format!("`{revision}` is no git revision of `{}`{remedy}", folder.display()))
}

/// Resolves `revision`, tags included, to a commit of the repository of `folder`.
///
/// # Errors
/// When there is no git, no repository or no such revision.
pub(in crate::cli) fn commit(revision: &str, folder: &Path) -> Result<String, Fault> {
    let commit = format!("{revision}^{{commit}}");
    let found = run(folder, &["rev-parse", "--verify", "--quiet", "--end-of-options", &commit]);
    found.map(|found| found.trim().to_owned()).map_err(|_| no_revision(revision, folder))
}

/// Splits a line of `ls-tree` into object and path: `100644 blob OBJECT<tab>PATH`.
fn entry(line: &str) -> Option<(&str, &str)> {
    let (head, name) = line.split_once('\t')?;
    let mut words = head.split(' ');
    let (_, kind, object) = (words.next()?, words.next()?, words.next()?);
    (kind == "blob").then_some((object, name))
}

/// Runs `git` in `folder`, and returns its standard output.
///
/// # Errors
/// When it cannot be run, or fails.
pub(in crate::cli) fn run(folder: &Path, arguments: &[&str]) -> Result<String, Fault> {
    let output = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(arguments)
        .output()
        .map_err(|error| Fault::usage(format!("cannot run git: {error}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Fault::usage(format!("git {}: {}", arguments.join(" "), said.trim())));
    }
    String::from_utf8(output.stdout)
        .map_err(|_| Fault::usage(format!("git {}: the answer is not UTF-8", arguments.join(" "))))
}
