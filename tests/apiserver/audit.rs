//! The events of the audit log: what they say of the request, and the annotations of plugins, policies and webhooks.

use std::io::{self, Read as _};

use admit_apiserver::{AuditFormat, AuditLog, AuditPolicy, Server};
use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Request;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::harness::{merge, post};
use crate::webhook::{CONFIGURATIONS, Script, configuration, serve};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";

/// A server whose audit log is read when it has gone.
struct Logged {
    server: Server,
    log: AuditLog,
    read: io::PipeReader,
}

impl Logged {
    async fn new() -> Self {
        Self::following(None).await
    }

    async fn following(policy: Option<&str>) -> Self {
        let (read, write) = io::pipe().unwrap();
        let mut log = AuditLog::to(write).unwrap();
        if let Some(policy) = policy {
            log = log.following(AuditPolicy::parse(policy).unwrap());
        }
        let server = Server::builder().audit_log(log.clone()).build().await.unwrap();
        Self { server, log, read }
    }

    /// The events of requests that create or change what has this plural, or of all reads of it.
    fn events(self, plural: &str) -> Vec<Value> {
        let all = self.all().into_iter();
        all.filter(|event| event["objectRef"]["resource"] == plural).collect()
    }

    fn all(self) -> Vec<Value> {
        let Self { server, log, mut read } = self;
        log.settle();
        drop((server, log));
        let mut text = String::new();
        read.read_to_string(&mut text).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn pod() -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
        "spec": {"hostNetwork": true, "containers": [{"name": "c", "image": "i"}]}})
}

#[tokio::test]
async fn the_reference_is_completed_by_what_was_sent() {
    let logged = Logged::new().await;
    let map = |metadata: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
    let made = post(&logged.server, MAPS, &map(json!({"name": "a"}))).await;
    let (uid, version) =
        (made.body["metadata"]["uid"].clone(), made.body["metadata"]["resourceVersion"].clone());
    assert_eq!(post(&logged.server, MAPS, &map(json!({"generateName": "b-"}))).await.status, 201);
    let request = Request::put(format!("{MAPS}/a"))
        .header("content-type", "application/json")
        .header("user-agent", "x".repeat(2_000))
        .header("x-forwarded-for", "10.1.2.3, unknown, 2001:db8::1")
        .header("x-real-ip", "10.9.9.9");
    let body = Body::from(made.body.to_string());
    let answer = logged.server.router().oneshot(request.body(body).unwrap()).await.unwrap();
    assert_eq!(answer.status(), 200);
    let events = logged.events("configmaps");
    let references: Vec<&Value> = events.iter().map(|event| &event["objectRef"]).collect();
    let common = json!({"resource": "configmaps", "namespace": "default", "apiVersion": "v1"});
    let with = |more: Value| {
        let mut all = common.clone();
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    };
    assert_eq!(*references[0], with(json!({"name": "a"})));
    // The server makes the name later than that.
    assert_eq!(*references[1], common);
    assert_eq!(*references[2], with(json!({"name": "a", "uid": uid, "resourceVersion": version})));
    assert_eq!(events[2]["sourceIPs"], json!(["10.1.2.3", "2001:db8::1", "10.9.9.9"]));
    let agent = events[2]["userAgent"].as_str().unwrap();
    assert!(agent.len() == 1_024 + "...TRUNCATED".len() && agent.ends_with("xx...TRUNCATED"), "{agent}");
    assert_eq!(events[0].get("sourceIPs"), None, "who calls in process has no address");
}

#[tokio::test]
async fn pod_security_tells_what_it_enforces_and_what_it_would_not_let_in() {
    let logged = Logged::new().await;
    let mut pod = pod();
    assert_eq!(post(&logged.server, PODS, &pod).await.status, 201);
    let labels = json!({"metadata": {"labels": {"pod-security.kubernetes.io/audit": "baseline",
        "pod-security.kubernetes.io/enforce-version": "v1.25"}}});
    assert_eq!(merge(&logged.server, "/api/v1/namespaces/default", &labels).await.status, 200);
    pod["metadata"]["name"] = json!("b");
    assert_eq!(post(&logged.server, PODS, &pod).await.status, 201);
    let annotations: Vec<Value> =
        logged.events("pods").into_iter().map(|mut event| event["annotations"].take()).collect();
    let key = |name: &str| format!("pod-security.kubernetes.io/{name}");
    assert_eq!(annotations[0][key("enforce-policy")], "privileged:latest");
    assert_eq!(annotations[0].get(key("audit-violations")), None);
    assert_eq!(annotations[1][key("enforce-policy")], "privileged:v1.25");
    assert_eq!(
        annotations[1][key("audit-violations")],
        "would violate PodSecurity \"baseline:latest\": host namespaces (hostNetwork=true)"
    );
}

#[tokio::test]
async fn webhooks_tell_what_they_changed_and_what_they_say() {
    let script = Script::default();
    let (address, pem) = serve(script.clone()).await;
    let logged = Logged::new().await;
    let client = json!({"url": format!("https://{address}/validate"), "caBundle": STANDARD.encode(pem)});
    let pods = json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods", "configmaps"]}]);
    let mut mutating = configuration(&client, &json!({"rules": pods}));
    mutating["kind"] = json!("MutatingWebhookConfiguration");
    let stored = CONFIGURATIONS.replace("validating", "mutating");
    assert_eq!(post(&logged.server, &stored, &mutating).await.status, 201);
    // Nobody listens there.
    let away = json!({"url": "https://127.0.0.1:1/validate"});
    let ignored = configuration(&away, &json!({"rules": pods, "failurePolicy": "Ignore"}));
    assert_eq!(post(&logged.server, CONFIGURATIONS, &ignored).await.status, 201);
    let patch = STANDARD.encode(r#"[{"value":{"l":"1"},"path":"/metadata/labels","op":"add"}]"#);
    script.answers(json!({"allowed": true, "patch": patch, "patchType": "JSONPatch",
        "auditAnnotations": {"why": "it is new", "no/key/at/all": "x"}}));
    assert_eq!(post(&logged.server, PODS, &pod()).await.status, 201);
    script.answers(json!({"allowed": true}));
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    assert_eq!(post(&logged.server, MAPS, &map).await.status, 201);
    let events = |plural: &'static str, events: &[Value]| -> Value {
        let event = events.iter().find(|event| event["objectRef"]["resource"] == plural);
        event.unwrap()["annotations"].clone()
    };
    let Logged { server, log, mut read } = logged;
    log.settle();
    drop((server, log));
    let mut text = String::new();
    read.read_to_string(&mut text).unwrap();
    let all: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told = events("pods", &all);
    assert_eq!(
        told["mutation.webhook.admission.k8s.io/round_0_index_0"],
        r#"{"configuration":"hook","webhook":"validate.hook.example","mutated":true}"#
    );
    assert_eq!(
        told["patch.webhook.admission.k8s.io/round_0_index_0"],
        r#"{"configuration":"hook","webhook":"validate.hook.example","patch":[{"op":"add","path":"/metadata/labels","value":{"l":"1"}}],"patchType":"JSONPatch"}"#
    );
    assert_eq!(told["validate.hook.example/why"], "it is new");
    assert!(told.as_object().unwrap().keys().all(|key| !key.ends_with("/all")), "{told}");
    assert_eq!(
        told["failed-open.validating.webhook.admission.k8s.io/round_0_index_0"],
        "validate.hook.example"
    );
    let told = events("configmaps", &all);
    assert_eq!(
        told["mutation.webhook.admission.k8s.io/round_0_index_0"],
        r#"{"configuration":"hook","webhook":"validate.hook.example","mutated":false}"#
    );
    assert_eq!(told.get("patch.webhook.admission.k8s.io/round_0_index_0"), None);
}

/// Who reads the log sees by which binding it was allowed.
#[tokio::test]
async fn the_reason_names_the_binding() {
    let logged = Logged::new().await;
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "reader"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]});
    assert_eq!(post(&logged.server, &format!("{rbac}/clusterroles"), &role).await.status, 201);
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "readers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}]});
    let bindings = format!("{rbac}/namespaces/default/rolebindings");
    assert_eq!(post(&logged.server, &bindings, &binding).await.status, 201);
    for (path, status) in [(MAPS, 200), ("/api/v1/namespaces/kube-system/configmaps", 403)] {
        let request = Request::get(path).header("impersonate-user", "ann").body(Body::empty()).unwrap();
        assert_eq!(logged.server.router().oneshot(request).await.unwrap().status(), status);
    }
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    assert_eq!(post(&logged.server, MAPS, &map).await.status, 201);
    let told: Vec<Value> = logged
        .events("configmaps")
        .iter()
        .map(|event| {
            let annotation =
                |name: &str| event["annotations"][format!("authorization.k8s.io/{name}")].clone();
            json!([annotation("decision"), annotation("reason")])
        })
        .collect();
    let reason = "RBAC: allowed by RoleBinding \"readers/default\" of ClusterRole \"reader\" to User \"ann\"";
    assert_eq!(told, [json!(["allow", reason]), json!(["forbid", ""]), json!(["allow", ""])]);
}

const POLICY: &str = "
apiVersion: audit.k8s.io/v1
kind: Policy
omitManagedFields: true
rules:
- {level: None, resources: [{resources: [pods]}]}
- {level: RequestResponse, verbs: [create], resources: [{resources: [configmaps]}], omitStages: [RequestReceived]}
- {level: Request, verbs: [update], resources: [{resources: [configmaps]}], omitStages: [ResponseComplete]}
- {level: Metadata, resources: [{resources: [configmaps]}]}
";

/// What an event is: its level, stage and verb, and whether it has what was sent, and what was answered.
fn outline(event: &Value) -> Value {
    json!([
        event["level"],
        event["stage"],
        event["verb"],
        event.get("requestObject").is_some(),
        event.get("responseObject").is_some()
    ])
}

#[tokio::test]
async fn a_policy_says_what_is_written_and_when() {
    let logged = Logged::following(Some(POLICY)).await;
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}});
    let made = post(&logged.server, MAPS, &map).await;
    assert!(made.body["metadata"]["managedFields"].is_array());
    let send = async |request: http::request::Builder, body: String| {
        let request = request.header("content-type", "application/json").body(Body::from(body)).unwrap();
        logged.server.router().oneshot(request).await.unwrap()
    };
    let put = send(Request::put(format!("{MAPS}/a")), made.body.to_string()).await;
    assert_eq!(put.status(), 200);
    assert_eq!(send(Request::delete(format!("{MAPS}/b")), String::new()).await.status(), 404);
    let token = Request::get(MAPS).header("authorization", "Bearer nobody");
    assert_eq!(send(token, String::new()).await.status(), 401);
    assert_eq!(post(&logged.server, PODS, &pod()).await.status, 201);
    assert_eq!(send(Request::get("/version"), String::new()).await.status(), 200);
    let watch = send(Request::get(format!("{MAPS}?watch=true")), String::new()).await;
    drop(watch);
    let events = logged.all();
    let outlines: Vec<Value> = events.iter().map(outline).collect();
    assert_eq!(
        outlines,
        [
            json!(["RequestResponse", "ResponseComplete", "create", true, true]),
            json!(["Request", "RequestReceived", "update", false, false]),
            json!(["Metadata", "RequestReceived", "delete", false, false]),
            json!(["Metadata", "ResponseComplete", "delete", false, false]),
            json!(["Metadata", "ResponseStarted", "list", false, false]),
            json!(["Metadata", "RequestReceived", "watch", false, false]),
            json!(["Metadata", "ResponseStarted", "watch", false, false]),
            json!(["Metadata", "ResponseComplete", "watch", false, false]),
        ]
    );
    assert_eq!(events[0]["responseObject"]["data"], json!({"k": "v"}));
    assert_eq!(events[0]["responseObject"]["metadata"].get("managedFields"), None);
    assert_eq!(events[1].get("responseStatus"), None, "nothing is answered yet");
    assert_eq!(events[1]["stageTimestamp"], events[1]["requestReceivedTimestamp"]);
    let ids: Vec<&Value> = events.iter().map(|event| &event["auditID"]).collect();
    assert!(ids[2] == ids[3] && ids[5] == ids[6] && ids[6] == ids[7] && ids[3] != ids[5], "{ids:?}");
    assert_eq!(events[3]["responseStatus"]["reason"], "NotFound");
    assert_eq!((&events[4]["responseStatus"]["code"], &events[4]["user"]), (&json!(401), &json!({})));
}

#[tokio::test]
async fn a_log_in_words_has_a_line_for_each_event() {
    let (mut read, write) = io::pipe().unwrap();
    let policy = "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Request}]}";
    let log = AuditLog::to(write).unwrap().following(AuditPolicy::parse(policy).unwrap());
    let log = log.formatted(AuditFormat::Legacy);
    let server = Server::builder().audit_log(log.clone()).build().await.unwrap();
    assert_eq!(post(&server, MAPS, &json!({"metadata": {"name": "a"}})).await.status, 201);
    log.settle();
    drop((server, log));
    let mut text = String::new();
    read.read_to_string(&mut text).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    for (line, stage, response) in
        [(lines[0], "RequestReceived", "<deferred>"), (lines[1], "ResponseComplete", "201")]
    {
        let end = format!("namespace=\"default\" uri=\"{MAPS}\" response=\"{response}\"");
        assert!(line.contains(&format!(" stage=\"{stage}\" ")) && line.ends_with(&end), "{line}");
        assert!(line.contains(" method=\"create\" ") && line.contains(" as=\"<self>\" "), "{line}");
    }
}

/// As kube-apiserver echoes it, whether it is written or not.
#[tokio::test]
async fn requests_have_an_id_that_clients_may_choose() {
    let logged = Logged::new().await;
    let mut ids = Vec::new();
    for chosen in [Some("mine"), None, Some("")] {
        let mut request = Request::get(MAPS);
        if let Some(chosen) = chosen {
            request = request.header("audit-id", chosen);
        }
        let response = logged.server.router().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        ids.push(response.headers()["audit-id"].to_str().unwrap().to_owned());
    }
    assert_eq!((ids[0].as_str(), ids[1].len(), ids[2].len()), ("mine", 36, 36));
    let mut written: Vec<String> = logged
        .events("configmaps")
        .iter()
        .map(|event| event["auditID"].as_str().unwrap().to_owned())
        .collect();
    written.dedup();
    assert_eq!(written, ids);
}
