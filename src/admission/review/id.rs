//! Which review an answer belongs to: its uid, and the version of the API that it must come back in.

/// The versions of AdmissionReview. Their requests are the same; an API server reads an answer only in the version in which
/// it asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::admission) enum ReviewVersion {
    #[default]
    V1,
    /// Of API servers before 1.16, and of webhook configurations that ask for nothing else.
    V1beta1,
}

/// What an answer must say of the review that it answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::admission) struct ReviewId {
    pub(in crate::admission) uid: String,
    pub(in crate::admission) version: ReviewVersion,
}

impl ReviewVersion {
    /// The version of an `apiVersion`; 1 for what is none of them.
    pub(super) fn of(api_version: &str) -> Self {
        if api_version == Self::V1beta1.api_version() { Self::V1beta1 } else { Self::V1 }
    }

    pub(super) const fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "admission.k8s.io/v1",
            Self::V1beta1 => "admission.k8s.io/v1beta1",
        }
    }
}
