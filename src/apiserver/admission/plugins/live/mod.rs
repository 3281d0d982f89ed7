//! Holds what plugins remember from one request to the next, in memory.
//!
//! | file | holds |
//! |---|---|
//! | `answers` | cached answers of the image policy backend |
//! | `buckets` | token buckets that limit events |
//! | `recent` | a bounded, least-recently-used map |

mod answers;
mod buckets;
mod recent;

use std::sync::Arc;

use serde_json::Value;

pub(super) use self::answers::{Answers, Verdict};
use self::buckets::Buckets;
use super::resource_quota::{Uncovered, Written, uncovered};
use super::settings::{LimitKind, Settings};

/// Holds the settings of a server's plugins, and their state.
#[derive(Debug, Default)]
pub(in crate::admission) struct Live {
    pub(super) settings: Settings,
    /// The token buckets of each event limit.
    pub(super) events: Vec<(LimitKind, Buckets)>,
    pub(super) images: Answers,
}

impl Live {
    /// Returns what the write consumes that the settings limit and no quota of its namespace covers.
    pub(in crate::admission) fn uncovered(
        &self,
        quotas: impl FnOnce() -> Vec<Arc<Value>>,
        written: Written<'_>,
    ) -> Option<Uncovered> {
        let limited = &self.settings.limited;
        if limited.is_empty() {
            return None;
        }
        uncovered(limited, quotas().iter().map(|quota| &**quota), written)
    }

    pub(in crate::admission) fn new(settings: Settings) -> Self {
        let events = settings.event_limits.iter().map(|limit| (limit.kind, Buckets::of(*limit))).collect();
        Self { settings, events, images: Answers::default() }
    }
}
