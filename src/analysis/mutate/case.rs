//! Holds a test case in written form, so that variations of it can be written too.

use admit_policy::suite::{Case, Suite};
use admit_policy::{Builtins, PolicySet};
use serde_json::{Map, Value, json};

/// A case of a suite that can be written out in full: its own fields merged with the suite's defaults.
///
/// ```
/// use admit_analysis::mutate::Seed;
/// use admit_policy::suite::Suite;
/// use serde_json::json;
///
/// let suite = json!({
///     "apiVersion": "admit/v1",
///     "kind": "Suite",
///     "defaults": {"object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}, "user": "eve"},
///     "cases": [{"name": "b", "object": {"data": {"b": "1"}}, "expect": "allow"}],
/// });
/// let read = Suite::decode(&suite)?;
/// let seed = Seed::new(&read.cases[0], &suite["cases"][0], &suite["defaults"]);
/// assert_eq!(seed.written()["object"]["metadata"]["name"], "a");
/// assert_eq!(seed.written()["user"], "eve");
/// # Ok::<(), admit_policy::FieldsError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Seed {
    written: Value,
}

/// Fields that are computed for each variation instead of copied.
const WORKED_OUT: [&str; 6] = ["object", "oldObject", "patch", "patchType", "operation", "expect"];

impl Seed {
    /// Takes the case as its suite has it, and the suite's `defaults`.
    #[must_use]
    pub fn new(case: &Case, own: &Value, defaults: &Value) -> Self {
        let mut written = Map::new();
        for layer in [defaults, own] {
            for (key, value) in layer.as_object().into_iter().flatten() {
                if !WORKED_OUT.contains(&key.as_str()) {
                    written.insert(key.clone(), value.clone());
                }
            }
        }
        for (key, object) in [("oldObject", &case.old_object), ("object", &case.object)] {
            if let Some(object) = object {
                written.insert(key.to_owned(), Value::clone(object));
            }
        }
        written.insert("operation".to_owned(), json!(case.operation.as_str()));
        Self { written: Value::Object(written) }
    }

    /// Returns the full case, without its expectation.
    #[must_use]
    pub const fn written(&self) -> &Value {
        &self.written
    }
}

/// Adds the expectation to the case and decodes it as a suite is.
pub(super) fn read(written: &Value, expect: &Value, builtins: Option<&dyn Builtins>) -> Option<Case> {
    let mut written = written.clone();
    written.as_object_mut()?.insert("expect".to_owned(), expect.clone());
    let suite = json!({"apiVersion": "admit/v1", "kind": "Suite", "cases": [written]});
    Suite::decode_knowing(&suite, builtins).ok()?.cases.into_iter().next()
}

/// Returns the built-in kinds of a set.
pub(super) fn builtins(set: &PolicySet) -> Option<&'static dyn Builtins> {
    set.documents().builtins()
}
