//! The public API of a package as text, a line for each public item, kept in the tree beside the sources: whoever changes
//! what users of a package see changes that text.
//!
//! The text is read out of the sources: from `lib.rs` along `pub mod` and `pub use` to every item that a user can name, each
//! with its signature, its public fields, variants and methods, and the implementations of traits. Names within it are the
//! public ones, or `inner::…` for those that users cannot name. It does not know what the compiler infers: whether a type is
//! `Send`. Of modules whose items are made by a macro it has the rows that the macro is given.

mod examples;
mod names;
mod print;
mod source;

use std::collections::BTreeSet;
use std::path::Path;
use std::{env, fs};

use quote::ToTokens;
use syn::Item;

use self::names::{Names, Own};
use self::print::Printer;
use self::source::Modules;

/// Compares the public API of the package in `folder` with its file `api.txt`; with `ADMIT_BLESS=1`, writes that file.
///
/// # Errors
/// The lines that differ, and how the file is written anew; or which source cannot be read.
pub fn compare(folder: &Path) -> Result<(), String> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let actual = text(&source::modules(&folder.join("lib.rs"))?, &format!("admit_{name}"));
    let file = folder.join("api.txt");
    if env::var_os("ADMIT_BLESS").is_some() {
        return fs::write(&file, &actual).map_err(|error| format!("{}: {error}", file.display()));
    }
    match differences(&fs::read_to_string(&file).unwrap_or_default(), &actual) {
        none if none.is_empty() => Ok(()),
        lines => Err(format!(
            "{}: the public API of admit-{name} is another one; if it is meant to be, run this test with ADMIT_BLESS=1 and \
             read the difference:\n{lines}",
            file.display()
        )),
    }
}

/// The public functions of the package in `folder` that no runnable example shows and whose documentation links to none.
///
/// # Errors
/// Which source cannot be read.
pub fn without_example(folder: &Path) -> Result<Vec<String>, String> {
    Ok(examples::unshown(&Names::of(&source::modules(&folder.join("lib.rs"))?)))
}

fn differences(kept: &str, actual: &str) -> String {
    let (kept, actual): (BTreeSet<_>, BTreeSet<_>) = (kept.lines().collect(), actual.lines().collect());
    let gone = kept.difference(&actual).map(|line| format!("- {line}\n"));
    let come = actual.difference(&kept).map(|line| format!("+ {line}\n"));
    gone.chain(come).collect()
}

/// A line for each public item of a crate of that name, sorted.
fn text(modules: &Modules, name: &str) -> String {
    let names = Names::of(modules);
    let mut lines = BTreeSet::new();
    for own in names.public.keys() {
        let Some(path) = names.public_path(own) else { continue };
        let path = [vec![name.to_owned()], path.clone()].concat().join("::");
        for other in names.public.get(own).into_iter().flatten() {
            let other = [vec![name.to_owned()], other.clone()].concat().join("::");
            if other != path {
                lines.insert(format!("pub use {path} as {other}"));
            }
        }
        match own {
            Own::Module(_) => {
                lines.insert(format!("pub mod {path}"));
            }
            Own::Item(module, at) => {
                if let Some(item) = modules.get(module).and_then(|module| module.items.get(*at)) {
                    Printer { names: &names, module, name }.item(item, &path, &mut lines);
                }
            }
        }
    }
    for (path, of) in &names.foreign {
        lines.insert(format!("pub use {} as {name}::{}", of.join("::"), path.join("::")));
    }
    for (path, module) in modules {
        let printer = Printer { names: &names, module: path, name };
        for item in &module.items {
            match item {
                Item::Impl(item) => printer.implementation(item, &mut lines),
                Item::Macro(item) if item.ident.is_none() && !item.mac.path.is_ident("thread_local") => {
                    let rows = item.mac.to_token_stream().to_string().replace('\n', " ");
                    lines.insert(format!("made in {name}::{}: {rows}", path.join("::")));
                }
                _ => {}
            }
        }
    }
    let mut lines: Vec<_> = lines.into_iter().collect();
    lines.sort_by_cached_key(|line| {
        line.split_once(name).map_or_else(|| line.clone(), |(_, path)| path.to_owned())
    });
    lines.into_iter().map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "//! Head.\nmod inner;\npub mod theme;\npub use inner::{Shape, area as size};\n\
        #[cfg(test)]\npub mod tests {}\n";
    const INNER: &str = "use std::fmt;\nuse crate::theme::Unit;\n\
        /// Text.\n#[derive(Clone, Debug)]\npub struct Shape<'a> { pub name: &'a str, sides: Vec<Unit> }\n\
        impl<'a> Shape<'a> {\n/// Text.\npub const fn new(name: &'a str) -> Self { todo!() }\nfn own(&self) {}\n}\n\
        impl fmt::Display for Shape<'_> { fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { Ok(()) } }\n\
        pub fn area(shape: &Shape<'_>) -> Result<Unit, Hidden> { todo!() }\n\
        pub struct Hidden;\nimpl Hidden { pub fn more(&self) {} }\n";
    const THEME: &str = "pub enum Unit { One, Many(u8) }\npub trait Has: Clone { type Of; fn has(&self) -> bool; }\n\
        pub(crate) fn helper() {}\n";

    fn api(root: &str, inner: &str, theme: &str) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        let (lib, below) = (folder.path().join("lib.rs"), folder.path().join("theme"));
        fs::create_dir(&below).expect("a folder");
        for (path, text) in
            [(&lib, root), (&folder.path().join("inner.rs"), inner), (&below.join("mod.rs"), theme)]
        {
            fs::write(path, text).expect("a file");
        }
        text(&source::modules(&lib).expect("sources"), "x")
    }

    #[test]
    fn functions_are_shown_where_their_readers_look() {
        let folder = tempfile::tempdir().expect("a folder");
        let lib = folder.path().join("lib.rs");
        let text = "//! ```\n//! x::free();\n//! ```\n\
            /// ```\n/// let one = One::new();\n/// one.told();\n/// ```\npub struct One;\n\
            impl One {\npub fn new() -> Self { Self }\npub fn told(&self) {}\npub fn untold(&self) {}\nfn own(&self) {} }\n\
            /// As [`One`] shows.\npub struct Other;\nimpl Other { pub fn told(&self) {}\npub fn new() -> Self { Self } }\n\
            /// ```text\n/// hidden();\n/// ```\npub fn hidden() {}\npub fn free() {}\n\
            /// ```\n/// impl Does for u8 { fn it(&self) {} }\n/// ```\npub trait Does { fn it(&self); fn more(&self); }\n";
        fs::write(&lib, text).expect("a file");
        assert_eq!(
            without_example(folder.path()),
            Ok(["Does::more", "One::untold", "Other::new", "hidden"].map(str::to_owned).to_vec())
        );
    }

    #[test]
    fn every_public_item_is_a_line_with_public_names() {
        let lines = [
            "pub mod x",
            "pub struct x::Shape<'a>, ..",
            "derive Clone, Debug for x::Shape",
            "pub field x::Shape::name: &'a str",
            "pub const fn x::Shape<'a>::new(name: &'a str) -> Self",
            "impl std::fmt::Display for x::Shape<'_>",
            "pub fn x::size(shape: &x::Shape<'_>) -> Result<x::theme::Unit, x::inner::inner::Hidden>",
            "pub mod x::theme",
            "pub trait x::theme::Has: Clone",
            "pub x::theme::Has: type Of;",
            "pub fn x::theme::Has::has(&self) -> bool",
            "pub enum x::theme::Unit",
            "pub variant x::theme::Unit::Many",
            "pub field x::theme::Unit::Many::0: u8",
            "pub variant x::theme::Unit::One",
        ];
        let actual = api(ROOT, INNER, THEME);
        let (expected, actual): (BTreeSet<_>, BTreeSet<_>) = (lines.into(), actual.lines().collect());
        assert_eq!(actual, expected);
    }

    #[test]
    fn what_users_can_tell_is_a_difference() {
        let before = api(ROOT, INNER, THEME);
        let changed = |from: &str, to: &str| {
            let [root, inner, theme] = [ROOT, INNER, THEME].map(|text| text.replace(from, to));
            differences(&before, &api(&root, &inner, &theme))
        };
        for (from, to) in [
            ("area as size", "area"),
            ("pub name", "pub(crate) name"),
            ("name: &'a str)", "name: &'a String)"),
            ("pub const fn", "const fn"),
            ("Many(u8)", "Many(u16)"),
            ("pub(crate) fn helper", "pub fn helper"),
            ("Display for", "LowerHex for"),
            ("Clone, Debug", "Debug"),
            ("fn has(&self)", "fn has(&mut self)"),
            ("use crate::theme::Unit;", "use std::io::Error as Unit;"),
            ("pub mod theme;", "mod theme;"),
            ("pub mod theme;", "#[doc(hidden)] pub mod theme;"),
        ] {
            assert!(!changed(from, to).is_empty(), "{from} → {to}");
        }
        for (from, to) in [("/// Text.", "/// Other."), ("fn own", "fn other"), ("todo!()", "loop {}")] {
            assert_eq!(changed(from, to), "", "{from} → {to}");
        }
    }
}
