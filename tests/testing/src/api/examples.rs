//! Finds public functions that no runnable example shows.
//!
//! An example shows a function that it calls, where a reader of the function's documentation finds it: in that
//! documentation itself, on the page that lists the function (its type's, its trait's or its module's, with the
//! documentation of the other functions there), or on a page that the function's documentation or its page's head links to.
//! A method is called as `.name(`, an associated function by its type, and the name of a trait's function counts where it is
//! implemented.

use std::collections::BTreeMap;

use syn::{Attribute, Expr, ExprLit, FnArg, ImplItem, Item, Lit, Meta, Signature, TraitItem};

use super::names::{Names, Own, Target};
use super::source::{Segments, is_of_tests, is_public};

/// A public function.
struct Function {
    /// The name for reports.
    name: String,
    /// The name of the function itself, without its type.
    ident: String,
    /// The type or trait that it belongs to.
    of: Option<String>,
    receives: bool,
    in_trait: bool,
    page: Own,
    /// The module in which names in its documentation are resolved.
    module: Segments,
    docs: String,
}

/// Returns the public functions without an example, by their public names.
pub(super) fn unshown(names: &Names<'_>) -> Vec<String> {
    let mut functions = Vec::new();
    let mut pages: BTreeMap<Own, String> = BTreeMap::new();
    for own in names.public.keys() {
        let page = pages.entry(own.clone()).or_default();
        match own {
            Own::Module(path) => page.push_str(&module_docs(names, path)),
            Own::Item(module, at) => {
                if let Some(item) = names.modules.get(module).and_then(|module| module.items.get(*at)) {
                    add_item(names, own, item, page, &mut functions);
                }
            }
        }
    }
    // The documentation of the types, traits and modules themselves.
    let heads = pages.clone();
    for (path, module) in names.modules {
        for item in &module.items {
            if let Item::Impl(item) = item {
                add_methods(names, path, item, &mut pages, &mut functions);
            }
        }
    }
    for function in functions.iter().filter(|function| function.of.is_some()) {
        pages.entry(function.page.clone()).or_default().push_str(&function.docs);
    }
    let pages: BTreeMap<_, _> = pages.into_iter().map(|(own, docs)| (own, examples(&docs))).collect();
    let is_shown = |function: &&Function| {
        let of_page = match &function.page {
            Own::Item(module, _) | Own::Module(module) => module,
        };
        let head = heads.get(&function.page).map(String::as_str).unwrap_or_default();
        let linked = [(&function.module, function.docs.as_str()), (of_page, head)];
        let linked = linked.into_iter().flat_map(|(module, docs)| names.linked(module, docs, &function.page));
        let mut looked_at = std::iter::once(function.page.clone()).chain(linked);
        function.calls_in(&examples(&function.docs))
            || looked_at.any(|page| pages.get(&page).is_some_and(|code| function.calls_in(code)))
    };
    let mut unshown: Vec<_> = functions
        .iter()
        .filter(|function| !is_shown(function))
        .map(|function| function.name.clone())
        .collect();
    unshown.sort();
    unshown.dedup();
    unshown
}

fn add_item(names: &Names<'_>, own: &Own, item: &Item, page: &mut String, functions: &mut Vec<Function>) {
    page.push_str(&docs(super::source::attributes(item)));
    let path = names.public_path(own).map(|path| path.join("::")).unwrap_or_default();
    let module = match own {
        Own::Item(module, _) | Own::Module(module) => module,
    };
    match item {
        Item::Fn(item) => {
            let within = names.public_path(own).and_then(|path| path.split_last());
            let page = names.module_at(within.map_or(&[], |(_, within)| within));
            functions.push(Function {
                ident: path.rsplit("::").next().unwrap_or_default().to_owned(),
                of: None,
                page: page.unwrap_or_else(|| own.clone()),
                ..Function::new(&path, own, module, &item.sig, &item.attrs)
            });
        }
        Item::Trait(item) => {
            for function in &item.items {
                if let TraitItem::Fn(function) = function {
                    let name = format!("{path}::{}", function.sig.ident);
                    functions.push(Function {
                        of: Some(item.ident.to_string()),
                        in_trait: true,
                        ..Function::new(&name, own, module, &function.sig, &function.attrs)
                    });
                }
            }
        }
        _ => {}
    }
}

fn add_methods(
    names: &Names<'_>,
    module: &Segments,
    item: &syn::ItemImpl,
    pages: &mut BTreeMap<Own, String>,
    functions: &mut Vec<Function>,
) {
    let syn::Type::Path(of) = &*item.self_ty else { return };
    let segments: Segments = of.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
    let targets = names.resolve(module, &segments);
    let of = targets.into_iter().find_map(|target| match target {
        Target::Own(own, rest) if rest.is_empty() && names.public.contains_key(&own) => Some(own),
        _ => None,
    });
    let (Some(own), None) = (of, &item.trait_) else { return };
    let path = names.public_path(&own).map(|path| path.join("::")).unwrap_or_default();
    pages.entry(own.clone()).or_default().push_str(&docs(&item.attrs));
    for function in &item.items {
        match function {
            ImplItem::Fn(function) if is_public(&function.vis) && !is_of_tests(&function.attrs) => {
                let name = format!("{path}::{}", function.sig.ident);
                functions.push(Function {
                    of: path.rsplit("::").next().map(str::to_owned),
                    ..Function::new(&name, &own, module, &function.sig, &function.attrs)
                });
            }
            _ => {}
        }
    }
}

impl Function {
    fn new(
        name: &str,
        page: &Own,
        module: &Segments,
        signature: &Signature,
        attributes: &[Attribute],
    ) -> Self {
        Self {
            name: name.to_owned(),
            ident: signature.ident.to_string(),
            of: None,
            receives: matches!(signature.inputs.first(), Some(FnArg::Receiver(_))),
            in_trait: false,
            page: page.clone(),
            module: module.clone(),
            docs: docs(attributes),
        }
    }

    fn calls_in(&self, code: &str) -> bool {
        let Self { ident, of, .. } = self;
        let by_type = of.iter().any(|of| has_word(code, &format!("{of}::{ident}")));
        by_type
            || of.is_none() && has_word(code, &format!("{ident}("))
            || self.receives && code.contains(&format!(".{ident}("))
            || self.receives && code.contains(&format!(".{ident}::<"))
            || self.in_trait && has_word(code, &format!("fn {ident}"))
    }
}

impl Names<'_> {
    /// Returns the pages that links in `docs` lead to, in documentation in `module` on the page of `own`.
    fn linked(&self, module: &Segments, docs: &str, own: &Own) -> Vec<Own> {
        let paths = links(docs).into_iter().map(|link| -> Segments {
            link.split("::").map(|name| name.trim_end_matches("()").to_owned()).collect()
        });
        let pages = paths.flat_map(|path| match path.first() {
            Some(first) if first == "Self" => vec![Target::Own(own.clone(), Vec::new())],
            _ => self.resolve(module, &path),
        });
        pages
            .filter_map(|target| match target {
                Target::Own(own, _) => Some(own),
                Target::Foreign(_) => None,
            })
            .collect()
    }

    fn module_at(&self, path: &[String]) -> Option<Own> {
        let is_there = |(own, paths): &(&Own, &std::collections::BTreeSet<Segments>)| {
            matches!(own, Own::Module(_)) && paths.contains(path)
        };
        self.public.iter().find(is_there).map(|(own, _)| own.clone())
    }
}

fn module_docs(names: &Names<'_>, path: &Segments) -> String {
    names.modules.get(path).map(|module| docs(&module.attributes)).unwrap_or_default()
}

/// Returns the text of documentation attributes, a line each.
fn docs(attributes: &[Attribute]) -> String {
    let line = |attribute: &Attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value() + "\n"),
            _ => None,
        },
        _ => None,
    };
    attributes.iter().filter_map(line).collect()
}

/// Returns the code of the examples in `docs` that are compiled and run.
fn examples(docs: &str) -> String {
    let (mut code, mut within) = (String::new(), None);
    for line in docs.lines() {
        match (line.trim().strip_prefix("```"), within) {
            (Some(kind), None) => within = Some(matches!(kind, "" | "rust")),
            (Some(_), Some(_)) => within = None,
            (None, Some(true)) => {
                code.push_str(line);
                code.push('\n');
            }
            (None, _) => {}
        }
    }
    code
}

/// Returns the names in brackets, as documentation links to them.
fn links(docs: &str) -> Vec<String> {
    let mut links = Vec::new();
    for part in docs.split('[').skip(1) {
        let Some((text, after)) = part.split_once(']') else { continue };
        let target =
            after.strip_prefix('(').and_then(|after| after.split_once(')')).map(|(target, _)| target);
        let target = target.unwrap_or(text).trim_matches('`');
        let target = target.split('#').next().unwrap_or_default();
        links.push(target.to_owned());
    }
    links
}

/// Returns whether `code` contains `word` as a whole name.
fn has_word(code: &str, word: &str) -> bool {
    let is_name = |c: char| c == '_' || c.is_alphanumeric();
    code.match_indices(word).any(|(at, _)| {
        let before = code.get(..at).and_then(|before| before.chars().next_back());
        let after = code.get(at + word.len()..).and_then(|after| after.chars().next());
        before.is_none_or(|c| !is_name(c)) && (word.ends_with('(') || after.is_none_or(|c| !is_name(c)))
    })
}
