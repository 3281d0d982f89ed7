//! ServiceAccounts, of which nothing is validated beyond their metadata. Read from pkg/registry/core/serviceaccount of
//! Kubernetes 1.36.

use crate::kinds::{Habit, Strategy};

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "ServiceAccount",
    habits: &[Habit::AnswersDeleted, Habit::ObjectAgain],
    ..Strategy::PLAIN
};
