//! Computes the shape of a Pod: for each container the digest of its image, and hashes of what it runs. Public images can be
//! recognised by these, and nothing is revealed about others.

use admit_apimachinery::pointer;
use serde::Serialize;
use serde_json::Value;

use super::super::hashed;
use super::super::pods::items;
use super::runtimes::{Runtime, Runtimes};

#[derive(Clone, Debug, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Shape {
    restart_always: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    init_containers: Vec<Container>,
    containers: Vec<Container>,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq, Serialize)]
pub(super) struct Container {
    #[serde(rename = "imageID")]
    pub(super) image: String,
    #[serde(rename = "firstCommand", skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    #[serde(rename = "firstArg", skip_serializing_if = "Option::is_none")]
    argument: Option<String>,
    /// Only for containers that were inspected by an agent.
    #[serde(rename = "runtimeInfo", skip_serializing_if = "Option::is_none")]
    runtime: Option<Runtime>,
}

/// How a Pod is counted.
#[derive(Debug, PartialEq)]
pub(super) enum Counted {
    /// The Pod has ended.
    Terminal,
    /// Its status is incomplete.
    Ignored,
    /// The image of a container is unknown.
    Invalid,
    Shaped(Shape),
}

impl Shape {
    pub(super) fn images(&self) -> impl Iterator<Item = &str> {
        self.init_containers.iter().chain(&self.containers).map(|container| container.image.as_str())
    }
}

impl Counted {
    pub(super) fn of(pod: &Value, runtimes: &Runtimes) -> Self {
        let phase = pointer::text(pod, "/status/phase");
        let told = |spec: &str, status: &str| items(pod, spec).len() == items(pod, status).len();
        match phase {
            "Succeeded" | "Failed" => return Self::Terminal,
            "Running" | "Pending" => {}
            _ => return Self::Ignored,
        }
        if !told("/spec/initContainers", "/status/initContainerStatuses")
            || !told("/spec/containers", "/status/containerStatuses")
        {
            return Self::Ignored;
        }
        let containers = |spec, status| containers(pod, runtimes, spec, status);
        let init = containers("/spec/initContainers", "/status/initContainerStatuses");
        let main = containers("/spec/containers", "/status/containerStatuses");
        let restart_always = pod.pointer("/spec/restartPolicy").is_none_or(|policy| policy == "Always");
        match (init, main) {
            (Some(init_containers), Some(containers)) => {
                Self::Shaped(Shape { restart_always, init_containers, containers })
            }
            _ => Self::Invalid,
        }
    }
}

fn containers(pod: &Value, runtimes: &Runtimes, spec: &str, status: &str) -> Option<Vec<Container>> {
    let each = items(pod, status).map(|status| {
        let name = status.get("name");
        let spec = items(pod, spec).find(|container| container.get("name") == name)?;
        let text = |object: &Value, field: &str| object.get(field).and_then(Value::as_str).and_then(digest);
        let image = text(status, "imageID").or_else(|| text(spec, "image"))?;
        let runtime =
            status.get("containerID").and_then(Value::as_str).and_then(|id| runtimes.get(id)).cloned();
        Some(Container {
            image,
            command: first(spec, "/command/0"),
            argument: first(spec, "/args/0"),
            runtime,
        })
    });
    each.collect()
}

/// Returns the digest in an image reference.
fn digest(reference: &str) -> Option<String> {
    let digest = reference.rsplit_once('@').map_or(reference, |(_, digest)| digest);
    let (algorithm, value) = digest.split_once(':')?;
    let plain = value.len() >= 32 && value.bytes().all(|byte| byte.is_ascii_hexdigit());
    (algorithm.starts_with("sha") && plain).then(|| digest.to_owned())
}

/// Returns the hash of the first word of the string at `pointer`, without what may be a user's value.
pub(super) fn first(object: &Value, pointer: &str) -> Option<String> {
    object.pointer(pointer).and_then(Value::as_str).map(|text| hashed::short(word(text)))
}

/// Returns the first word; for a flag its name, for a path its last part.
fn word(text: &str) -> &str {
    let word = text.split_whitespace().next().unwrap_or_default();
    let word = match (word.starts_with('-'), word.split_once('=')) {
        (true, Some((flag, _))) => flag,
        (true, None) => "",
        (false, _) => word,
    };
    let word = word.trim_matches(['/', '\\']);
    word.rsplit(['/', '\\']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const DIGEST: &str = "sha256:0ca0e25cc4b5a9444bca109bf54cf9ff57839b2e64ed6fe9102f7ea5611fec1c";

    #[test]
    fn digests_are_found_in_references() {
        for reference in
            [DIGEST.to_owned(), format!("docker-pullable://a/b@{DIGEST}"), format!("a/b:1@{DIGEST}")]
        {
            assert_eq!(digest(&reference).as_deref(), Some(DIGEST), "{reference}");
        }
        for reference in ["", "nginx:1.25", "registry:5000/nginx", "sha256:short"] {
            assert_eq!(digest(reference), None, "{reference}");
        }
    }

    #[test]
    fn of_what_is_run_one_word_is_hashed() {
        for (text, expected) in [
            ("/usr/bin/bash", "bash"),
            (" sh -c secret", "sh"),
            ("--token=abc", "--token"),
            ("--verbose", ""),
            (r"c:\tools\run.exe", "run.exe"),
            ("serve/", "serve"),
        ] {
            assert_eq!(word(text), expected, "{text}");
        }
    }

    #[test]
    fn pods_are_counted_by_what_is_known_of_them() {
        let pod = |phase: &str, image: &str| {
            json!({
                "spec": {"restartPolicy": "Always", "containers": [{"name": "a", "image": "x", "command": ["/bin/sh"]}]},
                "status": {"phase": phase, "containerStatuses": [{"name": "a", "imageID": image}]},
            })
        };
        let of = |pod: &Value| Counted::of(pod, &Runtimes::new());
        assert_eq!(of(&pod("Succeeded", DIGEST)), Counted::Terminal);
        assert_eq!(of(&pod("", DIGEST)), Counted::Ignored);
        assert_eq!(of(&pod("Running", "x:1")), Counted::Invalid);
        let Counted::Shaped(shape) = of(&pod("Running", DIGEST)) else { panic!("has a shape") };
        assert_eq!(shape.images().collect::<Vec<_>>(), [DIGEST]);
        let container = json!({"imageID": DIGEST, "firstCommand": hashed::short("sh")});
        let expected = json!({"restartAlways": true, "containers": [container]});
        assert_eq!(serde_json::to_value(shape).unwrap(), expected);
        let mut unsaid = pod("Running", DIGEST);
        unsaid["status"]["containerStatuses"] = json!([]);
        assert_eq!(of(&unsaid), Counted::Ignored);
    }
}
