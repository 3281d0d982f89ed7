//! Which module uses which: the sources as they are, seen through a table of modules.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::heads::Table;
use super::paths::{Path, named, re_exports};
use super::{HEADS, is_test};
use crate::repository::{SourceFile, root, rust_files};

/// The crate roots and heads of folders, which stand in no table of their own.
const ROOTS: [&str; 3] = ["lib.rs", "main.rs", "mod.rs"];

/// The sources of all packages, without what is a test alone.
pub(crate) struct Sources {
    files: Vec<SourceFile>,
    /// The folders in `src` that are packages.
    packages: BTreeSet<String>,
}

impl Sources {
    pub(crate) fn read() -> Self {
        let packages = fs::read_dir(root().join("src")).unwrap().map(|entry| entry.unwrap().path());
        let packages = packages.filter(|path| path.join("Cargo.toml").is_file());
        Self {
            files: rust_files("src").into_iter().filter(|file| !is_test(&file.path)).collect(),
            packages: packages.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect(),
        }
    }

    /// The tables of all heads that have to hold one.
    pub(crate) fn tables(&self) -> Vec<Table> {
        let outer = self.modules("src");
        let controllers =
            self.modules("src/controllers").into_iter().map(|name| format!("src/controllers/{name}/mod.rs"));
        let heads = HEADS.iter().map(|head| (*head).to_owned()).chain(controllers);
        let tables = heads.map(|head| Table::read(&head, self.text(&head), &outer));
        let (tables, wrong): (Vec<_>, Vec<_>) = tables.partition(Result::is_ok);
        let wrong: Vec<_> = wrong.into_iter().filter_map(Result::err).collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        tables.into_iter().filter_map(Result::ok).collect()
    }

    /// All of them, in the order of their paths.
    pub(crate) fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// Sources of the package `x` that a test makes up.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let file =
            |(path, text): &(&str, &str)| SourceFile { path: (*path).to_owned(), text: (*text).to_owned() };
        Self { files: files.iter().map(file).collect(), packages: ["x".to_owned()].into() }
    }

    fn text(&self, path: &str) -> &str {
        let file = self.files.iter().find(|file| file.path == path);
        &file
            .unwrap_or_else(|| {
                panic!("{path}: no such file; correct HEADS in tests/product/architecture/mod.rs")
            })
            .text
    }

    /// The modules that stand directly in the folder; packages among them by the name of their crate.
    pub(crate) fn modules(&self, folder: &str) -> BTreeSet<String> {
        self.files.iter().filter_map(|file| self.module_of(folder, &file.path)).collect()
    }

    /// Each use of another module of the table, with the first file that holds it. A table of the root package, and that
    /// of the controllers, also says which of its other modules and which packages each row may use.
    pub(crate) fn uses(&self, table: &Table) -> Vec<(String, String, String)> {
        let seen = View::new(self, table);
        let mut all = BTreeMap::new();
        for file in &self.files {
            let Some(module) = self.module_of(&table.folder, &file.path) else { continue };
            let package = self.package_of(&file.path);
            for path in named(&file.text, &module_path(&file.path, package.as_deref())) {
                let other = seen.target(&path, package.as_deref());
                if let Some(other) = other.filter(|other| *other != module) {
                    all.entry((module.clone(), other)).or_insert_with(|| file.path.clone());
                }
            }
        }
        all.into_iter().map(|((module, other), file)| (module, other, file)).collect()
    }

    /// The package in `src` that the file belongs to; none for the root package.
    pub(crate) fn package_of(&self, path: &str) -> Option<String> {
        let first = path.strip_prefix("src/")?.split('/').next()?;
        self.packages.get(first).cloned()
    }

    fn module_of(&self, folder: &str, path: &str) -> Option<String> {
        let below = path.strip_prefix(folder)?.strip_prefix('/')?;
        let first = below.split('/').next()?;
        if folder == "src" && self.packages.contains(first) {
            return Some(format!("admit_{first}"));
        }
        (!ROOTS.contains(&first)).then(|| first.trim_end_matches(".rs").to_owned())
    }
}

/// How paths look from the folder of one table.
struct View {
    /// The package of the folder, none for the root package.
    package: Option<String>,
    /// The modules from the crate's root to the folder.
    base: Vec<String>,
    modules: BTreeSet<String>,
    /// What the head re-exports, each with the module that it comes from.
    passed_on: BTreeMap<String, String>,
    /// Whether names outside of the folder matter: where a table says which packages may be used.
    outer: bool,
}

impl View {
    fn new(sources: &Sources, table: &Table) -> Self {
        let package = sources.package_of(&table.head);
        let base = module_path(&table.head, package.as_deref());
        let modules = sources.modules(&table.folder);
        let source = |path: Path| {
            let mut path = path
                .into_iter()
                .skip_while(|name| ["crate", "self"].contains(&name.as_str()) || base.contains(name));
            path.next().filter(|name| modules.contains(name))
        };
        let exports = re_exports(sources.text(&table.head)).into_iter();
        let passed_on = exports.filter_map(|(name, path)| Some((name, source(path)?))).collect();
        let outer = package.is_none() && base.len() <= 1 && base.iter().all(|name| name == "controllers");
        Self { package, base, modules, passed_on, outer }
    }

    /// The module of the table that the path leads into; a name outside of the folder where those matter.
    fn target(&self, path: &Path, package: Option<&str>) -> Option<String> {
        let (first, rest) = path.split_first()?;
        if first != "crate" {
            return self.outer.then(|| first.clone());
        }
        if package != self.package.as_deref() {
            return None;
        }
        let next = match rest.strip_prefix(self.base.as_slice()) {
            Some(below) => below.first(),
            None if self.outer => return rest.first().cloned(),
            None => None,
        }?;
        self.modules.get(next).or_else(|| self.passed_on.get(next)).cloned()
    }
}

/// The modules from the root of the file's crate to the file.
pub(crate) fn module_path(path: &str, package: Option<&str>) -> Vec<String> {
    let folder = package.map_or_else(|| "src/".to_owned(), |package| format!("src/{package}/"));
    let below = path.strip_prefix(&folder).unwrap_or(path).trim_end_matches(".rs");
    let mut names: Vec<_> = below.split('/').map(str::to_owned).collect();
    names.pop_if(|last| ["lib", "main", "mod"].contains(&last.as_str()));
    names
}

/// The modules of a circle, the first again at its end; none where there is none.
pub(crate) fn circle(modules: &BTreeSet<String>, uses: impl Fn(&str, &str) -> bool) -> Option<Vec<String>> {
    let mut done = BTreeSet::new();
    modules.iter().find_map(|module| walk(module, modules, &uses, &mut Vec::new(), &mut done))
}

fn walk<'a>(
    module: &'a String,
    modules: &'a BTreeSet<String>,
    uses: &impl Fn(&str, &str) -> bool,
    above: &mut Vec<&'a String>,
    done: &mut BTreeSet<&'a String>,
) -> Option<Vec<String>> {
    if let Some(at) = above.iter().position(|known| *known == module) {
        return Some(above.iter().skip(at).copied().chain([module]).cloned().collect());
    }
    if !done.insert(module) {
        return None;
    }
    above.push(module);
    let found = modules
        .iter()
        .filter(|other| *other != module && uses(module, other))
        .find_map(|other| walk(other, modules, uses, above, done));
    above.pop();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circle_is_told_as_it_runs() {
        let modules: BTreeSet<String> = ["a", "b", "c", "d"].map(str::to_owned).into();
        let edges = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "b")];
        let all = circle(&modules, |module, other| edges.contains(&(module, other))).unwrap();
        assert_eq!(all, ["b", "c", "d", "b"]);
        assert_eq!(circle(&modules, |module, other| edges[..3].contains(&(module, other))), None);
    }

    #[test]
    fn a_forbidden_import_would_be_found() {
        let head = "//! | module | decides | may use |\n//! |---|---|---|\n//! | `value` | x | std |\n//! | `plan` | x | std |\npub use plan::Program;";
        let sources = Sources::of(&[
            ("src/x/lib.rs", head),
            ("src/x/plan.rs", ""),
            ("src/x/value/node.rs", "use crate::Program;"),
        ]);
        let table = Table::read("src/x/lib.rs", head, &BTreeSet::new()).unwrap();
        let all = [("value".to_owned(), "plan".to_owned(), "src/x/value/node.rs".to_owned())];
        assert_eq!(sources.uses(&table), all);
        assert_eq!(sources.modules("src"), ["admit_x".to_owned()].into());
        assert_eq!(module_path("src/x/value/node.rs", Some("x")), ["value", "node"]);
        assert_eq!(module_path("src/controllers/kit/mod.rs", None), ["controllers", "kit"]);
    }
}
