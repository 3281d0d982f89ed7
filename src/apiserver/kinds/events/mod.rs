//! Events, of the core group and of `events.k8s.io`: one kind under two names.
//!
//! Read from pkg/apis/core/validation/events.go.

mod event;

use super::Strategy;

/// The row of the core group.
pub(super) const CORE: &[Strategy] = &[event::CORE];

/// The row of `events.k8s.io`.
pub(super) const KINDS: &[Strategy] = &[event::EVENTS];
