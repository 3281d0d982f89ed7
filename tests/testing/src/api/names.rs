//! Resolves paths: to items and modules of the crate, by the names that its users have for them, and to items of
//! other crates.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{Meaning, Modules, Named, Segments};

/// An item of the crate, by its module and position, or a module.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Own {
    Item(Segments, usize),
    Module(Segments),
}

/// The target of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Target {
    /// An item of the crate, and the rest of the path.
    Own(Own, Segments),
    /// An item of another crate.
    Foreign(Segments),
}

/// The public names of a crate.
pub(super) struct Names<'m> {
    pub(super) modules: &'m Modules,
    /// The public paths of the crate's items and modules.
    pub(super) public: BTreeMap<Own, BTreeSet<Segments>>,
    /// The items of other crates that the crate re-exports, with their public paths.
    pub(super) foreign: BTreeSet<(Segments, Segments)>,
}

impl<'m> Names<'m> {
    pub(super) fn of(modules: &'m Modules) -> Self {
        let mut names = Self { modules, public: BTreeMap::new(), foreign: BTreeSet::new() };
        names.publish(Target::Own(Own::Module(Vec::new()), Vec::new()), Vec::new());
        names
    }

    /// Returns the shortest public path of an item.
    pub(super) fn public_path(&self, own: &Own) -> Option<&Segments> {
        self.public.get(own)?.iter().min_by_key(|path| (path.len(), *path))
    }

    fn publish(&mut self, target: Target, path: Segments) {
        match target {
            Target::Own(own, rest) if rest.is_empty() => {
                let is_new = self.public.entry(own.clone()).or_default().insert(path.clone());
                if let (true, Own::Module(module)) = (is_new, &own) {
                    self.publish_all(module, &path);
                }
            }
            // A variant of an enum.
            Target::Own(own, rest) => {
                let of = match &own {
                    Own::Item(module, _) | Own::Module(module) => [module.clone(), rest].concat(),
                };
                self.foreign.insert((path, [vec!["crate".to_owned()], of].concat()));
            }
            Target::Foreign(of) => {
                self.foreign.insert((path, of));
            }
        }
    }

    /// Records the public items of `module` below `path`.
    fn publish_all(&mut self, module: &Segments, path: &Segments) {
        let modules = self.modules;
        let Some(found) = modules.get(module) else { return };
        for (name, all) in &found.names {
            for named in all.iter().filter(|named| named.public) {
                let path = [path.clone(), vec![name.clone()]].concat();
                for target in self.meanings(module, name, &named.meaning, true) {
                    self.publish(target, path.clone());
                }
            }
        }
        for glob in found.globs.iter().filter(|glob| glob.public) {
            for target in self.resolve(module, &glob.path) {
                match target {
                    Target::Own(Own::Module(from), rest) if rest.is_empty() => {
                        self.publish_all(&from, path);
                    }
                    Target::Own(..) => {}
                    Target::Foreign(of) => {
                        let path = [path.clone(), vec!["*".to_owned()]].concat();
                        self.foreign.insert((path, of));
                    }
                }
            }
        }
    }

    /// Returns all targets of `path` in `module`: a module and a function may share a name.
    pub(super) fn resolve(&self, module: &Segments, path: &[String]) -> Vec<Target> {
        let Some((first, rest)) = path.split_first() else {
            return vec![Target::Own(Own::Module(module.clone()), Vec::new())];
        };
        let parent = || module.split_last().map_or_else(Vec::new, |(_, parent)| parent.to_vec());
        let starts = match first.as_str() {
            "crate" => return self.resolve_within(&Vec::new(), rest),
            "self" => return self.resolve_within(module, rest),
            "super" => return self.resolve_within(&parent(), rest),
            name => self.named(module, name, rest.is_empty(), 0),
        };
        if starts.is_empty() {
            return vec![Target::Foreign(path.to_vec())];
        }
        starts.into_iter().flat_map(|start| self.follow(start, rest)).collect()
    }

    /// Like [`Self::resolve`], for a path whose first name must be one of `module`.
    fn resolve_within(&self, module: &Segments, path: &[String]) -> Vec<Target> {
        match path.split_first() {
            None => vec![Target::Own(Own::Module(module.clone()), Vec::new())],
            Some((first, rest)) if first == "super" => {
                let parent = module.split_last().map_or_else(Vec::new, |(_, parent)| parent.to_vec());
                self.resolve_within(&parent, rest)
            }
            Some((first, rest)) => {
                let found = self.named(module, first, rest.is_empty(), 0);
                found.into_iter().flat_map(|start| self.follow(start, rest)).collect()
            }
        }
    }

    fn follow(&self, start: Target, rest: &[String]) -> Vec<Target> {
        match start {
            Target::Own(Own::Module(module), _) => self.resolve_within(&module, rest),
            Target::Own(item, _) => vec![Target::Own(item, rest.to_vec())],
            Target::Foreign(of) => vec![Target::Foreign([of, rest.to_vec()].concat())],
        }
    }

    /// Returns the targets of `name` in `module`; before further segments, the module if there is one.
    fn named(&self, module: &Segments, name: &str, last: bool, depth: usize) -> Vec<Target> {
        // Glob imports may import each other.
        if depth > 8 {
            return Vec::new();
        }
        let Some(found) = self.modules.get(module) else { return Vec::new() };
        if let Some(all) = found.names.get(name) {
            let is_module = |named: &&Named| matches!(named.meaning, Meaning::Module);
            if let (false, Some(named)) = (last, all.iter().find(is_module)) {
                return self.meanings(module, name, &named.meaning, false);
            }
            return all.iter().flat_map(|named| self.meanings(module, name, &named.meaning, false)).collect();
        }
        let mut targets = Vec::new();
        for glob in &found.globs {
            for target in self.resolve(module, &glob.path) {
                if let Target::Own(Own::Module(from), rest) = target
                    && rest.is_empty()
                    && from != *module
                {
                    targets.extend(self.named(&from, name, last, depth + 1));
                }
            }
        }
        targets
    }

    /// Returns the targets of a name of `module`; for a re-export, only public ones.
    fn meanings(&self, module: &Segments, name: &str, meaning: &Meaning, handed_on: bool) -> Vec<Target> {
        match meaning {
            Meaning::Item(at) => vec![Target::Own(Own::Item(module.clone(), *at), Vec::new())],
            Meaning::Module => {
                let path = [module.clone(), vec![name.to_owned()]].concat();
                vec![Target::Own(Own::Module(path), Vec::new())]
            }
            Meaning::Import(path) => {
                let mut targets = self.imported(module, name, path);
                targets.retain(|target| !handed_on || self.may_be_handed_on(target));
                targets
            }
        }
    }

    /// Resolves an import; `use a::a;` does not import itself: the first segment is a module here, or another crate.
    fn imported(&self, module: &Segments, name: &str, path: &[String]) -> Vec<Target> {
        let child = [module.clone(), vec![name.to_owned()]].concat();
        if path.first().is_some_and(|first| first == name) && !self.modules.contains_key(&child) {
            return vec![Target::Foreign(path.to_vec())];
        }
        self.resolve(module, path)
    }

    fn may_be_handed_on(&self, target: &Target) -> bool {
        match target {
            Target::Own(Own::Item(module, at), _) => {
                self.has_public(module, |_, meaning| matches!(meaning, Meaning::Item(own) if own == at))
            }
            Target::Own(Own::Module(module), _) => module.split_last().is_none_or(|(own, parent)| {
                self.has_public(parent, |name, meaning| matches!(meaning, Meaning::Module) && name == own)
            }),
            Target::Foreign(_) => true,
        }
    }

    fn has_public(&self, module: &[String], is_it: impl Fn(&str, &Meaning) -> bool) -> bool {
        self.modules.get(module).is_some_and(|found| {
            let mut all =
                found.names.iter().flat_map(|(name, all)| all.iter().map(move |named| (name, named)));
            all.any(|(name, named)| named.public && is_it(name, &named.meaning))
        })
    }
}
