//! Creates control groups, which enforce the limits of containers if the kernel permits this user to create them.
//!
//! Linux has two layouts, and both are supported: one hierarchy with all controllers (v2), or one for each controller (v1). The groups
//! are created beside that of this process, in a folder named after its process id; leftovers of earlier processes are removed.

mod find;

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tracing::debug;

use super::supervise::protocol::Door;

/// The period of the CPU quota in microseconds, that of kubelets.
const PERIOD: u64 = 100_000;
/// The least CPU quota per period that the kernel accepts.
const LEAST_QUOTA: u64 = 1_000;
/// The file to which processes are written to move them into a group.
const PROCESSES: &str = "cgroup.procs";

/// A resource that can be limited.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    Cpu,
    Memory,
}

impl Kind {
    const ALL: [Self; 2] = [Self::Cpu, Self::Memory];

    /// Returns the name in the kernel and in Kubernetes.
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
    /// In thousandths of a CPU (millicores).
    pub(super) cpu: Option<u64>,
    /// In bytes.
    pub(super) memory: Option<u64>,
}

/// The hierarchy of a group.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Tree {
    /// The unified hierarchy with all controllers.
    Unified,
    Of(Kind),
}

impl Tree {
    fn holds(self, kind: Kind) -> bool {
        self == Self::Unified || self == Self::Of(kind)
    }
}

/// A value to write into a file of a group. A file that only some kernels have is not required.
#[derive(Debug, Eq, PartialEq)]
struct Entry {
    file: &'static str,
    text: String,
    required: bool,
}

/// Returns the values that enforce `bounds` in a group of `tree`.
fn entries(tree: Tree, bounds: Bounds) -> Vec<Entry> {
    let entry = |file, text: &str, required| Entry { file, text: text.to_owned(), required };
    let mut entries = Vec::new();
    if let Some(bytes) = bounds.memory.filter(|_| tree.holds(Kind::Memory)) {
        let bytes = bytes.to_string();
        entries.extend(match tree {
            // All processes of a container are killed together, so that none waits for a dead one; and swap is disabled.
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

/// The control groups of a node, removed when this is dropped.
#[derive(Debug)]
pub(super) struct Groups {
    roots: Vec<Root>,
    /// Why not all resources can be limited.
    why: Option<String>,
}

impl Groups {
    /// Finds where this user may create groups.
    pub(super) fn find() -> Self {
        find::find()
    }

    /// Simulates a machine without control groups.
    #[cfg(test)]
    pub(super) fn none() -> Self {
        Self { roots: Vec::new(), why: None }
    }

    pub(super) fn holds(&self, kind: Kind) -> bool {
        self.roots.iter().any(|root| root.tree.holds(kind))
    }

    /// Returns why not all resources can be limited, and what helps.
    pub(super) fn remedy(&self) -> String {
        let why = self.why.as_deref().unwrap_or("the kernel has no control groups");
        format!(
            "limits need control groups, and {why}; start `admit up` as root on the machine itself, or by `systemd-run --user --scope`"
        )
    }

    /// Creates a group for a container, with a unique `name`. None if no part of `bounds` can be enforced.
    ///
    /// # Errors
    /// When the kernel rejects a limit.
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

/// The group of one run of a container. It is removed when this is dropped, after its processes have ended.
#[derive(Debug)]
pub(super) struct Group {
    places: Vec<Held>,
}

impl Group {
    /// Returns the files by which a supervisor enters the group and leaves it.
    pub(super) fn doors(&self) -> Vec<Door> {
        let door =
            |held: &Held| Door { inside: held.folder.join(PROCESSES), back: held.home.join(PROCESSES) };
        self.places.iter().map(door).collect()
    }

    /// Whether the kernel has killed a process in it because of the memory limit.
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

/// Parses how many processes were killed because of the memory limit: `oom_kill` in both layouts.
fn kills(text: &str) -> u64 {
    let counts = text.lines().filter_map(|line| line.strip_prefix("oom_kill "));
    counts.filter_map(|count| count.trim().parse::<u64>().ok()).next().unwrap_or(0)
}

/// Writes a file of a group, which must exist: the kernel creates these files.
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
        // The test folder is not a real hierarchy, so the files are missing.
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
