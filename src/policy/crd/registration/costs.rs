//! Checks the estimated cost of a schema's rules against the limits, per rule and in total.

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::findings::FieldErrors;

use crate::read::path::Path;

/// The cost of all rules of a schema together.
#[derive(Debug, Default)]
pub(super) struct TotalCost {
    total: u64,
    /// The most expensive expressions, dearest first.
    dearest: Vec<(u64, String)>,
}

/// Static estimate that one expression may reach.
pub(crate) const EXPRESSION_LIMIT: u64 = 10_000_000;

/// Static estimate that all expressions of a schema may reach together.
pub(crate) const TOTAL_LIMIT: u64 = 100_000_000;

/// Expressions named when the total is too high; each has at least a hundredth of the limit.
const NAMED: usize = 4;

impl TotalCost {
    pub(super) fn observe(&mut self, path: &Path<'_>, cost: u64) {
        self.total = self.total.saturating_add(cost);
        if cost < TOTAL_LIMIT / 100 {
            return;
        }
        self.dearest.push((cost, path.to_string()));
        self.dearest.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
        self.dearest.truncate(NAMED);
    }

    /// Tells that the rules cost too much together, and which of them most.
    pub(super) fn report(&self, path: &Path<'_>, errors: &mut FieldErrors) {
        if self.total <= TOTAL_LIMIT {
            return;
        }
        for (_, at) in &self.dearest {
            let detail =
                "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
            errors.push(FieldError::forbidden(at, detail));
        }
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        errors.push(FieldError::forbidden(path, over_budget(what, self.total, TOTAL_LIMIT)));
    }
}

#[expect(clippy::cast_precision_loss, reason = "the factor is shown with one digit after the point")]
pub(super) fn over_budget(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and \
         maxLength where arrays, maps, and strings are declared)"
    )
}
