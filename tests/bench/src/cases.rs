//! Defines the measured expressions, and the documents they are evaluated on. Each yields true.

use serde_json::{Value, json};

/// An expression and the values of its variables.
#[derive(Debug)]
pub struct Case {
    /// The name in reports.
    pub name: &'static str,
    /// The expression.
    pub text: &'static str,
    /// The variables and their values.
    pub documents: Vec<(&'static str, Value)>,
}

/// Five clauses on strings, of which the last decides.
const TRANSITION: &str = "self.phase == oldSelf.phase \
    || (oldSelf.phase == '' && self.phase == 'Pending') \
    || (oldSelf.phase == 'Pending' && self.phase == 'Running') \
    || (oldSelf.phase == 'Running' && self.phase == 'Succeeded') \
    || (oldSelf.phase == 'Running' && self.phase == 'Failed')";

/// Checks every container of a Deployment: image, limits, privileges.
const CONTAINERS: &str = "object.spec.template.spec.containers.all(c, \
    c.image.startsWith('registry.example.com/') \
    && has(c.resources) && has(c.resources.limits) && 'memory' in c.resources.limits \
    && (!has(c.securityContext) || !has(c.securityContext.privileged) || !c.securityContext.privileged))";

/// Checks that four fields are not removed.
const KEPT: &str = "(!has(oldSelf.a) || has(self.a)) && (!has(oldSelf.b) || has(self.b)) \
    && (!has(oldSelf.c) || has(self.c)) && (!has(oldSelf.d) || has(self.d))";

/// Returns all cases: (i), (ii) and (iii), which have targets, then ten more.
#[must_use]
pub fn all() -> Vec<Case> {
    let mut cases = targets();
    cases.extend(others());
    cases
}

/// Returns the three cases with targets.
#[must_use]
pub fn targets() -> Vec<Case> {
    let fields = json!({"a": "1", "b": "2", "c": "3", "d": "4"});
    vec![
        case(
            "i-transition",
            TRANSITION,
            [("self", json!({"phase": "Failed"})), ("oldSelf", json!({"phase": "Running"}))],
        ),
        case("ii-containers", CONTAINERS, [("object", deployment(50))]),
        case("iii-kept-fields", KEPT, [("self", fields.clone()), ("oldSelf", fields)]),
    ]
}

fn others() -> Vec<Case> {
    let ports: Vec<_> =
        (0..10).map(|n| json!({"name": format!("port-{n}"), "port": 8000 + n, "protocol": "TCP"})).collect();
    let conditions =
        json!([{"type": "Ready", "status": "True"}, {"type": "Synced", "status": "False", "reason": "Wait"}]);
    let names: Vec<_> = (0..20).map(|n| format!("member-{n}")).collect();
    vec![
        case(
            "replica-bounds",
            "self.minReplicas <= self.replicas && self.replicas <= self.maxReplicas",
            [("self", json!({"minReplicas": 1, "replicas": 3, "maxReplicas": 9}))],
        ),
        case("singleton-name", "self.metadata.name == 'cluster'", [("self", named("cluster"))]),
        case(
            "unique-ports",
            "self.ports.all(p, p.port > 0 && p.port < 65536 && self.ports.exists_one(q, q.name == p.name))",
            [("self", json!({"ports": ports}))],
        ),
        case(
            "image-pattern",
            "self.image.matches('^[a-z0-9./-]+(:[a-z0-9.-]+)?(@sha256:[0-9a-f]{64})?$')",
            [("self", json!({"image": "registry.example.com/team/application:v1.22.333"}))],
        ),
        case(
            "one-of",
            "[has(self.pvc), has(self.secret), has(self.configMap)].filter(x, x).size() == 1",
            [("self", json!({"secret": {"name": "s"}}))],
        ),
        case(
            "conditions",
            "self.conditions.filter(c, c.status == 'True').map(c, c.type).exists(t, t == 'Ready')",
            [("self", json!({"conditions": conditions}))],
        ),
        case(
            "labels",
            "object.metadata.labels.all(k, k.size() < 64 && object.metadata.labels[k].size() < 64) \
             && 'app.kubernetes.io/name' in object.metadata.labels",
            [("object", named("web"))],
        ),
        case(
            "subset",
            "oldSelf.members.all(m, m in self.members)",
            [("self", json!({"members": names})), ("oldSelf", json!({"members": names}))],
        ),
        case(
            "immutable-spec",
            "self.spec == oldSelf.spec",
            [("self", deployment(5)), ("oldSelf", deployment(5))],
        ),
        case(
            "expiry",
            "timestamp(self.created) + duration(self.ttl) < timestamp(self.expires)",
            [(
                "self",
                json!({"created": "2024-01-01T00:00:00Z", "ttl": "1h30m", "expires": "2024-01-01T02:00:00Z"}),
            )],
        ),
    ]
}

fn case<const N: usize>(
    name: &'static str,
    text: &'static str,
    documents: [(&'static str, Value); N],
) -> Case {
    Case { name, text, documents: documents.into() }
}

fn named(name: &str) -> Value {
    let labels =
        json!({"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "shop", "tier": "front"});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "prod", "labels": labels}})
}

/// Returns a Deployment; with 50 containers its JSON has 16 kB.
#[must_use]
pub fn deployment(containers: usize) -> Value {
    let container = |n: usize| {
        json!({
            "name": format!("container-{n}"),
            "image": format!("registry.example.com/team/service-{n}:1.{n}.0"),
            "ports": [{"containerPort": 8080 + n, "protocol": "TCP"}],
            "resources": {"limits": {"cpu": "500m", "memory": "256Mi"}, "requests": {"cpu": "100m"}},
            "securityContext": {"privileged": false, "runAsNonRoot": true},
            "env": [{"name": "MODE", "value": "production"}],
        })
    };
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "prod", "labels": {"app": "web"}},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": (0..containers).map(container).collect::<Vec<_>>()},
            },
        },
    })
}
