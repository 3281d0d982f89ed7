//! What may be claimed, and what breaks it.

use super::Said;
use super::document::World;
use super::rules::Ruling;
use super::term::Term;

/// What is claimed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Question {
    /// The right side refuses what the left one refuses, and nothing else.
    Equivalent,
    /// What the left side lets through, the right one does.
    Implies,
    /// The left side refuses nothing.
    NeverDenies,
    /// The left side refuses everything.
    AlwaysDenies,
    /// No expression of the left side fails.
    NoErrors,
}

impl Question {
    /// Whether two sides are compared.
    #[must_use]
    pub const fn compares(self) -> bool {
        matches!(self, Self::Equivalent | Self::Implies)
    }

    /// Whether what was said breaks the claim.
    pub(super) fn is_broken(self, said: &[Said]) -> bool {
        let denied = |at: usize| said.get(at).is_some_and(|said| said.denied);
        match self {
            Self::Equivalent => denied(0) != denied(1),
            Self::Implies => !denied(0) && denied(1),
            Self::NeverDenies => denied(0),
            Self::AlwaysDenies => !denied(0),
            Self::NoErrors => said.first().is_some_and(|said| said.failed),
        }
    }

    pub(super) fn broken(self, world: &mut World<'_>, left: Ruling, right: Option<Ruling>) -> Term {
        let terms = &mut world.terms;
        let right = right.unwrap_or(left);
        match self {
            Self::Equivalent => {
                let same = terms.eq(left.denied, right.denied);
                terms.not(same)
            }
            Self::Implies => {
                let admitted = terms.not(left.denied);
                terms.and(&[admitted, right.denied])
            }
            Self::NeverDenies => left.denied,
            Self::AlwaysDenies => terms.not(left.denied),
            Self::NoErrors => left.failed,
        }
    }
}
