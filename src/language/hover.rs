//! Describes the part of an expression under the cursor.

use std::fmt::Write as _;
use std::ops::Range;

use admit_apimachinery::bounded::shorten;
use admit_cel::syntax::{Expr, ExprId};
use admit_cel::{Inferred, macro_offers};
use admit_policy::lint::{PlacedCost, RULE_LIMIT};
use admit_policy::{SELECTOR_LIMIT, selector_cost};
use serde_json::Value;

use crate::functions::{Signature, told, told_macro};
use crate::origin::Origins;
use crate::site::Kind;

/// The maximum number of overloads shown per function.
const MAX_ROWS: usize = 12;
/// The maximum length of a type, and of a description, in bytes.
const MAX_TEXT: usize = 2_000;
/// The schema constraints that are shown, in this order.
const BOUNDS: [&str; 14] = [
    "format",
    "enum",
    "default",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "x-kubernetes-list-type",
    "nullable",
];

/// Returns the byte range in the expression that the hover is about, and its text as Markdown.
pub(crate) fn hover(
    origins: &Origins<'_, '_>,
    costs: &[PlacedCost],
    offset: usize,
) -> Option<(Range<usize>, String)> {
    let text = origins.site.written.text();
    let range = word(text, offset);
    let name = text.get(range.clone())?;
    let inferred = origins.names.env.infer(text).ok();
    let mut parts: Vec<String> = Vec::new();
    let rest = text.get(range.end..).unwrap_or_default();
    if !name.is_empty() && rest.trim_start().starts_with('(') {
        parts.extend(function(origins, inferred.as_ref(), text, &range, name));
    }
    if parts.is_empty()
        && let Some(inferred) = &inferred
        && let Some(id) = part_at(inferred, &range, name)
    {
        parts.extend(field(origins, inferred, id));
    }
    parts.extend(cost(origins, costs));
    (!parts.is_empty()).then(|| (range, parts.join("\n\n---\n\n")))
}

/// Returns the name around a byte.
fn word(text: &str, offset: usize) -> Range<usize> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let (before, behind) = text.split_at_checked(offset).unwrap_or((text, ""));
    let start = before.trim_end_matches(is_name).len();
    let length = behind.find(|c| !is_name(c)).unwrap_or(behind.len());
    start..offset.min(text.len()).saturating_add(length)
}

/// Returns the part that ends with the name: the identifier, or the field selection.
fn part_at(inferred: &Inferred, range: &Range<usize>, name: &str) -> Option<ExprId> {
    let ast = inferred.ast();
    let end = u32::try_from(range.end).ok()?;
    let named = ast.ids().find(|id| match ast.expr(*id) {
        Expr::Select { field, test_only: false, .. } => &**field == name && ast.span(*id).end == end,
        Expr::Ident(ident) => &**ident == name && ast.span(*id).end == end && inferred.type_of(*id).is_some(),
        _ => false,
    });
    // The test in `has(a.b)` has the span of the macro.
    let tested = || {
        let holds = |id: &ExprId| {
            let span = ast.span(*id);
            matches!(ast.expr(*id), Expr::Select { field, test_only: true, .. } if &**field == name)
                && span.start < end
                && end < span.end
        };
        ast.ids().find(holds)
    };
    named.or_else(tested).or_else(|| ast.at(u32::try_from(range.start).ok()?))
}

fn function(
    origins: &Origins<'_, '_>,
    inferred: Option<&Inferred>,
    text: &str,
    range: &Range<usize>,
    name: &str,
) -> Option<String> {
    let env = &origins.names.env;
    let called = inferred.into_iter().flat_map(|inferred| {
        let ast = inferred.ast();
        let calls = ast.ids().filter(|id| {
            let span = ast.span(*id);
            let holds = (span.start as usize) <= range.start && range.end < span.end as usize;
            holds && matches!(ast.expr(*id), Expr::Call { function, .. } if function.rsplit('.').next() == Some(name))
        });
        // The innermost call of that name.
        let inner = calls.min_by_key(|id| ast.span(*id).end.saturating_sub(ast.span(*id).start));
        inner.map(|id| inferred.overloads(id)).unwrap_or_default()
    });
    let mut rows: Vec<_> = called.copied().collect();
    if rows.is_empty() {
        let is_member = text.get(..range.start).is_some_and(|before| before.ends_with('.'));
        let macros = macro_offers().filter(|(since, found)| {
            found.name == name && found.receiver == is_member && *since <= env.version()
        });
        let macros: Vec<String> = macros.map(|(since, found)| told_macro(since, found)).collect();
        if !macros.is_empty() {
            return Some(macros.join("\n\n"));
        }
        rows = env
            .overloads()
            .filter(|row| Signature::of(row.signature, env).name.rsplit('.').next() == Some(name))
            .collect();
        rows.sort_by_key(|row| row.id);
    }
    let told: Vec<String> = rows.iter().take(MAX_ROWS).map(|row| told(row)).collect();
    (!told.is_empty()).then(|| told.join("\n\n"))
}

/// Describes the type of a part and its schema.
fn field(origins: &Origins<'_, '_>, inferred: &Inferred, id: ExprId) -> Option<String> {
    let node = origins.of(inferred, id);
    let is_test = matches!(inferred.ast().expr(id), Expr::Select { test_only: true, .. });
    let ty = inferred.type_of(id).filter(|_| !is_test).map(ToString::to_string);
    if ty.is_none() && node.is_none() {
        return None;
    }
    let source = origins.site.written.text();
    let mut shown = inferred.ast().span(id).of(source).to_owned();
    shorten(&mut shown, MAX_TEXT);
    let mut out = match ty {
        Some(mut ty) => {
            shorten(&mut ty, MAX_TEXT);
            format!("```cel\n{shown}: {ty}\n```")
        }
        None => format!("```cel\n{shown}\n```"),
    };
    if let Some(schema) = node.as_ref().and_then(|node| node.schema()) {
        if let Some(description) = schema.get("description").and_then(Value::as_str) {
            let mut description = description.to_owned();
            shorten(&mut description, MAX_TEXT);
            // Writing to a string cannot fail.
            let _ = write!(out, "\n{description}");
        }
        for bound in BOUNDS {
            if let Some(value) = schema.get(bound) {
                let mut value = value.to_string();
                shorten(&mut value, MAX_TEXT);
                let _ = write!(out, "\n- {bound}: `{value}`");
            }
        }
    }
    Some(out)
}

/// Describes the estimated cost of the rule, from the last check, or of the selector.
fn cost(origins: &Origins<'_, '_>, costs: &[PlacedCost]) -> Option<String> {
    if origins.site.kind == Kind::Selector {
        let cost = selector_cost(origins.site.written.text())?;
        return Some(format!("Estimated cost: {cost} of {SELECTOR_LIMIT}."));
    }
    let Kind::Rule { schema, rule } = &origins.site.kind else { return None };
    if origins.site.path.last().is_none_or(|last| last != "rule") {
        return None;
    }
    let steps = schema.iter().map(String::as_str).chain(["x-kubernetes-validations"]);
    let rule = rule.to_string();
    let steps: Vec<&str> = steps.chain([rule.as_str(), "rule"]).collect();
    let key = origins.site.good.layout.find(origins.site.root, &steps)?;
    let position = origins.site.good.text.position(origins.site.good.layout.spot(key)?.key.start);
    let found = costs.iter().find(|cost| cost.position == position)?;
    let mut out = format!(
        "Estimated cost: {} of {RULE_LIMIT}, with {} runs at most.",
        found.rule.cost, found.rule.runs
    );
    let advice = found.rule.advice();
    if !advice.is_empty() {
        let _ = write!(out, " {advice}.");
    }
    Some(out)
}
