//! Downloads the remote configuration of the service, which requests additional data.

use bytes::Bytes;

use super::{ExchangeError, Ingress};
use crate::telemetry::Outside;

#[derive(Debug, thiserror::Error)]
pub enum ConfigurationError {
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    #[error("the service answered {code}: {body}")]
    Status { code: u16, body: Outside },
}

impl ConfigurationError {
    /// Returns the HTTP status code of the response, 0 if there was none.
    pub fn code(&self) -> u16 {
        match self {
            Self::Exchange(_) => 0,
            Self::Status { code, body: _ } => *code,
        }
    }
}

impl Ingress {
    /// Downloads the configuration at `url`.
    ///
    /// # Errors
    /// [`ConfigurationError`].
    pub async fn remote_configuration(&self, url: &str) -> Result<Bytes, ConfigurationError> {
        let answer = self.get(url).await?;
        if !answer.status.is_success() {
            return Err(ConfigurationError::Status { code: answer.status.as_u16(), body: answer.shown() });
        }
        Ok(answer.body)
    }
}
