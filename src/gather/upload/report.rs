//! Downloads the analysis of one upload, and makes it valid for the status of a DataGather.
//!
//! The status schema requires descriptions of 10 to 2048 characters, risks from 1 to 4 and https links. Other values are
//! adapted or left out, because one odd rule must not make the whole status update invalid.

use serde::Deserialize;

use super::{Answered, ExchangeError, Ingress, percent_encode};
use crate::telemetry::{Outside, Secrets};

/// The longest description in characters, by the status schema.
const MAX_DESCRIPTION: usize = 2048;

/// The analysis of one upload.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The id of the analysed upload, according to the service.
    pub request_id: String,
    pub checks: Vec<HealthCheck>,
    /// The URL of the report; absent unless https.
    pub uri: Option<String>,
}

/// One finding of the analysis.
#[derive(Clone, Debug, PartialEq)]
pub struct HealthCheck {
    pub description: String,
    /// 1 (low) to 4 (critical).
    pub total_risk: i32,
    pub advisor_uri: String,
}

#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    #[error("there is no report: {0}")]
    NotFound(Outside),
    #[error("the service answered {code}: {body}")]
    Status { code: u16, body: Outside },
    #[error("the report cannot be read: {0}")]
    Undecodable(Outside),
}

impl ReportError {
    /// Returns the HTTP status code of the response; 0 if there was none.
    #[must_use]
    pub fn code(&self) -> u16 {
        match self {
            Self::Exchange(_) => 0,
            Self::NotFound(_) => 404,
            Self::Status { code, body: _ } => *code,
            Self::Undecodable(_) => 200,
        }
    }
}

#[derive(Deserialize)]
struct Answer {
    #[serde(rename = "requestID", default)]
    request_id: String,
    #[serde(default)]
    report: Vec<Finding>,
}

#[derive(Deserialize)]
struct Finding {
    #[serde(default)]
    rule_fqdn: String,
    #[serde(default)]
    error_key: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    total_risk: i64,
}

impl Ingress {
    /// Downloads the report of the upload `request_id`, without retries.
    ///
    /// # Errors
    /// [`ReportError::NotFound`] on 404, the others as they say.
    pub async fn report(&self, request_id: &str) -> Result<Report, ReportError> {
        let url = self.endpoints.of_request(&self.cluster_id, request_id, "report");
        let answer = self.get(&url).await?;
        let Answered { status, body, secrets } = &answer;
        if *status == http::StatusCode::NOT_FOUND {
            return Err(ReportError::NotFound(answer.shown()));
        }
        if !status.is_success() {
            return Err(ReportError::Status { code: status.as_u16(), body: answer.shown() });
        }
        let Answer { request_id, report } = serde_json::from_slice(body)
            .map_err(|error| ReportError::Undecodable(answer.tell(error.to_string())))?;
        let page = format!("{}/{}", self.endpoints.advisor, percent_encode(&self.cluster_id));
        let checks = report.into_iter().filter_map(|finding| check(finding, &page, secrets)).collect();
        let request_id = answer.tell(request_id).into_string();
        Ok(Report { request_id, checks, uri: url.starts_with("https://").then_some(url) })
    }
}

fn check(finding: Finding, page: &str, secrets: &Secrets) -> Option<HealthCheck> {
    let Finding { rule_fqdn, error_key, description, total_risk } = finding;
    let told = |text: &str| Outside::at_most(MAX_DESCRIPTION, text, secrets).into_string();
    let (rule_fqdn, error_key, description) = (told(&rule_fqdn), told(&error_key), told(&description));
    let described = match description.chars().count() {
        0..10 => format!("{description} ({rule_fqdn}|{error_key})"),
        _ => description,
    };
    let description: String = described.chars().take(MAX_DESCRIPTION).collect();
    let long_enough = description.chars().count() >= 10;
    long_enough.then(|| HealthCheck {
        description,
        total_risk: i32::try_from(total_risk).ok().filter(|risk| (1..=4).contains(risk)).unwrap_or(1),
        advisor_uri: format!("{page}?first={}", percent_encode(&format!("{rule_fqdn}|{error_key}"))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_made_to_fit_the_status_schema() {
        let finding = |description: &str, total_risk| Finding {
            rule_fqdn: "a.b".to_owned(),
            error_key: "KEY".to_owned(),
            description: description.to_owned(),
            total_risk,
        };
        let fitted = check(finding("short", 9), "https://advisor/c", &Secrets::default()).unwrap();
        assert_eq!(
            fitted,
            HealthCheck {
                description: "short (a.b|KEY)".to_owned(),
                total_risk: 1,
                advisor_uri: "https://advisor/c?first=a.b%7CKEY".to_owned(),
            }
        );
        assert_eq!(
            check(finding(&"ö".repeat(3000), 4), "p", &Secrets::default())
                .unwrap()
                .description
                .chars()
                .count(),
            2048
        );
    }
}
