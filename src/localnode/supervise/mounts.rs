//! Volumes at their paths: a mount namespace in which the container finds all of this machine, and its volumes over it.
//!
//! The new root is a small file system in memory. Everything at the top of the old root is bound into it; where a path has to
//! be made in a folder of the machine, that folder is replaced by one in memory with all that was in it bound again. So
//! nothing of the machine changes, and no right is needed that the kernel does not give every user.

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

/// What a file system in memory may hold: names of files and folders, and what a program writes beside its volumes.
const SIZE: &str = "mode=755,size=64m";
/// Links that are followed in one path.
const MAX_LINKS: usize = 40;
/// Files and folders of an image's folder; an image as a whole is no folder of programs.
const MAX_LAID: usize = 4_096;

/// Why the container does not find its volumes at their paths.
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

/// Gives this process the order's volumes at their paths. After an error in [`MountError::Namespace`] nothing has changed.
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

/// A user namespace in which this user stays who it is, and may mount.
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
    /// Folders in memory, where paths can be made.
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

    /// Binds a volume to its path.
    fn place(&mut self, volume: &Mount) -> io::Result<()> {
        let target = self.made(&volume.target, volume.source.is_dir())?;
        bind(&volume.source, &target)?;
        self.own.retain(|own| !own.starts_with(&target));
        if volume.read_only { read_only(&target) } else { Ok(()) }
    }

    /// Lays what is in an image's folder over what is there.
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

    /// Where a path is in the new root, if it is there; links are followed inside of that.
    fn resolved(&self, path: &Path) -> Option<PathBuf> {
        let mut rest: Vec<OsString> = parts(path);
        let mut here = self.root.clone();
        let mut links = 0;
        while let Some(part) = rest.pop() {
            (here, links) = self.step(&here, part, &mut rest, links)?;
        }
        here.symlink_metadata().is_ok().then_some(here)
    }

    /// One step down, or along a link.
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

    /// The path in the new root, made where it is missing.
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

    /// Makes a folder of the machine one in which paths can be made.
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

/// The parts of a path, the last one first; `..` takes a part back, as nothing lies above the root.
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

/// Binds each entry of one folder into another. What cannot be bound, because it has gone or belongs to somebody else, is
/// not there for the container.
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

/// Nothing is written there from now on. The kernel does not let go of the flags that the file system has.
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
