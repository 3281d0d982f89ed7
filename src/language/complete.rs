//! Completes expressions at the cursor: fields and functions of the operand before the dot, names, values.

use std::collections::BTreeMap;
use std::ops::Range;

use admit_cel::syntax::{Expr, ExprId};
use admit_cel::{DeclKind, Inferred, Type, macro_offers};
use serde_json::Value;

use crate::functions::{Signature, fits, told, told_macro};
use crate::origin::{Origins, folds_around};
use crate::recover::{End, end};

/// The maximum number of completions.
const MAX_ITEMS: usize = 500;

/// The kind of a completion.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum ItemKind {
    /// A field of an object.
    Field,
    /// A variable or another name.
    Variable,
    /// One of the values that a schema allows.
    Value,
    /// A function or method.
    Function,
    /// A macro.
    Macro,
}

/// A completion.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Item {
    /// The inserted text.
    pub label: String,
    /// Its kind.
    pub kind: ItemKind,
    /// Its type, or its signature.
    pub detail: String,
    /// Its documentation, as Markdown; may be empty.
    pub documentation: String,
}

/// Completions by kind and label: overloads of a function are merged.
type Items = BTreeMap<(ItemKind, String), Item>;

/// Returns the byte range that a completion replaces, and the completions.
pub(crate) fn complete(origins: &Origins<'_, '_>, offset: usize) -> Option<(Range<usize>, Vec<Item>)> {
    let text = origins.site.written.text();
    let before = text.get(..offset)?;
    let mut items = Items::new();
    let start = match end(before) {
        End::Nowhere => return None,
        End::Text(quote) => {
            values(origins, before.get(..quote)?, &mut items)?;
            quote.saturating_add(1)
        }
        End::Open { .. } => {
            let word = before.trim_end_matches(|c: char| c.is_alphanumeric() || c == '_');
            match word.strip_suffix('.').or_else(|| word.strip_suffix(".?")) {
                Some(operand) => members(origins, operand.trim_end(), &mut items)?,
                None => names(origins, word, &mut items),
            }
            word.len()
        }
    };
    Some((start..offset, items.into_values().take(MAX_ITEMS).collect()))
}

fn add(items: &mut Items, kind: ItemKind, label: &str, detail: String, documentation: &str) {
    let item = || Item { label: label.to_owned(), kind, detail, documentation: String::new() };
    let known = items.entry((kind, label.to_owned())).or_insert_with(item);
    if !known.documentation.is_empty() && !documentation.is_empty() {
        known.documentation.push_str("\n\n");
    }
    known.documentation.push_str(documentation);
}

/// Finds the operand before the cursor, with the types of the expression that it ends.
fn operand(origins: &Origins<'_, '_>, before: &str) -> Option<(Inferred, ExprId)> {
    let End::Open { closing, .. } = end(before) else { return None };
    let env = &origins.names.env;
    let mut end = before.len();
    let inferred = match env.infer(&format!("{before}{closing}")) {
        Ok(inferred) => inferred,
        // The text before the operand is not a valid expression; the operand alone may be.
        Err(_) => {
            let chain = chain(before);
            end = chain.len();
            env.infer(chain).ok()?
        }
    };
    let id = ends_at(&inferred, before, end)?;
    Some((inferred, id))
}

/// Returns the largest part that ends at a byte and is not an operator call.
fn ends_at(inferred: &Inferred, text: &str, end: usize) -> Option<ExprId> {
    let ast = inferred.ast();
    let mut end = end;
    loop {
        let is_operand = |id: &ExprId| match ast.expr(*id) {
            Expr::Call { function, .. } => {
                matches!(&**function, "_[_]" | "_[?_]" | "_?._")
                    || function.starts_with(|c: char| c.is_alphabetic())
            }
            _ => true,
        };
        let at = u32::try_from(end).ok()?;
        let found = ast.ids().filter(|id| ast.span(*id).end == at && inferred.type_of(*id).is_some());
        let size = |id: &ExprId| (at.saturating_sub(ast.span(*id).start), *id);
        let parts: Vec<ExprId> = found.collect();
        if let Some(id) = parts.iter().copied().filter(is_operand).max_by_key(size) {
            return Some(id);
        }
        // An operator call may be an operand in parentheses.
        if let Some(id) = parts.into_iter().max_by_key(size) {
            return Some(id);
        }
        end = text.get(..end)?.strip_suffix(')')?.trim_end().len();
    }
}

/// Returns the chain of names, dots and calls at the end of a text.
fn chain(text: &str) -> &str {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices().rev() {
        match c {
            ')' | ']' => depth = depth.saturating_add(1),
            '(' | '[' if depth > 0 => depth = depth.saturating_sub(1),
            _ if depth > 0 || c.is_alphanumeric() || c == '_' || c == '.' => {}
            _ => return text.get(at.saturating_add(c.len_utf8())..).unwrap_or_default(),
        }
    }
    text
}

/// Completes after a dot: fields, functions and macros of the operand.
fn members(origins: &Origins<'_, '_>, before: &str, items: &mut Items) -> Option<()> {
    let env = &origins.names.env;
    namespaced(origins, before, items);
    let Some((inferred, id)) = operand(origins, before) else { return (!items.is_empty()).then_some(()) };
    let ty = inferred.type_of(id)?;
    let of = match ty {
        Type::Optional(inner) => inner,
        other => other,
    };
    if let Type::Object(decl) = of
        && let DeclKind::Object { fields, .. } = &decl.kind
    {
        let node = origins.of(&inferred, id);
        let properties = node.as_ref().and_then(|node| node.schema()?.get("properties"));
        for field in fields {
            let property = properties.and_then(|properties| properties.get(&*field.name));
            let described = property.and_then(|property| property.get("description")).and_then(Value::as_str);
            let detail = field.decl.cel_type().to_string();
            add(items, ItemKind::Field, &field.cel_name, detail, described.unwrap_or_default());
        }
    }
    for row in env.overloads() {
        let signature = Signature::of(row.signature, env);
        if signature.receiver.as_ref().is_some_and(|receiver| fits(receiver, ty)) {
            add(items, ItemKind::Function, signature.name, row.signature.to_owned(), &told(row));
        }
    }
    let folds = matches!(ty, Type::List(_) | Type::Map(..) | Type::Dyn);
    for (since, found) in macro_offers().filter(|(since, found)| found.receiver && *since <= env.version()) {
        let is_optional = found.doc.starts_with("optional.");
        let takes = if is_optional { matches!(ty, Type::Optional(_) | Type::Dyn) } else { folds };
        if takes {
            add(items, ItemKind::Macro, found.name, String::new(), &told_macro(since, found));
        }
    }
    Some(())
}

/// Completes functions of a namespace: `ip.isCanonical`.
fn namespaced(origins: &Origins<'_, '_>, before: &str, items: &mut Items) {
    let env = &origins.names.env;
    let namespace = before.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
    for row in env.overloads().filter(|_| !namespace.is_empty()) {
        let signature = Signature::of(row.signature, env);
        if signature.receiver.is_none()
            && let Some((of, name)) = signature.name.rsplit_once('.')
            && of == namespace
        {
            add(items, ItemKind::Function, name, row.signature.to_owned(), &told(row));
        }
    }
}

/// Completes the beginning of an operand.
fn names(origins: &Origins<'_, '_>, before: &str, items: &mut Items) {
    let env = &origins.names.env;
    for name in env.variables().filter(|name| !name.contains('.')) {
        let ty = env
            .infer(name)
            .ok()
            .and_then(|inferred| Some(inferred.type_of(inferred.ast().root())?.to_string()));
        add(items, ItemKind::Variable, name, ty.unwrap_or_default(), "");
    }
    if let End::Open { closing, .. } = end(before)
        && let Ok(inferred) = env.infer(&format!("{before}null{closing}"))
        && let Ok(at) = u32::try_from(before.len())
    {
        for (_, fold) in folds_around(inferred.ast(), at) {
            let range = inferred.type_of(fold.range);
            let (first, second) = match range {
                Some(Type::List(items)) if fold.iter_var2.is_none() => (items.to_string(), String::new()),
                Some(Type::List(items)) => ("int".to_owned(), items.to_string()),
                Some(Type::Map(key, value)) => (key.to_string(), value.to_string()),
                _ => (String::new(), String::new()),
            };
            let is_written = |name: &str| name.starts_with(|c: char| c.is_alphabetic() || c == '_');
            if is_written(&fold.iter_var) {
                add(items, ItemKind::Variable, &fold.iter_var, first, "");
            }
            if let Some(name) = fold.iter_var2.as_deref().filter(|name| is_written(name)) {
                add(items, ItemKind::Variable, name, second, "");
            }
        }
    }
    for row in env.overloads() {
        let signature = Signature::of(row.signature, env);
        if signature.receiver.is_none() && !signature.is_operator() {
            let name = signature.name;
            add(items, ItemKind::Function, name, row.signature.to_owned(), &told(row));
        }
    }
    for (since, found) in macro_offers().filter(|(since, found)| !found.receiver && *since <= env.version()) {
        add(items, ItemKind::Macro, found.name, String::new(), &told_macro(since, found));
    }
}

/// Completes values that a schema allows, where a string is compared with a field: `self.phase == '` and `self.phase in ['`.
fn values(origins: &Origins<'_, '_>, before: &str, items: &mut Items) -> Option<()> {
    let before = before.trim_end();
    let compared = ["==", "!="].iter().find_map(|operator| before.strip_suffix(operator));
    let compared = match compared {
        Some(compared) => compared,
        None => {
            let End::Open { bracket: Some(bracket), .. } = end(before) else { return None };
            before.get(..bracket)?.trim_end().strip_suffix(" in")?
        }
    };
    let (inferred, id) = operand(origins, compared.trim_end())?;
    let node = origins.of(&inferred, id)?;
    for value in node.schema()?.get("enum")?.as_array()?.iter().filter_map(Value::as_str) {
        add(items, ItemKind::Value, value, "string".to_owned(), "");
    }
    Some(())
}
