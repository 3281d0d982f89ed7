//! Defines exceptions: which requests are admitted although a policy denies them, until when and why.
//!
//! An exception removes only the denial: the policy is still evaluated, and reports show its verdict. The [`Host`](crate::Host)
//! supplies the time and the exceptions of the cluster; if it knows none, none applies. No exception applies to requests about
//! exceptions, or the owner of one could grant himself others.

mod decode;

use std::sync::Arc;

use crate::report::decision::Excepted;
use crate::request::Request;
use crate::request::exceptions::{Exceptions, PolicyException};
use crate::request::host::{Host, HostError};

/// Group of the documents that are files alone: one without a dot, which no definition may have.
pub(crate) const GROUP: &str = "admit";
/// Group of those that a cluster stores, too.
pub(crate) const STORED_GROUP: &str = "policies.admit.dev";
pub(crate) const KIND: &str = "PolicyException";
/// The cluster-scoped kind ([`KIND`] is namespaced); only in the group of stored objects.
pub(crate) const CLUSTER_KIND: &str = "ClusterPolicyException";

/// Whether documents of the kind are exceptions.
///
/// ```
/// assert!(admit_policy::is_exception("policies.admit.dev", "ClusterPolicyException"));
/// assert!(!admit_policy::is_exception("admit", "Suite"));
/// ```
#[must_use]
pub fn is_exception(group: &str, kind: &str) -> bool {
    matches!((group, kind), (GROUP, KIND) | (STORED_GROUP, KIND | CLUSTER_KIND))
}

/// The exceptions of one request: those of the set, and those that the host knows of.
#[derive(Debug)]
pub(crate) struct Excepting<'a> {
    request: &'a Request<'a>,
    host: &'a dyn Host,
    of_set: &'a Exceptions,
    of_host: Result<Option<Arc<Exceptions>>, HostError>,
}

impl<'a> Excepting<'a> {
    pub(crate) fn new(of_set: &'a Exceptions, request: &'a Request<'a>, host: &'a dyn Host) -> Self {
        Self { request, host, of_set, of_host: host.exceptions() }
    }

    /// Returns why not all exceptions are known, if that is so.
    pub(crate) fn trouble(&self) -> Option<&HostError> {
        self.of_host.as_ref().err()
    }

    /// The first that lets the request pass `policy`; else the last that did so before it ended.
    pub(crate) fn from(&self, policy: &str) -> Option<Excepted> {
        let Self { request, host, of_set, of_host } = self;
        if request.resource.group == STORED_GROUP {
            return None;
        }
        let of_host = of_host.as_ref().ok().and_then(Option::as_deref);
        let about = of_set.from(policy).chain(of_host.into_iter().flat_map(|known| known.from(policy)));
        let mut covering = about.filter(|exception| exception.covers(request)).peekable();
        covering.peek()?;
        let now = host.now()?;
        let excepted = |exception: &PolicyException, in_force| Excepted {
            name: Arc::clone(&exception.name),
            reason: Arc::clone(&exception.reason),
            until: Arc::clone(&exception.shown),
            in_force,
        };
        let mut ended: Option<&PolicyException> = None;
        for exception in covering {
            if !exception.has_ended(now) {
                return Some(excepted(exception, true));
            }
            if ended.is_none_or(|known| known.until < exception.until) {
                ended = Some(exception);
            }
        }
        ended.map(|exception| excepted(exception, false))
    }
}
