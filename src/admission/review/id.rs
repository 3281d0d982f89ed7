//! Identifies the review that a response belongs to: its uid, and the API version of the response.

/// The versions of AdmissionReview. Their requests are the same; an API server accepts a response only in the version of
/// its request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::admission) enum ReviewVersion {
    #[default]
    V1,
    /// The version of API servers before 1.16, and of webhook configurations that list nothing else.
    V1beta1,
}

/// What a response must repeat of its review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::admission) struct ReviewId {
    pub(in crate::admission) uid: String,
    pub(in crate::admission) version: ReviewVersion,
}

impl ReviewVersion {
    /// Returns the version of an `apiVersion`; v1 for anything unknown.
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
