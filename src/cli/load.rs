//! Manifests from files and folders, for every command that decides something.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

use admit_policy::manifest::{self, Document, LoadError};
use admit_policy::{LoadErrorKind, LoadOptions, PolicySet};

use serde_json::Value;

use super::process::Fault;

/// A file larger than this is no manifest.
const MAX_FILE: u64 = 16 * 1024 * 1024;
/// Folders in folders.
const MAX_DEPTH: usize = 32;

/// The policies, CRDs and params at `paths`.
///
/// # Errors
/// With [`Exit::Usage`] what cannot be read, with [`Exit::NotCompiled`] all that does not compile.
pub(super) fn policies(paths: &[impl AsRef<Path>]) -> Result<PolicySet, Fault> {
    policies_with(paths, LoadOptions::default())
}

/// The same, letting pass what `options` say.
///
/// # Errors
/// As [`policies`].
pub(super) fn policies_with(paths: &[impl AsRef<Path>], options: LoadOptions) -> Result<PolicySet, Fault> {
    let mut texts = Vec::new();
    for path in paths {
        for file in files(path.as_ref())? {
            texts.push((file.display().to_string(), text(&file)?));
        }
    }
    let texts = texts.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    PolicySet::load_files(texts, options).map_err(|errors| not_compiled(&errors))
}

/// The documents of every manifest at `paths`, in order of their files' names.
///
/// # Errors
/// As [`policies`].
pub(super) fn documents(paths: &[impl AsRef<Path>]) -> Result<Vec<Document>, Fault> {
    match parted(paths)? {
        (documents, errors) if errors.is_empty() => Ok(documents),
        (_, errors) => Err(not_compiled(&errors)),
    }
}

/// The same of policies: where a text cannot be read, what is wrong with the others is told as well.
///
/// # Errors
/// As [`policies`].
pub(super) fn policy_documents(paths: &[impl AsRef<Path>]) -> Result<Vec<Document>, Fault> {
    let (documents, mut errors) = parted(paths)?;
    if errors.is_empty() {
        return Ok(documents);
    }
    // Without the policies that cannot be read, their params would seem to be of no use.
    let options = LoadOptions { ignore_unknown: true };
    errors.extend(PolicySet::load_with(&documents, options).err().unwrap_or_default());
    errors.sort_by(|a, b| (&a.file, a.position).cmp(&(&b.file, b.position)));
    Err(not_compiled(&errors))
}

/// What can be read at `paths`, and what is wrong with the rest.
fn parted(paths: &[impl AsRef<Path>]) -> Result<(Vec<Document>, Vec<LoadError>), Fault> {
    let (mut documents, mut errors) = (Vec::new(), Vec::new());
    for path in paths {
        for file in files(path.as_ref())? {
            match read(&file)? {
                Ok(found) => documents.extend(found),
                Err(found) => errors.extend(found),
            }
        }
    }
    Ok((documents, errors))
}

/// The documents of one file, or what is wrong with its text.
///
/// # Errors
/// When it cannot be read.
pub(super) fn read(file: &Path) -> Result<Result<Vec<Document>, Vec<LoadError>>, Fault> {
    let text = text(file)?;
    let mut documents = manifest::read(&file.display().to_string(), &text);
    if let Err(mistakes) = &mut documents
        && text.contains("{{")
    {
        let last = mistakes.last_mut().into_iter();
        last.for_each(|mistake| mistake.message.push_str("; templates are to be rendered first"));
    }
    Ok(documents)
}

/// The CustomResourceDefinitions at `path`, and nothing else.
///
/// # Errors
/// As [`policies`].
pub(super) fn definitions(path: &Path) -> Result<Vec<Value>, Fault> {
    let documents = documents(&[path])?;
    let is_definition = |document: &Document| {
        document.value.get("kind").and_then(Value::as_str) == Some("CustomResourceDefinition")
    };
    let strangers: Vec<LoadError> = documents
        .iter()
        .filter(|document| !is_definition(document))
        .map(|document| {
            document.mistake("kind: only CustomResourceDefinitions belong here; policies go to --policies")
        })
        .collect();
    if !strangers.is_empty() {
        return Err(not_compiled(&strangers));
    }
    Ok(documents.into_iter().map(|document| document.value).collect())
}

/// The one value that `path` holds, whatever it is.
///
/// # Errors
/// With [`Exit::Usage`] what cannot be read, is no YAML, or is not one document.
pub(super) fn value(path: &Path) -> Result<Value, Fault> {
    let shown = path.display();
    let trees = manifest::parse(&text(path)?).map_err(|error| Fault::usage(format!("{shown}:{error}")))?;
    let mut values = trees.into_iter().map(|tree| tree.value).filter(|value| !value.is_null());
    match (values.next(), values.count()) {
        (Some(value), 0) => Ok(value),
        (None, _) => Err(Fault::usage(format!("`{shown}` is empty"))),
        (Some(_), more) => {
            Err(Fault::usage(format!("`{shown}` has {} documents; one is expected", more + 1)))
        }
    }
}

/// What lets objects of kinds pass that no policy uses; for commands that have the flag.
pub(super) fn with_hint(fault: Fault) -> Fault {
    if !fault.mistakes.iter().any(is_unknown_kind) {
        return fault;
    }
    Fault { message: format!("{}\n{IGNORE_UNKNOWN}", fault.message), ..fault }
}

/// How to get over an [unknown kind](is_unknown_kind).
pub(super) const IGNORE_UNKNOWN: &str = "--ignore-unknown passes over objects of kinds that no policy uses";

/// Whether the mistake is an object of a kind that no policy uses.
pub(super) fn is_unknown_kind(mistake: &LoadError) -> bool {
    mistake.message.ends_with(&LoadErrorKind::UnknownKind(String::new()).to_string())
}

/// One line an error, or as many as its message has.
pub(super) fn not_compiled(errors: &[LoadError]) -> Fault {
    let mut message = String::new();
    for error in errors {
        // Writing to a string cannot fail.
        let _ = write!(message, "{}{error}", if message.is_empty() { "" } else { "\n" });
    }
    Fault { mistakes: errors.to_vec(), ..Fault::not_compiled(message) }
}

/// `path` itself, or the manifests in that folder and below, by name. `./...` stands for `.`, as Go users write it.
///
/// # Errors
/// When there is no such path, or a folder cannot be read.
pub(super) fn files(path: &Path) -> Result<Vec<PathBuf>, Fault> {
    let path = without_recursion(path);
    // Whatever is no folder is read as a file: pipes have names, too, as in `admit check -f <(helm template .)`.
    if is_stdin(path) || (path.exists() && !path.is_dir()) {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    walk(path, &mut Vec::new(), &mut found)?;
    found.sort();
    Ok(found)
}

/// `above` are the folders on the way, by their true names.
fn walk(folder: &Path, above: &mut Vec<PathBuf>, found: &mut Vec<PathBuf>) -> Result<(), Fault> {
    let unreadable = |error| Fault::usage(format!("cannot read `{}`: {error}", folder.display()));
    if above.len() > MAX_DEPTH {
        return Err(Fault::usage(format!("`{}` is more than {MAX_DEPTH} folders deep", folder.display())));
    }
    let own = folder.canonicalize().map_err(unreadable)?;
    // A link to a folder around it leads to nothing new.
    if above.contains(&own) {
        return Ok(());
    }
    above.push(own);
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let hidden = path.file_name().unwrap_or_default().to_string_lossy().starts_with('.');
        if path.is_dir() {
            if !hidden {
                walk(&path, above, found)?;
            }
        } else if is_manifest_name(&path) {
            found.push(path);
        }
    }
    above.pop();
    Ok(())
}

/// Whether a file of that name in a folder is a manifest: YAML or JSON, neither hidden nor kustomize's list of the
/// others.
pub(super) fn is_manifest_name(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let ends = path.extension().is_some_and(|end| end == "yaml" || end == "yml" || end == "json");
    ends && !name.starts_with('.') && !name.starts_with("kustomization.")
}

/// Whether `path` stands for standard input.
pub(super) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The text of a file, or of standard input, within the size of manifests.
///
/// # Errors
/// When it cannot be read, is too large, or is not UTF-8.
pub(super) fn text(file: &Path) -> Result<String, Fault> {
    let shown = file.display();
    let unreadable = |error: io::Error| Fault::usage(format!("cannot read `{shown}`: {error}"));
    let mut bytes = Vec::new();
    let read = if is_stdin(file) {
        io::stdin().take(MAX_FILE + 1).read_to_end(&mut bytes)
    } else {
        fs::File::open(file).map_err(unreadable)?.take(MAX_FILE + 1).read_to_end(&mut bytes)
    };
    let size = read.map_err(unreadable)?;
    if u64::try_from(size).map_or(true, |size| size > MAX_FILE) {
        let problem =
            format!("cannot read `{shown}`: more than {MAX_FILE} bytes are too many for a manifest");
        return Err(Fault::usage(problem));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
        let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
        Fault::usage(format!("{shown}:{line}: not UTF-8: manifests are read in no other encoding"))
    })
}

/// The folder that `folder/...` speaks of.
pub(super) fn without_recursion(path: &Path) -> &Path {
    match path.parent().filter(|_| path.ends_with("...")) {
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        None => path,
    }
}

/// The path without `.`, and without `..` that follow a folder: one file has one name then.
pub(super) fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(normal.components().next_back(), Some(Component::Normal(_))) => {
                normal.pop();
            }
            Component::ParentDir | Component::Normal(_) | Component::RootDir | Component::Prefix(_) => {
                normal.push(part);
            }
        }
    }
    if normal.as_os_str().is_empty() { PathBuf::from(".") } else { normal }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::normal;

    #[test]
    fn one_file_has_one_name() {
        for (path, expected) in
            [("a/../b", "b"), ("./a", "a"), ("../a", "../a"), ("/a/./b", "/a/b"), ("a/..", ".")]
        {
            assert_eq!(normal(Path::new(path)), Path::new(expected), "{path}");
        }
    }
}
