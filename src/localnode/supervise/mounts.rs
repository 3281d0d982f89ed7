//! Mounts volumes at their paths: creates a mount namespace with all of this machine's files and the container's volumes over them.
//!
//! The new root is a small tmpfs. Every entry at the top of the old root is bind-mounted into it; if a path has to
//! be created in a folder of the machine, that folder is replaced by a tmpfs with all of its entries bind-mounted. So
//! no file of the machine changes, and only permissions are needed that the kernel gives every user.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::statvfs::{FsFlags, statvfs};
use nix::unistd::{chdir, chroot, getgid, getuid};

use super::protocol::{Mount, Order};

/// The options of a tmpfs: it holds names of files and folders, and what a program writes outside of its volumes.
const SIZE: &str = "mode=755,size=64m";
/// The most links that are followed in one path.
const MAX_LINKS: usize = 40;
/// The most files and folders of an image's folder, which is meant for programs and not for whole images.
const MAX_LAID: usize = 4_096;

/// Why volumes are not at their paths.
#[derive(Debug, thiserror::Error)]
pub(super) enum MountError {
    #[error("the kernel gives no mount namespace: {0}")]
    Namespace(#[source] io::Error),
    #[error("`{}` cannot be mounted: {source}", path.display())]
    Mount {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("`{}` holds more than {MAX_LAID} files", .0.display())]
    TooMany(PathBuf),
}

/// Mounts the order's volumes for this process. After [`MountError::Namespace`] nothing has changed.
pub(super) fn enter(order: &Order) -> Result<(), MountError> {
    namespace().map_err(MountError::Namespace)?;
    let mut tree = Tree::new(&order.root).map_err(|source| at(&order.root, source))?;
    if let Some(folder) = &order.image {
        tree.lay(folder, Path::new("/"), &mut 0)?;
    }
    for volume in &order.mounts {
        tree.place(volume).map_err(|source| at(&volume.target, source))?;
    }
    let moved = chroot(&order.root).and_then(|()| chdir("/"));
    moved.map_err(|error| at(&order.root, error.into()))
}

fn at(path: &Path, source: io::Error) -> MountError {
    MountError::Mount { path: path.to_owned(), source }
}

/// Creates a user namespace in which this user keeps its ids, and may mount.
fn namespace() -> io::Result<()> {
    let (user, group) = (getuid(), getgid());
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)?;
    Ok(())
}

/// The new root.
struct Tree {
    root: PathBuf,
    /// Folders on a tmpfs, where paths can be created.
    own: BTreeSet<PathBuf>,
}

impl Tree {
    fn new(root: &Path) -> io::Result<Self> {
        let mut tree = Self { root: root.to_owned(), own: BTreeSet::new() };
        in_memory(root)?;
        tree.own.insert(root.to_owned());
        copy(Path::new("/"), root)?;
        Ok(tree)
    }

    /// Bind-mounts a volume at its path.
    fn place(&mut self, volume: &Mount) -> io::Result<()> {
        let target = self.made(&volume.target, volume.source.is_dir())?;
        bind(&volume.source, &target)?;
        self.own.retain(|own| !own.starts_with(&target));
        if volume.read_only { read_only(&target) } else { Ok(()) }
    }

    /// Overlays the contents of an image's folder.
    fn lay(&mut self, folder: &Path, over: &Path, laid: &mut usize) -> Result<(), MountError> {
        let entries = fs::read_dir(folder).map_err(|source| at(folder, source))?;
        for entry in entries.flatten() {
            *laid += 1;
            if *laid > MAX_LAID {
                return Err(MountError::TooMany(folder.to_owned()));
            }
            let (source, target) = (entry.path(), over.join(entry.file_name()));
            let there = self.resolved(&target).is_some_and(|there| there.is_dir());
            if source.is_dir() && there {
                self.lay(&source, &target, laid)?;
            } else if source.exists() {
                let volume = Mount { source, target, read_only: true };
                self.place(&volume).map_err(|source| at(&volume.target, source))?;
            }
        }
        Ok(())
    }

    /// Returns where a path is in the new root, if it exists; links are followed inside the new root.
    fn resolved(&self, path: &Path) -> Option<PathBuf> {
        let mut rest: Vec<OsString> = parts(path);
        let mut here = self.root.clone();
        let mut links = 0;
        while let Some(part) = rest.pop() {
            (here, links) = self.step(&here, part, &mut rest, links)?;
        }
        here.symlink_metadata().is_ok().then_some(here)
    }

    /// Goes one step down, or along a link.
    fn step(
        &self,
        here: &Path,
        part: OsString,
        rest: &mut Vec<OsString>,
        links: usize,
    ) -> Option<(PathBuf, usize)> {
        let next = here.join(part);
        match fs::read_link(&next) {
            Ok(_) if links >= MAX_LINKS => None,
            Ok(to) => {
                let base = if to.is_absolute() { self.root.clone() } else { here.to_owned() };
                let inside = base.strip_prefix(&self.root).ok()?.join(to.strip_prefix("/").unwrap_or(&to));
                rest.extend(parts(&inside));
                Some((self.root.clone(), links + 1))
            }
            Err(_) => Some((next, links)),
        }
    }

    /// Returns the path in the new root, creating it if it is missing.
    fn made(&mut self, path: &Path, is_folder: bool) -> io::Result<PathBuf> {
        let mut rest = parts(path);
        let mut here = self.root.clone();
        let mut links = 0;
        while let Some(part) = rest.pop() {
            let (next, followed) = self
                .step(&here, part, &mut rest, links)
                .ok_or_else(|| io::Error::other("too many symbolic links"))?;
            if followed > links {
                (here, links) = (next, followed);
                continue;
            }
            if next.symlink_metadata().is_err() {
                self.open(&here)?;
                if rest.is_empty() && !is_folder {
                    fs::write(&next, "")?;
                } else {
                    fs::create_dir(&next)?;
                    self.own.insert(next.clone());
                }
            }
            here = next;
        }
        Ok(here)
    }

    /// Replaces a folder of the machine by one in which paths can be created.
    fn open(&mut self, folder: &Path) -> io::Result<()> {
        if self.own.contains(folder) {
            return Ok(());
        }
        let stash = self.root.join(".admit");
        fs::create_dir_all(&stash)?;
        bind(folder, &stash)?;
        in_memory(folder)?;
        copy(&stash, folder)?;
        umount2(&stash, MntFlags::MNT_DETACH)?;
        fs::remove_dir(&stash)?;
        self.own.insert(folder.to_owned());
        Ok(())
    }
}

/// Returns the components of a path, the last one first; `..` removes a component, and has no effect at the root.
fn parts(path: &Path) -> Vec<OsString> {
    let mut parts = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(part) => parts.push(part.to_owned()),
            Component::ParentDir => drop(parts.pop()),
            Component::Prefix(_) | Component::RootDir | Component::CurDir => {}
        }
    }
    parts.reverse();
    parts
}

fn in_memory(path: &Path) -> io::Result<()> {
    Ok(mount(Some("tmpfs"), path, Some("tmpfs"), MsFlags::empty(), Some(SIZE))?)
}

fn bind(source: &Path, target: &Path) -> io::Result<()> {
    Ok(mount(Some(source), target, None::<&str>, MsFlags::MS_BIND | MsFlags::MS_REC, None::<&str>)?)
}

/// Bind-mounts each entry of one folder into another. Entries that fail, because they are gone or belong to somebody else, are
/// missing in the container.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)?.flatten() {
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_symlink() {
            symlink(fs::read_link(&source)?, &target)?;
            continue;
        }
        if kind.is_dir() {
            fs::create_dir(&target)?;
        } else {
            fs::write(&target, "")?;
        }
        let _ = bind(&source, &target);
    }
    Ok(())
}

/// Makes a mount read-only. The kernel requires the flags that the file system has already.
fn read_only(path: &Path) -> io::Result<()> {
    let has = statvfs(path)?.flags();
    let kept = [
        (FsFlags::ST_NOSUID, MsFlags::MS_NOSUID),
        (FsFlags::ST_NODEV, MsFlags::MS_NODEV),
        (FsFlags::ST_NOEXEC, MsFlags::MS_NOEXEC),
        (FsFlags::ST_NOATIME, MsFlags::MS_NOATIME),
        (FsFlags::ST_NODIRATIME, MsFlags::MS_NODIRATIME),
        (FsFlags::ST_RELATIME, MsFlags::MS_RELATIME),
    ];
    let kept = kept.into_iter().filter(|(flag, _)| has.contains(*flag)).map(|(_, flag)| flag);
    let flags = kept.fold(MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY, |all, one| all | one);
    Ok(mount(None::<&str>, path, None::<&str>, flags, None::<&str>)?)
}
