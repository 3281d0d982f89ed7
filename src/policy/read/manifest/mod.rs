//! Parses the text of a manifest file into documents that know the position of each of their fields.
//!
//! ```text
//! text ──admit_apimachinery::yaml──► tree with positions ──flatten `kind: List`──► Document { value, positions }
//! ```
//!
//! JSON is parsed as YAML, of which it is a subset. Reading the file, and what the documents mean, is left to others.

mod position;

use admit_apimachinery::field_error::FieldError;
pub use admit_apimachinery::yaml::Position;
use admit_apimachinery::yaml::{self, Duplicate, Layout, ListOf, Piece, Positions, Reread, Tree, YamlError};

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

/// An object of a manifest file.
///
/// ```
/// use admit_apimachinery::field_error::FieldError;
/// use admit_policy::manifest::{self, Document};
/// use serde_json::json;
///
/// let documents = manifest::read("a.yaml", "kind: A\nspec:\n  size: 3\n").unwrap();
/// let document = &documents[0];
/// assert_eq!((document.here().line, document.position("spec.size").line), (1, 3));
/// assert_eq!(document.mistake("is of no use").to_string(), "a.yaml:1:1: is of no use");
/// let wrong = FieldError::forbidden("spec.size", "is fixed");
/// assert_eq!(document.error(&wrong).to_string(), "a.yaml:3:3: spec.size: Forbidden: is fixed");
///
/// // Objects of a cluster have no place in a file.
/// assert_eq!(Document::unwritten("pods".into(), json!({})).here().line, 0);
/// ```
#[derive(Clone, Debug)]
pub struct Document {
    /// The name of the file, as its reader gave it.
    pub file: Arc<str>,
    pub value: Value,
    positions: Positions,
}

/// A mistake in a manifest, with the location that has to be changed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LoadError {
    pub file: Arc<str>,
    pub position: Position,
    /// The field in Kubernetes' notation, `spec.validations[0].expression`; empty for a syntax error.
    pub field: String,
    /// May have further lines, such as CEL's caret block.
    pub message: String,
}

impl fmt::Display for LoadError {
    /// `policies/a.yaml:12:5: spec.failurePolicy: Unsupported value: …`. A message that opens with the field is left
    /// as it is.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: ", self.file, self.position.line, self.position.column)?;
        if !self.field.is_empty() && !self.message.starts_with(&self.field) {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for LoadError {}

/// Reads every document of `text`. Empty documents are skipped, and lists are replaced by their items.
///
/// # Errors
/// The first syntax error, or all duplicate keys.
///
/// ```
/// use admit_policy::manifest;
///
/// let documents = manifest::read("a.yaml", "kind: A\n---\nkind: B\nspec: {size: 3}\n").unwrap();
/// assert_eq!(documents.len(), 2);
/// assert_eq!(documents[1].position("spec.size").line, 4);
/// ```
pub fn read(file: &str, text: &str) -> Result<Vec<Document>, Vec<LoadError>> {
    let (documents, duplicates) = read_leniently(file, text)?;
    if duplicates.is_empty() { Ok(documents) } else { Err(duplicates) }
}

/// Like [`read`], for formats whose readers accept duplicate keys, where the last value counts; returns the
/// duplicates as well.
///
/// # Errors
/// The first mistake in the syntax.
///
/// ```
/// use admit_policy::manifest;
///
/// let (documents, duplicates) = manifest::read_leniently("a.yaml", "kind: A\nkind: B\n").unwrap();
/// assert_eq!((documents[0].value["kind"].as_str(), duplicates.len()), (Some("B"), 1));
/// ```
pub fn read_leniently(file: &str, text: &str) -> Result<(Vec<Document>, Vec<LoadError>), Vec<LoadError>> {
    let file: Arc<str> = file.into();
    let trees = yaml::parse(text).map_err(|error| vec![mistaken(&file, error)])?;
    let mut part = Part { documents: Vec::with_capacity(trees.len()), duplicates: Vec::new() };
    trees.into_iter().for_each(|tree| part.extend(&file, tree, None));
    Ok((part.documents, part.duplicates))
}

/// Reads the documents like [`read`], together with the positions of all nodes.
///
/// # Errors
/// As [`read`].
///
/// ```
/// use admit_policy::manifest;
///
/// let (documents, layout) = manifest::read_placed("a.yaml", "kind: A\n").unwrap();
/// assert_eq!((documents.len(), layout.ids().count()), (1, 2));
/// ```
pub fn read_placed(file: &str, text: &str) -> Result<(Vec<Document>, Layout), Vec<LoadError>> {
    let file: Arc<str> = file.into();
    let (trees, layout) = yaml::parse_placed(text).map_err(|error| vec![mistaken(&file, error)])?;
    let mut part = Part { documents: Vec::with_capacity(trees.len()), duplicates: Vec::new() };
    trees.into_iter().for_each(|tree| part.extend(&file, tree, None));
    if part.duplicates.is_empty() { Ok((part.documents, layout)) } else { Err(part.duplicates) }
}

/// A document of a text, or an item of a list.
#[derive(Debug, Default)]
pub struct Part {
    /// The document itself; empty for an empty document, and for a list whose items were already returned; several items of a list that
    /// can only be separated after parsing, for example if one has an anchor.
    pub documents: Vec<Document>,
    /// Keys that a map of it has twice.
    pub duplicates: Vec<LoadError>,
}

/// Iterates over the documents of `text`, with lists (`kind: List`, as `kubectl get -o yaml` writes them) split into items, for texts
/// with more objects than fit in memory at once: the limits apply to each separately.
///
/// # Errors
/// The first syntax error, which ends the iteration.
///
/// ```
/// use admit_policy::manifest;
///
/// let list = "kind: List\napiVersion: v1\nitems: [{kind: A}, {kind: B}]\n";
/// let documents = manifest::parts("list.yaml", list).map(|part| part.map(|part| part.documents.len()));
/// assert_eq!(documents.collect::<Result<Vec<_>, _>>()?.iter().sum::<usize>(), 2);
/// # Ok::<(), manifest::LoadError>(())
/// ```
pub fn parts<'t>(file: &str, text: &'t str) -> impl Iterator<Item = Result<Part, LoadError>> + use<'t> {
    let file: Arc<str> = file.into();
    yaml::pieces(text).map(move |piece| {
        let mut part = Part::default();
        let Piece { tree, list } = piece.map_err(|error| mistaken(&file, error))?;
        part.extend(&file, tree, list.as_ref());
        Ok(part)
    })
}

impl Part {
    fn extend(&mut self, file: &Arc<str>, tree: Tree, list: Option<&ListOf>) {
        let Tree { value, positions, duplicates, more_duplicates } = tree;
        let duplicate = |duplicate: Duplicate| LoadError {
            file: Arc::clone(file),
            position: duplicate.position,
            field: String::new(),
            message: format!("key `{}` is already set in this map", duplicate.key),
        };
        self.duplicates.extend(duplicates.into_iter().map(duplicate));
        if let (1.., Some(last)) = (more_duplicates, self.duplicates.last_mut()) {
            last.message.push_str(&format!(", and {more_duplicates} more keys are"));
        }
        flatten(file, list, value, positions, &mut self.documents);
    }
}

fn mistaken(file: &Arc<str>, YamlError { position, message, .. }: YamlError) -> LoadError {
    LoadError { file: Arc::clone(file), position, field: String::new(), message }
}

/// Replaces `kind: List` and similar kinds by their items. `list` is the list that contains `value`.
fn flatten(
    file: &Arc<str>,
    list: Option<&ListOf>,
    mut value: Value,
    positions: Positions,
    documents: &mut Vec<Document>,
) {
    if let (Some(left_out), Value::Object(fields)) =
        (list.and_then(|list| list.left_out.as_deref()), &mut value)
        && !fields.contains_key("kind")
    {
        let (api_version, kind) = left_out;
        fields.entry("apiVersion").or_insert_with(|| api_version.as_str().into());
        fields.insert("kind".to_owned(), kind.as_str().into());
    }
    let Some(list) = list_of(&value) else {
        if !value.is_null() {
            documents.push(Document { file: file.clone(), value, positions });
        }
        return;
    };
    let items = value.get_mut("items").and_then(Value::as_array_mut).map(std::mem::take).unwrap_or_default();
    for (index, item) in items.into_iter().enumerate() {
        let positions = positions.child("items").and_then(|list| list.item(index)).cloned();
        flatten(file, Some(&list), item, positions.unwrap_or_default(), documents);
    }
}

/// What the document is a list of, if it is one.
fn list_of(value: &Value) -> Option<ListOf> {
    let text = |field| value.get(field).and_then(Value::as_str).unwrap_or_default();
    let items = value.get("items")?.as_array()?;
    let is_object = |item: &Value| item.get("metadata").is_some() || item.get("kind").is_some();
    ListOf::of(text("apiVersion"), text("kind"), || items.iter().all(is_object))
}

impl Document {
    /// Wraps an object that does not come from a manifest; `file` names its origin. All of its positions are line 0.
    #[must_use]
    pub fn unwritten(file: Arc<str>, value: Value) -> Self {
        Self { file, value, positions: Positions::scalar(Position { line: 0, column: 0 }) }
    }

    /// Takes a part that was parsed again; false if the text no longer is a single document there, so all of it must be parsed.
    ///
    /// ```
    /// use admit_apimachinery::yaml::Change;
    /// use admit_policy::manifest;
    ///
    /// let old = "kind: A\nspec:\n  size: 3\n  name: a\n---\nkind: B\n";
    /// let new = old.replace("size: 3", "size:\n    4");
    /// let (mut documents, layout) = manifest::read_placed("a.yaml", old).unwrap();
    /// let mut reread = layout.reread(old, &new, Change::between(old, &new)).unwrap();
    /// assert!(documents[0].put(&mut reread) && reread.moves());
    /// documents[1].move_behind(&reread);
    /// assert_eq!((documents[0].value["spec"]["size"].as_i64(), documents[0].position("spec.name").line), (Some(4), 5));
    /// assert_eq!(documents[1].here().line, 7);
    /// ```
    pub fn put(&mut self, reread: &mut Reread) -> bool {
        // The kind of a list determines how its items are read.
        let is_of_list =
            reread.steps.first().is_none_or(|step| ["apiVersion", "kind", "items"].contains(&&**step));
        !is_of_list && reread.put(&mut self.value, &mut self.positions)
    }

    /// Shifts the positions of a document after one of which a part was [parsed again](Self::put), which has an example.
    pub fn move_behind(&mut self, reread: &Reread) {
        reread.move_behind(&mut self.positions);
    }

    /// The position at which it begins.
    #[must_use]
    pub fn here(&self) -> Position {
        self.positions.here()
    }

    /// The position of `field` (in Kubernetes' notation), or of the nearest field around it that is written.
    #[must_use]
    pub fn position(&self, field: &str) -> Position {
        position::find(&self.positions, field)
    }

    /// `error` as a mistake in this document.
    #[must_use]
    pub fn error(&self, error: &FieldError) -> LoadError {
        LoadError {
            file: self.file.clone(),
            position: self.position(&error.field),
            field: error.field.clone(),
            message: error.to_string(),
        }
    }

    /// `message` as a mistake of the document as a whole.
    #[must_use]
    pub fn mistake(&self, message: impl Into<String>) -> LoadError {
        LoadError {
            file: self.file.clone(),
            position: self.positions.here(),
            field: String::new(),
            message: message.into(),
        }
    }
}
