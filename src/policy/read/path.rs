//! Represents the path of a field in a document: kept on the stack while walking, and formatted only for an error. The format is that
//! of Kubernetes' `field.Path`: `spec.items[0].labels[a/b]`; the empty path is `<nil>`.

use std::fmt;

use admit_apimachinery::bounded;

/// A segment, linked to the segments before it.
///
/// ```
/// use admit_policy::Path;
///
/// let spec = Path::Nil.child("spec");
/// let items = spec.child("items");
/// let first = items.index(0);
/// assert_eq!(first.key("a.b").to_string(), "spec.items[0][a.b]");
/// assert!(Path::Nil.is_nil() && !first.is_nil());
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Path<'a> {
    /// No path: the document itself.
    Nil,
    /// A first segment of any form: `status`, `spec.validation`.
    Root(&'a str),
    /// A property.
    Child(&'a Self, &'a str),
    /// An entry of a map.
    Key(&'a Self, &'a str),
    /// An item of a list.
    Index(&'a Self, usize),
}

impl<'a> Path<'a> {
    #[must_use]
    pub const fn child(&'a self, name: &'a str) -> Self {
        Self::Child(self, name)
    }

    #[must_use]
    pub const fn key(&'a self, key: &'a str) -> Self {
        Self::Key(self, key)
    }

    #[must_use]
    pub const fn index(&'a self, index: usize) -> Self {
        Self::Index(self, index)
    }

    /// Whether this is the document itself.
    #[must_use]
    pub const fn is_nil(&self) -> bool {
        matches!(self, Self::Nil)
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let property = |f: &mut fmt::Formatter<'_>, parent: &Self, name: &str| {
            parent.write(f)?;
            f.write_str(if parent.is_nil() { "" } else { "." })?;
            step(f, name)
        };
        match self {
            Self::Nil => Ok(()),
            Self::Root(text) => f.write_str(text),
            // `field.Path` represents a subscript by an empty name.
            Self::Child(parent, "") => {
                parent.write(f)?;
                f.write_str("[]")
            }
            Self::Child(parent, name) => property(f, parent, name),
            Self::Key(parent, key) => {
                parent.write(f)?;
                f.write_str("[")?;
                step(f, key)?;
                f.write_str("]")
            }
            Self::Index(parent, index) => {
                parent.write(f)?;
                write!(f, "[{index}]")
            }
        }
    }
}

/// Writes a name, shortened: very many errors may repeat it.
fn step(f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
    match bounded::head(name) {
        Some(head) => write!(f, "{head}{}", bounded::MORE),
        None => f.write_str(name),
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_nil() { f.write_str("<nil>") } else { self.write(f) }
    }
}
