//! Compiles the regular expressions of a CRD and limits the memory that they take together. Equal patterns are
//! compiled once and shared.

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::findings::FieldErrors;
use admit_cel::PatternSum;

use crate::crd::Definition;
use crate::crd::rules::memory;
use crate::deadline::checkpoint;
use crate::read::path::Path;
use crate::schema::{Schema, Unsupported};

/// Adds an error for the first pattern that exceeds the memory limit. Later ones are not compiled, here or elsewhere. The API server
/// has no such limit; without one, 400 patterns that fit into one definition take gigabytes, there as here.
///
/// Returns the compiled patterns, so that those of rules count together with them.
pub(super) fn validate(definition: &Definition, errors: &mut FieldErrors) -> PatternSum {
    let mut sum = Sum(PatternSum::default());
    let (spec, validation) = (Path::Root("spec"), Path::Root("spec.validation"));
    let versions = spec.child("versions");
    let alone = definition.versions.len() == 1;
    for (at, version) in definition.versions.iter().enumerate() {
        let (version_at, schema) = (versions.index(at), version.schema.as_deref());
        let own = version_at.child("schema");
        let root = if alone { validation } else { own };
        if let Some(error) = schema.and_then(|schema| sum.node(schema, &root.child("openAPIV3Schema"))) {
            errors.push(error);
            break;
        }
    }
    sum.0
}

struct Sum(PatternSum);

impl Sum {
    fn node(&mut self, schema: &Schema, path: &Path<'_>) -> Option<FieldError> {
        if let Some(pattern) = &schema.checks.pattern {
            checkpoint();
            if !memory::pattern(pattern.text(), &mut self.0, |sum| pattern.fits(sum)) {
                return Some(FieldError::invalid(
                    path.child("pattern"),
                    pattern.text(),
                    PatternSum::TOO_MUCH,
                ));
            }
        }
        let below = schema.steps().find_map(|(step, child)| self.node(child, &path.child(&step)));
        below.or_else(|| self.unsupported(schema, path))
    }

    /// Schemas under keywords that no definition may have are looked at all the same.
    fn unsupported(&mut self, schema: &Schema, path: &Path<'_>) -> Option<FieldError> {
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
        let one = admit_cel::GoRegex::new("^[a-z]{1,100}x0$").expect("a pattern").size();
        let mut sum = Sum(PatternSum::with_room(one * 20));
        let error = sum.node(&schema, &Path::Root("s")).expect("they are too large");
        assert!(error.field.starts_with("s.properties[p"), "{error}");
        assert!((10..=20).contains(&sum.0.count()), "{} were compiled", sum.0.count());
        let mut enough = Sum(PatternSum::with_room(one * 100));
        assert_eq!(enough.node(&schema, &Path::Root("s")), None);
        assert_eq!(enough.0.count(), 30, "equal ones count once");
    }
}
