//! Which file uses which: no two files import each other, straight or over others.
//!
//! The head of a folder and the files below it are one room: the head calls them, and they use what it defines. So the
//! uses that go down from a head are not counted; all others are.

use std::collections::{BTreeMap, BTreeSet};

use super::graph::{Sources, module_path};
use super::paths::{Mentions, Path, mentions};

/// Groups of files that import each other still, each by the first of its files in their order. Strike off what no longer
/// does; nothing is added.
const CIRCLES: &[&str] = &[
    // Values hold lists and maps, and these hold values.
    "src/cel/value/constant.rs",
];

/// How often names that are passed on may be followed; more is a name that leads to itself.
const MOST_PASSES: usize = 16;

#[test]
fn no_files_import_each_other() {
    let circles = circles(&Sources::read());
    let known = |circle: &&Circle| !CIRCLES.contains(&circle.first());
    let new: Vec<_> = circles.iter().filter(known).map(Circle::told).collect();
    assert!(
        new.is_empty(),
        "files that import each other; move what they share to where it is at home:\n{}",
        new.join("\n")
    );
    let gone: Vec<_> =
        CIRCLES.iter().filter(|first| !circles.iter().any(|circle| circle.first() == **first)).collect();
    assert!(gone.is_empty(), "no circles any more; strike them off CIRCLES: {gone:?}");
}

/// The files that a file uses, each with the names that it takes from there.
type Uses = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// Files of which each reaches every other one, with what each uses of the others.
struct Circle(Uses);

impl Circle {
    fn first(&self) -> &str {
        self.0.keys().next().map_or("", String::as_str)
    }

    fn told(&self) -> String {
        let mut text = format!("{} files\n", self.0.len());
        for (file, used) in &self.0 {
            for (other, names) in used {
                let names: Vec<_> = names.iter().map(String::as_str).collect();
                text += &format!("    {file} → {other}: {}\n", names.join(", "));
            }
        }
        text
    }
}

fn circles(sources: &Sources) -> Vec<Circle> {
    let mut all = Vec::new();
    for crate_of in Crate::all(sources) {
        let uses = crate_of.uses();
        let reached: BTreeMap<_, _> = uses.keys().map(|file| (file, reached(file, &uses))).collect();
        let mut done = BTreeSet::new();
        for (file, below) in &reached {
            let back = |other: &&&String| reached.get(**other).is_some_and(|below| below.contains(*file));
            let files: BTreeSet<&String> = below.iter().filter(back).copied().collect();
            if files.len() > 1 && done.insert(files.clone()) {
                let within = |file: &String| {
                    let used =
                        uses.get(file).into_iter().flatten().filter(|(other, _)| files.contains(other));
                    (file.clone(), used.map(|(other, names)| (other.clone(), names.clone())).collect())
                };
                all.push(Circle(files.iter().map(|file| within(file)).collect()));
            }
        }
    }
    all
}

fn reached<'a>(file: &String, uses: &'a Uses) -> BTreeSet<&'a String> {
    let mut reached = BTreeSet::new();
    let mut left: Vec<_> = uses.get(file).into_iter().flat_map(BTreeMap::keys).collect();
    while let Some(next) = left.pop() {
        if reached.insert(next) {
            left.extend(uses.get(next).into_iter().flat_map(BTreeMap::keys));
        }
    }
    reached
}

/// The files of one crate, by the modules that they are.
struct Crate {
    files: BTreeMap<Vec<String>, File>,
}

struct File {
    path: String,
    mentions: Mentions,
}

impl Crate {
    fn all(sources: &Sources) -> Vec<Self> {
        let mut crates: BTreeMap<Option<String>, BTreeMap<Vec<String>, File>> = BTreeMap::new();
        for file in sources.files() {
            let package = sources.package_of(&file.path);
            let module = module_path(&file.path, package.as_deref());
            let mentions = mentions(&file.text, &module);
            crates.entry(package).or_default().insert(module, File { path: file.path.clone(), mentions });
        }
        crates.into_values().map(|files| Self { files }).collect()
    }

    fn uses(&self) -> Uses {
        let mut all = Uses::new();
        for file in self.files.values() {
            let used = all.entry(file.path.clone()).or_default();
            for path in &file.mentions.found {
                let Some((home, name)) = self.home(path, MOST_PASSES) else { continue };
                if !is_below(&home, &file.path) {
                    used.entry(home).or_default().insert(name);
                }
            }
        }
        all
    }

    /// The file that defines what the path leads to, and its name there; none for modules and other crates.
    fn home(&self, path: &Path, passes: usize) -> Option<(String, String)> {
        let (root, rest) = path.split_first()?;
        if root != "crate" || passes == 0 {
            return None;
        }
        let depth = (0..=rest.len()).rev().find(|depth| self.files.contains_key(&rest[..*depth]))?;
        let file = self.files.get(&rest[..depth])?;
        let (name, below) = rest[depth..].split_first()?;
        match file.mentions.imports.iter().find(|import| import.name == *name) {
            Some(import) => {
                let path = import.path.iter().chain(below).cloned().collect();
                self.home(&path, passes - 1)
            }
            None => Some((file.path.clone(), name.clone())),
        }
    }
}

/// Whether the file is `head` itself, or belongs to the folder of which that is the head.
fn is_below(path: &str, head: &str) -> bool {
    let folder = ["mod.rs", "lib.rs", "main.rs"].iter().find_map(|name| head.strip_suffix(name));
    let folder = folder.map_or_else(|| format!("{}/", head.trim_end_matches(".rs")), str::to_owned);
    path == head || path.starts_with(&folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(files: &[(&str, &str)]) -> Vec<String> {
        circles(&Sources::of(files)).iter().map(Circle::told).collect()
    }

    #[test]
    fn a_circle_is_found_through_names_that_are_passed_on() {
        let all = told(&[
            ("src/x/lib.rs", "mod a; mod b; pub use b::B; fn main() { a::run(); }"),
            ("src/x/a.rs", "use crate::B;\npub fn run() {} pub struct A;"),
            ("src/x/b/mod.rs", "mod c; pub use c::B;"),
            ("src/x/b/c.rs", "pub struct B(super::super::a::A);"),
        ]);
        let expected = "2 files\n    src/x/a.rs → src/x/b/c.rs: B\n    src/x/b/c.rs → src/x/a.rs: A\n";
        assert_eq!(all, [expected]);
    }

    #[test]
    fn a_head_is_in_one_room_with_its_folder() {
        let below = ("src/x/a/b.rs", "use super::E; pub struct B(E);");
        let head = ("src/x/a/mod.rs", "mod b; use b::B; pub struct E; pub struct A(B);");
        assert!(told(&[("src/x/lib.rs", "mod a;"), head, below]).is_empty());
        let other = ("src/x/c.rs", "pub struct C(crate::a::E);");
        let head = ("src/x/a/mod.rs", "mod b; use crate::c::C; pub struct E; pub struct A(C);");
        assert_eq!(told(&[("src/x/lib.rs", "mod a; mod c;"), head, below, other]).len(), 1);
    }
}
