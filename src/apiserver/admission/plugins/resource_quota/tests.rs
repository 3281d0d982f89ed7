//! Tests usage and refusals of quotas; the texts are those of upstream's tests and recordings.

use serde_json::{Value, json};

use super::*;

const PODS: Counted<'static> = Counted { group: "", plural: "pods" };

fn quota(hard: &Value, used: &Value) -> Value {
    json!({"metadata": {"name": "q"}, "spec": {"hard": hard}, "status": {"hard": hard, "used": used}})
}

fn pod(requests: &Value) -> Value {
    json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]}})
}

fn charge(quota: &Value, of: Counted<'_>, object: &Value) -> Result<Option<Value>, String> {
    let written = Written { of, object, old: None, now: Timestamp::UNIX_EPOCH };
    charged(quota, written).map(|used| used.map(Value::Object)).map_err(|excess| excess.text().to_owned())
}

#[test]
fn pods_are_charged_up_to_what_is_hard() {
    let limited =
        quota(&json!({"requests.cpu": "1", "pods": "2"}), &json!({"requests.cpu": "600m", "pods": "1"}));
    let fits = charge(&limited, PODS, &pod(&json!({"cpu": "400m", "memory": "1Gi"})));
    assert_eq!(fits, Ok(Some(json!({"pods": "2", "requests.cpu": "1"}))));
    assert_eq!(
        charge(&limited, PODS, &pod(&json!({"cpu": "500m"}))),
        Err("exceeded quota: q, requested: requests.cpu=500m, used: requests.cpu=600m, limited: requests.cpu=1".into())
    );
    assert_eq!(
        charge(&limited, PODS, &pod(&json!({}))),
        Err("failed quota: q: must specify requests.cpu for: c".into())
    );
    let uncounted = quota(&json!({"pods": "2"}), &json!({}));
    assert_eq!(
        charge(&uncounted, PODS, &pod(&json!({}))),
        Err("status unknown for quota: q, resources: pods".into())
    );
}

#[test]
fn objects_are_counted() {
    let none = quota(&json!({"count/configmaps": "0"}), &json!({"count/configmaps": "0"}));
    let map = json!({"metadata": {"name": "q"}});
    assert_eq!(
        charge(&none, Counted { group: "", plural: "configmaps" }, &map),
        Err("exceeded quota: q, requested: count/configmaps=1, used: count/configmaps=0, limited: count/configmaps=0".into())
    );
    let widgets =
        quota(&json!({"count/widgets.example.dev": "2"}), &json!({"count/widgets.example.dev": "1"}));
    assert_eq!(
        charge(&widgets, Counted { group: "example.dev", plural: "widgets" }, &map),
        Ok(Some(json!({"count/widgets.example.dev": "2"})))
    );
    assert_eq!(charge(&widgets, PODS, &pod(&json!({}))), Ok(None));
}

#[test]
fn changes_are_charged_with_what_they_add() {
    let services = Counted { group: "", plural: "services" };
    let limited = quota(
        &json!({"services": "1", "services.nodeports": "1"}),
        &json!({"services": "1", "services.nodeports": "0"}),
    );
    let service =
        |kind: &str| json!({"metadata": {"name": "s"}, "spec": {"type": kind, "ports": [{"port": 80}]}});
    let (old, new) = (service("ClusterIP"), service("NodePort"));
    let written = |old, object| Written { of: services, object, old: Some(old), now: Timestamp::UNIX_EPOCH };
    let used = charged(&limited, written(&old, &new)).unwrap().map(Value::Object);
    assert_eq!(used, Some(json!({"services": "1", "services.nodeports": "1"})));
    assert_eq!(charged(&limited, written(&new, &old)), Ok(None));
}

#[test]
fn scopes_choose_among_pods() {
    let scoped = |scopes: Value, selector: Value| {
        let mut quota = quota(&json!({"pods": "5"}), &json!({"pods": "0"}));
        quota["spec"]["scopes"] = scopes;
        quota["spec"]["scopeSelector"] = json!({"matchExpressions": selector});
        quota
    };
    let is_counted = |quota: &Value, pod: &Value| charge(quota, PODS, pod).unwrap().is_some();
    let mut ending = pod(&json!({"cpu": "1"}));
    ending["spec"]["activeDeadlineSeconds"] = 5.into();
    ending["spec"]["priorityClassName"] = "high".into();
    let idle = pod(&json!({}));
    for (scope, of_ending, of_idle) in [
        ("Terminating", true, false),
        ("NotTerminating", false, true),
        ("BestEffort", false, true),
        ("NotBestEffort", true, false),
    ] {
        let quota = scoped(json!([scope]), json!([]));
        assert_eq!((is_counted(&quota, &ending), is_counted(&quota, &idle)), (of_ending, of_idle), "{scope}");
    }
    for (operator, values, of_ending, of_idle) in [
        ("In", json!(["high"]), true, false),
        ("NotIn", json!(["high"]), false, true),
        ("Exists", json!([]), true, false),
        ("DoesNotExist", json!([]), false, true),
    ] {
        let selector = json!([{"scopeName": "PriorityClass", "operator": operator, "values": values}]);
        let quota = scoped(json!([]), selector);
        assert_eq!(
            (is_counted(&quota, &ending), is_counted(&quota, &idle)),
            (of_ending, of_idle),
            "{operator}"
        );
    }
}

#[test]
fn statuses_count_what_is_stored() {
    let hard = json!({"pods": "9", "requests.cpu": "9", "count/pods": "9", "persistentvolumeclaims": "3",
        "gold.storageclass.storage.k8s.io/requests.storage": "10Gi"});
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": hard}});
    let mut ended = pod(&json!({"cpu": "1"}));
    ended["status"] = json!({"phase": "Succeeded"});
    let claim = json!({"spec": {"storageClassName": "gold", "resources": {"requests": {"storage": "3Gi"}}}});
    let claims = Counted { group: "", plural: "persistentvolumeclaims" };
    let running = pod(&json!({"cpu": "250m"}));
    let mut tally = Tally::new(&quota);
    for (of, object) in [(PODS, &running), (PODS, &running), (PODS, &ended), (claims, &claim)] {
        tally.add(of, object, Timestamp::UNIX_EPOCH);
    }
    assert_eq!(
        tally.into_status(),
        json!({"hard": hard, "used": {"count/pods": "3", "gold.storageclass.storage.k8s.io/requests.storage": "3Gi",
            "persistentvolumeclaims": "1", "pods": "2", "requests.cpu": "500m"}})
    );
    let counted: Vec<(String, String)> = counted(&quota);
    assert_eq!(counted, [("".into(), "persistentvolumeclaims".into()), ("".into(), "pods".into())]);
}
