//! Whether an ended container is started again.

/// Whether an ended container is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    Always,
    OnFailure,
    Never,
}

impl Policy {
    pub(super) fn of_pod(policy: Option<&str>) -> Self {
        match policy {
            Some("Never") => Self::Never,
            Some("OnFailure") => Self::OnFailure,
            _ => Self::Always,
        }
    }

    /// Init containers run until they succeed, where the Pod's containers run for ever.
    pub(super) fn of_init(self) -> Self {
        if self == Self::Always { Self::OnFailure } else { self }
    }

    pub(super) fn starts_again(self, code: i32) -> bool {
        match self {
            Self::Always => true,
            Self::OnFailure => code != 0,
            Self::Never => false,
        }
    }
}
