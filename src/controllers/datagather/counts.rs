//! Counts gatherings in metrics, under upstream's names.

use std::sync::atomic::AtomicI64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::crd::{HealthCheckState, InsightsReport};

/// The name of the client in upstream's metrics.
const CLIENT: &str = "insights";
/// The names of risks from 1 on; and of their total.
const RISKS: [&str; 4] = ["low", "moderate", "important", "critical"];
const TOTAL: &str = "total";
/// The value before the first report.
const NOT_KNOWN: i64 = -1;

/// The metrics; clones share them.
#[derive(Clone, Debug)]
pub struct Counts {
    sent: Family<Answers, Counter>,
    received: Family<Answers, Counter>,
    health: Family<Risk, Gauge>,
    recommendations: Family<Recommendation, Gauge<i64, AtomicI64>>,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct Answers {
    client: &'static str,
    status_code: u16,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct Risk {
    metric: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct Recommendation {
    description: String,
    total_risk: &'static str,
    info_link: String,
}

impl Default for Counts {
    fn default() -> Self {
        let counts = Self {
            sent: Family::default(),
            received: Family::default(),
            health: Family::default(),
            recommendations: Family::default(),
        };
        counts.health(None);
        counts
    }
}

impl Counts {
    /// Adds the metrics to `registry`.
    pub fn register(&self, registry: &mut Registry) {
        let sent = self.sent.clone();
        registry.register("insightsclient_request_send", "Uploads by answer; 0 where there was none", sent);
        let received = self.received.clone();
        let help = "Downloads of reports by answer; 0 where there was none";
        registry.register("insightsclient_request_recvreport", help, received);
        let help = "Recommendations of the newest report by risk; -1 before there is one";
        registry.register("health_statuses_insights", help, self.health.clone());
        let help = "1 for each recommendation of the newest report";
        registry.register("insights_recommendation_active", help, self.recommendations.clone());
    }

    /// Counts an upload with the response `status_code`.
    pub(super) fn sent(&self, status_code: u16) {
        self.sent.get_or_create(&Answers { client: CLIENT, status_code }).inc();
    }

    /// Counts a download of a report with the response `status_code`.
    pub(super) fn received(&self, status_code: u16) {
        self.received.get_or_create(&Answers { client: CLIENT, status_code }).inc();
    }

    /// Sets the newest report; None before the first one.
    pub(super) fn health(&self, report: Option<&InsightsReport>) {
        let checks = report.map(|report| {
            let enabled =
                report.health_checks.iter().filter(|check| check.state == HealthCheckState::Enabled);
            enabled.collect::<Vec<_>>()
        });
        self.recommendations.clear();
        for check in checks.iter().flatten() {
            let labels = Recommendation {
                description: check.description.clone(),
                total_risk: risk(check.total_risk),
                info_link: check.advisor_uri.clone(),
            };
            self.recommendations.get_or_create(&labels).set(1);
        }
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let of = |metric: &'static str| match &checks {
            None => NOT_KNOWN,
            Some(checks) if metric == TOTAL => number(checks.len()),
            Some(checks) => number(checks.iter().filter(|check| risk(check.total_risk) == metric).count()),
        };
        for metric in RISKS.into_iter().chain([TOTAL]) {
            self.health.get_or_create(&Risk { metric }).set(of(metric));
        }
    }

    /// Returns the number of uploads so far, with any response.
    #[cfg(test)]
    pub(super) fn sent_in_all(&self) -> u64 {
        let codes = (0..600).map(|status_code| Answers { client: CLIENT, status_code });
        codes.filter_map(|labels| self.sent.get(&labels).map(|counter| counter.get())).sum()
    }
}

/// Returns the name of a risk from 1 to 4; others count as low.
fn risk(total: i32) -> &'static str {
    match total {
        2 => "moderate",
        3 => "important",
        4 => "critical",
        _ => "low",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_newest_report_is_shown_by_risk_and_one_by_one() {
        let (counts, mut registry) = (Counts::default(), Registry::default());
        counts.register(&mut registry);
        let shown = |registry: &Registry| {
            let mut text = String::new();
            prometheus_client::encoding::text::encode(&mut text, registry).unwrap();
            text
        };
        assert!(shown(&registry).contains("health_statuses_insights{metric=\"total\"} -1\n"));
        counts.sent(202);
        counts.received(404);
        let check = |risk: i32, state: &str| json!({"description": format!("rule {risk}"), "totalRisk": risk, "advisorURI": "https://a", "state": state});
        let checks = json!([check(1, "Enabled"), check(4, "Enabled"), check(3, "Disabled")]);
        let report = serde_json::from_value(json!({"healthChecks": checks})).unwrap();
        counts.health(Some(&report));
        let text = shown(&registry);
        for line in [
            "insightsclient_request_send_total{client=\"insights\",status_code=\"202\"} 1",
            "insightsclient_request_recvreport_total{client=\"insights\",status_code=\"404\"} 1",
            "health_statuses_insights{metric=\"low\"} 1",
            "health_statuses_insights{metric=\"important\"} 0",
            "health_statuses_insights{metric=\"critical\"} 1",
            "health_statuses_insights{metric=\"total\"} 2",
            "insights_recommendation_active{description=\"rule 4\",total_risk=\"critical\",info_link=\"https://a\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "`{line}` is missing:\n{text}");
        }
        counts.health(None);
        assert!(!shown(&registry).contains("rule 4"));
    }
}
