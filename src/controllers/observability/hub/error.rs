//! Defines the errors in communicating with the hub, and how each is handled.

use std::path::PathBuf;
use std::time::Duration;

use crate::controllers::kit::controller::Failure;
use crate::controllers::kit::retry::{Remedy, remedy};
use crate::controllers::observability::crd::NAME;
use crate::telemetry::{Outside, with_causes};

/// Why the hub and this cluster could not be synchronized.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    #[error("cannot use the kubeconfig of the hub `{}`: {reason}; mend it, it is read again", path.display())]
    Kubeconfig { path: PathBuf, reason: Outside },
    #[error("cannot {verb} {namespace}/{NAME} on the hub: {}", with_causes(source))]
    Api {
        verb: &'static str,
        namespace: String,
        #[source]
        source: Box<kube::Error>,
        /// The wait that the hub requests in a response header.
        asked: Option<Duration>,
    },
    #[error("the hub did not answer within {} s", .0.as_secs())]
    Silent(Duration),
    #[error(
        "the hub is this cluster, and {namespace} the namespace of its own add-on: name the namespace that the hub has for this cluster"
    )]
    Itself { namespace: String },
    #[error("cannot {verb} the add-on of this cluster: {}", with_causes(source))]
    Spoke {
        verb: &'static str,
        #[source]
        source: Box<kube::Error>,
    },
}

/// How an error of the hub is handled.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Class {
    /// Retrying may help.
    Passing,
    /// Retrying may help, or other credentials or another address.
    Credentials,
    /// Only a change helps.
    Final,
}

impl Class {
    fn of(error: &kube::Error) -> Self {
        // Without a status there was no response, whatever error layers report: network errors are wrapped.
        let kube::Error::Api(status) = error else { return Self::Credentials };
        match status.code {
            401 | 403 => Self::Credentials,
            501 => Self::Final,
            409 | 429 | 500.. => Self::Passing,
            _ => Self::Final,
        }
    }
}

impl HubError {
    pub(super) fn class(&self) -> Class {
        match self {
            Self::Api { source, .. } => Class::of(source),
            Self::Kubeconfig { .. } | Self::Silent(_) => Class::Credentials,
            Self::Itself { .. } => Class::Final,
            Self::Spoke { .. } => Class::Passing,
        }
    }

    /// Returns the result for the metric.
    pub(super) fn result(&self) -> &'static str {
        match (self, self.class()) {
            (Self::Spoke { .. }, _) => "spoke_error",
            (_, Class::Passing) => "retried",
            (_, Class::Credentials) => "reconnected",
            (_, Class::Final) => "refused",
        }
    }
}

impl Failure for HubError {
    /// Returns the remedy: permanent errors wait for the next change or periodic round; all others are retried.
    fn remedy(&self) -> Remedy {
        let source = match self {
            Self::Spoke { source, .. } => return remedy(source),
            Self::Kubeconfig { .. } | Self::Silent(_) => return Remedy::Wait,
            Self::Itself { .. } => return Remedy::Change,
            Self::Api { asked: Some(asked), .. } => return Remedy::After(*asked),
            Self::Api { source, .. } => source,
        };
        match (self.class(), remedy(source)) {
            (Class::Final, _) => Remedy::Change,
            (_, helps @ (Remedy::After(_) | Remedy::Reread)) => helps,
            (Class::Passing | Class::Credentials, _) => Remedy::Wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;
    use serde_json::json;

    use super::*;

    fn failed(code: u16, asked: Option<Duration>) -> HubError {
        let source = Box::new(kube::Error::Api(Box::new(Status { code, ..Status::default() })));
        HubError::Api { verb: "show", namespace: "cluster1".to_owned(), source, asked }
    }

    #[test]
    fn ob_05_errors_of_the_hub_by_class() {
        for (code, class, helps) in [
            (409, Class::Passing, Remedy::Reread),
            (429, Class::Passing, Remedy::Wait),
            (500, Class::Passing, Remedy::Wait),
            (503, Class::Passing, Remedy::Wait),
            (501, Class::Final, Remedy::Change),
            (401, Class::Credentials, Remedy::Wait),
            (403, Class::Credentials, Remedy::Wait),
            (400, Class::Final, Remedy::Change),
            (404, Class::Final, Remedy::Change),
            (422, Class::Final, Remedy::Change),
        ] {
            let error = failed(code, None);
            assert_eq!((error.class(), error.remedy()), (class, helps), "{code}");
        }
        assert_eq!(HubError::Silent(Duration::from_secs(1)).class(), Class::Credentials);
        let network = kube::Error::Service(Box::new(std::io::Error::other("connection refused")));
        assert_eq!(Class::of(&network), Class::Credentials);
    }

    /// The wait is in seconds, in a header or in the body.
    #[test]
    fn ob_08_08_the_hub_says_how_long_to_wait_in_seconds() {
        let told = failed(429, Some(Duration::from_secs(7)));
        assert_eq!(told.remedy(), Remedy::After(Duration::from_secs(7)));
        let body = json!({"code": 503, "details": {"retryAfterSeconds": 9}});
        let source = Box::new(kube::Error::Api(Box::new(serde_json::from_value(body).unwrap())));
        let told = HubError::Api { verb: "show", namespace: String::new(), source, asked: None };
        assert_eq!(told.remedy(), Remedy::After(Duration::from_secs(9)));
    }
}
