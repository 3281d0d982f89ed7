//! Implements `AlwaysAdmit`, which admits every write, and `AlwaysDeny`, which refuses every write. Off by default, deprecated
//! upstream.

use super::alone::Alone;
use super::{Plugin, Request};
use crate::status::Refusal;

pub(super) const ADMIT: Plugin =
    Plugin { name: "AlwaysAdmit", mutate: None, validate: None, alone: Alone::Acts };

pub(super) const DENY: Plugin = Plugin {
    name: "AlwaysDeny",
    mutate: Some(|request| deny(request)),
    validate: Some(deny),
    alone: Alone::Acts,
};

fn deny(request: &Request<'_>) -> Result<(), Refusal> {
    Err(request.forbidden("admission control is denying all modifications"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::plugins::tests::{mutated, pod, refused};

    #[test]
    fn everything_and_nothing_may_be_written() {
        assert_eq!(mutated(&ADMIT, "pods", &pod()).unwrap(), None);
        let told = refused(&DENY, "pods", &pod());
        assert_eq!(told, "pods \"a\" is forbidden: admission control is denying all modifications");
    }
}
