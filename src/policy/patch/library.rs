//! Applies a JSON patch with the error messages of the library that kube-apiserver uses (`gopkg.in/evanphx/json-patch.v4`): for
//! responses of webhooks, and patches from expressions of policies.

use admit_apimachinery::go;
use json_patch::jsonptr::PointerBuf;
use json_patch::{
    AddOperation, CopyOperation, MoveOperation, PatchOperation, RemoveOperation, ReplaceOperation,
    TestOperation,
};
use serde_json::Value;

use super::document::place;
use super::{PatchError, PatchErrorKind, Replacing, patched};

/// An operation as an author makes it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Operation {
    pub(crate) op: String,
    pub(crate) path: String,
    /// The `from` path; empty if omitted.
    pub(crate) from: String,
    /// The value; null if omitted.
    pub(crate) value: Value,
}

/// The operations, each a JSON value, as the library understands them.
///
/// # Errors
/// The first that it does not understand.
///
/// ```
/// use admit_policy::patch::understood;
/// use serde_json::json;
///
/// assert_eq!(understood(vec![json!({"op": "add", "path": "/a"})])?.len(), 1);
/// assert!(understood(vec![json!({"op": "leap", "path": "/a"})]).is_err());
/// # Ok::<(), admit_policy::patch::OperationError>(())
/// ```
pub fn understood(operations: Vec<Value>) -> Result<Vec<PatchOperation>, OperationError> {
    operations.into_iter().map(|operation| Operation::read(operation)?.decoded()).collect()
}

/// Applies `operations`, each a JSON value, to a copy of `object`.
///
/// # Errors
/// The first operation that cannot be parsed or applied.
///
/// ```
/// use admit_policy::patch::applied_values;
/// use serde_json::json;
///
/// let operations = [json!({"op": "remove", "path": "/b"})];
/// let error = applied_values(&json!({"a": 1}), &operations).map_err(|error| error.to_string());
/// let why = "error in remove for path: '/b': Unable to remove nonexistent key: b: missing value";
/// assert_eq!(error, Err(why.to_owned()));
/// ```
pub fn applied_values(object: &Value, operations: &[Value]) -> Result<Value, OperationError> {
    let mut readable = Vec::with_capacity(operations.len());
    let mut unread = None;
    for operation in operations {
        match Operation::read(operation.clone()) {
            Ok(operation) => readable.push(operation),
            Err(why) => {
                unread = Some(why);
                break;
            }
        }
    }
    let made = applied(object, &readable)?;
    unread.map_or(Ok(made), Err)
}

/// Why operations cannot be applied, in the library's words.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum OperationError {
    #[error("Unexpected kind: {0}")]
    UnknownOperation(String),
    /// A required field of the operation is missing or invalid.
    #[error("{op} operation failed to decode {what}: {why}")]
    Undecoded { op: String, what: &'static str, why: &'static str },
    /// The value is not the one that a test operation expects.
    #[error("testing value {0} failed: test failed")]
    Test(String),
    /// The path of the operation does not exist.
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
pub enum Part {
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
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum KeyError {
    #[error("Unable to remove nonexistent key: {0}: missing value")]
    Missing(String),
    #[error("Unable to access invalid index: {0}: invalid index referenced")]
    OutOfRange(i64),
    #[error("invalid index referenced")]
    InvalidIndex,
    #[error("strconv.Atoi: parsing {}: invalid syntax", go::quote(.0))]
    NoIndex(String),
    #[error("value was not a proper array index: '{0}': {no_index}", no_index = Self::NoIndex(.0.clone()))]
    NoIndexToAdd(String),
}

/// Applies the operations to a copy of `object`.
///
/// # Errors
/// The first operation that cannot be applied.
pub(crate) fn applied(object: &Value, operations: &[Operation]) -> Result<Value, OperationError> {
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
        Ok(made) => unknown.map_or(Ok(made), Err),
        Err(error) => Err(refused(object, operations, &known, &error)),
    }
}

fn refused(
    object: &Value,
    operations: &[Operation],
    known: &[PatchOperation],
    error: &PatchError,
) -> OperationError {
    match error.kind {
        PatchErrorKind::TooDeep | PatchErrorKind::CopiesTooLarge { .. } | PatchErrorKind::ScalarDocument => {
            return OperationError::Patch(error.kind.clone());
        }
        PatchErrorKind::TestFailed
        | PatchErrorKind::InvalidPointer
        | PatchErrorKind::InvalidFromPointer
        | PatchErrorKind::CannotMoveInsideItself => {}
    }
    let before = known.get(..error.operation).unwrap_or_default();
    let state = match patched(object.clone(), before, Replacing::OrAdding) {
        Ok(state) => state,
        Err(before) => return OperationError::Before(before),
    };
    match operations.get(error.operation) {
        Some(operation) if error.kind == PatchErrorKind::TestFailed || operation.fails_a_test(&state) => {
            OperationError::Test(operation.path.clone())
        }
        Some(operation) => operation.complaint(&state),
        None => OperationError::Patch(error.kind.clone()),
    }
}

impl Operation {
    /// An operation as JSON has it.
    ///
    /// # Errors
    /// What it lacks. The library looks for that once the operations before it are applied.
    fn read(mut operation: Value) -> Result<Self, OperationError> {
        let value = operation.get_mut("value").map(Value::take).unwrap_or_default();
        let text = |field: &str| operation.get(field).and_then(Value::as_str);
        let Some(op) = text("op") else { return Err(OperationError::UnknownOperation("unknown".to_owned())) };
        let lacks = |what: &'static str, why| OperationError::Undecoded { op: op.to_owned(), what, why };
        let from = match (op, text("from")) {
            ("move" | "copy", None) => {
                return Err(lacks("from", "operation, missing from field: missing value"));
            }
            (_, from) => from.unwrap_or_default(),
        };
        let path = match (op, text("path")) {
            ("add" | "remove" | "copy", None) => return Err(lacks("path", "missing value")),
            ("replace" | "move" | "test", None) => {
                return Err(lacks("path", "operation missing path field: missing value"));
            }
            (_, path) => path.unwrap_or_default(),
        };
        Ok(Self { op: op.to_owned(), path: path.to_owned(), from: from.to_owned(), value })
    }

    fn decoded(&self) -> Result<PatchOperation, OperationError> {
        let Self { op, path, from, value } = self;
        // The whole document is replaced or tested, and nothing else is done to it.
        let whole = matches!(op.as_str(), "replace" | "test") && path.is_empty();
        let at = |path: &str| match path.find('/') {
            None if whole => Some(PointerBuf::new()),
            None => None,
            // As in the library, anything before the first slash is ignored.
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

    /// Returns why it cannot be applied to `state`.
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

/// Returns the library's error for a key that does not exist in its container.
fn unfound(around: &Value, key: &str, verb: &str) -> Option<KeyError> {
    match around {
        Value::Object(members) => {
            (verb == "remove" && !members.contains_key(key)).then(|| KeyError::Missing(key.to_owned()))
        }
        Value::Array(items) => match key.parse::<i64>() {
            Ok(index) => {
                let places = items.len().saturating_add(usize::from(verb == "add"));
                place(key, places).is_none().then_some(KeyError::OutOfRange(index))
            }
            Err(_) if verb == "add" && key == "-" => None,
            Err(_) if verb == "add" => Some(KeyError::NoIndexToAdd(key.to_owned())),
            Err(_) => Some(KeyError::NoIndex(key.to_owned())),
        },
        _ => None,
    }
}

/// Returns the container that `path` points into, and the key within it.
fn container<'v>(state: &'v Value, path: &str) -> Option<(&'v Value, String)> {
    let mut tokens = path.split('/').skip(1).map(decoded).collect::<Vec<_>>();
    let key = tokens.pop()?;
    let mut around = state;
    for token in tokens {
        around = match around {
            Value::Object(members) => members.get(&token)?,
            Value::Array(items) => items.get(place(&token, items.len())?)?,
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
