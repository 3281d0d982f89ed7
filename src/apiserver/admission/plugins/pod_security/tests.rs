//! Tests that each check refuses with upstream's message; the texts are from its own tests and recordings.

use serde_json::{Value, json};

use super::*;
use crate::admission::plugins::tests::{Asked, Placed, beside, pod};

fn namespace(labels: &[(&str, &str)]) -> Value {
    let labels =
        labels.iter().map(|(key, value)| (format!("pod-security.kubernetes.io/{key}"), json!(value)));
    json!({"metadata": {"name": "n", "labels": labels.collect::<serde_json::Map<_, _>>()}})
}

/// Returns the refusal of a pod with `part` at `pointer` in a namespace with this level.
fn told(enforce: (&str, &str), pointer: &str, part: Value) -> String {
    let mut sent = safe();
    *beside(&mut sent, pointer) = part;
    let labels = [("enforce", enforce.0), ("enforce-version", enforce.1)];
    let stored: [Placed; 1] = [("namespaces", namespace(&labels))];
    match Asked::create("pods", &sent, &stored).of(&PLUGIN) {
        Ok(_) => String::new(),
        Err(refusal) => {
            let begin =
                format!("pods \"a\" is forbidden: violates PodSecurity \"{}:{}\": ", enforce.0, enforce.1);
            refusal.message().strip_prefix(&begin).unwrap_or(refusal.message()).to_owned()
        }
    }
}

/// Returns a pod that meets the level `restricted`.
fn safe() -> Value {
    let mut pod = pod();
    pod["spec"]["securityContext"] =
        json!({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}});
    pod["spec"]["containers"][0]["securityContext"] =
        json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
    pod
}

const BASELINE: (&str, &str) = ("baseline", "latest");
const RESTRICTED: (&str, &str) = ("restricted", "latest");

#[test]
fn pods_that_give_up_all_rights_are_let_in() {
    assert_eq!(told(RESTRICTED, "/spec/hostNetwork", json!(false)), "");
    assert_eq!(told(BASELINE, "/spec/securityContext", json!({})), "");
    assert_eq!(told(("privileged", "latest"), "/spec/hostPID", json!(true)), "");
}

#[test]
fn pods_that_say_nothing_are_not_restricted() {
    let stored: [Placed; 1] = [("namespaces", namespace(&[("enforce", "restricted")]))];
    let refusal = Asked::create("pods", &pod(), &stored).of(&PLUGIN).unwrap_err();
    assert_eq!(
        refusal.message(),
        "pods \"a\" is forbidden: violates PodSecurity \"restricted:latest\": allowPrivilegeEscalation != false \
         (container \"c\" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities \
         (container \"c\" must set securityContext.capabilities.drop=[\"ALL\"]), runAsNonRoot != true (pod or container \
         \"c\" must set securityContext.runAsNonRoot=true), seccompProfile (pod or container \"c\" must set \
         securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")"
    );
}

#[test]
fn checks_of_the_baseline_refuse_in_words_of_upstream() {
    let context = "/spec/containers/0/securityContext";
    let cases = [
        ("/spec/hostPID", json!(true), "host namespaces (hostPID=true)"),
        ("/spec/volumes", json!([{"name": "a", "hostPath": {}}]), "hostPath volumes (volume \"a\")"),
        (
            "/spec/containers/0/ports",
            json!([{"hostPort": 80}, {"hostPort": 443}]),
            "hostPort (container \"c\" uses hostPorts 443, 80)",
        ),
        (
            context,
            json!({"privileged": true}),
            "privileged (container \"c\" must not set securityContext.privileged=true)",
        ),
        (
            context,
            json!({"capabilities": {"add": ["CHOWN", "NET_RAW", "SYS_ADMIN"]}}),
            "non-default capabilities (container \"c\" must not include \"NET_RAW\", \"SYS_ADMIN\" in \
             securityContext.capabilities.add)",
        ),
        (
            context,
            json!({"procMount": "Unmasked"}),
            "procMount (container \"c\" must not set securityContext.procMount to \"Unmasked\")",
        ),
        (
            context,
            json!({"seLinuxOptions": {"type": "bad_t", "user": "u", "role": "r"}}),
            "seLinuxOptions (container \"c\" set forbidden securityContext.seLinuxOptions: type \"bad_t\"; user may not \
             be set; role may not be set)",
        ),
        (
            "/spec/securityContext",
            json!({"seccompProfile": {"type": "Unconfined"}}),
            "seccompProfile (pod must not set securityContext.seccompProfile.type to \"Unconfined\")",
        ),
        (
            "/spec/securityContext",
            json!({"sysctls": [{"name": "net.ipv4.tcp_wmem"}, {"name": "a"}]}),
            "forbidden sysctls (a)",
        ),
        (
            "/spec/securityContext",
            json!({"windowsOptions": {"hostProcess": true}}),
            "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)",
        ),
        (
            "/spec/securityContext",
            json!({"appArmorProfile": {"type": "Unconfined"}}),
            "forbidden AppArmor profile (pod must not set AppArmor profile type to \"Unconfined\")",
        ),
        (
            "/spec/containers/0/livenessProbe",
            json!({"httpGet": {"host": "10.0.0.1"}}),
            "probe or lifecycle host (container \"c\" uses probe or lifecycle host \"10.0.0.1\")",
        ),
        (
            "/metadata/annotations",
            json!({"container.apparmor.security.beta.kubernetes.io/c": "unconfined"}),
            "forbidden AppArmor profile (annotation must not set AppArmor profile type to \
             \"container.apparmor.security.beta.kubernetes.io/c=\"unconfined\"\")",
        ),
    ];
    for (pointer, part, expected) in cases {
        assert_eq!(told(BASELINE, pointer, part), expected, "{pointer}");
    }
}

#[test]
fn checks_of_the_restricted_level_refuse_in_words_of_upstream() {
    let cases = [
        (
            "/spec/volumes",
            json!([{"name": "a", "nfs": {}}, {"name": "b", "hostPath": {}}, {"name": "c", "emptyDir": {}}]),
            "restricted volume types (volumes \"a\", \"b\" use restricted volume types \"hostPath\", \"nfs\")",
        ),
        ("/spec/securityContext/runAsUser", json!(0), "runAsUser=0 (pod must not set runAsUser=0)"),
        (
            "/spec/containers/0/securityContext/runAsNonRoot",
            json!(false),
            "runAsNonRoot != true (container \"c\" must not set securityContext.runAsNonRoot=false)",
        ),
        (
            "/spec/containers/0/securityContext/capabilities",
            json!({"add": ["NET_BIND_SERVICE", "CHOWN"]}),
            "unrestricted capabilities (container \"c\" must set securityContext.capabilities.drop=[\"ALL\"]; container \
             \"c\" must not include \"CHOWN\" in securityContext.capabilities.add)",
        ),
    ];
    for (pointer, part, expected) in cases {
        assert_eq!(told(RESTRICTED, pointer, part), expected, "{pointer}");
    }
}

#[test]
fn versions_choose_among_checks() {
    let sysctl = json!({"sysctls": [{"name": "net.ipv4.tcp_wmem"}]});
    assert_eq!(
        told(("baseline", "v1.31"), "/spec/securityContext", sysctl.clone()),
        "forbidden sysctls (net.ipv4.tcp_wmem)"
    );
    assert_eq!(told(("baseline", "v1.32"), "/spec/securityContext", sysctl.clone()), "");
    assert_eq!(told(("baseline", "v1.99"), "/spec/securityContext", sysctl), "");
    let probe = json!({"tcpSocket": {"host": "h"}});
    assert_eq!(told(("baseline", "v1.33"), "/spec/containers/0/livenessProbe", probe), "");
    assert_eq!(told(("restricted", "v1.22"), "/spec/containers/0/securityContext/runAsUser", json!(0)), "");
    let mut own_users = safe();
    own_users["spec"]["hostUsers"] = false.into();
    own_users["spec"]["securityContext"]["runAsNonRoot"] = false.into();
    for (version, is_fine) in [("v1.34", false), ("v1.35", true)] {
        let stored = [("namespaces", namespace(&[("enforce", "restricted"), ("enforce-version", version)]))];
        assert_eq!(Asked::create("pods", &own_users, &stored).of(&PLUGIN).is_ok(), is_fine, "{version}");
    }
}

#[test]
fn labels_have_to_be_understood() {
    let labels = [("enforce", "bogus"), ("warn-version", "v1.01"), ("audit", "Baseline")];
    let made = namespace(&labels);
    let refusal = Asked::create("namespaces", &made, &[]).of(&PLUGIN).unwrap_err();
    let label = "metadata.labels[pod-security.kubernetes.io";
    assert_eq!(
        refusal.message(),
        format!(
            "Namespace \"n\" is invalid: [{label}/enforce]: Invalid value: \"bogus\": must be one of privileged, baseline, \
             restricted, {label}/audit]: Invalid value: \"Baseline\": must be one of privileged, baseline, restricted, \
             {label}/warn-version]: Invalid value: \"v1.01\": must be \"latest\" or \"v1.x\"]"
        )
    );
    // What was wrong before may stay, and is enforced as strictly as can be.
    let asked = Asked { old: Some(&made), ..Asked::create("namespaces", &made, &[]) };
    assert!(asked.of(&PLUGIN).is_ok());
    let stored = [("namespaces", made)];
    let refusal = Asked::create("pods", &pod(), &stored).of(&PLUGIN).unwrap_err();
    assert!(refusal.message().contains("violates PodSecurity \"restricted:latest\""), "{refusal}");
}

#[test]
fn users_are_warned_of_what_pods_would_be_refused_for() {
    let template = json!({"metadata": {"name": "a"}, "spec": {"template": {"spec": {"hostIPC": true,
        "containers": [{"name": "c"}]}}}});
    let warnings = |labels: &[(&str, &str)]| {
        let stored = [("namespaces", namespace(labels))];
        Asked::create("deployments", &template, &stored).of(&PLUGIN).unwrap().1
    };
    let expected = ["would violate PodSecurity \"baseline:latest\": host namespaces (hostIPC=true)"];
    assert_eq!(warnings(&[("warn", "baseline")]), expected);
    assert_eq!(warnings(&[("enforce", "baseline")]), expected);
    assert!(warnings(&[("enforce", "baseline"), ("warn", "privileged")]).is_empty());
}

#[test]
fn stricter_levels_are_checked_against_the_pods_that_are_there() {
    let mut pods: Vec<Placed> = Vec::new();
    for name in ["b", "a", "c"] {
        let mut one = pod();
        one["metadata"]["name"] = name.into();
        one["spec"]["hostPID"] = true.into();
        pods.push(("pods", one));
    }
    let (new, old) = (namespace(&[("enforce", "baseline")]), namespace(&[]));
    let asked = Asked { old: Some(&old), ..Asked::create("namespaces", &new, &pods) };
    assert_eq!(
        asked.of(&PLUGIN).unwrap().1,
        [
            "existing pods in namespace \"n\" violate the new PodSecurity enforce level \"baseline:latest\"",
            "a (and 2 other pods): host namespaces",
        ]
    );
}

#[test]
fn changes_that_cannot_matter_are_let_in() {
    let stored = [("namespaces", namespace(&[("enforce", "restricted")]))];
    let (old, mut new) = (pod(), pod());
    new["metadata"]["labels"] = json!({"a": "b"});
    let asked =
        |new: &Value| Asked { old: Some(&old), ..Asked::create("pods", new, &stored) }.of(&PLUGIN).is_ok();
    assert!(asked(&new));
    new["spec"]["containers"][0]["image"] = "j".into();
    assert!(!asked(&new));
}
