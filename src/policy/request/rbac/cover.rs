//! Computes which permissions of some rules are not covered by others, without enumerating every combination of verb,
//! group, resource and name: a rule of 2 KB has 70 × 70 × 70 × 70 of these.
//!
//! ```text
//! wanted rule ──► verbs │ groups │ resources │ names     each value with the held rules that allow it: a set
//!                   └───────┴────────┴──► intersected in this order; an empty set allows nothing of what is below
//! ```
//!
//! Values that the same held rules allow are processed together.

use std::collections::HashMap;

use admit_apimachinery::findings::MAX_FINDING_BYTES;
use indexmap::IndexMap;

use super::Rule;
use super::rule::{has, resource_fits, url_fits};
use crate::deadline::checkpoint;

/// The maximum number of missing permissions (a verb on a resource, name or URL) to list. The largest roles of a cluster have some
/// 1,500; further ones are only counted.
const MAX_TOLD: usize = 10_000;

/// Steps of comparisons: a held rule against a value, or a set of them against another. The dearest legitimate
/// comparison, 20,000 rules of one resource each against some hundred, takes a tenth of them; all of them are a fraction of a
/// second.
const MAX_STEPS: u64 = 20_000_000;

/// The maximum size of the cached sets for one rule, in words: some megabytes in total. A rule that is not made to defeat the cache has
/// few sets.
const MAX_KNOWN: usize = 100_000;

/// The permissions that are missing.
///
/// [`Rule`] has an example.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// Rules of one resource, name or URL each, with all verbs that are missing of it.
    pub rules: Vec<Rule>,
    /// The number of missing permissions that are not listed.
    pub more: u64,
    /// Comparing ended before everything was compared, and the rest counts as missing.
    pub undecided: bool,
}

impl Missing {
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// The missing rules as refusals print them, sorted and without duplicates, then the number of unlisted ones.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut bytes = 0_usize;
        let mut lines: Vec<String> = Vec::new();
        for rule in &self.rules {
            if bytes >= MAX_FINDING_BYTES {
                break;
            }
            let line = rule.to_string();
            bytes = bytes.saturating_add(line.len());
            lines.push(line);
        }
        let untold = self.rules.len().saturating_sub(lines.len());
        let more = self.more.saturating_add(u64::try_from(untold).unwrap_or(u64::MAX));
        lines.sort_unstable();
        lines.dedup();
        if more > 0 {
            lines.push(format!("and {more} more"));
        }
        if self.undecided {
            lines.push("and others: there are too many to compare".to_owned());
        }
        lines
    }
}

/// The permissions of `wanted` that `held` does not cover; verbs of one resource are combined into one rule.
///
/// [`Rule`] has an example.
#[must_use]
pub fn missing(held: &[Rule], wanted: &[Rule]) -> Missing {
    let mut search = Search { held: Held::new(held), steps: 0, told: Told::default() };
    for rule in wanted {
        checkpoint();
        search.urls(rule);
        search.resources(rule);
        if search.is_over() {
            break;
        }
    }
    let undecided = search.is_over();
    let Told { merged, more, .. } = search.told;
    let rules = merged.into_iter().map(|(part, verbs)| part.rule(&verbs)).collect();
    Missing { rules, more, undecided }
}

/// Held rules, indexed by the resources they name.
struct Held<'h> {
    rules: &'h [Rule],
    /// Rules by resource as written: `pods`, `*`, `*/log`.
    by_resource: HashMap<&'h str, Vec<usize>>,
    with_urls: Vec<usize>,
}

impl<'h> Held<'h> {
    fn new(rules: &'h [Rule]) -> Self {
        let mut by_resource: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, rule) in rules.iter().enumerate() {
            for resource in &rule.resources {
                let rules = by_resource.entry(resource).or_default();
                if rules.last() != Some(&at) {
                    rules.push(at);
                }
            }
        }
        let with_urls = rules.iter().enumerate().filter(|(_, rule)| !rule.non_resource_urls.is_empty());
        Self { rules, by_resource, with_urls: with_urls.map(|(at, _)| at).collect() }
    }

    /// The rules that may allow one of the resources of `wanted`, in their order.
    fn of_resources(&self, wanted: &Rule) -> Vec<usize> {
        let mut found = Vec::new();
        let mut add = |written: &str| found.extend(self.by_resource.get(written).into_iter().flatten());
        add("*");
        for item in &wanted.resources {
            let (resource, subresource) = item.split_once('/').unwrap_or((item, ""));
            add(&format!("{resource}/{subresource}"));
            add(&format!("*/{subresource}"));
            if subresource.is_empty() {
                add(resource);
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    fn rule(&self, at: usize) -> Option<&'h Rule> {
        self.rules.get(at)
    }
}

/// Some of the held rules, a bit for each.
type Set = Box<[u64]>;

/// The values of one field of a wanted rule, each with the number of its set.
struct Field<'w> {
    values: Vec<(&'w str, usize)>,
    sets: Vec<Set>,
}

/// A missing permission without its verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Part<'w> {
    /// The number distinguishes URLs that must not be merged.
    Url(&'w str, usize),
    Resource {
        group: &'w str,
        resource: &'w str,
        name: Option<&'w str>,
    },
}

impl Part<'_> {
    fn rule(self, verbs: &[&str]) -> Rule {
        let one = |text: &str| vec![text.to_owned()];
        let verbs = verbs.iter().map(|verb| (*verb).to_owned()).collect();
        match self {
            Self::Url(url, _) => Rule { verbs, non_resource_urls: one(url), ..Rule::default() },
            Self::Resource { group, resource, name } => Rule {
                verbs,
                api_groups: one(group),
                resources: one(resource),
                resource_names: name.map(one).unwrap_or_default(),
                ..Rule::default()
            },
        }
    }
}

/// What was found missing so far.
#[derive(Default)]
struct Told<'w> {
    merged: IndexMap<Part<'w>, Vec<&'w str>>,
    count: usize,
    more: u64,
}

impl<'w> Told<'w> {
    const fn is_full(&self) -> bool {
        self.count >= MAX_TOLD
    }

    fn add(&mut self, verb: &'w str, part: Part<'w>) {
        if self.is_full() {
            self.more = self.more.saturating_add(1);
        } else {
            self.count = self.count.saturating_add(1);
            self.merged.entry(part).or_default().push(verb);
        }
    }
}

struct Search<'h, 'w> {
    held: Held<'h>,
    steps: u64,
    told: Told<'w>,
}

/// The fields of one wanted rule, with a cache: by field, and by the set of held rules that allow the choices for all earlier fields,
/// the number of missing permissions below.
struct Product<'w> {
    fields: Vec<Field<'w>>,
    known: HashMap<(usize, Set), u64>,
    /// Words of sets that may still be remembered.
    room: usize,
}

impl<'w> Search<'_, 'w> {
    const fn is_over(&self) -> bool {
        self.steps >= MAX_STEPS
    }

    fn step(&mut self, steps: usize) {
        self.steps = self.steps.saturating_add(u64::try_from(steps).unwrap_or(u64::MAX));
    }

    fn urls(&mut self, wanted: &'w Rule) {
        for verb in &wanted.verbs {
            for url in &wanted.non_resource_urls {
                if self.is_over() {
                    return;
                }
                let held = || self.held.with_urls.iter().filter_map(|at| self.held.rule(*at));
                let patterns = held().fold(1, |sum: usize, rule| {
                    sum.saturating_add(rule.verbs.len()).saturating_add(rule.non_resource_urls.len())
                });
                let mut rules = held();
                let allowed = rules.any(|rule| {
                    rule.resource_names.is_empty()
                        && has(&rule.verbs, verb)
                        && rule.non_resource_urls.iter().any(|own| url_fits(own, url))
                });
                self.step(patterns);
                if !allowed {
                    self.told.add(verb, Part::Url(url, self.told.count));
                }
            }
        }
    }

    fn resources(&mut self, wanted: &'w Rule) {
        let candidates = self.held.of_resources(wanted);
        self.step(candidates.len().saturating_add(wanted.resources.len()));
        let rules: Vec<&Rule> = candidates.iter().filter_map(|at| self.held.rule(*at)).collect();
        let resource = |rule: &Rule, item: &str| {
            let (resource, subresource) = item.split_once('/').unwrap_or((item, ""));
            rule.resources.iter().any(|own| resource_fits(own, resource, subresource))
        };
        let name = |rule: &Rule, name: &str| {
            rule.resource_names.is_empty() || rule.resource_names.iter().any(|own| own == name)
        };
        let names: &[&str] = &texts(&wanted.resource_names);
        let unnamed = names.is_empty();
        let fields = vec![
            self.field(
                &rules,
                &texts(&wanted.verbs),
                |rule| &rule.verbs,
                |rule, verb| has(&rule.verbs, verb),
            ),
            self.field(
                &rules,
                &texts(&wanted.api_groups),
                |rule| &rule.api_groups,
                |rule, group| has(&rule.api_groups, group),
            ),
            self.field(&rules, &texts(&wanted.resources), |rule| &rule.resources, resource),
            // A permission for all names is allowed only by rules without names.
            if unnamed {
                self.field(
                    &rules,
                    &[""],
                    |rule| &rule.resource_names,
                    |rule, _| rule.resource_names.is_empty(),
                )
            } else {
                self.field(&rules, names, |rule| &rule.resource_names, name)
            },
        ];
        let all = (0..rules.len().div_ceil(64)).map(|_| u64::MAX).collect();
        let mut product = Product { fields, known: HashMap::new(), room: MAX_KNOWN };
        self.below(&mut product, &mut Vec::new(), all, unnamed);
    }

    /// Returns the `values` of a field, each with the set of `rules` that allow it; a comparison scans what is `listed` there.
    fn field(
        &mut self,
        rules: &[&Rule],
        values: &[&'w str],
        listed: fn(&Rule) -> &Vec<String>,
        allows: impl Fn(&Rule, &str) -> bool,
    ) -> Field<'w> {
        let mut numbers: HashMap<Set, usize> = HashMap::new();
        let mut field = Field { values: Vec::with_capacity(values.len()), sets: Vec::new() };
        let cost = rules.iter().fold(1, |sum, rule| listed(rule).len().saturating_add(1).saturating_add(sum));
        for value in values {
            if self.is_over() {
                break;
            }
            self.step(cost);
            let set: Set = rules
                .chunks(64)
                .map(|rules| {
                    // The first rule is the last bit.
                    let allowed = rules.iter().rev().map(|rule| u64::from(allows(rule, value)));
                    allowed.fold(0_u64, |word, bit| word.rotate_left(1) | bit)
                })
                .collect();
            let next = numbers.len();
            let number = *numbers.entry(set.clone()).or_insert_with(|| {
                field.sets.push(set);
                next
            });
            field.values.push((value, number));
        }
        field
    }

    /// Counts the missing permissions among the remaining choices, where `chosen` was chosen before and `left` are the rules that allow
    /// it; lists them as long as there is space.
    fn below(
        &mut self,
        product: &mut Product<'w>,
        chosen: &mut Vec<&'w str>,
        left: Set,
        unnamed: bool,
    ) -> u64 {
        let depth = chosen.len();
        if depth == product.fields.len() {
            return self.leaf(chosen, &left, unnamed);
        }
        let at = (depth, left);
        match product.known.get(&at) {
            Some(0) => return 0,
            Some(known) if self.told.is_full() => {
                self.told.more = self.told.more.saturating_add(*known);
                return *known;
            }
            _ => {}
        }
        let mut missing = 0_u64;
        for position in 0.. {
            let Some((value, set)) = product.fields.get(depth).and_then(|field| {
                let (value, number) = field.values.get(position)?;
                Some((*value, field.sets.get(*number)?))
            }) else {
                break;
            };
            if self.is_over() {
                return missing;
            }
            let both: Set = at.1.iter().zip(set).map(|(left, set)| left & set).collect();
            self.step(both.len().saturating_add(1));
            chosen.push(value);
            missing = missing.saturating_add(self.below(product, chosen, both, unnamed));
            chosen.pop();
        }
        let size = at.1.len().saturating_add(1);
        if let Some(room) = product.room.checked_sub(size) {
            product.room = room;
            product.known.insert(at, missing);
        }
        missing
    }

    /// Counts and lists a complete choice: 1 if no rule allows it, else 0.
    fn leaf(&mut self, chosen: &[&'w str], left: &Set, unnamed: bool) -> u64 {
        let [verb, group, resource, name] = *chosen else { return 0 };
        if left.iter().any(|words| *words != 0) {
            return 0;
        }
        let name = (!unnamed).then_some(name);
        self.told.add(verb, Part::Resource { group, resource, name });
        1
    }
}

fn texts(list: &[String]) -> Vec<&str> {
    list.iter().map(String::as_str).collect()
}

#[cfg(test)]
mod tests;
