//! Parses the operations of the JSON patch that an expression returns.

use admit_cel::{List, Opaque, Value as Cel};

use super::made::{self, MadeError, Making};
use crate::patch::Operation;

/// Parses the operations of a list that an expression returned.
///
/// # Errors
/// For an invalid item, a value that cannot be JSON, and if the memory limit is exceeded.
pub(super) fn all<'a>(list: List<'a>, making: Making<'a, '_>) -> Result<Vec<Operation>, MadeError> {
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
        operations.push(Operation {
            op: text("op")?,
            path: text("path")?,
            from: text("from")?,
            value: value.unwrap_or_default(),
        });
    }
    Ok(operations)
}
