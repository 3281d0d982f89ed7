//! The kinds of the core group (pkg/apis/core/validation and pkg/registry/core).

mod endpoints;
mod replication_controller;
mod service;

use super::Strategy;

pub(super) const KINDS: &[Strategy] =
    &[endpoints::STRATEGY, replication_controller::STRATEGY, service::STRATEGY];
