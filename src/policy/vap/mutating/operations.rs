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

/// What the operations make of `object`; none where a test fails, which leaves the object as it is.
///
/// # Errors
/// Why they cannot be applied, in the library's words.
pub(super) fn applied(object: &Value, operations: &[Operation]) -> Result<Option<Value>, String> {
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
) -> Result<Option<Value>, String> {
    match error.kind {
        PatchErrorKind::TestFailed => return Ok(None),
        PatchErrorKind::TooDeep | PatchErrorKind::CopiesTooLarge { .. } => {
            return Err(error.kind.to_string());
        }
        PatchErrorKind::InvalidPointer
        | PatchErrorKind::InvalidFromPointer
        | PatchErrorKind::CannotMoveInsideItself => {}
    }
    let before = known.get(..error.operation).unwrap_or_default();
    let state = patched(object.clone(), before, Replacing::OrAdding).map_err(|error| error.to_string())?;
    match operations.get(error.operation) {
        Some(operation) if operation.fails_a_test(&state) => Ok(None),
        Some(operation) => Err(operation.complaint(&state)),
        None => Err(error.kind.to_string()),
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

    fn decoded(&self) -> Result<PatchOperation, String> {
        let Self { op, path, from, value } = self;
        let missing =
            |what: &str, path: &str| format!("{op} operation does not apply: doc is missing {what}{path}");
        // The whole document is replaced or tested, and nothing else is done to it.
        let whole = matches!(op.as_str(), "replace" | "test") && path.is_empty();
        let at = |path: &str| match path.find('/') {
            None if whole => Some(PointerBuf::new()),
            None => None,
            // What stands before the first slash says nothing.
            Some(start) => path.get(start..).map(pointer),
        };
        let from = || at(from).ok_or_else(|| format!("{}: missing value", missing("from path: ", from)));
        let path = match at(path) {
            Some(path) => path,
            None if matches!(op.as_str(), "add" | "remove" | "replace" | "move" | "copy" | "test") => {
                return Err(match op.as_str() {
                    "move" | "copy" => {
                        from()?;
                        format!("{}: missing value", missing("destination path: ", path))
                    }
                    "add" | "remove" => {
                        format!("{}: missing value", missing("path: ", &format!("\"{path}\"")))
                    }
                    "test" => {
                        format!("test operation does not apply: is missing path: {path}: missing value")
                    }
                    _ => format!("{}: missing value", missing("path: ", path)),
                });
            }
            None => PointerBuf::new(),
        };
        let value = || value.clone();
        Ok(match op.as_str() {
            "add" => PatchOperation::Add(AddOperation { path, value: value() }),
            "remove" => PatchOperation::Remove(RemoveOperation { path }),
            "replace" => PatchOperation::Replace(ReplaceOperation { path, value: value() }),
            "move" => PatchOperation::Move(MoveOperation { path, from: from()? }),
            "copy" => PatchOperation::Copy(CopyOperation { path, from: from()? }),
            "test" => PatchOperation::Test(TestOperation { path, value: value() }),
            other => return Err(format!("Unexpected kind: {other}")),
        })
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
    fn complaint(&self, state: &Value) -> String {
        let Self { op, path, from, .. } = self;
        let missing = |text: String| format!("{text}: missing value");
        let (place, named) = match op.as_str() {
            "move" | "copy" => match container(state, from) {
                None => {
                    return missing(format!(
                        "{op} operation does not apply: doc is missing from path: {from}"
                    ));
                }
                Some((around, key)) => match unfound(around, &key, "remove") {
                    Some(why) if op == "move" => return format!("error in move for path: '{key}': {why}"),
                    Some(why) => return format!("error in copy for from: '{from}': {why}"),
                    None => match container(state, path) {
                        None => {
                            let text = "operation does not apply: doc is missing destination path";
                            return missing(format!("{op} {text}: {path}"));
                        }
                        Some(place) => (place, format!("error in {op} for path: '{path}'")),
                    },
                },
            },
            "test" => match container(state, path) {
                None => return missing(format!("test operation does not apply: is missing path: {path}")),
                Some(place) => (place, format!("error in test for path: '{path}'")),
            },
            "replace" => {
                let what = if container(state, path).is_some() { "key" } else { "path" };
                return missing(format!("replace operation does not apply: doc is missing {what}: {path}"));
            }
            _ => match container(state, path) {
                None => {
                    return missing(format!(
                        "{op} operation does not apply: doc is missing path: \"{path}\""
                    ));
                }
                Some(place) => (place, format!("error in {op} for path: '{path}'")),
            },
        };
        let (around, key) = place;
        let verb = if matches!(op.as_str(), "move" | "copy") { "add" } else { op.as_str() };
        let why = unfound(around, &key, verb).unwrap_or_else(|| "invalid index referenced".to_owned());
        format!("{named}: {why}")
    }
}

/// What the library says of a key that cannot be used so.
fn unfound(around: &Value, key: &str, verb: &str) -> Option<String> {
    match around {
        Value::Object(members) => (verb == "remove" && !members.contains_key(key))
            .then(|| format!("Unable to remove nonexistent key: {key}: missing value")),
        Value::Array(items) => match key.parse::<usize>() {
            Ok(index) if index < items.len() || verb == "add" && index == items.len() => None,
            Ok(index) => Some(format!("Unable to access invalid index: {index}: invalid index referenced")),
            Err(_) if verb == "add" && key == "-" => None,
            Err(_) => {
                let parse = format!("strconv.Atoi: parsing {}: invalid syntax", go::quote(key));
                Some(match verb {
                    "add" => format!("value was not a proper array index: '{key}': {parse}"),
                    _ => parse,
                })
            }
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
