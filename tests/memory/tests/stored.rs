//! Large objects: what storing them takes, and what a small patch of one takes afterwards.

use memory::cluster::{CONFIG_MAPS, Cluster, MUTATING, MUTATING_BINDINGS, PATCHES, PODS, ROLES, THINGS};
use memory::{growth, objects};
use serde_json::{Value, json};

use crate::Seen;

const JSON: &str = "application/json";

/// Large objects are taken, in every way in which one may come to be, and so are small patches of them.
pub(crate) fn of_large_objects(seen: &mut Seen) {
    let owned = objects::owned(20_000).to_string();
    let length = owned.len();
    let (grown, (code, answer)) =
        growth(|| Cluster::new().unwrap().send("POST", CONFIG_MAPS, "application/json", owned.into()));
    seen.note(&format!("20,000 owners, {code}"), length, grown);
    assert_eq!(code, 201, "{}", head(&answer));
    for large in objects::all() {
        let (name, path) = (large.name, large.path);
        let body = |count| (large.of)(count).to_string();
        let cluster = Cluster::new().unwrap();
        let mut send =
            |what: &str, (method, query): (&str, &str), kind: &str, body: String, refused: Option<u16>| {
                let path = if method == "POST" { path.to_owned() } else { format!("{path}/large{query}") };
                let length = body.len();
                let (grown, (code, answer)) = growth(|| cluster.send(method, &path, kind, body.into()));
                seen.note(&format!("{what} {name}, {code}"), length, grown);
                assert!(
                    refused.map_or(code < 300, |refused| code == refused),
                    "{what} {name}: {code} {}",
                    head(&answer)
                );
            };
        send("more", ("POST", ""), JSON, body(large.count / 10 * 11), Some(413));
        send("new", ("POST", ""), JSON, body(large.count), None);
        send("read", ("GET", ""), JSON, String::new(), None);
        let small = |kind: &str| small(kind, &large);
        for (patch, kind) in PATCHES.iter().filter_map(|kind| Some((small(kind)?, kind))) {
            let manager = kind.len();
            let force = if kind.contains("apply") { "&force=true" } else { "" };
            let query = format!("?fieldManager=m{manager}{force}");
            send(&format!("a small {kind} of"), ("PATCH", &query), kind, patch, None);
        }
        if path == PODS {
            let forbidden = json!({"spec": {"hostNetwork": true}}).to_string();
            send("a forbidden change of", ("PATCH", ""), PATCHES[1], forbidden, Some(422));
        }
        if !path.contains("example.com") {
            send("again", ("PUT", ""), JSON, body(large.count), None);
        }
        send("without", ("DELETE", ""), JSON, String::new(), None);
    }
    for large in objects::all() {
        // YAML that is a list of many small maps weighs more while it is read than what it stands for.
        let count = if large.name == "maps" { large.count / 3 } else { large.count };
        let body = (large.of)(count).to_string();
        let cluster = Cluster::new().unwrap();
        let less = small(PATCHES[3], &large).unwrap();
        for (what, body) in [("new", &body), ("again", &body), ("of which nothing is left", &less)] {
            let path = format!("{}/large?fieldManager=m", large.path);
            let length = body.len();
            let (grown, (code, answer)) =
                growth(|| cluster.send("PATCH", &path, PATCHES[3], body.clone().into()));
            seen.note(&format!("applied {what}: {}, {code}", large.name), length, grown);
            // A Pod cannot lose its container.
            let refused = large.path == PODS && what == "of which nothing is left";
            assert_eq!(code >= 400, refused, "{}: {code} {}", large.name, head(&answer));
        }
    }
}

/// Mutations that name the object once for each of its items.
pub(crate) fn of_mutations(seen: &mut Seen) {
    let patched = json!({"patchType": "JSONPatch", "jsonPatch": {
        "expression": "object.spec.items.map(i, JSONPatch{op: 'add', path: '/spec/more', value: object.spec})",
    }});
    let placed = json!({"patchType": "JSONPatch", "jsonPatch": {
        "expression": "object.spec.items.map(i, JSONPatch{op: 'test', path: object.spec.items[0], value: 1})",
    }});
    let applied = json!({"patchType": "ApplyConfiguration", "applyConfiguration": {
        "expression": "Object{spec: Object.spec{more: object.spec.items.map(i, object.spec)}}",
    }});
    for (name, mutation) in [("patched", patched), ("placed", placed), ("applied", applied)] {
        let cluster = Cluster::new().unwrap();
        let metadata = json!({"name": "more"});
        let rule = json!({"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["things"]});
        let policy = json!({"metadata": metadata, "spec": {
            "reinvocationPolicy": "Never", "matchConstraints": {"resourceRules": [rule]}, "mutations": [mutation],
        }});
        let binding = json!({"metadata": metadata, "spec": {"policyName": "more"}});
        for (path, object) in [(MUTATING, policy), (MUTATING_BINDINGS, binding)] {
            let (code, answer) = cluster.send("POST", path, JSON, object.to_string().into());
            assert_eq!(code, 201, "{}", head(&answer));
        }
        let items: Vec<String> =
            std::iter::once(100_000).chain(vec![1_000; 1_000]).map(|length| "x".repeat(length)).collect();
        let body = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "large"}, "spec": {"items": items}});
        let body = body.to_string();
        let length = body.len();
        let (grown, (code, answer)) = growth(|| cluster.send("POST", THINGS, JSON, body.into()));
        seen.note(&format!("{name} once for each item, {code}"), length, grown);
        assert!(
            head(&answer).contains("would take more than 16777216 bytes of memory"),
            "{code} {}",
            head(&answer)
        );
    }
}

fn head(answer: &[u8]) -> String {
    String::from_utf8_lossy(answer.get(..300).unwrap_or(answer)).into_owned()
}

/// A patch that sets one text.
fn small(kind: &str, large: &objects::Large) -> Option<String> {
    let labels = json!({"metadata": {"labels": {"a": kind.len().to_string()}}});
    match kind {
        "application/json-patch+json" => {
            Some(r#"[{"op":"add","path":"/metadata/annotations","value":{"a":"b"}}]"#.to_owned())
        }
        "application/strategic-merge-patch+json" if large.path.contains("example.com") => None,
        "application/apply-patch+yaml" => {
            let mut configuration = labels;
            for field in ["apiVersion", "kind"] {
                configuration[field] = (large.of)(1)[field].clone();
            }
            Some(configuration.to_string())
        }
        _ => Some(labels.to_string()),
    }
}

/// Small patches that make much, and patches of long lists, of which some weigh more than is taken.
pub(crate) fn of_patches(seen: &mut Seen) {
    let cluster = Cluster::new().unwrap();
    let mut patch = |name: &str, path: &str, kind: &str, body: &Value, expected: u16| {
        let body = body.to_string();
        let force = if kind.contains("apply") { "&force=true" } else { "" };
        let at = format!("{path}/a?fieldManager=m{force}");
        let length = body.len();
        let (grown, (code, answer)) = growth(|| cluster.send("PATCH", &at, kind, body.into()));
        seen.note(&format!("{kind}, {name}, {code}"), length, grown);
        assert_eq!(code, expected, "{kind}, {name}: {}", head(&answer));
    };
    let [by_operations, _, strategic, apply] = PATCHES;
    let copies: Value =
        (0..40).map(|n| json!({"op": "copy", "from": "", "path": format!("/data/k{n}")})).collect();
    patch("copies of copies", CONFIG_MAPS, by_operations, &copies, 422);
    let mut of_a_text = vec![json!({"op": "add", "path": "/data/t", "value": "x".repeat(1 << 20)})];
    of_a_text
        .extend((0..9_999).map(|n| json!({"op": "copy", "from": "/data/t", "path": format!("/data/k{n}")})));
    patch("copies of a text", CONFIG_MAPS, by_operations, &of_a_text.into(), 422);
    let adds: Value =
        (0..10_000).map(|n| json!({"op": "add", "path": format!("/data/k{n}"), "value": "v"})).collect();
    patch("additions", CONFIG_MAPS, by_operations, &adds, 200);
    let finalizers =
        |count| json!({"metadata": {"finalizers": objects::finalizers(count)["metadata"]["finalizers"]}});
    patch("finalizers", CONFIG_MAPS, strategic, &finalizers(60_000), 200);
    patch("too many finalizers", CONFIG_MAPS, strategic, &finalizers(250_000), 413);
    let containers: Value = (0..100_000).map(|n| json!({"name": format!("c{n}")})).collect();
    patch("containers", PODS, strategic, &json!({"spec": {"containers": containers}}), 413);
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": containers}});
    patch("containers", PODS, apply, &pod, 413);
    // Upstream's store has no room for so many with their managers.
    let variables = |count| objects::variables(count)["spec"]["containers"][0]["env"].clone();
    let pod = |env| {
        let container = json!([{"name": "c", "image": "i:1", "env": env}]);
        json!({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": container}})
    };
    patch("variables", PODS, apply, &pod(variables(60_000)), 413);
}

/// Rules that are products, and many of them, by someone who may not grant them.
pub(crate) fn of_roles(seen: &mut Seen) {
    let cluster = Cluster::new().unwrap();
    let words = |prefix: &str| (0..70).map(|n| format!("{prefix}{n}")).collect::<Vec<_>>();
    let product = json!({
        "verbs": words("v"), "apiGroups": words("g"), "resources": words("r"), "resourceNames": words("n"),
    });
    let role = |name: &str, rules: Value| json!({"metadata": {"name": name}, "rules": rules}).to_string();
    for (name, body) in [
        ("a product", role("p", json!([product]))),
        ("products", role("ps", vec![product; 400].into())),
        ("rules", role("r", objects::role(20_000)["rules"].clone())),
    ] {
        let length = body.len();
        let (grown, (code, _)) = growth(|| cluster.tenant_posts(ROLES, body.into()));
        seen.note(&format!("{name} of what is not held, {code}"), length, grown);
        assert_eq!(code, 403, "{name}");
    }
}
