//! Generates alerts, dashboards and scrape configuration for Prometheus and Grafana, for the webhook and the
//! controllers.

const SERVICE_MONITOR: &str = include_str!("templates/servicemonitor.yaml");
const RULES: &str = include_str!("templates/prometheusrule.yaml");
const DASHBOARD: &str = include_str!("templates/dashboard.json");
const CONTROLLERS: &str = include_str!("templates/dashboard-controllers.json");
const DASHBOARD_HEAD: &str = "\
# Grafana's sidecar picks up ConfigMaps that carry this label.
apiVersion: v1
kind: ConfigMap
metadata:
  name: admit-dashboard
  namespace: $(namespace)
  labels:
    grafana_dashboard: \"1\"
data:
";

/// Returns the name and the template of each file.
pub(super) fn templates() -> [(&'static str, String); 3] {
    let page = |name: &str, text: &str| {
        let lines: String = text.lines().map(|line| format!("    {line}\n")).collect();
        format!("  {name}.json: |\n{lines}")
    };
    let pages =
        [("admit", DASHBOARD), ("admit-controllers", CONTROLLERS)].map(|(name, text)| page(name, text));
    [
        ("servicemonitor.yaml", SERVICE_MONITOR.to_owned()),
        ("prometheusrule.yaml", RULES.to_owned()),
        ("dashboard.yaml", format!("{DASHBOARD_HEAD}{}", pages.concat())),
    ]
}

pub(super) fn names() -> Vec<String> {
    templates().map(|(name, _)| name.to_owned()).to_vec()
}
