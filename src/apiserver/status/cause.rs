//! Collects causes (errors of single fields) of a Status, up to a limit.

use std::ops::Deref;

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::findings::Room;
pub(crate) use admit_apimachinery::status::{StatusCause as Cause, shown};

/// Causes, collected up to a limit, and the number of the others. Dereferences to the former.
#[derive(Clone, Debug, Default)]
pub(crate) struct Causes {
    told: Vec<Cause>,
    room: Room,
    more: usize,
}

impl Causes {
    /// Adds a cause; beyond the limit it is only counted.
    pub(crate) fn push(&mut self, cause: Cause) {
        if let Some(more) = cause.more() {
            self.more = self.more.saturating_add(more);
        } else if self.room.is_full() {
            self.more = self.more.saturating_add(1);
        } else {
            self.room.take(cause.reason.len() + cause.field.len() + cause.message.len());
            self.told.push(cause);
        }
    }

    /// The causes to list; a last one says how many more there are.
    #[must_use]
    pub(crate) fn into_vec(mut self) -> Vec<Cause> {
        if self.more > 0 {
            self.told.push(Cause::and_more(self.more));
        }
        self.told
    }
}

impl Deref for Causes {
    type Target = [Cause];

    fn deref(&self) -> &[Cause] {
        &self.told
    }
}

impl From<Cause> for Causes {
    fn from(cause: Cause) -> Self {
        [cause].into_iter().collect()
    }
}

impl From<Vec<Cause>> for Causes {
    fn from(causes: Vec<Cause>) -> Self {
        causes.into_iter().collect()
    }
}

impl Extend<Cause> for Causes {
    fn extend<I: IntoIterator<Item = Cause>>(&mut self, causes: I) {
        causes.into_iter().for_each(|cause| self.push(cause));
    }
}

impl FromIterator<Cause> for Causes {
    fn from_iter<I: IntoIterator<Item = Cause>>(causes: I) -> Self {
        let mut all = Self::default();
        all.extend(causes);
        all
    }
}

impl IntoIterator for Causes {
    type Item = Cause;
    type IntoIter = std::vec::IntoIter<Cause>;

    fn into_iter(self) -> Self::IntoIter {
        self.into_vec().into_iter()
    }
}

/// The causes by which a `Status` tells of errors in fields.
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
