//! Parses the modules of a package: each with its items and the meaning of every name in it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use syn::{Attribute, Item, UseTree, Visibility};

/// The segments of a path from the root of the crate.
pub(super) type Segments = Vec<String>;

/// All modules of a crate by their paths, without tests.
pub(super) type Modules = BTreeMap<Segments, Module>;

#[derive(Default)]
pub(super) struct Module {
    /// The inner attributes of the module.
    pub(super) attributes: Vec<Attribute>,
    pub(super) items: Vec<Item>,
    /// The items, modules and imports of this module by name.
    pub(super) names: BTreeMap<String, Vec<Named>>,
    /// The glob imports.
    pub(super) globs: Vec<Glob>,
}

pub(super) struct Glob {
    pub(super) path: Segments,
    pub(super) public: bool,
}

/// The meaning of a name.
pub(super) struct Named {
    pub(super) public: bool,
    pub(super) meaning: Meaning,
}

pub(super) enum Meaning {
    /// The item at this position of the module's.
    Item(usize),
    Module,
    Import(Segments),
}

/// Parses the crate whose root is the file at `path`.
///
/// # Errors
/// If a file cannot be read or parsed.
pub(super) fn modules(path: &Path) -> Result<Modules, String> {
    let mut modules = Modules::new();
    let folder = path.parent().unwrap_or(path).to_owned();
    read(path, &folder, Vec::new(), &mut modules)?;
    Ok(modules)
}

/// Parses the module in the file at `path`, whose child modules are in `folder`.
fn read(path: &Path, folder: &Path, at: Segments, modules: &mut Modules) -> Result<(), String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let file = syn::parse_file(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    add(file.attrs, file.items, folder, at, modules)
}

fn add(
    attributes: Vec<Attribute>,
    items: Vec<Item>,
    folder: &Path,
    at: Segments,
    modules: &mut Modules,
) -> Result<(), String> {
    let mut module = Module { attributes, ..Module::default() };
    for item in items {
        if is_of_tests(self::attributes(&item)) {
            continue;
        }
        match item {
            Item::Mod(child) => {
                let name = child.ident.to_string();
                let public = is_public(&child.vis) && !is_hidden(&child.attrs);
                let named = Named { public, meaning: Meaning::Module };
                module.names.entry(name.clone()).or_default().push(named);
                let (below, path) = (folder.join(&name), [at.clone(), vec![name]].concat());
                match child.content {
                    Some((_, items)) => add(child.attrs, items, &below, path, modules)?,
                    None => read(&file_of(&below), &below, path, modules)?,
                }
            }
            Item::Use(import) => {
                let public = is_public(&import.vis);
                add_imports(&import.tree, Vec::new(), public, &mut module);
            }
            item => {
                if let Some((name, vis)) = name_of(&item) {
                    let meaning = Meaning::Item(module.items.len());
                    let named = Named { public: is_public(vis), meaning };
                    module.names.entry(name).or_default().push(named);
                }
                module.items.push(item);
            }
        }
    }
    modules.insert(at, module);
    Ok(())
}

/// Returns the file of a module: `x.rs` or `x/mod.rs`.
fn file_of(below: &Path) -> PathBuf {
    let flat = below.with_extension("rs");
    if flat.exists() { flat } else { below.join("mod.rs") }
}

fn add_imports(tree: &UseTree, mut path: Segments, public: bool, module: &mut Module) {
    let mut import = |name: String, path: Segments| {
        let named = Named { public, meaning: Meaning::Import(path) };
        module.names.entry(name).or_default().push(named);
    };
    match tree {
        UseTree::Path(below) => {
            path.push(below.ident.to_string());
            add_imports(&below.tree, path, public, module);
        }
        UseTree::Group(group) => {
            group.items.iter().for_each(|tree| add_imports(tree, path.clone(), public, module));
        }
        UseTree::Name(name) if name.ident == "self" => {
            import(path.last().cloned().unwrap_or_default(), path);
        }
        UseTree::Name(name) => {
            path.push(name.ident.to_string());
            import(name.ident.to_string(), path);
        }
        UseTree::Rename(renamed) => {
            if renamed.ident != "self" {
                path.push(renamed.ident.to_string());
            }
            import(renamed.rename.to_string(), path);
        }
        UseTree::Glob(_) => module.globs.push(Glob { path, public }),
    }
}

pub(super) fn is_public(vis: &Visibility) -> bool {
    matches!(vis, Visibility::Public(_))
}

/// Returns whether an item exists only for tests or doc tests.
pub(super) fn is_of_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<syn::Path>()
                .is_ok_and(|path| path.is_ident("test") || path.is_ident("doctest"))
    })
}

/// Returns whether an item is hidden from the documentation, and so not part of the API.
fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("doc")
            && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("hidden"))
    })
}

fn name_of(item: &Item) -> Option<(String, &Visibility)> {
    let (ident, vis) = match item {
        Item::Const(item) => (&item.ident, &item.vis),
        Item::Enum(item) => (&item.ident, &item.vis),
        Item::Fn(item) => (&item.sig.ident, &item.vis),
        Item::Static(item) => (&item.ident, &item.vis),
        Item::Struct(item) => (&item.ident, &item.vis),
        Item::Trait(item) => (&item.ident, &item.vis),
        Item::TraitAlias(item) => (&item.ident, &item.vis),
        Item::Type(item) => (&item.ident, &item.vis),
        Item::Union(item) => (&item.ident, &item.vis),
        _ => return None,
    };
    Some((ident.to_string(), vis))
}

pub(super) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
