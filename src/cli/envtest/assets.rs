//! Creates the folder with the binaries, which are links to this program. Concurrent calls and users always see a complete
//! folder.

use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use admit_apiserver::Controllers;

use crate::cli::process::Fault;
use crate::cli::whole::{removed, replaced};
use crate::private;

pub(super) const KUBE_APISERVER: &str = "kube-apiserver";
pub(super) const ETCD: &str = "etcd";
const KUBECTL: &str = "kubectl";
/// A file beside the links with the controllers that the API server runs unless a flag says otherwise.
const CONTROLLERS: &str = "controllers";

/// Creates the folder if it is missing. Its name depends on its contents, so that a folder in use never changes.
pub(super) fn folder(asked: Option<&Path>, controllers: &Controllers) -> Result<PathBuf, Fault> {
    let program = env::current_exe()
        .map_err(|error| Fault::internal(format!("cannot find this program's own file: {error}")))?;
    let kubectl = env::var_os("PATH").and_then(|path| on_path(&path, KUBECTL));
    let folder = match asked {
        Some(folder) => std::path::absolute(folder).map_err(Fault::usage)?,
        None => cache()?.join("admit").join("envtest").join(name(&program, kubectl.as_deref(), controllers)),
    };
    made(&folder, &program, kubectl.as_deref(), controllers).map_err(|error| {
        let folder = folder.display();
        Fault::usage(format!(
            "cannot write `{folder}`: {error}; make the folder writable, or choose another with --dir"
        ))
    })?;
    Ok(folder)
}

/// Returns the controllers that were chosen when the folder of `program` was created.
pub(super) fn chosen_controllers(program: &Path) -> Option<String> {
    let folder = program.parent().filter(|folder| !folder.as_os_str().is_empty())?;
    let text = fs::read_to_string(folder.join(CONTROLLERS)).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn cache() -> Result<PathBuf, Fault> {
    let of = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    // The XDG specification has relative paths ignored.
    let cache = of("XDG_CACHE_HOME").filter(|path| path.is_absolute());
    cache.or_else(|| of("HOME").map(|home| home.join(".cache"))).ok_or_else(|| {
        Fault::usage("there is no cache of this user: neither XDG_CACHE_HOME nor HOME is set; name a folder with --dir")
    })
}

fn name(program: &Path, kubectl: Option<&Path>, controllers: &Controllers) -> String {
    let mut hasher = DefaultHasher::new();
    (program, kubectl, controllers.to_string()).hash(&mut hasher);
    format!("{}-{:016x}", env!("CARGO_PKG_VERSION"), hasher.finish())
}

fn made(folder: &Path, program: &Path, kubectl: Option<&Path>, controllers: &Controllers) -> io::Result<()> {
    private::make_folder(folder)?;
    for name in [KUBE_APISERVER, ETCD] {
        link(program, &folder.join(name))?;
    }
    match kubectl {
        Some(kubectl) => link(kubectl, &folder.join(KUBECTL))?,
        None => removed(&folder.join(KUBECTL))?,
    }
    let file = folder.join(CONTROLLERS);
    if controllers.is_empty() {
        return removed(&file);
    }
    let text = format!("{controllers}\n");
    if fs::read_to_string(&file).is_ok_and(|there| there == text) {
        return Ok(());
    }
    replaced(&file, |beside| fs::File::create_new(beside)?.write_all(text.as_bytes()))
}

/// Makes `path` a link to `target`, replacing an old one atomically.
fn link(target: &Path, path: &Path) -> io::Result<()> {
    if fs::read_link(path).is_ok_and(|there| there == target) {
        return Ok(());
    }
    replaced(path, |beside| symlink(target, beside))
}

/// Finds the first program of this name in the folders of `path`.
fn on_path(path: &std::ffi::OsStr, name: &str) -> Option<PathBuf> {
    let folders = env::split_paths(path).filter(|folder| folder.is_absolute());
    let runs = |file: &PathBuf| {
        fs::metadata(file).is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
    };
    folders.map(|folder| folder.join(name)).find(runs)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn two_who_make_the_folder_at_once_find_it_whole() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("cache/envtest");
        let program = Path::new("/bin/sh");
        let some = Controllers::named(["namespace"]).unwrap();
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        made(&folder, program, Some(Path::new("/bin/cat")), &some).unwrap();
                        assert_eq!(fs::read_link(folder.join(ETCD)).unwrap(), program);
                    }
                });
            }
        });
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(chosen_controllers(&folder.join(KUBE_APISERVER)).as_deref(), Some("namespace-controller"));
        made(&folder, program, None, &Controllers::none()).unwrap();
        let mut left: Vec<_> =
            fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, [ETCD, KUBE_APISERVER]);
    }

    #[test]
    fn the_first_kubectl_that_runs_is_taken() {
        let place = tempfile::tempdir().unwrap();
        let folders = ["a", "b", "c"].map(|name| place.path().join(name));
        for folder in &folders {
            fs::create_dir(folder).unwrap();
        }
        fs::write(folders[0].join("kubectl"), "not to be run").unwrap();
        for folder in &folders[1..] {
            symlink("/bin/sh", folder.join("kubectl")).unwrap();
        }
        let path = env::join_paths(&folders).unwrap();
        assert_eq!(on_path(&path, "kubectl"), Some(folders[1].join("kubectl")));
        assert_eq!(on_path(&path, "helm"), None);
    }
}
