//! Finds the releases at which the verdict on a document may change, from the names that it contains. Releases between two boundaries
//! are judged once, so judging nine releases costs little more than judging one.
//!
//! INVARIANT: a superfluous boundary costs a run; a missing one would give a wrong verdict. So a name alone makes a boundary, whatever
//! it stands for in the text.

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use admit_cel::{Version, build_changes, is_identifier, overloads};
use serde_json::Value;

use super::facts::{FACTS, Fact, Subject};
use super::{Release, Releases};

type ByName = HashMap<&'static str, BTreeSet<Release>>;

/// The boundaries by the names in expressions.
static OF_NAMES: LazyLock<ByName> = LazyLock::new(of_names);
/// The same of expressions whose cost is estimated: rules of definitions.
static OF_ESTIMATES: LazyLock<ByName> = LazyLock::new(of_estimates);

/// Macros that have a form of two variables.
const OF_TWO_VARIABLES: [&str; 7] =
    ["all", "exists", "exists_one", "existsOne", "transformList", "transformMap", "transformMapEntry"];
/// Other macros that walk through a container, or give a value a name.
const OTHER_MACROS: [&str; 5] = ["filter", "map", "optMap", "optFlatMap", "sortBy"];

/// Functions whose constant arguments are checked when they are written.
const CHECKED: [&str; 5] = ["duration", "timestamp", "matches", "find", "findAll"];

/// Keys of documents whose values are expressions.
const EXPRESSIONS: [&str; 4] = ["rule", "expression", "messageExpression", "valueExpression"];

const fn minor(minor: u16) -> Release {
    Release(Version(1, minor))
}

/// The function of a signature, without its namespace.
pub(super) fn function_of(signature: &str) -> &str {
    let name = signature.split('(').next().unwrap_or_default();
    // The receiver `list(T)` has brackets of its own.
    let name = if signature.starts_with("list(")
        || signature.starts_with("map(")
        || signature.starts_with("optional_type(")
    {
        signature.split(").").nth(1).and_then(|rest| rest.split('(').next()).unwrap_or(name)
    } else {
        name
    };
    name.rsplit('.').next().unwrap_or(name)
}

/// The first release that offers a row to new expressions as it is installed.
///
/// ```
/// use admit_analysis::releases::offered_from;
///
/// let row = admit_cel::overloads().find(|row| row.id == "quantity_is_less_than").expect("a row");
/// assert_eq!(offered_from(row).to_string(), "1.29");
/// ```
#[must_use]
pub fn offered_from(row: &admit_cel::Overload) -> Release {
    let Version(major, minor) = row.since;
    let by_version = Release(Version(major, minor.saturating_add(1)));
    let built = build_changes()
        .filter(|change| change.absent && change.from.is_none() && change.overloads.contains(&row.id))
        .filter_map(|change| change.until.map(Release))
        .max();
    built.map_or(by_version, |built| built.max(by_version))
}

fn of_names() -> ByName {
    let mut names = ByName::new();
    for row in overloads() {
        let name = function_of(row.signature);
        let found = names.entry(name).or_default();
        found.insert(offered_from(row));
        for change in build_changes().filter(|change| change.overloads.contains(&row.id)) {
            found.extend([change.from, change.until].into_iter().flatten().map(Release));
        }
    }
    for name in OF_TWO_VARIABLES {
        names.entry(name).or_default().insert(minor(33));
    }
    names.entry("sortBy").or_default().insert(minor(35));
    for name in CHECKED {
        names.entry(name).or_default().insert(minor(30));
    }
    names.entry("net").or_default().insert(minor(31));
    names
}

fn of_estimates() -> ByName {
    let mut names = ByName::new();
    // Values of these types are compared at other costs.
    for row in
        overloads().filter(|row| row.signature.contains("kubernetes.") || row.signature.contains("net."))
    {
        names.entry(function_of(row.signature)).or_default().insert(minor(32));
    }
    // Both changes of the estimate's walk.
    for name in OF_TWO_VARIABLES.into_iter().chain(OTHER_MACROS) {
        names.entry(name).or_default().extend([minor(30), minor(33)]);
    }
    for name in ["dyn", "optional"] {
        names.entry(name).or_default().insert(minor(33));
    }
    names.entry("metadata").or_default().insert(minor(37));
    names
}

/// Whether a server reads it from a file when it starts.
pub(super) fn is_of_server(document: &Value) -> bool {
    let text = |field: &str| document.get(field).and_then(Value::as_str).unwrap_or_default();
    let is_read = matches!(text("kind"), "AuthenticationConfiguration" | "AuthorizationConfiguration");
    is_read && text("apiVersion").starts_with("apiserver.config.k8s.io/")
}

/// The boundaries of a document. Those that a server reads when it starts may use all that it has: each release is one.
pub(super) fn of(document: &Value) -> BTreeSet<Release> {
    if is_of_server(document) {
        return Releases::all().iter().collect();
    }
    let is_estimated = document.get("kind").and_then(Value::as_str) == Some("CustomResourceDefinition");
    let mut walk = Walk { is_estimated, found: BTreeSet::new() };
    walk.value(document, "");
    walk.found
}

/// Returns the boundaries of decisions, beside those of the document itself: ratcheting, costs of calls in policies, and existing
/// kinds.
pub(super) fn of_decisions(document: &Value) -> BTreeSet<Release> {
    let text = |field: &str| document.get(field).and_then(Value::as_str).unwrap_or_default();
    let kind = format!("{} {}", text("apiVersion"), text("kind"));
    let served = FACTS.iter().filter(|fact| fact.subject == Subject::Kind && fact.name == kind);
    let mut found: BTreeSet<Release> = served.map(|fact| fact.from).collect();
    match text("kind") {
        "CustomResourceDefinition" => found.insert(minor(30)),
        kind => kind.contains("AdmissionPolicy") && found.insert(minor(32)),
    };
    found
}

struct Walk {
    is_estimated: bool,
    found: BTreeSet<Release>,
}

impl Walk {
    fn value(&mut self, value: &Value, key: &str) {
        match value {
            Value::Object(fields) => {
                for (name, field) in fields {
                    self.facts(|fact| fact.subject == Subject::Field && fact.name == name);
                    self.value(field, name);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.value(item, key)),
            Value::String(text) if EXPRESSIONS.contains(&key) => self.expression(text),
            Value::String(text) if key == "format" => {
                self.facts(|fact| fact.subject == Subject::Format && is_format(fact.name, text));
            }
            Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn facts(&mut self, is_meant: impl Fn(&Fact) -> bool) {
        self.found.extend(FACTS.iter().filter(|fact| is_meant(fact)).map(|fact| fact.from));
    }

    fn expression(&mut self, text: &str) {
        if self.is_estimated && (text.contains(['[', '{']) || text.contains(".?")) {
            self.found.extend([minor(30), minor(33)]);
        }
        for word in text.split(|c: char| !(c == '_' || c.is_ascii_alphanumeric())) {
            self.found.extend(OF_NAMES.get(word).into_iter().flatten());
            if self.is_estimated {
                self.found.extend(OF_ESTIMATES.get(word).into_iter().flatten());
            }
            // A reserved word is no identifier; whether it names a field is checked only for those that usually do not.
            let is_word = word.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic());
            if is_word && !is_identifier(word) && !OPERATORS.contains(&word) {
                self.found.insert(minor(32));
            }
        }
        if OPERATORS.iter().any(|word| is_selected(text, word)) {
            self.found.insert(minor(32));
        }
    }
}

/// Reserved words that are operators or literals.
const OPERATORS: [&str; 4] = ["in", "true", "false", "null"];

/// Whether the word follows a dot, possibly with a question mark and blanks.
fn is_selected(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let before = text.get(..at).unwrap_or_default().trim_end();
        before.strip_suffix('?').unwrap_or(before).trim_end().ends_with('.')
    })
}

/// Dashes in the names of formats do not count.
pub(super) fn is_format(known: &str, written: &str) -> bool {
    let bare = |text: &str| text.replace('-', "");
    bare(known) == bare(written)
}
