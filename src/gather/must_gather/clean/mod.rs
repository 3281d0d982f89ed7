//! Obfuscates a folder by rules: leaves out what they omit, and replaces what they hide, in paths and in contents. Writes a log
//! of both that reveals nothing of it.
//!
//! ```text
//! folder ──walk──► left out? ──no──► contents, a megabyte at a time ──► scratch file ──► Sink: an archive, or another folder
//! ```
//!
//! Files that cannot be inspected are left out: archives in the folder, and binary files. Compressed logs are unpacked. One
//! file at a time is also on disk, and only some megabytes of it are in memory.

mod kinds;
mod omit;
mod sink;
mod text;

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::fs::{self, File, Metadata};
use std::io::{self, Seek as _, Write as _};
use std::path::{Component, Path, PathBuf};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

use self::omit::Omission;
pub use self::sink::{Archive, Folder, Sink};
use self::text::{Form, Head};
use super::bundle::{EFFORT, below, open};
use crate::gather::obfuscate::PatternError;
use crate::gather::obfuscate::replace::{Counts, Replacer};
use crate::gather::obfuscate::rules::Ruleset;

/// The name of the log in the resulting folder.
pub const LOG: &str = "obfuscation.log";
/// The largest log in bytes; further entries are only counted.
const MAX_LOG: usize = 8 * 1024 * 1024;
/// Why a folder was not obfuscated. No part of it may be published then.
#[derive(Debug, thiserror::Error)]
pub enum CleanError {
    #[error("{0}")]
    Pattern(#[from] PatternError),
    /// The path is most likely wrong.
    #[error("the folder is empty")]
    Empty,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// What was done to the folder.
#[derive(Debug, Default)]
pub struct Cleaned {
    pub files: u64,
    pub left_out: u64,
    pub replaced: Counts,
}

/// Prepared rules for one folder.
#[derive(Debug)]
pub struct Cleaner {
    replacer: Replacer,
    omission: Omission,
    log: String,
    untold: u64,
    cleaned: Cleaned,
    /// The paths that exist in the result, each with the highest number that was appended to it.
    taken: BTreeMap<PathBuf, u32>,
}

impl Cleaner {
    /// Prepares `rules`; `domains` are those of the cluster, for rules that name none.
    ///
    /// # Errors
    /// [`PatternError`] for an invalid pattern.
    pub fn new(rules: &Ruleset, domains: &[String]) -> Result<Self, PatternError> {
        Ok(Self {
            replacer: Replacer::new(&rules.replace, domains)?,
            omission: Omission::new(&rules.omit)?,
            log: format!("obfuscated by admit {}\n", env!("CARGO_PKG_VERSION")),
            untold: 0,
            cleaned: Cleaned::default(),
            taken: BTreeMap::new(),
        })
    }

    /// Passes the obfuscated contents of `folder` to `sink`. `scratch` is an empty file that nobody else uses.
    ///
    /// # Errors
    /// The errors of the sink and the scratch file; and when `folder` is not a folder.
    pub fn clean(
        &mut self,
        folder: &Path,
        scratch: &mut File,
        sink: &mut impl Sink,
    ) -> Result<(), CleanError> {
        let folder = folder.canonicalize()?;
        // The folder itself must be readable: an empty archive would look like one of an empty cluster.
        let mut left = below(&folder, Path::new(""))?;
        if left.is_empty() {
            return Err(CleanError::Empty);
        }
        sink.folder(Path::new(""), &fs::symlink_metadata(&folder)?)?;
        // Folders come first and links last, so that nothing is written through a link, whatever paths the rules make.
        let (mut files, mut links) = (Vec::new(), Vec::new());
        while let Some((path, name)) = left.pop() {
            match fs::symlink_metadata(&path) {
                Err(error) => self.leave_out(&name, error),
                Ok(known) if known.is_dir() => {
                    let shown = self.shown(&name);
                    sink.folder(&shown, &known).map_err(|error| at(&shown, &error))?;
                    self.taken.entry(shown).or_insert(1);
                    match below(&path, &name) {
                        Ok(entries) => left.extend(entries),
                        Err(error) => self.leave_out(&name, error),
                    }
                }
                Ok(known) if known.is_symlink() => links.push((name, known)),
                Ok(known) if known.is_file() => files.push(name),
                Ok(_) => self.leave_out(&name, "neither file, folder nor link"),
            }
        }
        // A folder may have the name of the log; no file gets it.
        let log = self.alone(PathBuf::from(LOG));
        for name in files {
            self.file(&folder.join(&name), &name, scratch, sink)?;
        }
        for (name, known) in links {
            self.link(&folder.join(&name), &name, &known, sink)?;
        }
        self.conclude(&log, scratch, sink)
    }

    /// Returns what was done, and the originals with their replacements, which receivers of the archive must not get.
    pub fn finish(self) -> (Cleaned, BTreeMap<String, String>) {
        (self.cleaned, self.replacer.into_table())
    }

    fn tell(&mut self, line: impl Display) {
        if self.log.len() > MAX_LOG {
            self.untold += 1;
            return;
        }
        // Writing to a string cannot fail.
        let _ = writeln!(self.log, "{line}");
    }

    fn leave_out(&mut self, name: &Path, reason: impl Display) {
        self.cleaned.left_out += 1;
        let shown = self.shown(name);
        self.tell(format!("left out: {}: {reason}", shown.display()));
    }

    /// Returns the obfuscated form of a path, which stays below the folder whatever the replacement is.
    fn shown(&mut self, name: &Path) -> PathBuf {
        let replaced = self.replacer.path(&name.to_string_lossy());
        let parts = Path::new(&replaced).components();
        parts
            .filter_map(|part| match part {
                Component::Normal(part) => Some(part),
                _ => None,
            })
            .collect()
    }

    /// Returns the obfuscated form of a file's path, which is unique.
    fn shown_alone(&mut self, name: &Path) -> PathBuf {
        let shown = self.shown(name);
        self.alone(shown)
    }

    /// Takes a path of the result, or the first free one with a number appended.
    fn alone(&mut self, shown: PathBuf) -> PathBuf {
        let mut number = self.taken.get(&shown).copied().unwrap_or_default();
        let mut alone = shown.clone();
        while self.taken.contains_key(&alone) {
            number = number.saturating_add(1);
            alone.clone_from(&shown);
            alone.as_mut_os_string().push(format!("~{number}"));
        }
        self.taken.insert(shown, number.max(1));
        self.taken.entry(alone.clone()).or_insert(1);
        alone
    }

    fn link(
        &mut self,
        path: &Path,
        name: &Path,
        known: &Metadata,
        sink: &mut impl Sink,
    ) -> Result<(), CleanError> {
        if self.omission.links {
            self.leave_out(name, "the rules leave out links");
            return Ok(());
        }
        let target = match fs::read_link(path) {
            Ok(target) => PathBuf::from(self.replacer.path(&target.to_string_lossy())),
            Err(error) => {
                self.leave_out(name, error);
                return Ok(());
            }
        };
        let shown = self.shown_alone(name);
        match within(&target, shown.components().count().saturating_sub(1)) {
            None => self.leave_out(name, "a link that leads out of the folder"),
            Some(target) if sink.link(&shown, known, &target).map_err(|error| at(&shown, &error))? => {}
            Some(_) => self.leave_out(name, "a link below another link"),
        }
        Ok(())
    }

    fn file(
        &mut self,
        path: &Path,
        name: &Path,
        scratch: &mut File,
        sink: &mut impl Sink,
    ) -> Result<(), CleanError> {
        if self.omission.names(name) {
            self.leave_out(name, "the rules leave it out by its path");
            return Ok(());
        }
        let (mut file, known) = match open(path) {
            Ok(opened) => opened,
            Err(error) => {
                self.leave_out(name, error);
                return Ok(());
            }
        };
        let form = match looked_at(&mut file) {
            Ok(Ok(form)) => form,
            Ok(Err(reason)) => {
                self.leave_out(name, reason);
                return Ok(());
            }
            Err(error) => {
                self.leave_out(name, error);
                return Ok(());
            }
        };
        match self.held(&mut file, form, name) {
            Ok(None) => {}
            Ok(Some(reason)) => {
                self.leave_out(name, reason);
                return Ok(());
            }
            Err(error) => {
                self.leave_out(name, error);
                return Ok(());
            }
        }
        let before = self.replacer.counts().clone();
        file.rewind()?;
        scratch.set_len(0)?;
        scratch.rewind()?;
        let broken = self.rewrite(file, form, scratch)?;
        let shown = self.shown_alone(name);
        if let Some(error) = broken {
            self.tell(format!("incomplete: {}: {error}", shown.display()));
        }
        self.tell_replaced(&shown, &before);
        let length = scratch.stream_position()?;
        scratch.rewind()?;
        sink.file(&shown, &known, scratch, length).map_err(|error| at(&shown, &error))?;
        self.cleaned.files += 1;
        Ok(())
    }

    /// Returns why the rules omit a file because of its objects, if they do.
    fn held(&self, file: &mut File, form: Form, name: &Path) -> io::Result<Option<String>> {
        if !self.omission.looks_into(name) {
            return Ok(None);
        }
        file.rewind()?;
        let objects = match form {
            Form::Text => kinds::objects(file)?,
            Form::Gzip => kinds::objects(&mut MultiGzDecoder::new(file))?,
        };
        Ok(self.omission.holds(name, &objects))
    }

    /// Writes the file to `scratch` with replacements; returns the read error that ended it early, if any.
    fn rewrite(&mut self, file: File, form: Form, scratch: &mut File) -> io::Result<Option<io::Error>> {
        match form {
            Form::Text => text::rewrite(file, scratch, &mut self.replacer),
            Form::Gzip => {
                let mut out = GzEncoder::new(&mut *scratch, Compression::new(EFFORT));
                let broken = text::rewrite(MultiGzDecoder::new(file), &mut out, &mut self.replacer)?;
                out.finish()?;
                Ok(broken)
            }
        }
    }

    fn tell_replaced(&mut self, shown: &Path, before: &Counts) {
        let counts = self.replacer.counts();
        let new = counts.iter().map(|(kind, now)| (kind, now - before.get(kind).copied().unwrap_or(0)));
        let told: Vec<String> =
            new.filter(|(_, count)| *count > 0).map(|(kind, count)| format!("{kind} {count}")).collect();
        if !told.is_empty() {
            self.tell(format!("replaced: {}: {}", shown.display(), told.join(", ")));
        }
    }

    fn conclude(&mut self, log: &Path, scratch: &mut File, sink: &mut impl Sink) -> Result<(), CleanError> {
        self.cleaned.replaced = self.replacer.counts().clone();
        if self.untold > 0 {
            let _ = writeln!(self.log, "and {} lines more", self.untold);
        }
        let counts: Vec<String> =
            self.cleaned.replaced.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        let Cleaned { files, left_out, .. } = &self.cleaned;
        let _ = writeln!(self.log, "{files} files, {left_out} left out; replaced: {}", counts.join(", "));
        scratch.set_len(0)?;
        scratch.rewind()?;
        scratch.write_all(self.log.as_bytes())?;
        let known = scratch.metadata()?;
        scratch.rewind()?;
        let length = self.log.len() as u64;
        sink.file(log, &known, scratch, length).map_err(|error| at(log, &error))?;
        Ok(sink.finish()?)
    }
}

/// Returns the form of a file, or why it cannot be inspected.
fn looked_at(file: &mut File) -> io::Result<Result<Form, &'static str>> {
    let outer = Head::read(file)?;
    let form = match outer.form() {
        Ok(Form::Gzip) => {
            file.rewind()?;
            match Head::read(&mut MultiGzDecoder::new(&mut *file))?.form() {
                Ok(Form::Text) => Ok(Form::Gzip),
                Ok(Form::Gzip) => Err("compressed twice, which is not looked into"),
                Err(reason) => Err(reason),
            }
        }
        form => form,
    };
    Ok(form)
}

/// Returns an error of the output with the path in it, which is an obfuscated one.
fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Returns a relative target with its steps upwards in front, or None if they lead out of a folder in which the link is
/// `depth` levels below the root. A step upwards behind a name could start from wherever a link of that name leads.
fn within(target: &Path, depth: usize) -> Option<PathBuf> {
    let (mut up, mut names) = (0_usize, Vec::new());
    for part in target.components() {
        match part {
            Component::Normal(name) => names.push(name),
            Component::ParentDir if names.pop().is_none() => up += 1,
            Component::ParentDir | Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    let mut within: PathBuf = std::iter::repeat_n("..", up).collect();
    within.extend(names);
    if within.as_os_str().is_empty() {
        within.push(".");
    }
    (up <= depth).then_some(within)
}

#[cfg(test)]
mod tests;
