//! Collects causes (errors of single fields) of a Status, up to a limit.

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::findings::Findings;
pub(crate) use admit_apimachinery::status::{StatusCause as Cause, shown};

/// Causes, collected up to a limit, and the number of the others.
pub(crate) type Causes = Findings<Cause>;

/// Converts field errors to causes of a `Status`.
pub(crate) fn causes(errors: &[FieldError]) -> Causes {
    errors.iter().map(FieldError::cause).collect()
}

#[cfg(test)]
mod tests {
    use admit_apimachinery::field_error::distinct;

    use super::*;

    #[test]
    fn causes_are_told_once_and_not_without_end() {
        let many = |count: usize| (0..count).map(|at| Cause::required(format!("a[{at}]"), ""));
        let mut causes: Causes = many(60_000).collect();
        causes.extend(many(10).collect::<Causes>());
        causes.extend(many(2_000).collect::<Causes>());
        let causes = causes.into_vec();
        assert_eq!(causes.len(), 1_001);
        assert_eq!(causes.last().map(ToString::to_string).as_deref(), Some("and 61010 more"));
        let texts = distinct([&causes[..], &causes[..]].concat().iter().map(ToString::to_string));
        assert_eq!(texts.len(), 1_001);
        assert_eq!(texts.last().map(String::as_str), Some("and 61010 more"));
    }
}
