//! Represents the objects of mutations: `Object{}` and its parts with any fields, and `JSONPatch{}` (apiserver `pkg/cel/mutation`).

use bumpalo::Bump;

use super::{EvalError, Value};
use crate::types::{PATCH, Type, runtime_name};

/// An object of a mutation, whose type is only a name, with the fields that were set.
///
/// ```
/// use admit_cel::{Bindings, Env, Evaluation, Mode, Opaque, Value, Version};
///
/// let env = Env::kubernetes(Version(1, 36), Mode::New).with_patch_types();
/// let program = env.program(&env.compile("JSONPatch{path: '/spec/replicas', op: 'add', value: 3}")?)?;
/// let (bindings, arena) = (Bindings::new(&program), bumpalo::Bump::new());
/// let Value::Opaque(Opaque::Made(patch)) = program.eval(&bindings, &mut Evaluation::new(&arena))? else {
///     unreachable!("a literal makes an object");
/// };
/// assert_eq!(patch.type_name(), "JSONPatch");
/// assert_eq!(patch.fields().iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["op", "path", "value"]);
/// assert!(matches!(patch.get("value"), Some(Value::Int(3))) && patch.get("from").is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Made<'a> {
    ty: &'a Type,
    /// Sorted by name.
    fields: &'a [(&'a str, Value<'a>)],
}

impl<'a> Made<'a> {
    /// The value of a literal that sets these fields; of several with one name the last counts.
    pub(crate) fn value(
        arena: &'a Bump,
        ty: &'a Type,
        set: &[(&'a str, Value<'a>)],
    ) -> Result<Value<'a>, EvalError> {
        let mut fields: Vec<(&'a str, Value<'a>)> = Vec::with_capacity(set.len());
        for (name, value) in set.iter().rev() {
            if !fields.iter().any(|(known, _)| known == name) {
                fields.push((name, *value));
            }
        }
        fields.sort_by_key(|(name, _)| *name);
        let full = |_| EvalError::MemoryLimitExceeded;
        let fields = arena.try_alloc_slice_copy(&fields).map_err(full)?;
        Ok(Value::Opaque(super::Opaque::Made(arena.try_alloc(Self { ty, fields }).map_err(full)?)))
    }

    /// The name of its type: `Object`, `Object.spec` or `JSONPatch`.
    #[must_use]
    pub fn type_name(&self) -> &'a str {
        runtime_name(self.ty)
    }

    pub(crate) const fn ty(&self) -> &'a Type {
        self.ty
    }

    /// The fields that were set, by name.
    #[must_use]
    pub const fn fields(&self) -> &'a [(&'a str, Value<'a>)] {
        self.fields
    }

    /// The value of a field that was set.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Value<'a>> {
        let at = self.fields.binary_search_by_key(&name, |(known, _)| known).ok()?;
        self.fields.get(at).map(|(_, value)| *value)
    }

    /// What is selected as a field that was not set.
    pub(crate) fn unset(&self, name: &str) -> Value<'a> {
        if self.type_name() == PATCH && name != "value" { Value::String("") } else { Value::Null }
    }

    /// Whether a presence test finds the field: an empty string of a patch counts as absent.
    pub(crate) fn has(&self, name: &str) -> bool {
        match self.get(name) {
            Some(Value::String("")) if self.type_name() == PATCH && name != "value" => false,
            found => found.is_some(),
        }
    }

    /// Go compares the fields as they are, so that 1 is not 1.0.
    pub(super) fn is(&self, other: &Self) -> Result<bool, EvalError> {
        if self.ty != other.ty || self.fields.len() != other.fields.len() {
            return Ok(false);
        }
        for ((name, value), (other_name, other)) in self.fields.iter().zip(other.fields) {
            let alike = std::mem::discriminant(value) == std::mem::discriminant(other);
            if name != other_name || !alike || !value.equal_in(None, other)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
