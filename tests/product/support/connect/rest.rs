//! What a worker answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::response::Response;
use futures::stream;
use http::{HeaderValue, Method, StatusCode, header};
use serde_json::{Value, json};

use super::JDBC_SINK;
use super::config::{self, Refusal};
use super::group::{Fault, Known, Restart, Shared, Target};

const NO_LEADER: &str = "Cannot complete request momentarily due to no known leader URL, likely because a rebalance was underway.";
const STALE: &str = "Cannot complete request momentarily due to stale configuration (typically caused by a concurrent config change)";

/// Code and entity; an error has a message.
type Answer = Result<(u16, Value), (u16, String)>;

pub(super) fn router(shared: Arc<Shared>, worker: usize) -> Router {
    Router::new().fallback(move |request: Request| {
        let asked = Asked { shared: Arc::clone(&shared), worker };
        async move { asked.serve(request).await }
    })
}

/// No entity of its errors: the filter answers before the resources do.
fn unauthorized() -> Response {
    let response = Response::builder().status(401).header(header::WWW_AUTHENTICATE, "Basic");
    response.body(Body::from("User cannot access the resource.")).unwrap()
}

struct Asked {
    shared: Arc<Shared>,
    worker: usize,
}

impl Asked {
    async fn serve(&self, request: Request) -> Response {
        let (head, body) = request.into_parts();
        let (fault, entry) = {
            let mut group = self.shared.group.lock().unwrap();
            group.asked.push(format!("{} {}", head.method, head.uri));
            (group.fault.clone(), group.entry.clone())
        };
        let shown = head.headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
        if entry.is_some_and(|entry| shown != Some(entry.as_bytes())) {
            return unauthorized();
        }
        if let Some(fault) = fault {
            return faulty(&fault).await;
        }
        let body = to_bytes(body, usize::MAX).await.unwrap();
        let (path, query) = (head.uri.path().to_owned(), head.uri.query().unwrap_or_default().to_owned());
        let decoded: Vec<String> = path.trim_matches('/').split('/').map(percent_decoded).collect();
        let parts: Vec<&str> = decoded.iter().map(String::as_str).collect();
        let answer = self.answer(&head.method, &parts, &query, &body);
        let (code, entity) =
            answer.unwrap_or_else(|(code, message)| (code, json!({"error_code": code, "message": message})));
        let mut response = Response::builder().status(code).header(header::CONTENT_TYPE, "application/json");
        if code == 201 {
            response = response.header(header::LOCATION, path.trim_end_matches("/config"));
        }
        let body = if entity.is_null() { Body::empty() } else { Body::from(entity.to_string()) };
        response.body(body).unwrap()
    }

    fn answer(&self, method: &Method, parts: &[&str], query: &str, body: &[u8]) -> Answer {
        match (method.as_str(), parts) {
            ("GET", [""]) => Ok((
                200,
                json!({"version": "3.9.0", "commit": "a60e31147e6b01ee", "kafka_cluster_id": "double"}),
            )),
            ("GET", ["connectors"]) => self.list(query),
            ("POST", ["connectors"]) => self.post(body),
            ("GET", ["connectors", name]) => self.info(name).map(|info| (200, info)),
            ("GET", ["connectors", name, "config"]) => {
                self.info(name).map(|info| (200, info["config"].clone()))
            }
            ("GET", ["connectors", name, "status"]) => {
                let missing = || (404, format!("No status found for connector {name}"));
                self.shared.status(name).map(|status| (200, status)).ok_or_else(missing)
            }
            ("GET", ["connectors", name, "tasks"]) => self.tasks(name),
            ("GET", ["connectors", name, "topics"]) => self.topics(name),
            ("GET", ["connectors", name, "tasks", id, "status"]) => self.task(name, id),
            ("PUT", ["connectors", name, "config"]) => self.put(name, parsed(body)?, true),
            ("PUT", ["connectors", name, "pause"]) => self.aim(name, Target::Paused),
            ("PUT", ["connectors", name, "resume"]) => self.aim(name, Target::Started),
            ("PUT", ["connectors", name, "stop"]) => {
                self.leader()?;
                self.aim(name, Target::Stopped).map(|_| (204, Value::Null))
            }
            ("POST", ["connectors", name, "restart"]) => self.restart(name, query),
            ("POST", ["connectors", name, "tasks", id, "restart"]) => self.restart_task(name, id),
            ("DELETE", ["connectors", name]) => {
                self.leader()?;
                self.known(0, name).ok_or_else(|| (404, format!("Connector {name} not found")))?;
                self.shared.group.lock().unwrap().configure(name, None);
                Ok((204, Value::Null))
            }
            ("GET", ["connector-plugins"]) => {
                Ok((200, json!([{"class": JDBC_SINK, "type": "sink", "version": "10.7.6"}])))
            }
            ("PUT", ["connector-plugins", _, "config", "validate"]) => {
                Ok((200, config::report(&parsed(body)?)))
            }
            (_, ["connectors" | "connector-plugins", ..]) if parts.len() <= 2 => {
                Err((405, "HTTP 405 Method Not Allowed".to_owned()))
            }
            _ => Err((404, "HTTP 404 Not Found".to_owned())),
        }
    }

    fn known(&self, worker: usize, name: &str) -> Option<Known> {
        self.shared.group.lock().unwrap().view(worker).remove(name)
    }

    /// What the one that leads does is asked of it, and nobody knows who that is while workers are being rebalanced.
    fn leader(&self) -> Result<(), (u16, String)> {
        let rebalances = self.shared.group.lock().unwrap().rebalances();
        if rebalances { Err((409, NO_LEADER.to_owned())) } else { Ok(()) }
    }

    fn list(&self, query: &str) -> Answer {
        let expand: Vec<&str> = query.split('&').filter_map(|pair| pair.strip_prefix("expand=")).collect();
        let view = self.shared.group.lock().unwrap().view(self.worker);
        if expand.is_empty() {
            return Ok((200, json!(view.keys().collect::<Vec<_>>())));
        }
        let mut all = json!({});
        for (name, known) in &view {
            // One without a status is left out as a whole.
            let status = self.shared.status(name);
            if expand.contains(&"status") && status.is_none() {
                continue;
            }
            all[name] = json!({});
            for part in &expand {
                match *part {
                    "status" => all[name]["status"] = json!(status),
                    "info" => all[name]["info"] = self.entity(name, known),
                    _ => {}
                }
            }
        }
        Ok((200, all))
    }

    fn entity(&self, name: &str, known: &Known) -> Value {
        let count = self.shared.group.lock().unwrap().task_count(name);
        let tasks: Vec<_> = (0..count).map(|id| json!({"connector": name, "task": id})).collect();
        json!({"name": name, "config": known.config, "tasks": tasks, "type": "sink"})
    }

    fn info(&self, name: &str) -> Result<Value, (u16, String)> {
        if self.shared.group.lock().unwrap().rebalances() {
            return Err((409, STALE.to_owned()));
        }
        let known =
            self.known(self.worker, name).ok_or_else(|| (404, format!("Connector {name} not found")))?;
        Ok(self.entity(name, &known))
    }

    fn tasks(&self, name: &str) -> Answer {
        let info = self.info(name)?;
        let tasks = info["tasks"].as_array().unwrap().iter();
        let tasks: Vec<_> = tasks.map(|id| json!({"id": id, "config": info["config"]})).collect();
        Ok((200, json!(tasks)))
    }

    fn topics(&self, name: &str) -> Answer {
        let topic = self.known(self.worker, name).map(|known| known.config["topics"].clone());
        Ok((200, json!({name: {"topics": topic.into_iter().collect::<Vec<_>>()}})))
    }

    fn task(&self, name: &str, id: &str) -> Answer {
        let status = self.shared.status(name);
        let task = status.and_then(|status| status["tasks"].get(id.parse::<usize>().ok()?).cloned());
        task.map(|task| (200, task)).ok_or_else(|| (404, format!("No status found for task {name}-{id}")))
    }

    fn post(&self, body: &[u8]) -> Answer {
        let asked: Value = serde_json::from_slice(body).map_err(|error| (500, error.to_string()))?;
        let name = asked["name"].as_str().unwrap_or_default().trim().to_owned();
        self.put(&name, parsed(asked["config"].to_string().as_bytes())?, false)
    }

    fn put(&self, name: &str, mut config: BTreeMap<String, String>, replaces: bool) -> Answer {
        match config.get("name") {
            Some(other) if other != name => {
                let message = format!(
                    "Connector name configuration ({other}) doesn't match connector name in the URL ({name})"
                );
                return Err((400, message));
            }
            _ => drop(config.insert("name".to_owned(), name.to_owned())),
        }
        config::validate(&config).map_err(|refusal| match refusal {
            Refusal::Invalid(complaints) => (400, config::message(&complaints)),
            Refusal::NoPlugin(message) => (500, message),
        })?;
        self.leader()?;
        let exists = self.known(0, name).is_some();
        if exists && !replaces {
            return Err((409, format!("Connector {name} already exists")));
        }
        config.entry("tasks.max".to_owned()).or_insert_with(|| "1".to_owned());
        self.shared.group.lock().unwrap().configure(name, Some(config));
        let known = self.known(0, name).unwrap();
        Ok((if exists { 200 } else { 201 }, self.entity(name, &known)))
    }

    /// Any worker writes a target state, of connectors that it knows.
    fn aim(&self, name: &str, target: Target) -> Answer {
        self.known(self.worker, name).ok_or_else(|| (404, format!("Unknown connector {name}")))?;
        self.shared.group.lock().unwrap().aim(name, target);
        Ok((202, Value::Null))
    }

    fn restart(&self, name: &str, query: &str) -> Answer {
        let is = |wish: &str| query.split('&').any(|pair| pair.eq_ignore_ascii_case(wish));
        let which =
            Restart { task: None, with_tasks: is("includeTasks=true"), only_failed: is("onlyFailed=true") };
        self.ready(name)?;
        if !self.shared.group.lock().unwrap().restart(name, which) {
            return Err((404, format!("Status for connector {name} not found")));
        }
        if which.with_tasks || which.only_failed {
            return Ok((202, self.shared.status(name).unwrap_or_default()));
        }
        Ok((204, Value::Null))
    }

    fn restart_task(&self, name: &str, id: &str) -> Answer {
        self.ready(name)?;
        let unknown = || (404, format!("Unknown task: {name}-{id}"));
        let task: usize = id.parse().map_err(|_| unknown())?;
        let mut group = self.shared.group.lock().unwrap();
        if !group.has_task(name, task) {
            return Err(unknown());
        }
        group.restart(name, Restart { task: Some(task), with_tasks: true, only_failed: false });
        Ok((204, Value::Null))
    }

    fn ready(&self, name: &str) -> Result<(), (u16, String)> {
        if self.shared.group.lock().unwrap().rebalances() {
            return Err((409, STALE.to_owned()));
        }
        self.known(self.worker, name).map(drop).ok_or_else(|| (404, format!("Unknown connector: {name}")))
    }
}

/// Texts, also of what is sent as numbers and booleans.
fn parsed(body: &[u8]) -> Result<BTreeMap<String, String>, (u16, String)> {
    let members: BTreeMap<String, Value> =
        serde_json::from_slice(body).map_err(|error| (500, error.to_string()))?;
    let text = |value: Value| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    Ok(members.into_iter().map(|(key, value)| (key, text(value))).collect())
}

fn percent_decoded(part: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = part.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        match (first, behind) {
            (b'%', [high, low, behind @ ..]) => {
                let hex = [*high, *low];
                bytes.push(u8::from_str_radix(str::from_utf8(&hex).unwrap(), 16).unwrap());
                rest = behind;
            }
            _ => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8(bytes).unwrap()
}

async fn faulty(fault: &Fault) -> Response {
    let page = "<html><head><title>no such page</title></head><body>somebody else</body></html>";
    let built = |code: u16, kind: &str, body: Body| {
        Response::builder()
            .status(StatusCode::from_u16(code).unwrap())
            .header(header::CONTENT_TYPE, kind)
            .body(body)
            .unwrap()
    };
    match fault {
        Fault::Page(code) => built(*code, "text/html", Body::from(page)),
        Fault::TimedOut => {
            let entity = json!({"error_code": 500, "message": "Request timed out"});
            built(500, "application/json", Body::from(entity.to_string()))
        }
        Fault::Endless => {
            let parts = stream::repeat_with(|| Ok::<_, std::convert::Infallible>(vec![b' '; 64 * 1024]));
            built(200, "application/json", Body::from_stream(parts))
        }
        Fault::Silent => std::future::pending().await,
    }
}
