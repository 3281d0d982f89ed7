//! Results as data: the decision about a request, what each expression did on the way, and trees that explain it.

pub(crate) mod decision;
pub mod explanation;
pub(crate) mod options;
pub(crate) mod recording;
