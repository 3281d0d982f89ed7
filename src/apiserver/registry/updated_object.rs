//! Holds the object that a client sent in a PUT between one retry and the next.

use std::sync::{Mutex, PoisonError};

use admit_policy::json;
use serde_json::Value;

/// The object of a PUT. Between attempts it is kept as text, which takes a
/// tenth of the memory: usually there is no second attempt.
pub(super) struct UpdatedObject(Mutex<Form>);

enum Form {
    Values(Value),
    Text(Vec<u8>),
}

impl UpdatedObject {
    pub(super) fn new(object: Value) -> Self {
        Self(Mutex::new(Form::Values(object)))
    }

    /// Returns the object, at each attempt.
    pub(super) fn take(&self) -> Value {
        // A panic leaves either form.
        let mut form = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *form {
            Form::Values(object) => {
                let text = object.to_string().into_bytes();
                let object = object.take();
                *form = Form::Text(text);
                object
            }
            // Text that was serialized here can be parsed.
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
