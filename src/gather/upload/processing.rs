//! Polls the service until it has processed an upload, with three retry budgets: for no response, for an unsuccessful
//! response (404 means "not known yet"), and for another status than `processed`.

use serde::Deserialize;
use tracing::debug;

use super::{ExchangeError, Ingress};
use crate::telemetry::Outside;

/// Returned when the service has processed the upload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Processed;

#[derive(Debug, thiserror::Error)]
pub enum ProcessingError {
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    #[error("the service answered {code}: {body}")]
    Status { code: u16, body: Outside },
    #[error("the service reports the status `{0}`")]
    NotProcessed(Outside),
    #[error("the service's answer cannot be read: {0}")]
    Undecodable(Outside),
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    status: String,
}

impl Ingress {
    /// Waits until the upload `request_id` is processed.
    ///
    /// # Errors
    /// The [`ProcessingError`] that used up its budget.
    pub async fn await_processed(&self, request_id: &str) -> Result<Processed, ProcessingError> {
        let retries = self.pacing.processing_retries;
        let (mut unanswered, mut refused, mut unfinished) = (retries, retries, retries);
        let mut wait = self.pacing.processing_delay;
        loop {
            tokio::time::sleep(wait).await;
            wait = self.pacing.processing_interval;
            let error = match self.ask_processed(request_id).await {
                Ok(processed) => return Ok(processed),
                Err(error) => error,
            };
            let budget = match &error {
                ProcessingError::Exchange(_) => &mut unanswered,
                ProcessingError::Status { .. } | ProcessingError::Undecodable(_) => &mut refused,
                ProcessingError::NotProcessed(_) => &mut unfinished,
            };
            if *budget == 0 {
                return Err(error);
            }
            *budget -= 1;
            debug!(%error, left = *budget, request_id, "not processed yet");
        }
    }

    async fn ask_processed(&self, request_id: &str) -> Result<Processed, ProcessingError> {
        let url = self.endpoints.of_request(&self.cluster_id, request_id, "status");
        let answer = self.get(&url).await?;
        if !answer.status.is_success() {
            return Err(ProcessingError::Status { code: answer.status.as_u16(), body: answer.shown() });
        }
        // The decoder's error may quote the response.
        let decoded: Answer = serde_json::from_slice(&answer.body)
            .map_err(|error| ProcessingError::Undecodable(answer.tell(error.to_string())))?;
        match decoded.status.as_str() {
            "processed" => Ok(Processed),
            other => Err(ProcessingError::NotProcessed(answer.tell(other))),
        }
    }
}
