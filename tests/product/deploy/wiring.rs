//! What the manifests say about one another and about the program: selectors that select, ports that are there, and
//! expressions of metrics that the server has.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

use admit::controllers::clusteroperator::crd::{ClusterOperator, ClusterOperatorSpec};
use admit::controllers::cyndi::merge::Difference;
use admit::controllers::cyndi::verdict::Verdict;
use admit::controllers::observability::vocabulary::SEED;
use admit::controllers::{clusteroperator, cyndi, mustgather, observability};
use admit::telemetry::{ControllerMetrics, Metrics, Readiness};
use prometheus_client::registry::Registry;
use serde_json::{Value, json};

use super::{base, documents};

type Documents = BTreeMap<(String, String), Value>;

/// Everything of the base with monitoring.
fn everything() -> Documents {
    let folder = base(&["monitoring=true"]);
    let deploy = folder.path().join("deploy");
    let files = [
        "admission",
        "controllers",
        "service",
        "networkpolicy",
        "monitoring/servicemonitor",
        "monitoring/prometheusrule",
        "monitoring/dashboard",
    ];
    let texts = files.map(|name| fs::read_to_string(deploy.join(format!("{name}.yaml"))).unwrap());
    texts.iter().flat_map(|text| documents(text)).collect()
}

fn of_kind<'d>(all: &'d Documents, kind: &'static str) -> impl Iterator<Item = (&'d str, &'d Value)> {
    all.iter().filter(move |((own, _), _)| own == kind).map(|((_, name), value)| (name.as_str(), value))
}

/// Whether every label that is asked for is there.
fn selects(wanted: &Value, labels: &Value) -> bool {
    let wanted = wanted.as_object().unwrap();
    assert!(!wanted.is_empty(), "a selector of nothing selects everything");
    wanted.iter().all(|(key, value)| &labels[key] == value)
}

/// The Deployments that a selector of Pods reaches.
fn reached<'d>(all: &'d Documents, selector: &Value) -> Vec<&'d Value> {
    let template = |deployment: &Value| deployment["spec"]["template"]["metadata"]["labels"].clone();
    of_kind(all, "Deployment").map(|(_, it)| it).filter(|it| selects(selector, &template(it))).collect()
}

fn has_port(deployment: &Value, name: &Value) -> bool {
    let containers = deployment["spec"]["template"]["spec"]["containers"].as_array().unwrap();
    containers
        .iter()
        .flat_map(|it| it["ports"].as_array().into_iter().flatten())
        .any(|port| &port["name"] == name)
}

#[test]
fn selectors_reach_what_they_are_for() {
    let all = everything();
    for (name, deployment) in of_kind(&all, "Deployment") {
        assert_eq!(reached(&all, &deployment["spec"]["selector"]["matchLabels"]), [deployment], "{name}");
    }
    for (name, budget) in of_kind(&all, "PodDisruptionBudget") {
        let spec = &budget["spec"];
        let pods = reached(&all, &spec["selector"]["matchLabels"]);
        assert_eq!(pods.len(), 1, "{name}");
        assert!(
            spec["minAvailable"].as_u64() < pods[0]["spec"]["replicas"].as_u64(),
            "{name}: no node could be drained"
        );
        assert_eq!(spec["unhealthyPodEvictionPolicy"], "AlwaysAllow", "{name}");
    }
    for (name, service) in of_kind(&all, "Service") {
        let pods = reached(&all, &service["spec"]["selector"]);
        assert_eq!(pods.len(), 1, "{name}");
        for port in service["spec"]["ports"].as_array().unwrap() {
            assert!(has_port(pods[0], &port["targetPort"]), "{name}: {port}");
        }
    }
    let counts = ["Deployment", "PodDisruptionBudget", "Service", "NetworkPolicy"]
        .map(|kind| of_kind(&all, kind).count());
    // One replica of the controllers works at a time: no eviction stops them for longer than the other takes over.
    assert_eq!(counts, [2, 1, 3, 2], "one of the kinds lost a document");
}

#[test]
fn network_policies_let_in_whom_they_must_and_nobody_else() {
    let all = everything();
    for (name, policy) in of_kind(&all, "NetworkPolicy") {
        let spec = &policy["spec"];
        let pods = reached(&all, &spec["podSelector"]["matchLabels"]);
        assert_eq!(pods.len(), 1, "{name}");
        assert_eq!(spec["policyTypes"], serde_json::json!(["Ingress", "Egress"]), "{name}");
        let open: Vec<&str> = spec["ingress"]
            .as_array()
            .into_iter()
            .flatten()
            .flat_map(|rule| rule["ports"].as_array().unwrap())
            .map(|port| {
                assert!(has_port(pods[0], &port["port"]), "{name}: {port}");
                port["port"].as_str().unwrap()
            })
            .collect();
        let expected: &[&str] = if name == "admit" { &["https", "metrics"] } else { &["metrics"] };
        assert_eq!(open, expected, "{name}");
        for rule in spec["egress"].as_array().unwrap() {
            assert!(
                !rule["ports"].as_array().unwrap().is_empty(),
                "{name}: a rule without ports is for all of them"
            );
        }
    }
}

#[test]
fn api_servers_are_let_in_by_name_where_they_are_named() {
    let folder = base(&["apiServers=10.0.0.4/32,fd00::/8"]);
    let text = fs::read_to_string(folder.path().join("deploy/networkpolicy.yaml")).unwrap();
    let all = documents(&text);
    let (_, policy) = of_kind(&all, "NetworkPolicy").find(|(name, _)| *name == "admit").unwrap();
    let rules = policy["spec"]["ingress"].as_array().unwrap();
    let label = |name: &str| json!({"namespaceSelector": {"matchLabels": {name: "enabled"}}});
    let block = |cidr: &str| json!({"ipBlock": {"cidr": cidr}});
    let from: Vec<&Value> = rules.iter().map(|rule| &rule["from"]).collect();
    let api_servers = json!([block("10.0.0.4/32"), block("fd00::/8"), label("admit.dev/api-server")]);
    assert_eq!(from, [&api_servers, &json!([label("admit.dev/metrics")])]);
    // Where they are not, the file says what that means.
    let open = fs::read_to_string(base(&[]).path().join("deploy/networkpolicy.yaml")).unwrap();
    assert!(open.contains("open\n  # to every Pod") && !text.contains("to every Pod"), "{open}");
}

#[test]
fn scrapers_find_the_metrics() {
    let all = everything();
    let (_, monitor) = of_kind(&all, "ServiceMonitor").next().unwrap();
    let wanted = &monitor["spec"]["selector"]["matchLabels"];
    let services: Vec<_> =
        of_kind(&all, "Service").filter(|(_, it)| selects(wanted, &it["metadata"]["labels"])).collect();
    assert_eq!(services.len(), 2, "of the webhook and of the controllers");
    for (name, service) in services {
        let ports = service["spec"]["ports"].as_array().unwrap();
        for endpoint in monitor["spec"]["endpoints"].as_array().unwrap() {
            assert!(ports.iter().any(|port| port["name"] == endpoint["port"]), "{name}: {endpoint}");
        }
    }
}

/// The kubelet asks at the ports that the programs listen on, for routes that they have.
#[test]
fn probes_ask_for_what_is_served() {
    let all = everything();
    for (name, deployment) in of_kind(&all, "Deployment") {
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        let args: Vec<&str> =
            container["args"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
        let metrics = container["ports"].as_array().unwrap().iter().find(|port| port["name"] == "metrics");
        let (flag, alive) = match name {
            "admit" => ("--observe-listen", "/livez"),
            _ => ("--metrics-listen", "/healthz"),
        };
        let listens = format!("{flag}=0.0.0.0:{}", metrics.unwrap()["containerPort"]);
        assert!(args.contains(&listens.as_str()), "{name}: {args:?}");
        for (probe, path) in [("readinessProbe", "/readyz"), ("livenessProbe", alive)] {
            let get = &container[probe]["httpGet"];
            assert_eq!((get["path"].as_str(), get["port"].as_str()), (Some(path), Some("metrics")), "{name}");
        }
    }
}

/// What the controllers show that had something to count of every kind.
fn of_controllers() -> String {
    let (metrics, readiness) = (ControllerMetrics::default(), Readiness::default());
    metrics.begins("c", 1);
    metrics.reconciled("c", "success", Duration::from_millis(2));
    metrics.taken("c", Duration::ZERO);
    metrics.depth("c", 1, 1);
    metrics.leading("l", true);
    readiness.set("c", true);
    let mut counts = Registry::default();
    mustgather::Counts::default().register(&mut counts);
    let operators = clusteroperator::counts::Counts::default();
    operators.register(&mut counts);
    operators.see("o", Some(&ClusterOperator::new("o", ClusterOperatorSpec {})));
    let add_ons = observability::counts::Counts::new(&SEED);
    add_ons.register(&mut counts);
    add_ons.replicated("reconnected");
    let pipelines = cyndi::Counts::default();
    pipelines.register(&mut counts);
    pipelines.begin("a");
    pipelines.validated("a", &Verdict::by_ids(Difference::default(), 5));
    metrics.include(counts);
    metrics.text(&readiness)
}

/// The series of a server that had something to count of every kind: by name, the names of their labels.
fn series() -> BTreeMap<String, BTreeSet<String>> {
    let metrics = Metrics::default();
    metrics.request("validate", "denied", Duration::from_millis(2));
    metrics.rule(&"p".into(), "deny", "failed");
    metrics.cost(1);
    metrics.let_through("auditing_route");
    metrics.reload("policies", false);
    metrics.panicked();
    metrics.handshake("success");
    metrics.connection_opened();
    metrics.set_in_force("aa", 1);
    metrics.broken([("p", true)]);
    metrics.excepted("p");
    metrics.exceptions("in_force", 1);
    metrics.certificate_days_left(1.0);
    metrics.ready("policies", true);
    let mut series: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let all = metrics.text() + &of_controllers();
    for line in all.lines().filter(|line| !line.starts_with('#')) {
        let head = line.rsplit_once(' ').unwrap().0;
        let (name, labels) = head.split_once('{').unwrap_or((head, "}"));
        let labels = labels.trim_end_matches('}').split(',').filter_map(|label| label.split_once('='));
        series.entry(name.to_owned()).or_default().extend(labels.map(|(label, _)| label.to_owned()));
    }
    series
}

/// The names of series, and of labels, that an expression speaks of.
fn spoken_of(expression: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let ours = [
        "admit_",
        "controller_runtime_",
        "workqueue_",
        "leader_election_",
        "must_gather_operator_",
        "cluster_operator_",
        "observability_addon_",
        "cyndi_",
    ];
    let words =
        expression.split(|c: char| !is_name(c)).filter(|word| ours.iter().any(|it| word.starts_with(it)));
    let mut labels = BTreeSet::new();
    for (open, close) in [("by (", ')'), ("{", '}')] {
        for (at, _) in expression.match_indices(open) {
            let inside = expression[at + open.len()..].split(close).next().unwrap();
            let names = inside.split(',').map(|part| part.split(['=', '!', '~']).next().unwrap().trim());
            labels.extend(names.filter(|name| !name.is_empty()).map(ToOwned::to_owned));
        }
    }
    (words.map(ToOwned::to_owned).collect(), labels)
}

#[test]
fn expressions_are_about_series_that_there_are() {
    let (all, series) = (everything(), series());
    let (_, map) = of_kind(&all, "ConfigMap").next().unwrap();
    let pages = ["admit.json", "admit-controllers.json"];
    let pages = pages.map(|page| serde_json::from_str::<Value>(map["data"][page].as_str().unwrap()).unwrap());
    let panels = pages.iter().flat_map(|page| page["panels"].as_array().unwrap());
    let shown = panels
        .flat_map(|panel| panel["targets"].as_array().unwrap())
        .map(|target| target["expr"].as_str().unwrap());
    let (_, rules) = of_kind(&all, "PrometheusRule").next().unwrap();
    let groups = rules["spec"]["groups"].as_array().unwrap().iter();
    let alerts: Vec<&Value> = groups.flat_map(|group| group["rules"].as_array().unwrap()).collect();
    let told = alerts.iter().map(|alert| alert["expr"].as_str().unwrap());
    let mut named = BTreeSet::new();
    for expression in shown.chain(told) {
        let (names, labels) = spoken_of(expression);
        assert!(!names.is_empty(), "{expression}");
        for name in &names {
            let own = series.get(name).unwrap_or_else(|| panic!("no series `{name}`: {expression}"));
            // The scraper adds the Pod.
            let strange = labels.iter().find(|label| *label != "pod" && !own.contains(*label));
            assert_eq!(strange, None, "{expression}");
        }
        let braces = |c: char| expression.matches(c).count();
        assert_eq!(
            (braces('('), braces('{'), braces('[')),
            (braces(')'), braces('}'), braces(']')),
            "{expression}"
        );
        named.extend(names);
    }
    assert!(named.len() >= 20, "{named:?}");
    for alert in alerts {
        let summary = alert["annotations"]["summary"].as_str().unwrap();
        let labels = spoken_of(alert["expr"].as_str().unwrap()).1;
        for (at, _) in summary.match_indices("$labels.") {
            let label = summary[at + 8..].split(' ').next().unwrap();
            assert!(labels.contains(label), "{summary}: `{label}` is aggregated away");
        }
        assert!(matches!(alert["labels"]["severity"].as_str(), Some("critical" | "warning")), "{alert}");
    }
}
