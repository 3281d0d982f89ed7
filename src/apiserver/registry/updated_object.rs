//! Holds the object that a client sent in a PUT between one retry and the next.

use std::sync::{Mutex, PoisonError};

use admit_policy::json;
use serde_json::Value;

/// The object of a PUT, which takes the place of another. Between one try and the next it is kept as text, which takes a
/// tenth of what its values take: most often there is no next.
pub(super) struct UpdatedObject(Mutex<Form>);

enum Form {
    Values(Value),
    Text(Vec<u8>),
}

impl UpdatedObject {
    pub(super) fn new(object: Value) -> Self {
        Self(Mutex::new(Form::Values(object)))
    }

    /// The object, whole, however often it is asked for.
    pub(super) fn take(&self) -> Value {
        // Whoever panics here leaves one form or the other.
        let mut form = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *form {
            Form::Values(object) => {
                let text = object.to_string().into_bytes();
                let object = object.take();
                *form = Form::Text(text);
                object
            }
            // What was written just now can be read.
            Form::Text(text) => json::reread(text).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_try_gets_the_whole_object() {
        let object = json!({"metadata": {"name": "a"}, "data": {"z": "\u{0}", "b": [1.0, -0.0, u64::MAX]}});
        let wanted = UpdatedObject::new(object.clone());
        for _ in 0..3 {
            assert_eq!(wanted.take().to_string(), object.to_string());
        }
    }
}
