//! What is shown of ClusterOperators (CO §6).

use serde_json::json;

use super::bench::{Bench, available};
use crate::repository::root;

/// One that is only primed is not up, is unreported, and is left out of the alert.
#[tokio::test]
async fn co_09_01_what_is_primed_is_told_from_what_is_down() {
    let bench = Bench::new().await;
    bench.announce("dns");
    let primer = bench.start();
    bench.until_primed("dns").await;
    primer.until_counted("cluster_operator_up{name=\"dns\",version=\"\",reason=\"Primed\"} 0").await;
    primer.until_counted("cluster_operator_unreported{name=\"dns\"} 1").await;
    assert!(
        !primer.metrics().contains("cluster_operator_conditions{name=\"dns\""),
        "Unknown is neither 1 nor 0"
    );
    let rules = std::fs::read_to_string(root().join("deploy/monitoring/prometheusrule.yaml")).unwrap();
    let down = rules.lines().find(|line| line.contains("cluster_operator_up) == 0")).unwrap();
    assert!(down.contains("unless on (name) max by (name) (cluster_operator_unreported) == 1"), "{down}");

    let mut report = available();
    bench.report("dns", report.clone()).await;
    primer.until_counted("cluster_operator_up{name=\"dns\",version=\"4.5.0\",reason=\"AsExpected\"} 1").await;
    primer.until_counted("cluster_operator_unreported{name=\"dns\"} 0").await;
    let metrics = primer.metrics();
    for (condition, value) in [("Available", 1), ("Progressing", 0), ("Degraded", 0)] {
        let line = format!(
            "cluster_operator_conditions{{name=\"dns\",condition=\"{condition}\",reason=\"AsExpected\"}} {value}"
        );
        assert!(metrics.contains(&line), "{line}: {metrics}");
    }
    // It appeared, Unknown; became True; becomes False.
    report["conditions"][0]["status"] = json!("False");
    bench.report("dns", report).await;
    primer
        .until_counted("cluster_operator_condition_transitions_total{name=\"dns\",condition=\"Available\"} 3")
        .await;
    primer.until_counted("cluster_operator_primed_total{result=\"created\"} 1").await;
    primer.until_counted("cluster_operator_primed_total{result=\"primed\"} 1").await;
    primer.stop().await;
}
