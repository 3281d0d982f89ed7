//! Loads manifests from files and folders, for every command that decides about objects.

use std::fmt::Write as _;
use std::path::Path;
use std::time::SystemTime;

use admit_apimachinery::yaml;
use admit_language::lint::of_template;
pub(super) use admit_language::lint::{IGNORE_UNKNOWN, is_no_manifest, is_unknown_kind, parse};
use admit_policy::manifest::{self, Document, LoadError};
use admit_policy::{LoadOptions, PolicySet};

use serde_json::Value;

pub(super) use super::paths::{
    Found, files, is_manifest_name, is_stdin, is_suite_name, normal, text, without_recursion,
};
use super::process::{self, Fault};

/// Loads the policies, CRDs and params at `paths`.
///
/// # Errors
/// With [`Exit::Usage`] when a file cannot be read, with [`Exit::NotCompiled`] all mistakes that prevent compilation.
pub(super) fn policies(paths: &[impl AsRef<Path>]) -> Result<PolicySet, Fault> {
    policies_with(paths, LoadOptions::default())
}

/// Like [`policies`], with `options` that relax checks.
///
/// # Errors
/// As [`policies`].
pub(super) fn policies_with(paths: &[impl AsRef<Path>], options: LoadOptions) -> Result<PolicySet, Fault> {
    let mut texts = Vec::new();
    for path in paths {
        for file in files(path.as_ref())? {
            texts.push((file.path.display().to_string(), file.text()?));
        }
    }
    let texts = texts.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    PolicySet::load_files(texts, options).map_err(|errors| not_compiled(&errors))
}

/// Returns the set with the current time, since exceptions expire.
pub(super) fn as_of_now(set: PolicySet) -> PolicySet {
    set.at(SystemTime::now())
}

/// Warns about exceptions that have expired.
pub(super) fn tell_ended(set: &PolicySet) {
    let now = SystemTime::now();
    for exception in set.exceptions().filter(|exception| exception.has_ended(now)) {
        let (name, until) = (exception.name(), exception.until());
        process::warn(&format!("the exception `{name}` ended at {until} and lets nothing through any more"));
    }
}

/// Reads the documents of every manifest at `paths`, in order of file names. If a file cannot be parsed, the mistakes in the others
/// are reported as well.
///
/// # Errors
/// As [`policies`].
pub(super) fn policy_documents(paths: &[impl AsRef<Path>]) -> Result<Vec<Document>, Fault> {
    let mut texts = Vec::new();
    for path in paths {
        for file in files(path.as_ref())? {
            let (name, text) = (file.path.display().to_string(), file.text()?);
            // An unparsable suite in a folder of policies is ignored here; it is reported when it is run.
            let is_beside = !file.named && is_suite_name(&file.path);
            if !is_beside || parse(&name, &text).is_ok() {
                texts.push((name, text));
            }
        }
    }
    policies_of(texts.iter().map(|(name, text)| (name.as_str(), text.as_str())))
}

/// Like [`policies`], from manifests in memory, each with its file name.
///
/// # Errors
/// All mistakes that prevent compilation.
pub(super) fn policies_of<'t>(
    texts: impl Iterator<Item = (&'t str, &'t str)>,
) -> Result<Vec<Document>, Fault> {
    let (mut documents, mut errors) = (Vec::new(), Vec::new());
    for (name, text) in texts {
        match parse(name, text) {
            Ok(found) => documents.extend(found),
            Err(found) => errors.extend(found),
        }
    }
    if errors.is_empty() {
        return Ok(documents);
    }
    // The params of policies that cannot be parsed would be reported as unused.
    let options = LoadOptions { ignore_unknown: true };
    errors.extend(PolicySet::load_with(&documents, options).err().unwrap_or_default());
    errors.sort_by(|a, b| (&a.file, a.position).cmp(&(&b.file, b.position)));
    Err(not_compiled(&errors))
}

/// What was skipped in folders.
#[derive(Debug, Default)]
pub(super) struct Beside {
    /// Files that cannot be read, with the reason.
    pub(super) unread: Vec<String>,
    /// The locations of documents that are not manifests, such as the values of charts.
    pub(super) no_manifests: Vec<String>,
}

/// Calls `take` with each document of every manifest at `paths`, in order of file names, without holding all of them
/// in memory. Returns what was passed over in folders.
///
/// # Errors
/// As [`policies`], and the errors of `take`.
pub(super) fn each_document(
    paths: &[impl AsRef<Path>],
    take: &mut impl FnMut(Document) -> Result<(), Fault>,
) -> Result<Beside, Fault> {
    let (mut mistakes, mut beside) = (Vec::new(), Beside::default());
    for path in paths {
        for file in files(path.as_ref())? {
            let name = file.path.display().to_string();
            let text = match file.long_text() {
                Ok(text) => text,
                Err(fault) if file.named => return Err(fault),
                Err(fault) => {
                    beside.unread.push(fault.message);
                    continue;
                }
            };
            mistakes.extend(each_of(&name, &text, &mut |document| {
                if file.named || !is_no_manifest(&document.value) {
                    return take(document);
                }
                beside.no_manifests.push(format!("{name}:{}", document.here().line));
                Ok(())
            })?);
        }
    }
    if mistakes.is_empty() { Ok(beside) } else { Err(not_compiled(&mistakes)) }
}

impl Beside {
    /// Prints a warning for each skipped file.
    pub(super) fn tell(&self) {
        self.unread.iter().for_each(|unread| process::warn(unread));
        if let [first, more @ ..] = self.no_manifests.as_slice() {
            let more = match more.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            process::warn(&format!(
                "passed over what is no manifest, without `apiVersion` and `kind`: {first}{more}"
            ));
        }
    }
}

/// The most mistakes of one file that are reported: it may have very many documents.
const MAX_MISTAKES: usize = 1_000;

/// Like [`each_document`], for one manifest; returns its mistakes, up to a thousand.
///
/// # Errors
/// The errors of `take`.
pub(super) fn each_of(
    name: &str,
    text: &str,
    take: &mut impl FnMut(Document) -> Result<(), Fault>,
) -> Result<Vec<LoadError>, Fault> {
    let mut mistakes: Vec<LoadError> = Vec::new();
    for part in manifest::parts(name, text) {
        match part {
            Ok(part) => {
                let room = MAX_MISTAKES.saturating_sub(mistakes.len());
                mistakes.extend(part.duplicates.into_iter().take(room));
                part.documents.into_iter().try_for_each(&mut *take)?;
            }
            // The text is not YAML, so warnings about duplicate keys are dropped.
            Err(mistake) => mistakes = vec![mistake],
        }
    }
    Ok(of_template(mistakes, text))
}

/// Reads the single YAML or JSON value in the file at `path`.
///
/// # Errors
/// With [`Exit::Usage`] when the file cannot be read, is not YAML, or has not exactly one document.
pub(super) fn value(path: &Path) -> Result<Value, Fault> {
    let shown = path.display();
    let trees = yaml::parse_values(&text(path)?).map_err(|error| Fault::usage(format!("{shown}:{error}")))?;
    let mut values = trees.into_iter().map(|tree| tree.value).filter(|value| !value.is_null());
    match (values.next(), values.count()) {
        (Some(value), 0) => Ok(value),
        (None, _) => Err(Fault::usage(format!("`{shown}` is empty"))),
        (Some(_), more) => {
            Err(Fault::usage(format!("`{shown}` has {} documents; one is expected", more + 1)))
        }
    }
}

/// Adds a hint about `--ignore-unknown` to errors about unknown kinds; for commands with that flag.
pub(super) fn with_hint(fault: Fault) -> Fault {
    if !fault.mistakes.iter().any(is_unknown_kind) {
        return fault;
    }
    Fault { message: format!("{}\n{IGNORE_UNKNOWN}", fault.message), ..fault }
}

/// Creates the fault for errors in manifests, with their messages one after the other.
pub(super) fn not_compiled(errors: &[LoadError]) -> Fault {
    let mut message = String::new();
    for error in errors {
        // Writing to a string cannot fail.
        let _ = write!(message, "{}{error}", if message.is_empty() { "" } else { "\n" });
    }
    Fault { mistakes: errors.to_vec(), ..Fault::not_compiled(message) }
}
