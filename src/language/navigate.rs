//! Finds the definition and the uses of a name.

use std::fmt;
use std::ops::Range;

use admit_apimachinery::pointer;
use admit_apimachinery::yaml::SpotId;
use admit_cel::is_identifier;
use admit_cel::syntax::Expr;
use serde_json::Value;

use crate::file::{File, Good, is_kind};
use crate::origin::{Node, Origins};
use crate::site::{Kind, Site};

/// Why a name cannot be changed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum RenameError {
    /// No variable of a policy is at the position.
    NoVariable,
    /// The new name is not a valid identifier.
    NoName(String),
    /// The policy already has a variable of that name.
    Taken(String),
    /// The current text is invalid YAML.
    Broken,
}

impl fmt::Display for RenameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoVariable => f.write_str("only variables of policies are renamed, and none stands here"),
            Self::NoName(name) => {
                write!(f, "`{name}` is no CEL identifier: letters, digits and `_`, no digit first")
            }
            Self::Taken(name) => write!(f, "the policy has a variable `{name}` already"),
            Self::Broken => f.write_str("the file is no YAML as it is now: mend that first"),
        }
    }
}

impl std::error::Error for RenameError {}

/// Returns the file and byte range of the definition of the name at a byte of the expression.
pub(crate) fn definition<'f>(
    origins: &Origins<'_, 'f>,
    offset: usize,
) -> Option<(&'f str, &'f Good, Range<usize>)> {
    let site = origins.site;
    let own = |id: SpotId| Some((origins.file, site.good, site.good.layout.spot(id)?.clone()));
    if let Some((name, _)) = variable_at(site.written.text(), offset) {
        let (_, _, spot) = own(declared(site, name)?)?;
        return Some((origins.file, site.good, spot.value));
    }
    let inferred = origins.names.env.infer(site.written.text()).ok()?;
    let ast = inferred.ast();
    let at = u32::try_from(offset).ok()?;
    let id = ast.at(at)?;
    match ast.expr(id) {
        Expr::Ident(name) if matches!(site.kind, Kind::Policy { .. }) && &**name == "params" => {
            let of_kind = origins.names.params.as_ref().and_then(|kind| origins.definition(kind));
            if let Some(node) = of_kind {
                return kind_name(&node);
            }
            let (file, good, spot) = own(site.good.layout.find(site.root, &["spec", "paramKind"])?)?;
            Some((file, good, spot.key))
        }
        Expr::Ident(name) if matches!(site.kind, Kind::Policy { .. }) && &**name == "variables" => {
            let (file, good, spot) = own(site.good.layout.find(site.root, &["spec", "variables"])?)?;
            Some((file, good, spot.key))
        }
        _ => {
            let node = origins.of(&inferred, id)?;
            let steps: Vec<&str> = node.steps.iter().map(String::as_str).collect();
            let root = node.good.root_of(node.document)?;
            let spot = node.good.layout.spot(node.good.layout.find(root, &steps)?)?;
            Some((node.file, node.good, spot.key.clone()))
        }
    }
}

fn kind_name<'f>(node: &Node<'f>) -> Option<(&'f str, &'f Good, Range<usize>)> {
    let root = node.good.root_of(node.document)?;
    let spot = node.good.layout.spot(node.good.layout.find(root, &["spec", "names", "kind"])?)?;
    Some((node.file, node.good, spot.value.clone()))
}

/// Returns the `name` node of a variable.
fn declared(site: &Site<'_>, name: &str) -> Option<SpotId> {
    let variables = site.document.value.pointer("/spec/variables")?.as_array()?;
    let named = |variable: &Value| variable.get("name").and_then(Value::as_str) == Some(name);
    let index = variables.iter().position(named)?.to_string();
    site.good.layout.find(site.root, &["spec", "variables", &index, "name"])
}

/// Returns the byte ranges to replace in order to rename a variable of a policy everywhere.
///
/// # Errors
/// If there is no variable at the position, or the new name is invalid.
pub(crate) fn rename(file: &File, offset: usize, new: &str) -> Result<Vec<Range<usize>>, RenameError> {
    let good = file.good.as_ref().filter(|_| file.is_good()).ok_or(RenameError::Broken)?;
    let text = file.text.as_str();
    let (name, document, root) = named_at(good, text, offset).ok_or(RenameError::NoVariable)?;
    if !is_identifier(new) {
        return Err(RenameError::NoName(new.to_owned()));
    }
    let variables = pointer::items(&document.value, "/spec/variables");
    let is_named = |variable: &&Value, name: &str| variable.get("name").and_then(Value::as_str) == Some(name);
    let all = variables.iter();
    if all.clone().any(|variable| is_named(&variable, new)) {
        return Err(RenameError::Taken(new.to_owned()));
    }
    let mut ranges = Vec::new();
    for (index, _) in all.enumerate().filter(|(_, variable)| is_named(variable, &name)) {
        let index = index.to_string();
        let id = good.layout.find(root, &["spec", "variables", &index, "name"]);
        let spot = id.and_then(|id| good.layout.spot(id));
        ranges.extend(spot.map(|spot| inner(text, &spot.value)));
    }
    for id in good.layout.ids() {
        let Some(spot) = good.layout.spot(id).filter(|spot| spot.style.is_some()) else { continue };
        let Some(site) = Site::of(good, id, &spot.value, text).filter(|site| site.root == root) else {
            continue;
        };
        let used = uses(site.written.text()).filter(|(used, _)| **used == *name);
        ranges.extend(used.map(|(_, range)| site.written.range(range)));
    }
    ranges.sort_by_key(|range| range.start);
    Ok(ranges)
}

/// Finds the variable at a byte of a policy: in its declaration, or in an expression.
fn named_at<'f>(
    good: &'f Good,
    text: &str,
    offset: usize,
) -> Option<(String, &'f admit_policy::manifest::Document, SpotId)> {
    let id = good.layout.at(offset)?;
    let spot = good.layout.spot(id)?;
    let (document, root, path) = good.document_of(id)?;
    if !is_kind(document, "ValidatingAdmissionPolicy") && !is_kind(document, "MutatingAdmissionPolicy") {
        return None;
    }
    let steps: Vec<&str> = path.iter().map(String::as_str).collect();
    if let ["spec", "variables", index, "name"] = steps.as_slice() {
        let pointer = format!("/spec/variables/{index}/name");
        return Some((document.value.pointer(&pointer)?.as_str()?.to_owned(), document, root));
    }
    let site = Site::of(good, id, &spot.value, text)?;
    let (name, _) = variable_at(site.written.text(), site.written.offset(offset))?;
    declared(&site, name)?;
    Some((name.to_owned(), document, root))
}

/// Returns the range of a scalar without its quotes.
fn inner(text: &str, value: &Range<usize>) -> Range<usize> {
    let is_quoted = text.get(value.clone()).is_some_and(|written| written.starts_with(['\'', '"']));
    let least = usize::from(is_quoted);
    value.start.saturating_add(least)..value.end.saturating_sub(least)
}

/// Returns the variable whose name is at a byte of an expression, and the range of the name.
fn variable_at(text: &str, offset: usize) -> Option<(&str, Range<usize>)> {
    uses(text).find(|(_, range)| range.start <= offset && offset <= range.end)
}

/// Finds every `variables.NAME` outside of string literals and comments, even in an expression that does not parse.
fn uses(text: &str) -> impl Iterator<Item = (&str, Range<usize>)> {
    const OF: &str = "variables.";
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let asides = crate::recover::asides(text);
    text.match_indices(OF).filter_map(move |(at, _)| {
        let before = text.get(..at)?;
        let is_whole = !before.ends_with(|c: char| is_name(c) || c == '.');
        let aside = asides.partition_point(|aside| aside.start <= at).checked_sub(1);
        let is_code = aside.and_then(|aside| asides.get(aside)).is_none_or(|aside| aside.end <= at);
        let start = at.saturating_add(OF.len());
        let rest = text.get(start..)?;
        let name = rest.get(..rest.find(|c| !is_name(c)).unwrap_or(rest.len()))?;
        (is_whole && is_code && !name.is_empty()).then(|| (name, start..start.saturating_add(name.len())))
    })
}

#[cfg(test)]
mod tests {
    use super::uses;

    #[test]
    fn variables_are_used_in_code_alone() {
        let text = "variables.a + 'variables.b' // variables.c\n + x.variables.d + variables.e";
        assert_eq!(uses(text).map(|(name, _)| name).collect::<Vec<_>>(), ["a", "e"]);
        // Finding each use must not rescan the text before it.
        let long = "variables.a + '' + ".repeat(100_000);
        assert_eq!(uses(&long).count(), 100_000);
    }
}
