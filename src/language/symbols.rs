//! Lists the outline of a file for editors: policies and definitions with their rules, suites with their cases; and the ranges that can
//! be folded.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use admit_apimachinery::bounded::shorten;
use admit_apimachinery::yaml::{SpotId, Step, Written};
use admit_policy::manifest::Document;
use admit_policy::suite::Suite;
use admit_policy::suite::crd::CrdSuite;
use serde_json::Value;

use crate::file::{Good, is_kind};

/// The maximum length of a name that is a message or expression, in bytes.
const MAX_NAME: usize = 80;
const RULES: &str = "x-kubernetes-validations";

/// The kind of an outline entry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SymbolKind {
    /// A policy, a definition, a suite or any other document.
    Document,
    /// A version of a definition.
    Version,
    /// A webhook, an authorizer or a token issuer.
    Asked,
    /// A variable of a policy.
    Variable,
    /// A match condition.
    Condition,
    /// A rule: what is checked.
    Rule,
    /// A mutation of a policy.
    Mutation,
    /// An audit annotation.
    Annotation,
    /// A case of a suite.
    Case,
}

/// An outline entry by its byte range, with its children.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) detail: String,
    pub(crate) kind: SymbolKind,
    pub(crate) range: Range<usize>,
    /// The range of its name, within its own.
    pub(crate) named: Range<usize>,
    pub(crate) parts: Vec<Self>,
}

/// A list whose items are entries: its path, the fields that name an item, and their children.
struct List {
    at: &'static [&'static str],
    names: &'static [&'static [&'static str]],
    kind: SymbolKind,
    within: &'static [Self],
}

const fn list(
    at: &'static [&'static str],
    names: &'static [&'static [&'static str]],
    kind: SymbolKind,
) -> List {
    List { at, names, kind, within: &[] }
}

const NAME: &[&[&str]] = &[&["name"]];
const EXPRESSION: &[&[&str]] = &[&["message"], &["expression"]];
const POLICY: &[List] = &[
    list(&["spec", "matchConditions"], NAME, SymbolKind::Condition),
    list(&["spec", "variables"], NAME, SymbolKind::Variable),
    list(&["spec", "validations"], EXPRESSION, SymbolKind::Rule),
    list(
        &["spec", "mutations"],
        &[&["applyConfiguration", "expression"], &["jsonPatch", "expression"]],
        SymbolKind::Mutation,
    ),
    list(&["spec", "auditAnnotations"], &[&["key"]], SymbolKind::Annotation),
];
const DEFINITION: &[List] = &[list(&["spec", "versions"], NAME, SymbolKind::Version)];
const WEBHOOKS: &[List] = &[List {
    at: &["webhooks"],
    names: NAME,
    kind: SymbolKind::Asked,
    within: &[list(&["matchConditions"], NAME, SymbolKind::Condition)],
}];
const AUTHENTICATION: &[List] = &[List {
    at: &["jwt"],
    names: &[&["issuer", "url"]],
    kind: SymbolKind::Asked,
    within: &[
        list(&["claimValidationRules"], &[&["message"], &["expression"], &["claim"]], SymbolKind::Rule),
        list(&["userValidationRules"], EXPRESSION, SymbolKind::Rule),
    ],
}];
const AUTHORIZATION: &[List] = &[List {
    at: &["authorizers"],
    names: NAME,
    kind: SymbolKind::Asked,
    within: &[list(&["webhook", "matchConditions"], EXPRESSION, SymbolKind::Condition)],
}];
const DEVICES: &[List] = &[list(&["spec", "selectors"], &[&["cel", "expression"]], SymbolKind::Rule)];
const SUITE: &[List] = &[
    list(&["cases"], NAME, SymbolKind::Case),
    list(&["states"], NAME, SymbolKind::Case),
    list(&["authentication"], NAME, SymbolKind::Case),
    list(&["authorization"], NAME, SymbolKind::Case),
    list(&["webhooks"], NAME, SymbolKind::Case),
    list(&["devices"], NAME, SymbolKind::Case),
];
const CRD_SUITE: &[List] = &[
    list(&["tests", "onCreate"], NAME, SymbolKind::Case),
    list(&["tests", "onUpdate"], NAME, SymbolKind::Case),
];

/// Returns the lists of entries in documents of a kind.
fn lists(document: &Document) -> &'static [List] {
    if Suite::is(&document.value) {
        return SUITE;
    }
    if CrdSuite::is(&document.value) {
        return CRD_SUITE;
    }
    match document.value.get("kind").and_then(Value::as_str).unwrap_or_default() {
        "ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy" => POLICY,
        "CustomResourceDefinition" => DEFINITION,
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => WEBHOOKS,
        "AuthenticationConfiguration" => AUTHENTICATION,
        "AuthorizationConfiguration" => AUTHORIZATION,
        "DeviceClass" => DEVICES,
        _ => &[],
    }
}

/// Returns the outline of a text.
pub(crate) fn parts(good: &Good) -> Vec<Part> {
    let outline = Outline { good };
    let mut roots: HashMap<usize, SpotId> = HashMap::new();
    for id in good.layout.ids() {
        if let Some(spot) = good.layout.spot(id).filter(|spot| spot.style.is_none()) {
            roots.entry(spot.value.start).or_insert(id);
        }
    }
    let part = |document: &std::sync::Arc<Document>| {
        let root = *roots.get(&good.text.offset_of(document.here()))?;
        outline.document(document, root)
    };
    good.documents.iter().filter_map(part).collect()
}

/// Returns the first and last line, from zero, of each node that spans more than a line and so can be folded.
pub(crate) fn folds(good: &Good) -> Vec<(usize, usize)> {
    let outline = Outline { good };
    let mut longest: BTreeMap<usize, usize> = BTreeMap::new();
    for range in good.layout.ids().filter_map(|id| outline.range(id)) {
        let line = |at: usize| good.text.position(at).line.saturating_sub(1);
        let (first, last) = (line(range.start), line(range.end));
        if last > first {
            let end = longest.entry(first).or_default();
            *end = last.max(*end);
        }
    }
    longest.into_iter().collect()
}

struct Outline<'g> {
    good: &'g Good,
}

impl Outline<'_> {
    fn document(&self, document: &Document, root: SpotId) -> Option<Part> {
        let range = self.range(root)?;
        let text = |pointer: &str| document.value.pointer(pointer).and_then(Value::as_str);
        let kind = text("/kind").unwrap_or_default();
        let name = text("/metadata/name").filter(|name| !name.trim().is_empty());
        let named = match name {
            Some(_) => self.good.layout.find(root, &["metadata", "name"]),
            None => self.good.layout.find(root, &["kind"]),
        };
        let named = named.and_then(|id| Some(self.good.layout.spot(id)?.value.clone()));
        let mut parts = self.lists(root, lists(document));
        if is_kind(document, "CustomResourceDefinition") {
            let versions = self.good.layout.find(root, &["spec", "versions"]);
            let versions = versions.into_iter().flat_map(|list| self.good.layout.children(list));
            for (part, version) in parts.iter_mut().zip(versions) {
                part.parts = self.rules(version);
            }
        }
        Some(Part {
            name: one_line(name.unwrap_or(if kind.is_empty() { "document" } else { kind })),
            detail: kind.to_owned(),
            kind: SymbolKind::Document,
            named: within(&range, named),
            range,
            parts,
        })
    }

    fn lists(&self, around: SpotId, lists: &'static [List]) -> Vec<Part> {
        let layout = &self.good.layout;
        let mut parts = Vec::new();
        for List { at, names, kind, within } in lists {
            for item in layout.find(around, at).into_iter().flat_map(|list| layout.children(list)) {
                let parts_in_it = self.lists(item, within);
                parts.extend(self.part(item, names, *kind).map(|part| Part { parts: parts_in_it, ..part }));
            }
        }
        parts.sort_by_key(|part| part.range.start);
        parts
    }

    /// Returns the entry of a list item, named by the first of `names` that it has, else by its index.
    fn part(&self, item: SpotId, names: &[&[&str]], kind: SymbolKind) -> Option<Part> {
        let range = self.range(item)?;
        let mut found = names.iter().filter_map(|steps| {
            let spot = self.good.layout.spot(self.good.layout.find(item, steps)?)?;
            let written = Written::of(self.good.text.as_str(), spot.value.clone(), spot.style?);
            let name = one_line(written.text());
            (!name.is_empty()).then(|| (name, spot.value.clone()))
        });
        let (name, named) = match found.next() {
            Some((name, named)) => (name, Some(named)),
            None => (self.number(item)?, None),
        };
        let named = within(&range, named);
        Some(Part { name, detail: String::new(), kind, range, named, parts: Vec::new() })
    }

    fn number(&self, item: SpotId) -> Option<String> {
        match &self.good.layout.spot(item)?.step {
            Step::Item(number) => Some(format!("[{number}]")),
            Step::Key(key) => Some(key.to_string()),
            Step::Document(_) => None,
        }
    }

    /// Returns the rules of a schema, each with the path that it validates.
    fn rules(&self, version: SpotId) -> Vec<Part> {
        let layout = &self.good.layout;
        let schema = layout.find(version, &["schema", "openAPIV3Schema"]);
        let mut open: Vec<(SpotId, String)> = schema.into_iter().map(|id| (id, String::new())).collect();
        let mut parts = Vec::new();
        while let Some((id, path)) = open.pop() {
            for child in layout.children(id) {
                let Some(Step::Key(key)) = layout.spot(child).map(|spot| &spot.step) else { continue };
                match &**key {
                    RULES => {
                        let rules = layout
                            .children(child)
                            .filter_map(|rule| self.part(rule, &[&["message"], &["rule"]], SymbolKind::Rule));
                        let detail = if path.is_empty() { "self" } else { &path };
                        parts.extend(rules.map(|part| Part { detail: detail.to_owned(), ..part }));
                    }
                    "properties" => open.extend(layout.children(child).filter_map(|field| {
                        let name = self.number(field)?;
                        Some((field, if path.is_empty() { name } else { format!("{path}.{name}") }))
                    })),
                    "items" => open.push((child, format!("{path}[]"))),
                    "additionalProperties" => open.push((child, format!("{path}[*]"))),
                    _ => {}
                }
            }
        }
        parts.sort_by_key(|part| part.range.start);
        parts
    }

    /// Returns the range of a node with its key, without trailing blanks.
    fn range(&self, id: SpotId) -> Option<Range<usize>> {
        let spot = self.good.layout.spot(id)?;
        let start = if spot.key.is_empty() { spot.value.start } else { spot.key.start };
        let written = self.good.text.as_str().get(start..spot.value.end.max(start))?;
        Some(start..start.saturating_add(written.trim_end().len()))
    }
}

/// Returns the name's range if it is inside; else the beginning of the entry.
fn within(range: &Range<usize>, named: Option<Range<usize>>) -> Range<usize> {
    named
        .map(|named| named.start..named.end.min(range.end))
        .filter(|named| range.start <= named.start && named.start <= named.end)
        .unwrap_or(range.start..range.start)
}

fn one_line(text: &str) -> String {
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    shorten(&mut line, MAX_NAME);
    line
}
