//! Lists the kinds of `batch` (pkg/apis/batch/validation and pkg/registry/batch).

mod cron_job;
mod indexes;
mod job;
mod job_policies;
mod job_spec;
mod job_status;
mod schedule;

use super::Strategy;

pub(super) const KINDS: &[Strategy] = &[cron_job::STRATEGY, job::STRATEGY];
