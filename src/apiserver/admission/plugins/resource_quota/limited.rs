//! Refuses the consumption of limited resources that no quota of the namespace covers.

use std::collections::BTreeSet;

use serde_json::Value;

use super::usage::usage;
use super::{Written, amounts, scopes, selectors};
use crate::admission::plugins::settings::Limited;

/// Says why a write is refused although no quota is exceeded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Uncovered {
    /// The object consumes a limited resource for which no quota sets an amount.
    Consumed(String),
    /// The object matches a limited scope that no quota covers. Upstream does not answer `Forbidden` for it.
    Scoped(String),
}

/// Returns what of the object is limited and not covered by a quota; None if all is covered.
pub(in crate::admission::plugins) fn uncovered<'q>(
    limited: &[Limited],
    quotas: impl Iterator<Item = &'q Value>,
    written: Written<'_>,
) -> Option<Uncovered> {
    let Written { of, object, now, .. } = written;
    let used = usage(of, object, now);
    let of_resource =
        limited.iter().filter(|limited| limited.api_group == of.group && limited.resource == of.plural);
    let mut consumed: BTreeSet<&str> = BTreeSet::new();
    for limited in of_resource {
        let is_limited = |name: &str| limited.match_contains.iter().any(|part| name.contains(part.as_str()));
        let names = used.iter().filter(|(name, amount)| amount.sign().is_gt() && is_limited(name));
        consumed.extend(names.map(|(name, _)| name.as_str()));
    }
    let scoped: Vec<_> = limited
        .iter()
        .flat_map(|limited| &limited.match_scopes)
        .filter(|scope| {
            let values: Vec<&str> = scope.values.iter().map(String::as_str).collect();
            scopes::holds((&scope.scope_name, &scope.operator, &values), of, object)
        })
        .collect();
    let mut covered_scopes: BTreeSet<String> = BTreeSet::new();
    for quota in quotas {
        let matched = selectors(quota)
            .filter(|(scope, operator, values)| scopes::holds((scope, operator, values), of, object));
        covered_scopes.extend(matched.map(|(scope, ..)| scope.to_owned()));
        let hard = amounts(quota, "/status/hard");
        let counted: Vec<&str> = hard.keys().copied().filter(|resource| of.counts(resource)).collect();
        if !counted.is_empty() && scopes::hold(quota, of, object) {
            counted.into_iter().for_each(|name| {
                consumed.remove(name);
            });
        }
    }
    if !consumed.is_empty() {
        let names = consumed.into_iter().collect::<Vec<_>>().join(",");
        return Some(Uncovered::Consumed(format!("insufficient quota to consume: {names}")));
    }
    let left: Vec<String> = scoped
        .into_iter()
        .filter(|scope| !covered_scopes.contains(&scope.scope_name))
        .map(|scope| format!("{{{} {} [{}]}}", scope.scope_name, scope.operator, scope.values.join(" ")))
        .collect();
    let why = format!("insufficient quota to match these scopes: [{}]", left.join(" "));
    (!left.is_empty()).then_some(Uncovered::Scoped(why))
}
