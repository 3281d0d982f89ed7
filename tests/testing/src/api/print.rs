//! Prints items as text: one line for each, with the public names of what it mentions.

use std::collections::BTreeSet;

use quote::ToTokens;
use syn::punctuated::Punctuated;
use syn::visit_mut::{self, VisitMut};
use syn::{Fields, Generics, ImplItem, Item, ItemImpl, PathSegment, Signature, TraitItem, parse_quote};

use super::names::{Names, Own, Target};
use super::source::{Segments, is_of_tests, is_public};

/// Prints the items of one module.
pub(super) struct Printer<'n, 'm> {
    pub(super) names: &'n Names<'m>,
    pub(super) module: &'n Segments,
    /// The name of the crate.
    pub(super) name: &'n str,
}

impl Printer<'_, '_> {
    /// Adds the lines of a named item at its public path.
    pub(super) fn item(&self, item: &Item, path: &str, lines: &mut BTreeSet<String>) {
        match item {
            Item::Const(item) => {
                lines.insert(format!("pub const {path}: {}", self.text(&*item.ty)));
            }
            Item::Static(item) => {
                lines.insert(format!("pub static {path}: {}", self.text(&*item.ty)));
            }
            Item::Fn(item) => {
                lines.insert(format!("pub {}", self.signature(&item.sig, path)));
            }
            Item::Type(item) => {
                let generics = self.generics(&item.generics);
                lines.insert(format!("pub type {path}{generics} = {}", self.text(&*item.ty)));
            }
            Item::Struct(item) => {
                let generics = self.generics(&item.generics);
                let hidden = if item.fields.iter().all(|field| is_public(&field.vis)) { "" } else { ", .." };
                let marks = marks(&item.attrs);
                lines.insert(format!("{marks}pub struct {path}{generics}{hidden}"));
                self.fields(&item.fields, path, true, lines);
                self.derived(&item.attrs, path, lines);
            }
            Item::Enum(item) => {
                let generics = self.generics(&item.generics);
                lines.insert(format!("{}pub enum {path}{generics}", marks(&item.attrs)));
                for variant in &item.variants {
                    let at = format!("{path}::{}", variant.ident);
                    let value = variant.discriminant.as_ref();
                    let value =
                        value.map_or_else(String::new, |(_, value)| format!(" = {}", self.text(value)));
                    lines.insert(format!("{}pub variant {at}{value}", marks(&variant.attrs)));
                    self.fields(&variant.fields, &at, false, lines);
                }
                self.derived(&item.attrs, path, lines);
            }
            Item::Trait(item) => {
                let generics = self.generics(&item.generics);
                let above = match self.text(&item.supertraits) {
                    above if above.is_empty() => above,
                    above => format!(": {above}"),
                };
                lines.insert(format!("pub trait {path}{generics}{above}"));
                item.items.iter().for_each(|item| self.trait_item(item, path, lines));
            }
            other => {
                lines.insert(format!("pub {path}: {}", self.text(other)));
            }
        }
    }

    /// Adds the public fields; those of variants are always public.
    fn fields(&self, fields: &Fields, path: &str, ask: bool, lines: &mut BTreeSet<String>) {
        for (number, field) in fields.iter().enumerate().filter(|(_, field)| !ask || is_public(&field.vis)) {
            let name = field.ident.as_ref().map_or_else(|| number.to_string(), ToString::to_string);
            lines.insert(format!("pub field {path}::{name}: {}", self.text(&field.ty)));
        }
    }

    fn derived(&self, attributes: &[syn::Attribute], path: &str, lines: &mut BTreeSet<String>) {
        let parse = Punctuated::<syn::Path, syn::Token![,]>::parse_terminated;
        let derived: BTreeSet<_> = attributes
            .iter()
            .filter(|attribute| attribute.path().is_ident("derive"))
            .flat_map(|attribute| attribute.parse_args_with(parse).into_iter().flatten())
            .map(|derived| self.text(&derived))
            .collect();
        if !derived.is_empty() {
            let derived: Vec<_> = derived.into_iter().collect();
            lines.insert(format!("derive {} for {path}", derived.join(", ")));
        }
    }

    fn trait_item(&self, item: &TraitItem, path: &str, lines: &mut BTreeSet<String>) {
        match item {
            TraitItem::Fn(function) => {
                let provided = if function.default.is_some() { " { .. }" } else { "" };
                let at = format!("{path}::{}", function.sig.ident);
                lines.insert(format!("pub {}{provided}", self.signature(&function.sig, &at)));
            }
            other => {
                lines.insert(format!("pub {path}: {}", self.text(other)));
            }
        }
    }

    /// Adds the lines of an implementation for a public type or of a public trait.
    pub(super) fn implementation(&self, item: &ItemImpl, lines: &mut BTreeSet<String>) {
        let of = self.text(&*item.self_ty);
        let Some((_, trait_path, _)) = &item.trait_ else {
            if self.is_public_type(&item.self_ty) {
                item.items.iter().for_each(|one| self.own_item(one, &of, &item.generics, lines));
            }
            return;
        };
        let names_trait = self.is_public_path(trait_path);
        if names_trait && self.is_public_type(&item.self_ty) {
            let generics = self.generics(&item.generics);
            let of = format!("impl{generics} {} for {of}", self.text(trait_path));
            lines.insert(of.clone());
            for item in &item.items {
                if let ImplItem::Type(item) = item {
                    lines.insert(format!("{of}: type {} = {}", item.ident, self.text(&item.ty)));
                }
            }
        }
    }

    fn own_item(&self, item: &ImplItem, of: &str, generics: &Generics, lines: &mut BTreeSet<String>) {
        let bounded = generics.type_params().next().is_some() || generics.where_clause.is_some();
        let when = if bounded { format!(" [impl{}]", self.generics(generics)) } else { String::new() };
        match item {
            ImplItem::Fn(item) if is_public(&item.vis) && !is_of_tests(&item.attrs) => {
                let at = format!("{of}::{}", item.sig.ident);
                lines.insert(format!("pub {}{when}", self.signature(&item.sig, &at)));
            }
            ImplItem::Const(item) if is_public(&item.vis) => {
                lines.insert(format!("pub const {of}::{}: {}{when}", item.ident, self.text(&item.ty)));
            }
            _ => {}
        }
    }

    fn signature(&self, signature: &Signature, path: &str) -> String {
        let mut signature = signature.clone();
        // The path replaces a name that no signature has.
        signature.ident = parse_quote!(the_name_of_it);
        self.text(&signature).replacen("the_name_of_it", path, 1)
    }

    fn generics(&self, generics: &Generics) -> String {
        let params = self.text(generics);
        let when = generics.where_clause.as_ref().map(|when| format!(" {}", self.text(when)));
        format!("{params}{}", when.unwrap_or_default())
    }

    /// Returns whether a type is public; primitive types and parameters are.
    fn is_public_type(&self, of: &syn::Type) -> bool {
        match of {
            syn::Type::Path(path) => self.is_public_path(&path.path),
            syn::Type::Reference(to) => self.is_public_type(&to.elem),
            syn::Type::Slice(of) => self.is_public_type(&of.elem),
            syn::Type::Group(of) => self.is_public_type(&of.elem),
            syn::Type::Paren(of) => self.is_public_type(&of.elem),
            _ => true,
        }
    }

    fn is_public_path(&self, path: &syn::Path) -> bool {
        let targets = self.names.resolve(self.module, &segments(path));
        !targets.is_empty()
            && targets.iter().all(|target| match target {
                Target::Own(own, _) => self.names.public.contains_key(own),
                Target::Foreign(_) => true,
            })
    }

    /// Returns the source text of a part of an item, with public names.
    fn text(&self, part: &(impl ToTokens + Clone + Visited)) -> String {
        let mut part = part.clone();
        part.visit(&mut Renaming(self));
        plain(&part.to_token_stream().to_string())
    }

    /// Returns the public name of what `path` refers to, and the number of segments that it replaces.
    fn public_name(&self, path: &[String]) -> Option<(Segments, usize)> {
        let targets: BTreeSet<_> = self.names.resolve(self.module, path).into_iter().collect();
        let is_item = |target: &&Target| matches!(target, Target::Own(Own::Item(..), _));
        let target = targets.iter().find(is_item).or_else(|| targets.first())?;
        match target {
            Target::Foreign(of) => (of.as_slice() != path).then(|| (of.clone(), path.len())),
            Target::Own(own, rest) => {
                let within = match own {
                    Own::Item(module, _) | Own::Module(module) => module,
                };
                let replaced = path.len().checked_sub(rest.len())?;
                let last = path.get(replaced.checked_sub(1)?)?.clone();
                let inner = || [vec!["inner".to_owned()], within.clone(), vec![last.clone()]].concat();
                let of = self.names.public_path(own).cloned().unwrap_or_else(inner);
                Some(([vec![self.name.to_owned()], of].concat(), replaced))
            }
        }
    }
}

/// Replaces the names of a module by public ones.
struct Renaming<'p, 'n, 'm>(&'p Printer<'n, 'm>);

impl VisitMut for Renaming<'_, '_, '_> {
    fn visit_path_mut(&mut self, path: &mut syn::Path) {
        visit_mut::visit_path_mut(self, path);
        let names = segments(path);
        if path.leading_colon.is_some() || names.first().is_none_or(|first| first == "Self") {
            return;
        }
        let Some((public, replaced)) = self.0.public_name(&names) else { return };
        let old: Vec<PathSegment> = path.segments.iter().cloned().collect();
        let Some(arguments) = replaced.checked_sub(1).and_then(|last| old.get(last)) else { return };
        let idents = public.iter().map(|name| syn::parse_str::<syn::Ident>(name));
        let Ok(idents) = idents.collect::<Result<Vec<_>, _>>() else { return };
        let mut new: Vec<_> = idents.into_iter().map(PathSegment::from).collect();
        if let Some(last) = new.last_mut() {
            last.arguments = arguments.arguments.clone();
        }
        new.extend(old.into_iter().skip(replaced));
        path.segments = new.into_iter().collect();
    }

    /// Keeps the names in `<T as Trait>::Name`, which are the trait's.
    fn visit_type_path_mut(&mut self, path: &mut syn::TypePath) {
        match &mut path.qself {
            Some(of) => self.visit_type_mut(&mut of.ty),
            None => self.visit_path_mut(&mut path.path),
        }
    }

    /// Skips attributes, as documentation is not compared.
    fn visit_attributes_mut(&mut self, attributes: &mut Vec<syn::Attribute>) {
        attributes.clear();
    }
}

fn segments(path: &syn::Path) -> Segments {
    path.segments.iter().map(|segment| segment.ident.to_string()).collect()
}

/// Returns the attributes that change what users may write.
fn marks(attributes: &[syn::Attribute]) -> &'static str {
    let open = attributes.iter().any(|attribute| attribute.path().is_ident("non_exhaustive"));
    if open { "#[non_exhaustive] " } else { "" }
}

/// Removes the spaces that the token printer puts around every token.
fn plain(tokens: &str) -> String {
    let pairs = [
        (" :: ", "::"),
        (":: ", "::"),
        (" ::", "::"),
        (" <", "<"),
        ("< ", "<"),
        (" >", ">"),
        (" ,", ","),
        (" ;", ";"),
        (" :", ":"),
        (" (", "("),
        ("( ", "("),
        (" )", ")"),
        ("& ", "&"),
        (",(", ", ("),
        ("->(", "-> ("),
        ("=(", "= ("),
        (":(", ": ("),
        ("dyn(", "dyn ("),
        ("mut(", "mut ("),
        (",)", ")"),
    ];
    pairs.iter().fold(tokens.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// Parts of items in which names are replaced.
pub(super) trait Visited {
    fn visit(&mut self, visitor: &mut impl VisitMut);
}

macro_rules! visited {
    ($($part:ty => $visit:ident),* $(,)?) => {
        $(impl Visited for $part {
            fn visit(&mut self, visitor: &mut impl VisitMut) {
                visitor.$visit(self);
            }
        })*
    };
}

visited! {
    syn::Expr => visit_expr_mut,
    syn::Generics => visit_generics_mut,
    syn::Item => visit_item_mut,
    syn::Path => visit_path_mut,
    syn::Signature => visit_signature_mut,
    syn::TraitItem => visit_trait_item_mut,
    syn::Type => visit_type_mut,
    syn::WhereClause => visit_where_clause_mut,
}

impl Visited for Punctuated<syn::TypeParamBound, syn::Token![+]> {
    fn visit(&mut self, visitor: &mut impl VisitMut) {
        self.iter_mut().for_each(|bound| visitor.visit_type_param_bound_mut(bound));
    }
}
