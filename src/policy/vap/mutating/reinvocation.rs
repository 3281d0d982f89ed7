//! Determines which policies run again because later ones changed the object.

use std::collections::HashSet;

use serde_json::Value;

/// The state of mutating policies across both runs for one request. A chain of admission plugins runs at most twice: the second time
/// for those with `reinvocationPolicy: IfNeeded`. [`MutatingPolicy`](crate::MutatingPolicy) has an example.
#[derive(Clone, Debug, Default)]
pub struct Reinvocation {
    /// Run, and to be run again if the object changes after them.
    invoked: HashSet<Key>,
    again: HashSet<Key>,
    /// The object as the last run left it.
    output: Option<Value>,
    is_second: bool,
    is_wanted: bool,
}

/// Names of a policy and its binding, and namespace and name of the param.
type Key = (String, String, Option<(String, String)>);

/// The key of a policy of this name, with the binding of that name.
pub(super) fn key((policy, binding): (&str, &str), param: Option<&Value>) -> Key {
    let text = |param: &Value, field: &str| {
        let found = param.get("metadata").and_then(|metadata| metadata.get(field));
        found.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let param = param.map(|param| (text(param, "namespace"), text(param, "name")));
    (policy.to_owned(), binding.to_owned(), param)
}

impl Reinvocation {
    /// Whether the object was changed after a policy that wants to run again, so that the chain must run a second time.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.is_wanted && !self.is_second
    }

    /// Starts the second run.
    pub fn begin_second(&mut self) {
        self.is_second = true;
    }

    pub(super) fn begin(&mut self, object: Option<&Value>) {
        if self.is_second && self.output.as_ref() != object {
            self.require();
        }
    }

    pub(super) fn end(&mut self, object: Option<&Value>) {
        self.output = object.cloned();
    }

    pub(super) fn is_left_out(&self, key: &Key) -> bool {
        self.is_second && !self.again.contains(key)
    }

    /// Marks the policies that ran before to run again.
    pub(super) fn changed(&mut self) {
        self.require();
        self.is_wanted = true;
    }

    pub(super) fn ran(&mut self, key: Key) {
        self.invoked.insert(key);
    }

    fn require(&mut self) {
        self.again.extend(self.invoked.drain());
    }
}
