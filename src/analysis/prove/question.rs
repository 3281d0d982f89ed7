//! Defines the claims, and when a request breaks one.

use super::Said;
use super::document::World;
use super::rules::Ruling;
use super::term::Term;

/// A claim about one side or about two.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Question {
    /// The right side denies exactly what the left one denies.
    Equivalent,
    /// The right side admits everything that the left one admits.
    Implies,
    /// The left side denies nothing.
    NeverDenies,
    /// The left side denies everything.
    AlwaysDenies,
    /// No expression of the left side fails.
    NoErrors,
}

impl Question {
    /// Reports whether the claim compares two sides.
    #[must_use]
    pub const fn compares(self) -> bool {
        matches!(self, Self::Equivalent | Self::Implies)
    }

    /// Reports whether these verdicts on a request break the claim.
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
