//! `admit init`: writes a test suite that passes, for its author to extend.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use admit_apimachinery::yaml;
use admit_apiserver::BuiltinKinds;
use admit_policy::{LoadOptions, PolicySet, init};
use clap::Args;

use super::process::{self, Fault};
use super::render;
use super::{Exit, conversion, load};

/// Arguments of `admit init`.
#[derive(Debug, Args)]
#[command(after_help = "\
The suite has a case for a new object of every CRD, for an object that does not change, and for the first request that \
each policy matches; each case expects the current outcome. Change the objects and the expectations to your needs.

Examples:
  admit init crd.yaml && admit test crd.suite.yaml
  admit init policy.yaml binding.yaml --suite tests/policy.suite.yaml
  admit init policies/ --suite -

Exit codes: 0 written, 2 usage, unreadable input, or the suite exists already, 3 a policy or CRD does not compile, 4 \
internal error")]
pub(super) struct InitArgs {
    /// CRDs, policies and bindings: files or folders
    #[arg(required = true)]
    paths: Vec<PathBuf>,

    /// File to write the suite to, `-` for standard output [default: `NAME.suite.yaml` beside the first path]
    #[arg(long, value_name = "FILE")]
    suite: Option<PathBuf>,

    /// Skip objects of kinds that no policy uses
    #[arg(long)]
    ignore_unknown: bool,

    /// Overwrite an existing suite
    #[arg(long)]
    force: bool,
}

impl InitArgs {
    pub(super) fn run(self) -> Exit {
        match self.write() {
            Ok(()) => Exit::Expected,
            Err(fault) => process::fail(&fault),
        }
    }

    fn write(&self) -> Result<(), Fault> {
        if self.paths.iter().any(|path| load::is_stdin(path)) {
            return Err(Fault::usage("a suite names the files that it tests: standard input has no name"));
        }
        let options = LoadOptions { ignore_unknown: self.ignore_unknown };
        let set = load::policies_with(&self.paths, options).map_err(load::with_hint)?;
        let set = set.converting(conversion::offline).knowing(&BuiltinKinds);
        let target = self.suite.clone().unwrap_or_else(|| self.beside());
        let folder = if load::is_stdin(&target) { Path::new("") } else { parent(&target) };
        let text = self.text(&set, folder)?;
        if load::is_stdin(&target) {
            render::print(&text);
            return Ok(());
        }
        let shown = target.display();
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create(self.force)
            .create_new(!self.force)
            .truncate(true)
            .open(&target)
            .map_err(|error| match error.kind() {
                std::io::ErrorKind::AlreadyExists => {
                    Fault::usage(format!("`{shown}` is there already; --force writes over it"))
                }
                _ => Fault::usage(format!("cannot write `{shown}`: {error}")),
            })?;
        file.write_all(text.as_bytes())
            .map_err(|error| Fault::usage(format!("cannot write `{shown}`: {error}")))?;
        render::print(&format!("wrote {shown}; run it with: admit test {shown}\n"));
        Ok(())
    }

    fn text(&self, set: &PolicySet, folder: &Path) -> Result<String, Fault> {
        let documents: Vec<String> = self.paths.iter().map(|path| relative(path, folder)).collect();
        let suite = init::suite(set, &documents)
            .ok_or_else(|| Fault::usage("there is no CRD and no policy to test"))?;
        let yaml = yaml::write(&suite);
        Ok(format!(
            "# Each case expects what happens now: change the objects, and say what you expect of them. Try an object\n\
             # that breaks each rule (deny), and one that just keeps it (allow). `admit test -v` runs the suite.\n{yaml}"
        ))
    }

    fn beside(&self) -> PathBuf {
        let Some(first) = self.paths.first() else { return PathBuf::from("sample.suite.yaml") };
        let first = load::without_recursion(first);
        if first.is_dir() {
            let name = first.canonicalize().ok().and_then(|path| path.file_name().map(ToOwned::to_owned));
            let name = name.unwrap_or_else(|| "policies".into());
            return first.join(format!("{}.suite.yaml", name.to_string_lossy()));
        }
        let stem = first.file_stem().unwrap_or_default().to_string_lossy();
        parent(first).join(format!("{stem}.suite.yaml"))
    }
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

/// Returns `path` relative to `folder`, or an absolute path if the two have no folder in common.
fn relative(path: &Path, folder: &Path) -> String {
    let path = load::without_recursion(path);
    let full = |path: &Path| {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        path.canonicalize().unwrap_or_else(|_| path.to_owned())
    };
    let (path, folder) = (full(path), full(folder));
    let common = path.components().zip(folder.components()).take_while(|(a, b)| a == b).count();
    let up = folder.components().skip(common).map(|_| Path::new("..").as_os_str());
    let down = path.components().skip(common).map(std::path::Component::as_os_str);
    let relative: PathBuf = up.chain(down).collect();
    if relative.as_os_str().is_empty() { ".".to_owned() } else { relative.display().to_string() }
}
