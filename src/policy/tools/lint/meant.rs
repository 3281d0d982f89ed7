//! Suggests corrections for unknown names in expressions.

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use admit_apimachinery::pointer;
use admit_apimachinery::suggest::{self, did_you_mean};
use admit_cel::{DeclKind, DeclType, Env, Mode, Type};
use serde_json::Value;

use crate::read::manifest::{Document, LoadError};
use crate::release::FOLLOWED;

/// The text before an unknown function, variable or field in a compiler's message.
const UNDECLARED: &str = "undeclared reference to '";
const UNDEFINED: &str = "undefined field '";

/// Variables of rules and policies.
const VARIABLES: [&str; 9] = [
    "object",
    "oldObject",
    "request",
    "params",
    "namespaceObject",
    "variables",
    "authorizer",
    "self",
    "oldSelf",
];

/// All functions, sorted: of equally similar ones the first is suggested.
static FUNCTIONS: LazyLock<BTreeSet<&'static str>> =
    LazyLock::new(|| Env::of_release(FOLLOWED, Mode::New).functions().collect());

/// Returns `did you mean …?` for the unknown name in `text`, a compiler's message: `fields` are those of the objects. Empty if no name
/// is similar.
pub(super) fn help<'f>(text: &str, fields: impl IntoIterator<Item = &'f str>) -> String {
    if let Some(name) = quoted(text, UNDECLARED) {
        let known = FUNCTIONS.iter().copied().chain(VARIABLES);
        return did_you_mean(suggest::nearest(name, known));
    }
    let meant = quoted(text, UNDEFINED).and_then(|name| suggest::nearest(name, fields));
    did_you_mean(meant)
}

/// Suggests names for a document that a server rejects: fields are those in its schemas and variables.
pub(super) fn help_for(mistake: &LoadError, documents: &ByPlace<'_>) -> String {
    if !mistake.message.contains(UNDECLARED) && !mistake.message.contains(UNDEFINED) {
        return String::new();
    }
    let mut names = BTreeSet::new();
    if let Some(document) = documents.at(mistake) {
        properties(&document.value, &mut names);
        variables(document, &mut names);
    }
    help(&mistake.message, names)
}

/// The documents of each file, in their order there: a file may have as many mistakes as documents.
#[derive(Debug)]
pub(super) struct ByPlace<'d>(HashMap<&'d str, Vec<&'d Document>>);

impl<'d> ByPlace<'d> {
    pub(super) fn of(documents: &[&'d Document]) -> Self {
        let mut by_file: HashMap<_, Vec<_>> = HashMap::new();
        for document in documents.iter().copied() {
            by_file.entry(&*document.file).or_default().push(document);
        }
        Self(by_file)
    }

    /// Returns the document that contains an error: the last one of the file that begins before it.
    fn at(&self, mistake: &LoadError) -> Option<&'d Document> {
        let of_file = self.0.get(&*mistake.file)?;
        let behind = of_file.partition_point(|document| document.position("") <= mistake.position);
        of_file.get(behind.checked_sub(1)?).copied()
    }
}

/// The names of a policy's variables.
pub(super) fn variables<'d>(document: &'d Document, names: &mut BTreeSet<&'d str>) {
    let list = pointer::items(&document.value, "/spec/variables");
    names.extend(list.iter().filter_map(|one| one.get("name")?.as_str()));
}

/// Collects the names of all properties of all schemas in a definition. Recursive: parsing has limited the depth.
fn properties<'d>(value: &'d Value, names: &mut BTreeSet<&'d str>) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::Object(properties)) = fields.get("properties") {
                names.extend(properties.keys().map(String::as_str));
            }
            fields.values().for_each(|value| properties(value, names));
        }
        Value::Array(items) => items.iter().for_each(|value| properties(value, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The names of all fields of a type, and of those in it.
pub(super) fn fields<'t>(of: &'t Type, names: &mut BTreeSet<&'t str>) {
    match of {
        Type::Object(decl) => fields_of(decl, names),
        Type::List(item) | Type::Optional(item) | Type::Wrapper(item) => fields(item, names),
        Type::Map(_, value) => fields(value, names),
        _ => {}
    }
}

fn fields_of<'t>(decl: &'t DeclType, names: &mut BTreeSet<&'t str>) {
    match &decl.kind {
        DeclKind::Object { fields, .. } => {
            for field in fields {
                names.insert(&field.cel_name);
                fields_of(&field.decl, names);
            }
        }
        DeclKind::List { items, .. } => fields_of(items, names),
        DeclKind::Map { value, .. } => fields_of(value, names),
        DeclKind::Scalar(of) => fields(of, names),
        DeclKind::Date => {}
    }
}

/// Returns the text between `before` and the next quote.
fn quoted<'t>(text: &'t str, before: &str) -> Option<&'t str> {
    let (_, behind) = text.split_once(before)?;
    behind.split_once('\'').map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::help;

    #[test]
    fn functions_variables_and_fields_are_suggested() {
        let fields = ["replicas", "selector"];
        for (text, expected) in [
            ("ERROR: undeclared reference to 'startWith' (in container '')", "did you mean `startsWith`?"),
            ("undeclared reference to 'objct'", "did you mean `object`?"),
            ("undeclared reference to 'zzzzzzzz'", ""),
            ("undefined field 'replcas'", "did you mean `replicas`?"),
            ("undefined field 'limits'", ""),
            ("found no matching overload", ""),
        ] {
            assert_eq!(help(text, fields), expected, "{text}");
        }
    }
}
