//! Replaces one rule of a compiled definition by another expression, and compiles and validates only that.

use std::sync::Arc;

use super::CompiledCrd;
use super::registration::{EXPRESSION_LIMIT, TOTAL_LIMIT, occurrences};
use super::resource::CrdVersion;
use super::rules::RulePlace;

impl CompiledCrd {
    /// Returns the definition with `text` as the rule at `path` of a version, as if all of it had been compiled.
    ///
    /// None if there is no such rule, or if a server may reject the result: then the whole definition must be compiled.
    pub(crate) fn with_rule(&self, version: &str, path: &str, text: &str) -> Option<Self> {
        let at = self.definition.versions.iter().position(|known| known.name == version)?;
        let place = path.strip_prefix(&format!("spec.versions[{at}].schema.openAPIV3Schema."))?;
        // What may be selected by fields depends on whether all versions have the same schema.
        if self.definition.versions.iter().any(|version| !version.selectable_fields.is_empty()) {
            return None;
        }
        let changed = self.versions.get(at)?.with_rule(&RulePlace::read(place)?, text)?;
        let mut definition = self.definition.clone();
        definition.versions.get_mut(at)?.schema = Some(changed.shared_schema());
        let mut versions = self.versions.clone();
        *versions.get_mut(at)? = Arc::new(changed);
        Some(Self { definition, versions })
    }
}

impl CrdVersion {
    fn with_rule(&self, place: &RulePlace<'_>, text: &str) -> Option<Self> {
        let replaced = self.rules().with_rule(self.schema(), place, text)?;
        let compiles = matches!(replaced.written.program, Some(Ok(_)))
            && matches!(replaced.written.message, None | Some(Ok(_)));
        let (greatest, total) = replaced.tree.max_costs(self.schema(), occurrences);
        if !compiles || replaced.has_patterns || greatest > EXPRESSION_LIMIT || total > TOTAL_LIMIT {
            return None;
        }
        let mut schema = self.schema().clone();
        place.write(&mut schema, text)?;
        Some(self.having(schema, replaced.tree))
    }
}
