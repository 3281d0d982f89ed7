//! Finds where this user may create control groups.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tracing::{debug, info};

use super::{Groups, Kind, Root, Tree, put, told};

/// The prefix of the folders of groups, before the id of their process.
const PREFIX: &str = "admit-";
/// How many levels above this process' own group are searched: a group with processes can have no child groups with limits, and at
/// some level the groups of other users begin.
const MAX_UP: usize = 3;
/// The file with the controllers that child groups may use.
const HANDED_ON: &str = "cgroup.subtree_control";

pub(super) fn find() -> Groups {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let name = format!("{PREFIX}{}", std::process::id());
    let mut groups = Groups { roots: Vec::new(), why: None };
    if let Some((mount, home)) = homes(&mounts, &own, Tree::Unified)
        && has_controllers(&home)
    {
        match unified(&mount, &home, &name) {
            Ok(folder) => groups.roots.push(Root { tree: Tree::Unified, folder, home }),
            Err(error) => groups.why = Some(error.to_string()),
        }
    }
    for kind in Kind::ALL {
        if groups.holds(kind) {
            continue;
        }
        let Some((_, home)) = homes(&mounts, &own, Tree::Of(kind)) else { continue };
        let folder = home.join(&name);
        sweep(&home);
        match made(&folder) {
            Ok(()) => groups.roots.push(Root { tree: Tree::Of(kind), folder, home }),
            Err(error) => groups.why = Some(error.to_string()),
        }
    }
    let held = Kind::ALL.map(|kind| (kind.name(), groups.holds(kind)));
    info!(?held, why = groups.why, "limits of containers");
    groups
}

/// Returns the mount point of a hierarchy, and the group of this process in it.
fn homes(mounts: &str, own: &str, tree: Tree) -> Option<(PathBuf, PathBuf)> {
    let listed = |controllers: &str, kind: Kind| controllers.split(',').any(|one| one == kind.name());
    let path = own.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let is_it = match tree {
            Tree::Unified => number == "0" && controllers.is_empty(),
            Tree::Of(kind) => listed(controllers, kind),
        };
        is_it.then_some(path)
    })?;
    mounts.lines().find_map(|line| {
        let (front, behind) = line.split_once(" - ")?;
        let mut front = front.split(' ').skip(3);
        let (root, mount) = (front.next()?, front.next()?);
        let mut behind = behind.split(' ');
        let (kind, options) = (behind.next()?, behind.nth(1)?);
        let is_it = match tree {
            Tree::Unified => kind == "cgroup2",
            Tree::Of(wanted) => kind == "cgroup" && listed(options, wanted),
        };
        // A container sees a part of the hierarchy as its root.
        let below = Path::new(path).strip_prefix(root).or_else(|_| Path::new(path).strip_prefix("/"));
        let mount = PathBuf::from(mount);
        is_it.then_some(())?;
        Some((mount.clone(), mount.join(below.ok()?)))
    })
}

fn names(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

fn has_controllers(home: &Path) -> bool {
    let there = names(&home.join("cgroup.controllers"));
    Kind::ALL.iter().all(|kind| there.iter().any(|name| name == kind.name()))
}

/// Creates a folder in the unified hierarchy with its controllers enabled: below this process' group, or beside it.
fn unified(mount: &Path, home: &Path, name: &str) -> io::Result<PathBuf> {
    let mut last = None;
    for place in home.ancestors().take(MAX_UP).take_while(|place| place.starts_with(mount)) {
        sweep(place);
        match below(place, name) {
            Ok(folder) => return Ok(folder),
            Err(error) => {
                debug!(place = %place.display(), %error, "no control groups here");
                last.get_or_insert(error);
            }
        }
    }
    Err(last.unwrap_or_else(|| io::Error::other("our own group is not in the tree that is mounted")))
}

fn below(place: &Path, name: &str) -> io::Result<PathBuf> {
    hand_on(place)?;
    let folder = place.join(name);
    made(&folder)?;
    match hand_on(&folder) {
        Ok(()) => Ok(folder),
        Err(error) => {
            remove(&folder);
            Err(error)
        }
    }
}

/// Creates a folder. An existing one was left by an earlier process with the same id.
fn made(folder: &Path) -> io::Result<()> {
    if folder.exists() {
        remove(folder);
    }
    fs::create_dir(folder).map_err(|error| told(folder, &error))
}

/// Enables the controllers for children of `place`. This fails for a group with processes.
fn hand_on(place: &Path) -> io::Result<()> {
    let file = place.join(HANDED_ON);
    for kind in Kind::ALL {
        if names(&file).iter().all(|name| name != kind.name()) {
            put(&file, &format!("+{}", kind.name())).map_err(|error| told(&file, &error))?;
        }
    }
    Ok(())
}

/// Removes the folders of processes that have ended.
fn sweep(place: &Path) {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse::<u32>().ok());
        if number.is_some_and(|number| !Path::new("/proc").join(number.to_string()).exists()) {
            remove(&entry.path());
        }
    }
}

/// Removes a folder of groups without processes.
pub(super) fn remove(folder: &Path) {
    let groups = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    for group in groups.filter(|path| path.is_dir()) {
        let _ = fs::remove_dir(group);
    }
    if let Err(error) = fs::remove_dir(folder) {
        debug!(folder = %folder.display(), %error, "control groups stay");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIFIED: &str = "25 1 0:22 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
    const LEGACY: &str = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n\
        32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
        35 31 0:32 /docker/ab /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n\
        41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    fn home(mounts: &str, own: &str, tree: Tree) -> Option<String> {
        homes(mounts, own, tree).map(|(_, home)| home.display().to_string())
    }

    #[test]
    fn the_own_group_is_found_in_either_layout() {
        let own = "0::/user.slice/user-0.slice/session-1.scope\n";
        let found = home(UNIFIED, own, Tree::Unified);
        assert_eq!(found.as_deref(), Some("/sys/fs/cgroup/user.slice/user-0.slice/session-1.scope"));
        assert_eq!(home(UNIFIED, own, Tree::Of(Kind::Memory)), None);
        let own = "5:memory:/docker/ab/sub\n3:cpu,cpuacct:/\n1:name=systemd:/\n0::/x\n";
        let of = |tree| home(LEGACY, own, tree);
        assert_eq!(of(Tree::Of(Kind::Memory)).as_deref(), Some("/sys/fs/cgroup/memory/sub"));
        assert_eq!(of(Tree::Of(Kind::Cpu)).as_deref(), Some("/sys/fs/cgroup/cpu,cpuacct/"));
        assert_eq!(of(Tree::Unified).as_deref(), Some("/sys/fs/cgroup/unified/x"));
        assert_eq!(home("", "", Tree::Unified), None);
    }

    /// Folders with files simulate groups with controllers enabled or not.
    #[test]
    fn groups_are_made_where_controllers_are_handed_on() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("slice/scope");
        fs::create_dir_all(&home).unwrap();
        let of_dead = dir.path().join("slice/admit-4194305/left");
        fs::create_dir_all(&of_dead).unwrap();
        let error = unified(dir.path(), &home, "admit-1").unwrap_err();
        assert!(error.to_string().contains("scope/cgroup.subtree_control`"), "{error}");
        assert!(!dir.path().join("slice/admit-4194305").exists(), "nobody has that number");
        fs::write(dir.path().join("slice").join(HANDED_ON), "cpuset cpu memory pids\n").unwrap();
        // A real kernel would have created the file in the new group.
        let error = unified(dir.path(), &home, "admit-1").unwrap_err();
        assert!(error.to_string().contains("scope/"), "{error}");
        assert!(!dir.path().join("slice/admit-1").exists(), "what cannot be used goes");
    }
}
