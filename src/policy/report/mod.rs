//! Holds results as data: the decision on a request, the recorded evaluation of its expressions, and trees that explain it.

pub(crate) mod decision;
pub mod explanation;
pub(crate) mod options;
pub(crate) mod recording;
