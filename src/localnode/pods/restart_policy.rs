//! Decides whether an ended container is restarted.

/// The restart policy of a container.
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

    /// Returns the policy for init containers: if the Pod's is Always, they run until they succeed.
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
