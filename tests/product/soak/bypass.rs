//! Row 2: generated Pods against twenty policies, each of which has an oracle: the same rule written in Rust. Every Pod is
//! sent once as generated and once changed in a way that must not make it any more welcome.

use serde_json::{Map, Value, json};

use super::{Random, percent, scaled};
use crate::serve::server::{Place, policy};
use crate::support::https::Client;
use crate::support::reliability::Row;

/// What a policy of this expression denies, according to Rust.
type Oracle = fn(&Value) -> bool;

const EACH: usize = 100_000;
const POLICIES: &[(&str, Oracle)] = &[
    ("!has(object.spec.hostNetwork) || !object.spec.hostNetwork", |pod| pod["spec"]["hostNetwork"] == true),
    ("!has(object.spec.hostPID) || object.spec.hostPID == false", |pod| pod["spec"]["hostPID"] == true),
    ("object.spec.containers.all(c, !c.image.endsWith(':latest'))", |pod| {
        any(pod, |c| text(&c["image"]).ends_with(":latest"))
    }),
    ("object.spec.containers.all(c, c.image.contains(':'))", |pod| {
        any(pod, |c| !text(&c["image"]).contains(':'))
    }),
    ("object.spec.containers.all(c, c.image.startsWith('registry.example.com/'))", |pod| {
        any(pod, |c| !text(&c["image"]).starts_with("registry.example.com/"))
    }),
    ("object.spec.containers.all(c, c.?securityContext.?privileged.orValue(false) == false)", |pod| {
        any(pod, |c| c["securityContext"]["privileged"] == true)
    }),
    ("!object.spec.containers.exists(c, c.?securityContext.?runAsUser.orValue(1) == 0)", |pod| {
        any(pod, |c| c["securityContext"]["runAsUser"] == 0)
    }),
    ("object.spec.containers.all(c, has(c.resources) && has(c.resources.limits))", |pod| {
        any(pod, |c| c["resources"]["limits"].is_null())
    }),
    ("size(object.spec.containers) <= 3", |pod| containers(pod).len() > 3),
    ("object.spec.containers.map(c, c.name).all(n, size(n) < 8)", |pod| {
        any(pod, |c| text(&c["name"]).len() >= 8)
    }),
    ("'team' in object.metadata.?labels.orValue({})", |pod| pod["metadata"]["labels"]["team"].is_null()),
    ("object.metadata.?labels[?'env'].orValue('test') in ['test', 'production']", |pod| {
        let env = &pod["metadata"]["labels"]["env"];
        !env.is_null() && !["test", "production"].contains(&text(env))
    }),
    ("object.metadata.name.matches('^[a-z]+-[0-9]+$')", |pod| {
        let parts = text(&pod["metadata"]["name"]).split_once('-');
        let all = |text: &str, is: fn(char) -> bool| !text.is_empty() && text.chars().all(is);
        !parts.is_some_and(|(a, b)| all(a, |c| c.is_ascii_lowercase()) && all(b, |c| c.is_ascii_digit()))
    }),
    ("object.?spec.terminationGracePeriodSeconds.orValue(30) <= 60", |pod| {
        pod["spec"]["terminationGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds > 60)
    }),
    ("!object.?spec.volumes.orValue([]).exists(v, has(v.hostPath))", |pod| {
        items(&pod["spec"]["volumes"]).iter().any(|volume| !volume["hostPath"].is_null())
    }),
    ("object.spec.containers.all(c, c.?ports.orValue([]).all(p, p.containerPort >= 1024))", |pod| {
        any(pod, |c| items(&c["ports"]).iter().any(|port| port["containerPort"].as_i64() < Some(1024)))
    }),
    ("object.spec.containers.exists_one(c, c.name == 'app')", |pod| {
        containers(pod).iter().filter(|c| c["name"] == "app").count() != 1
    }),
    ("object.spec.?serviceAccountName.orValue('default') != 'default'", |pod| {
        matches!(pod["spec"]["serviceAccountName"].as_str(), None | Some("default"))
    }),
    ("object.spec.containers.all(c, c.?env.orValue([]).all(e, e.name != 'PASSWORD'))", |pod| {
        any(pod, |c| items(&c["env"]).iter().any(|entry| entry["name"] == "PASSWORD"))
    }),
    (
        "quantity(object.spec.containers[0].?resources.?limits[?'memory'].orValue('0')).compareTo(quantity('1Gi')) <= 0",
        |pod| {
            matches!(
                pod["spec"]["containers"][0]["resources"]["limits"]["memory"].as_str(),
                Some("2Gi" | "1025Mi")
            )
        },
    ),
];

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn containers(pod: &Value) -> &[Value] {
    items(&pod["spec"]["containers"])
}

fn any(pod: &Value, is: impl Fn(&Value) -> bool) -> bool {
    containers(pod).iter().any(is)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes long; scripts/soak runs it"]
async fn row_02_generated_pods() {
    let mut row = Row::full(2, "generated Pods and mutants over TLS", percent());
    let place = Place::new();
    for (number, (expression, _)) in POLICIES.iter().enumerate() {
        let name = format!("p{number:02}");
        // One binding denies and one warns: a denial names one policy, warnings name all that fail.
        let text = policy(&name, expression).replace("configmaps", "pods");
        let warning = text.rsplit_once("---").unwrap().1.replacen(&name, &format!("{name}-warns"), 1);
        let text = format!("{text}---{}", warning.replace("[Deny]", "[Warn]"));
        place.write(&format!("policies/{number:02}.yaml"), &text);
    }
    let serving = place.start(&[]);
    let mut client = Client::connect(serving.webhook, &place.tls()).await.unwrap();
    let mut random = Random(0x5eed_0002);
    let (pods, mut denied) = (scaled(EACH), 0);
    for _ in 0..pods {
        let pod = pod(&mut random);
        let expected: Vec<String> = POLICIES
            .iter()
            .enumerate()
            .filter(|(_, (_, denies))| denies(&pod))
            .map(|(number, _)| format!("p{number:02}"))
            .collect();
        let found = failing(&mut client, review(&pod).to_string()).await;
        assert_eq!(found, expected, "{pod}");
        denied += usize::from(!expected.is_empty());

        let mutant = mutant(&pod, &mut random);
        let found = failing(&mut client, mutant.clone()).await;
        assert!(expected.iter().all(|name| found.contains(name)), "{expected:?} became {found:?}: {mutant}");
    }
    row.measured(json!({
        "pods": pods, "mutants": pods, "policies": POLICIES.len(), "denied": denied, "disagreements": 0, "flips": 0,
    }));
}

/// The names of the policies that a Pod fails, which must be none where it is allowed.
async fn failing(client: &mut Client, body: String) -> Vec<String> {
    let answer = client.post("/validate", body).await.unwrap().json();
    let response = &answer["response"];
    let named = items(&response["warnings"]).iter().filter_map(|warning| text(warning).split('\'').nth(1));
    let mut names: Vec<String> = named.map(ToOwned::to_owned).collect();
    names.sort();
    assert_eq!(response["allowed"], names.is_empty(), "{answer}");
    names
}

fn review(pod: &Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u", "operation": "CREATE", "name": pod["metadata"]["name"], "namespace": "n",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "userInfo": {"username": "u"}, "object": pod,
        },
    })
}

/// A Pod that all policies welcome, or one that something small is wrong with: the cases that a rule errs on in either way.
fn nearly_good(random: &mut Random) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "web-1", "namespace": "n", "labels": {"team": "t", "env": "test"}},
        "spec": {
            "serviceAccountName": "app", "hostNetwork": false,
            "containers": [{
                "name": "app", "image": "registry.example.com/a:1", "resources": {"limits": {"memory": "1Gi"}},
            }],
        },
    });
    match random.below(6) {
        0 => pod["spec"]["hostNetwork"] = true.into(),
        1 => pod["spec"]["containers"][0]["securityContext"] = json!({"runAsUser": random.below(2)}),
        2 => pod["spec"]["containers"][0]["ports"] = json!([{"containerPort": 1022 + random.below(4)}]),
        3 => pod["metadata"]["labels"]["env"] = (*random.of(&["production", "tests", ""])).into(),
        _ => {}
    }
    pod
}

fn pod(random: &mut Random) -> Value {
    if random.one_in(2) {
        return nearly_good(random);
    }
    let mut spec = Map::new();
    let containers: Vec<Value> = (0..=random.below(4)).map(|_| container(random)).collect();
    spec.insert("containers".to_owned(), containers.into());
    let mut maybe = |name: &str, values: &[Value], random: &mut Random| {
        if random.one_in(2) {
            spec.insert(name.to_owned(), random.of(values).clone());
        }
    };
    maybe("hostNetwork", &[true.into(), false.into()], random);
    maybe("hostPID", &[true.into(), false.into()], random);
    maybe("terminationGracePeriodSeconds", &[0.into(), 60.into(), 61.into()], random);
    maybe("serviceAccountName", &["default".into(), "app".into()], random);
    let host = json!([{"name": "a", "emptyDir": {}}, {"name": "b", "hostPath": {"path": "/"}}]);
    maybe("volumes", &[json!([{"name": "a", "emptyDir": {}}]), host], random);
    let mut labels = Map::new();
    if random.one_in(2) {
        labels.insert("team".to_owned(), "t".into());
    }
    if random.one_in(2) {
        labels.insert("env".to_owned(), (*random.of(&["test", "production", "Production", ""])).into());
    }
    let name = *random.of(&["web-1", "web", "web-1a", "Web-1", "w-007", "-1", "web-1\n"]);
    let mut metadata = json!({"name": name, "namespace": "n"});
    if !labels.is_empty() || random.one_in(2) {
        metadata["labels"] = labels.into();
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
}

fn container(random: &mut Random) -> Value {
    let images = ["registry.example.com/a:1", "registry.example.com/a", "other/a:latest", "a:latest ", "b:2"];
    let mut container =
        json!({"name": random.of(&["app", "proxy", "sidecar-1"]), "image": random.of(&images)});
    if random.one_in(2) {
        let user = random.of(&[json!(0), json!(1), json!(1000)]).clone();
        container["securityContext"] = json!({"privileged": random.one_in(2), "runAsUser": user});
    }
    if random.one_in(2) {
        container["resources"] = json!({"requests": {"cpu": "1"}});
    }
    if random.one_in(2) {
        container["resources"]["limits"] =
            json!({"memory": random.of(&["1Gi", "1024Mi", "1025Mi", "2Gi", "64Mi"])});
    }
    if random.one_in(2) {
        container["ports"] = json!([{"containerPort": random.of(&[80, 1023, 1024, 8080])}]);
    }
    if random.one_in(2) {
        container["env"] = json!([{"name": random.of(&["PASSWORD", "PASSWORD_FILE", "password"])}]);
    }
    container
}

/// The same Pod for whoever decides, or one with more in it, written differently: other order of keys, blanks, escapes,
/// members that nobody knows, and further containers, none of which is called `app`.
fn mutant(pod: &Value, random: &mut Random) -> String {
    let mut pod = pod.clone();
    if random.one_in(2) {
        pod["spec"]["notAField"] = json!({"hostNetwork": false, "containers": []});
        pod["metadata"]["annotations"] = json!({"exempt": "true", "admission.example.com/ignore": "all"});
    }
    if random.one_in(4) {
        let more = json!({
            "name": "app2", "image": "registry.example.com/more:1", "resources": {"limits": {"memory": "1Mi"}},
        });
        pod["spec"]["containers"].as_array_mut().unwrap().push(more);
    }
    let mut text = String::new();
    write(&review(&pod), random, &mut text);
    text
}

fn write(value: &Value, random: &mut Random, out: &mut String) {
    let blank = *random.of(&["", "", " ", "\n\t", "\r\n  "]);
    out.push_str(blank);
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            for last in (1..entries.len()).rev() {
                entries.swap(last, random.below(last + 1));
            }
            out.push('{');
            for (number, (key, value)) in entries.into_iter().enumerate() {
                out.push_str(if number > 0 { "," } else { "" });
                escaped(key, random, out);
                out.push_str(blank);
                out.push(':');
                write(value, random, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (number, item) in items.iter().enumerate() {
                out.push_str(if number > 0 { "," } else { "" });
                write(item, random, out);
            }
            out.push(']');
        }
        Value::String(text) => escaped(text, random, out),
        Value::Null | Value::Bool(_) | Value::Number(_) => out.push_str(&value.to_string()),
    }
    out.push_str(blank);
}

/// A string of JSON in which any character may stand as its code.
fn escaped(text: &str, random: &mut Random, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        if character < ' ' || character == '"' || character == '\\' || random.one_in(8) {
            out.push_str(&format!("\\u{:04x}", u32::from(character)));
        } else {
            out.push(character);
        }
    }
    out.push('"');
}
