//! Asks the service for its remote configuration: what it wants gathered besides.

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
    /// The HTTP code of the answer, 0 where there was none.
    pub fn code(&self) -> u16 {
        match self {
            Self::Exchange(_) => 0,
            Self::Status { code, body: _ } => *code,
        }
    }
}

impl Ingress {
    /// The text of the configuration at `url`.
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
