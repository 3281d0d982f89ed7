//! Control groups: what holds containers to their limits, where the kernel lets this user make them.
//!
//! Linux has two layouts, and both are used: one tree with all controllers (v2), or a tree for each (v1), as the machine has it. The groups
//! are made beside that of this process, in a folder that bears its number; what an earlier process left is removed.

mod find;

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tracing::debug;

use super::supervise::protocol::Door;

/// Over how many microseconds CPU time is counted, as kubelets have it.
const PERIOD: u64 = 100_000;
/// The least CPU time of a period that the kernel takes.
const LEAST_QUOTA: u64 = 1_000;
/// By which processes are moved into a group.
const PROCESSES: &str = "cgroup.procs";

/// What can be limited.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    Cpu,
    Memory,
}

impl Kind {
    const ALL: [Self; 2] = [Self::Cpu, Self::Memory];

    /// As the kernel and Kubernetes call it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
        }
    }
}

/// The limits of one container.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Bounds {
    /// In thousandths of a CPU.
    pub(super) cpu: Option<u64>,
    /// In bytes.
    pub(super) memory: Option<u64>,
}

/// Which of the trees a group is in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Tree {
    /// That of all controllers.
    Unified,
    Of(Kind),
}

impl Tree {
    fn holds(self, kind: Kind) -> bool {
        self == Self::Unified || self == Self::Of(kind)
    }
}

/// What is written into a file of a group. A file that only some kernels have may be missing.
#[derive(Debug, Eq, PartialEq)]
struct Entry {
    file: &'static str,
    text: String,
    required: bool,
}

/// How a group of `tree` is made to hold to `bounds`.
fn entries(tree: Tree, bounds: Bounds) -> Vec<Entry> {
    let entry = |file, text: &str, required| Entry { file, text: text.to_owned(), required };
    let mut entries = Vec::new();
    if let Some(bytes) = bounds.memory.filter(|_| tree.holds(Kind::Memory)) {
        let bytes = bytes.to_string();
        entries.extend(match tree {
            // A container dies as a whole, not a part of it that the rest waits for; and swap is no memory.
            Tree::Unified => vec![
                entry("memory.max", &bytes, true),
                entry("memory.swap.max", "0", false),
                entry("memory.oom.group", "1", true),
            ],
            Tree::Of(_) => vec![
                entry("memory.limit_in_bytes", &bytes, true),
                entry("memory.memsw.limit_in_bytes", &bytes, false),
            ],
        });
    }
    if let Some(thousandths) = bounds.cpu.filter(|_| tree.holds(Kind::Cpu)) {
        let quota = (thousandths.saturating_mul(PERIOD) / 1_000).max(LEAST_QUOTA).to_string();
        let period = PERIOD.to_string();
        entries.extend(match tree {
            Tree::Unified => vec![entry("cpu.max", &format!("{quota} {period}"), true)],
            Tree::Of(_) => {
                vec![entry("cpu.cfs_period_us", &period, true), entry("cpu.cfs_quota_us", &quota, true)]
            }
        });
    }
    entries
}

/// A folder for the groups of containers.
#[derive(Debug)]
struct Root {
    tree: Tree,
    folder: PathBuf,
    /// The group of this process.
    home: PathBuf,
}

/// The groups of a node. They go with the value.
#[derive(Debug)]
pub(super) struct Groups {
    roots: Vec<Root>,
    /// Why not everything can be limited.
    why: Option<String>,
}

impl Groups {
    /// Looks where this user may make groups.
    pub(super) fn find() -> Self {
        find::find()
    }

    /// As on a machine without any.
    #[cfg(test)]
    pub(super) fn none() -> Self {
        Self { roots: Vec::new(), why: None }
    }

    pub(super) fn holds(&self, kind: Kind) -> bool {
        self.roots.iter().any(|root| root.tree.holds(kind))
    }

    /// Why not everything can be limited, and what helps.
    pub(super) fn remedy(&self) -> String {
        let why = self.why.as_deref().unwrap_or("the kernel has no control groups");
        format!(
            "limits need control groups, and {why}; start `admit up` as root on the machine itself, or by `systemd-run --user --scope`"
        )
    }

    /// A group of its own for a container, with a `name` that no other has. None where nothing of `bounds` can be held.
    ///
    /// # Errors
    /// When the kernel does not take a limit.
    pub(super) fn make(&self, name: &str, bounds: Bounds) -> io::Result<Option<Group>> {
        let mut group = Group { places: Vec::new() };
        for root in &self.roots {
            let entries = entries(root.tree, bounds);
            if entries.is_empty() {
                continue;
            }
            let folder = root.folder.join(name);
            fs::create_dir(&folder).map_err(|error| told(&folder, &error))?;
            group.places.push(Held { tree: root.tree, folder: folder.clone(), home: root.home.clone() });
            for Entry { file, text, required } in entries {
                let file = folder.join(file);
                match put(&file, &text) {
                    Err(error) if required => return Err(told(&file, &error)),
                    Err(error) => debug!(file = %file.display(), %error, "this kernel does not have it"),
                    Ok(()) => {}
                }
            }
        }
        Ok((!group.places.is_empty()).then_some(group))
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        for root in &self.roots {
            find::remove(&root.folder);
        }
    }
}

#[derive(Debug)]
struct Held {
    tree: Tree,
    folder: PathBuf,
    home: PathBuf,
}

/// The group of one start of a container. It goes with the value, when nothing runs in it any more.
#[derive(Debug)]
pub(super) struct Group {
    places: Vec<Held>,
}

impl Group {
    /// By which a supervisor goes into the group, and out of it again.
    pub(super) fn doors(&self) -> Vec<Door> {
        let door =
            |held: &Held| Door { inside: held.folder.join(PROCESSES), back: held.home.join(PROCESSES) };
        self.places.iter().map(door).collect()
    }

    /// Whether the kernel has ended something in it for want of memory.
    pub(super) fn ran_out_of_memory(&self) -> bool {
        self.places.iter().any(|held| {
            let file = if held.tree == Tree::Unified { "memory.events" } else { "memory.oom_control" };
            fs::read_to_string(held.folder.join(file)).is_ok_and(|text| kills(&text) > 0)
        })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for held in &self.places {
            if let Err(error) = fs::remove_dir(&held.folder) {
                debug!(folder = %held.folder.display(), %error, "a control group stays until this process ends");
            }
        }
    }
}

/// How often something was ended for want of memory: `oom_kill` in either layout.
fn kills(text: &str) -> u64 {
    let counts = text.lines().filter_map(|line| line.strip_prefix("oom_kill "));
    counts.filter_map(|count| count.trim().parse::<u64>().ok()).next().unwrap_or(0)
}

/// Files of groups are there already: nothing is made that is not.
fn put(file: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(file)?.write_all(text.as_bytes())
}

fn told(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("`{}`: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(tree: Tree, bounds: Bounds) -> Vec<String> {
        entries(tree, bounds).into_iter().map(|entry| format!("{} {}", entry.file, entry.text)).collect()
    }

    #[test]
    fn limits_are_written_as_each_layout_has_them() {
        let both = Bounds { cpu: Some(1_500), memory: Some(64 << 20) };
        let unified =
            ["memory.max 67108864", "memory.swap.max 0", "memory.oom.group 1", "cpu.max 150000 100000"];
        assert_eq!(lines(Tree::Unified, both), unified);
        let memory = ["memory.limit_in_bytes 67108864", "memory.memsw.limit_in_bytes 67108864"];
        assert_eq!(lines(Tree::Of(Kind::Memory), both), memory);
        let cpu = ["cpu.cfs_period_us 100000", "cpu.cfs_quota_us 150000"];
        assert_eq!(lines(Tree::Of(Kind::Cpu), both), cpu);
        let little = Bounds { cpu: Some(1), memory: None };
        assert_eq!(lines(Tree::Unified, little), ["cpu.max 1000 100000"]);
        assert_eq!(lines(Tree::Unified, Bounds::default()), [""; 0]);
    }

    #[test]
    fn a_group_is_made_with_its_limits_and_goes() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("groups");
        let groups = Groups {
            roots: vec![Root { tree: Tree::Unified, folder: folder.clone(), home: dir.path().to_owned() }],
            why: None,
        };
        // No kernel is behind it, so its files are not there.
        let error = groups.make("a", Bounds { cpu: Some(1), memory: None }).unwrap_err();
        assert!(error.to_string().contains("groups/a`"), "{error}");
        fs::create_dir(&folder).unwrap();
        assert!(groups.make("b", Bounds::default()).unwrap().is_none());
        let error = groups.make("c", Bounds { cpu: Some(1), memory: None }).unwrap_err();
        assert!(error.to_string().contains("c/cpu.max`"), "{error}");
        assert!(!folder.join("c").exists(), "it goes");
        let group = Group {
            places: vec![Held { tree: Tree::Unified, folder: folder.join("d"), home: dir.path().to_owned() }],
        };
        fs::create_dir(folder.join("d")).unwrap();
        assert!(!group.ran_out_of_memory());
        fs::write(folder.join("d/memory.events"), "low 0\noom 3\noom_kill 1\noom_group_kill 1\n").unwrap();
        assert!(group.ran_out_of_memory());
        let door = Door { inside: folder.join("d/cgroup.procs"), back: dir.path().join("cgroup.procs") };
        assert_eq!(group.doors(), [door]);
    }

    #[test]
    fn what_was_ended_is_counted_in_either_layout() {
        assert_eq!(kills("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"), 2);
        assert_eq!(kills("low 0\nhigh 0\nmax 7\noom 1\noom_kill 0\n"), 0);
        assert_eq!(kills(""), 0);
    }
}
