//! Defines the input of the families, a denied request with its offence, and their output.

use serde_json::Value;

use super::ask::Ask;
use super::finding::Family;
use super::judge::{Judge, Judged};
use super::offence::Offence;
use super::path::{Path, Step};
use super::rules::Rules;
use super::selectors::Selector;
use super::types::Types;

/// A denied request with everything known about it.
pub(super) struct Scene<'a> {
    pub(super) judge: &'a Judge<'a>,
    pub(super) types: &'a Types<'a>,
    pub(super) rules: &'a Rules,
    pub(super) selectors: &'a [Selector],
    pub(super) base: &'a Ask,
    /// Its new object.
    pub(super) object: &'a Value,
    pub(super) offence: &'a Offence,
    pub(super) over: &'a dyn Fn() -> bool,
}

/// An admitted request that has the same offence.
#[derive(Clone, Debug)]
pub(super) struct Neighbour {
    pub(super) family: Family,
    /// The field in which it differs.
    pub(super) path: String,
    pub(super) what: String,
    pub(super) ask: Ask,
    /// A request that must precede it, and is admitted.
    pub(super) first: Option<Ask>,
}

/// The result of a candidate request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Answer {
    /// The server rejects it, or removes the offence.
    Impossible,
    /// A policy denies it.
    Denied,
    Admitted,
}

impl Scene<'_> {
    /// Evaluates a request whose object has the offence at a path.
    pub(super) fn answer(&self, ask: &Ask, at: &Path) -> Answer {
        let judged = self.judge.ask(ask);
        match &judged.object {
            Some(object) if self.offence.is_at(object, at) => of(&judged),
            _ => Answer::Impossible,
        }
    }

    pub(super) fn is_admitted(&self, ask: &Ask, at: &Path) -> bool {
        self.answer(ask, at) == Answer::Admitted
    }

    /// Reports whether a server accepts a request, ignoring policies.
    pub(super) fn is_possible(&self, ask: &Ask) -> bool {
        self.judge.ask(ask).refused.is_none()
    }

    /// Returns an object without the offence, to be updated to the denied one.
    pub(super) fn before(&self) -> Value {
        self.base.old_object.clone().unwrap_or_else(|| self.offence.mended.clone())
    }

    /// Reports whether the offence is a label or an annotation of the object.
    pub(super) fn is_of_marks(&self) -> bool {
        let path = &self.offence.path;
        let is = |name: &str| path.0.get(1) == Some(&Step::Name(name.to_owned()));
        path.0.first() == Some(&Step::Name("metadata".to_owned()))
            && (is("labels") || is("annotations") || path.0.len() == 1)
    }
}

pub(super) fn of(judged: &Judged) -> Answer {
    if judged.refused.is_some() {
        Answer::Impossible
    } else if judged.admitted {
        Answer::Admitted
    } else {
        Answer::Denied
    }
}
