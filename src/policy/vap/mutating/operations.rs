//! The JSON patch that an expression makes, applied with the words of the library that kube-apiserver uses
//! (`gopkg.in/evanphx/json-patch.v4`).

use admit_apimachinery::go;
use admit_cel::{List, Opaque, Value as Cel};
use json_patch::jsonptr::PointerBuf;
use json_patch::{
    AddOperation, CopyOperation, MoveOperation, PatchOperation, RemoveOperation, ReplaceOperation,
    TestOperation,
};
use serde_json::Value;

use super::made::{self, MadeError, Making};
use crate::patch::{PatchError, PatchErrorKind, Replacing, patched};

/// An operation as an expression makes it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Operation {
    pub(super) op: String,
    pub(super) path: String,
    /// Empty where it says none.
    pub(super) from: String,
    /// Null where it says none.
    pub(super) value: Value,
}

/// Why operations cannot be applied, in the library's words.
#[derive(Debug, thiserror::Error)]
pub(super) enum OperationError {
    #[error("Unexpected kind: {0}")]
    UnknownOperation(String),
    /// Nothing is where the operation looks.
    #[error("{}: missing value", missing(.op, *.part, .path))]
    Missing { op: String, part: Part, path: String },
    /// The key at one of its ends cannot be used so.
    #[error("error in {op} for {end}: '{path}': {error}")]
    Failed { op: String, end: &'static str, path: String, error: KeyError },
    #[error(transparent)]
    Patch(PatchErrorKind),
    /// Before the operation that was to blame.
    #[error(transparent)]
    Before(PatchError),
}

/// What of an operation names nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Part {
    Path,
    Key,
    From,
    Destination,
}

fn missing(op: &str, part: Part, path: &str) -> String {
    let named = match part {
        Part::Path if op == "test" => {
            return format!("test operation does not apply: is missing path: {path}");
        }
        Part::Path if matches!(op, "add" | "remove") => format!("path: \"{path}\""),
        Part::Path => format!("path: {path}"),
        Part::Key => format!("key: {path}"),
        Part::From => format!("from path: {path}"),
        Part::Destination => format!("destination path: {path}"),
    };
    format!("{op} operation does not apply: doc is missing {named}")
}

/// Why a key cannot be used in the list or object that it is in.
#[derive(Debug, thiserror::Error)]
pub(super) enum KeyError {
    #[error("Unable to remove nonexistent key: {0}: missing value")]
    Missing(String),
    #[error("Unable to access invalid index: {0}: invalid index referenced")]
    OutOfRange(usize),
    #[error("invalid index referenced")]
    InvalidIndex,
    #[error("strconv.Atoi: parsing {}: invalid syntax", go::quote(.0))]
    NoIndex(String),
    #[error("value was not a proper array index: '{0}': {no_index}", no_index = Self::NoIndex(.0.clone()))]
    NoIndexToAdd(String),
}

/// What the operations make of `object`; none where a test fails, which leaves the object as it is.
///
/// # Errors
/// Why they cannot be applied.
pub(super) fn applied(object: &Value, operations: &[Operation]) -> Result<Option<Value>, OperationError> {
    let mut known = Vec::with_capacity(operations.len());
    let mut unknown = None;
    for operation in operations {
        match operation.decoded() {
            Ok(decoded) => known.push(decoded),
            Err(why) => {
                unknown = Some(why);
                break;
            }
        }
    }
    match patched(object.clone(), &known, Replacing::OrAdding) {
        Ok(made) => unknown.map_or(Ok(Some(made)), Err),
        Err(error) => refused(object, operations, &known, &error),
    }
}

fn refused(
    object: &Value,
    operations: &[Operation],
    known: &[PatchOperation],
    error: &PatchError,
) -> Result<Option<Value>, OperationError> {
    match error.kind {
        PatchErrorKind::TestFailed => return Ok(None),
        PatchErrorKind::TooDeep | PatchErrorKind::CopiesTooLarge { .. } => {
            return Err(OperationError::Patch(error.kind.clone()));
        }
        PatchErrorKind::InvalidPointer
        | PatchErrorKind::InvalidFromPointer
        | PatchErrorKind::CannotMoveInsideItself => {}
    }
    let before = known.get(..error.operation).unwrap_or_default();
    let state = patched(object.clone(), before, Replacing::OrAdding).map_err(OperationError::Before)?;
    match operations.get(error.operation) {
        Some(operation) if operation.fails_a_test(&state) => Ok(None),
        Some(operation) => Err(operation.complaint(&state)),
        None => Err(OperationError::Patch(error.kind.clone())),
    }
}

impl Operation {
    /// Those of a list that an expression made.
    ///
    /// # Errors
    /// For an item that is none, a value that is no JSON, and where there is no more room.
    pub(super) fn all<'a>(list: List<'a>, making: Making<'a, '_>) -> Result<Vec<Self>, MadeError> {
        let mut operations = Vec::with_capacity(list.len());
        for item in list.iter() {
            let Cel::Opaque(Opaque::Made(made)) = item else {
                let ty = admit_cel::runtime_type::name_of(&item);
                return Err(MadeError::NoOperation(ty.to_owned()));
            };
            let text = |field: &str| match made.get(field) {
                Some(Cel::String(text)) => making.room.text(text),
                _ => Ok(String::new()),
            };
            let value = made.get("value").map(|value| made::value(&value, making)).transpose()?;
            operations.push(Self {
                op: text("op")?,
                path: text("path")?,
                from: text("from")?,
                value: value.unwrap_or_default(),
            });
        }
        Ok(operations)
    }

    fn decoded(&self) -> Result<PatchOperation, OperationError> {
        let Self { op, path, from, value } = self;
        // The whole document is replaced or tested, and nothing else is done to it.
        let whole = matches!(op.as_str(), "replace" | "test") && path.is_empty();
        let at = |path: &str| match path.find('/') {
            None if whole => Some(PointerBuf::new()),
            None => None,
            // What stands before the first slash says nothing.
            Some(start) => path.get(start..).map(pointer),
        };
        let from = || at(from).ok_or_else(|| self.missing(Part::From));
        let path = match at(path) {
            Some(path) => path,
            None => match op.as_str() {
                "move" | "copy" => {
                    from()?;
                    return Err(self.missing(Part::Destination));
                }
                "add" | "remove" | "replace" | "test" => return Err(self.missing(Part::Path)),
                _ => PointerBuf::new(),
            },
        };
        let value = || value.clone();
        Ok(match op.as_str() {
            "add" => PatchOperation::Add(AddOperation { path, value: value() }),
            "remove" => PatchOperation::Remove(RemoveOperation { path }),
            "replace" => PatchOperation::Replace(ReplaceOperation { path, value: value() }),
            "move" => PatchOperation::Move(MoveOperation { path, from: from()? }),
            "copy" => PatchOperation::Copy(CopyOperation { path, from: from()? }),
            "test" => PatchOperation::Test(TestOperation { path, value: value() }),
            other => return Err(OperationError::UnknownOperation(other.to_owned())),
        })
    }

    fn missing(&self, part: Part) -> OperationError {
        let path = if part == Part::From { &self.from } else { &self.path };
        OperationError::Missing { op: self.op.clone(), part, path: path.clone() }
    }

    /// Whether it tests a member that the object around it has not.
    fn fails_a_test(&self, state: &Value) -> bool {
        self.op == "test"
            && container(state, &self.path).is_some_and(|(around, key)| match around {
                Value::Object(members) => !members.contains_key(&key),
                _ => false,
            })
    }

    /// Why it cannot be applied to `state`.
    fn complaint(&self, state: &Value) -> OperationError {
        let Self { op, path, from, .. } = self;
        let place = container(state, path);
        let failed = |end, path: &str, error| {
            let (op, path) = (op.clone(), path.to_owned());
            OperationError::Failed { op, end, path, error }
        };
        let verb = match op.as_str() {
            "move" | "copy" => {
                let Some((around, key)) = container(state, from) else { return self.missing(Part::From) };
                match unfound(around, &key, "remove") {
                    Some(error) if op == "move" => return failed("path", &key, error),
                    Some(error) => return failed("from", from, error),
                    None if place.is_none() => return self.missing(Part::Destination),
                    None => "add",
                }
            }
            "replace" => return self.missing(if place.is_some() { Part::Key } else { Part::Path }),
            other => other,
        };
        let Some((around, key)) = place else { return self.missing(Part::Path) };
        failed("path", path, unfound(around, &key, verb).unwrap_or(KeyError::InvalidIndex))
    }
}

/// What the library says of a key that cannot be used so.
fn unfound(around: &Value, key: &str, verb: &str) -> Option<KeyError> {
    match around {
        Value::Object(members) => {
            (verb == "remove" && !members.contains_key(key)).then(|| KeyError::Missing(key.to_owned()))
        }
        Value::Array(items) => match key.parse::<usize>() {
            Ok(index) if index < items.len() || verb == "add" && index == items.len() => None,
            Ok(index) => Some(KeyError::OutOfRange(index)),
            Err(_) if verb == "add" && key == "-" => None,
            Err(_) if verb == "add" => Some(KeyError::NoIndexToAdd(key.to_owned())),
            Err(_) => Some(KeyError::NoIndex(key.to_owned())),
        },
        _ => None,
    }
}

/// The list or object around what `path` names, and the key in it.
fn container<'v>(state: &'v Value, path: &str) -> Option<(&'v Value, String)> {
    let mut tokens = path.split('/').skip(1).map(decoded).collect::<Vec<_>>();
    let key = tokens.pop()?;
    let mut around = state;
    for token in tokens {
        around = match around {
            Value::Object(members) => members.get(&token)?,
            Value::Array(items) => items.get(token.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    matches!(around, Value::Object(_) | Value::Array(_)).then_some((around, key))
}

fn decoded(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

fn pointer(path: &str) -> PointerBuf {
    PointerBuf::from_tokens(path.split('/').skip(1).map(decoded))
}
