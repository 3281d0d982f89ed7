//! Holds the configuration of a connector, whose values may be credentials. Pure.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;

/// Names and values. `Debug` prints only the names.
#[derive(Clone, Default, PartialEq)]
pub struct Configuration(pub BTreeMap<String, String>);

impl fmt::Debug for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Deref for Configuration {
    type Target = BTreeMap<String, String>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}
