//! Defines how an upload can fail, each error with the HTTP status code.

use std::path::PathBuf;

use http::StatusCode;

use super::{TokenError, TransportError};
use crate::telemetry::Outside;

#[derive(Debug, thiserror::Error, PartialEq)]
pub enum EndpointError {
    #[error("`{0}` is not a URL with a host")]
    NotAUrl(String),
    #[error("`{0}` must start with https:// (http:// is taken for loopback addresses only)")]
    NotHttps(String),
    #[error("`{0}` must have two places `%s` behind the host, for the cluster's id and the request's")]
    Places(String),
    #[error("`{0}` may have one place `%s` behind the host, for the version of the platform")]
    Place(String),
    #[error("a URL with credentials in it is not taken: give the token by file or Secret")]
    Credentials,
}

#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    #[error("the archive of {size} bytes is not below the upload limit of {} bytes", super::MAX_UPLOAD)]
    TooLarge { size: u64 },
    #[error("cannot read {}: {source}", path.display())]
    Archive {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error(transparent)]
    Token(#[from] TokenError),
    #[error(transparent)]
    Transport(#[from] TransportError),
    #[error("the service does not accept the token: {code} {body}")]
    Unauthorized { code: u16, body: Outside },
    #[error("the service calls it a bad request: {body}")]
    BadRequest { body: Outside },
    #[error("the service calls the archive too large: {body}")]
    RefusedAsTooLarge { body: Outside },
    #[error("the service does not know the content type: {body}")]
    UnknownContentType { body: Outside },
    #[error("the service answered {code}: {body}")]
    Status { code: u16, body: Outside },
    #[error("the service accepted the archive but named no request id")]
    NoRequestId(u16),
    #[error("no upload attempt is configured")]
    NoAttempt,
}

impl UploadError {
    pub(super) fn of_status(status: StatusCode, body: Outside) -> Self {
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                Self::Unauthorized { code: status.as_u16(), body }
            }
            StatusCode::BAD_REQUEST => Self::BadRequest { body },
            StatusCode::PAYLOAD_TOO_LARGE => Self::RefusedAsTooLarge { body },
            StatusCode::UNSUPPORTED_MEDIA_TYPE => Self::UnknownContentType { body },
            other => Self::Status { code: other.as_u16(), body },
        }
    }

    /// Returns the HTTP status code of the response, 0 if there was none.
    pub fn code(&self) -> u16 {
        match self {
            Self::TooLarge { .. }
            | Self::Archive { .. }
            | Self::Token(_)
            | Self::Transport(_)
            | Self::NoAttempt => 0,
            Self::Unauthorized { code, .. } | Self::Status { code, .. } | Self::NoRequestId(code) => *code,
            Self::BadRequest { .. } => 400,
            Self::RefusedAsTooLarge { .. } => 413,
            Self::UnknownContentType { .. } => 415,
        }
    }

    /// Whether a later attempt with the same archive may succeed.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Transport(error) => error.may_pass(),
            Self::Status { code, .. } => *code == 408 || *code == 429 || *code >= 500,
            Self::TooLarge { .. }
            | Self::Archive { .. }
            | Self::Token(_)
            | Self::Unauthorized { .. }
            | Self::BadRequest { .. }
            | Self::RefusedAsTooLarge { .. }
            | Self::UnknownContentType { .. }
            | Self::NoRequestId(_)
            | Self::NoAttempt => false,
        }
    }
}
