//! Lists Events of the core group and of `events.k8s.io`: one kind in two API groups.
//!
//! Read from pkg/apis/core/validation/events.go.

mod event;

use super::Strategy;

/// The strategy for the core group.
pub(super) const CORE: &[Strategy] = &[event::CORE];

/// The strategy for `events.k8s.io`.
pub(super) const KINDS: &[Strategy] = &[event::EVENTS];
