//! How much memory the patterns of a definition take together. Each is compiled here, and only once: equal ones share what
//! one of them has.

use std::collections::HashSet;

use crate::crd::Definition;
use crate::error::FieldError;
use crate::findings::FieldErrors;
use crate::path::Path;
use crate::schema::{Schema, Unsupported};

/// Bytes that all patterns of a definition may take when they are compiled: twice what one may. Definitions that are in use
/// have some kilobytes for each pattern, and a few megabytes where it counts letters of all languages. The API server has no
/// such limit; there, as here without it, 400 patterns that fit into one definition take gigabytes.
const MAX_PATTERNS: usize = 128 << 20;

const TOO_LARGE: &str = "the patterns of the definition up to this one take more than 128 MiB when they are compiled; use fewer, or \
                         smaller classes and repeat counts";

/// The first pattern with which they are too large together. Those after it are not compiled, nor may anything else do it.
pub(super) fn validate(definition: &Definition, errors: &mut FieldErrors) {
    let mut sum = Sum { seen: HashSet::new(), bytes: 0, limit: MAX_PATTERNS };
    let (spec, validation) = (Path::Root("spec"), Path::Root("spec.validation"));
    let versions = spec.child("versions");
    let alone = definition.versions.len() == 1;
    for (at, version) in definition.versions.iter().enumerate() {
        let (version_at, schema) = (versions.index(at), version.schema.as_deref());
        let own = version_at.child("schema");
        let root = if alone { validation } else { own };
        if let Some(error) = schema.and_then(|schema| sum.node(schema, &root.child("openAPIV3Schema"))) {
            errors.push(error);
            return;
        }
    }
}

struct Sum<'s> {
    seen: HashSet<&'s str>,
    bytes: usize,
    limit: usize,
}

impl<'s> Sum<'s> {
    fn node(&mut self, schema: &'s Schema, path: &Path<'_>) -> Option<FieldError> {
        if let Some(pattern) = &schema.checks.pattern
            && self.seen.insert(pattern.text())
        {
            self.bytes = self.bytes.saturating_add(pattern.size());
            if self.bytes > self.limit {
                return Some(FieldError::invalid(path.child("pattern"), pattern.text(), TOO_LARGE));
            }
        }
        let below = schema.steps().find_map(|(step, child)| self.node(child, &path.child(&step)));
        below.or_else(|| self.unsupported(schema, path))
    }

    /// Schemas under keywords that no definition may have are looked at all the same.
    fn unsupported(&mut self, schema: &'s Schema, path: &Path<'_>) -> Option<FieldError> {
        schema.unsupported.iter().find_map(|keyword| match keyword {
            Unsupported::Dependencies(named) => {
                named.iter().find_map(|(name, child)| self.node(child, &path.child("dependencies").key(name)))
            }
            Unsupported::Definitions(named) => {
                named.iter().find_map(|(name, child)| self.node(child, &path.child("definitions").key(name)))
            }
            Unsupported::ItemsList(items, _) => {
                let mut items = items.iter().enumerate();
                items.find_map(|(at, child)| self.node(child, &path.child("items").index(at)))
            }
            Unsupported::Id
            | Unsupported::MetaSchema
            | Unsupported::Ref
            | Unsupported::PatternProperties
            | Unsupported::AdditionalItems => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::parse;

    #[test]
    fn the_pattern_that_is_too_much_is_named_and_the_rest_not_compiled() {
        let pattern = |at: usize| json!({"type": "string", "pattern": format!("^[a-z]{{1,100}}x{at}$")});
        let properties: serde_json::Map<_, _> =
            (0..60).map(|at| (format!("p{at:02}"), pattern(at / 2))).collect();
        let schema = json!({"type": "object", "properties": properties});
        let schema = parse(&schema, &Path::Nil).expect("a schema");
        let one = schema.properties["p00"].checks.pattern.as_ref().map_or(0, crate::schema::Pattern::size);
        let mut sum = Sum { seen: HashSet::new(), bytes: 0, limit: one * 10 + one / 2 };
        let error = sum.node(&schema, &Path::Root("s")).expect("they are too large");
        assert!(error.field.starts_with("s.properties[p2"), "{error}");
        assert!((9..=12).contains(&sum.seen.len()), "{} were compiled", sum.seen.len());
        let mut enough = Sum { seen: HashSet::new(), bytes: 0, limit: one * 100 };
        assert_eq!(enough.node(&schema, &Path::Root("s")), None);
        assert_eq!(enough.seen.len(), 30, "equal ones count once");
    }
}
