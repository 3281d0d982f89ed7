//! What plugins remember from one request to the next, in this process alone.
//!
//! | file | holds |
//! |---|---|
//! | `answers` | what the backend of images said |
//! | `buckets` | how many events may still come |
//! | `recent` | a bounded number of entries |

mod answers;
mod buckets;
mod recent;

use std::sync::Arc;

use serde_json::Value;

pub(super) use self::answers::{Answers, Verdict};
use self::buckets::Buckets;
use super::resource_quota::{Uncovered, Written, uncovered};
use super::settings::{LimitKind, Settings};

/// The settings of the plugins of a server, and what they remember.
#[derive(Debug, Default)]
pub(in crate::admission) struct Live {
    pub(super) settings: Settings,
    /// By the limit of events that they keep.
    pub(super) events: Vec<(LimitKind, Buckets)>,
    pub(super) images: Answers,
}

impl Live {
    /// What of a write no quota of its namespace covers, although the settings want one.
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
