//! Results as data: the decision about a request, what each expression did on the way, and trees that explain it.

pub mod decision;
pub mod explanation;
pub(crate) mod options;
pub mod recording;
