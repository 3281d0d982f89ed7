//! What containers may use at most, where the kernel has control groups for this user; where it has none, that is said.

use k8s_openapi::api::core::v1::ContainerStateTerminated;
use serde_json::{Value, json};

use super::place::{Place, phase, script};

fn limited(text: &str, limits: &Value) -> Value {
    let mut pod = script(text);
    pod["containers"][0]["resources"] = json!({"limits": limits});
    pod
}

/// How the container of a Pod with limits ended; none where this machine does not hold them, which is told with what helps.
async fn ended(place: &Place, name: &str, text: &str, limits: &Value) -> Option<ContainerStateTerminated> {
    place.pod(name, limited(text, limits)).await;
    let status = place.ended(name).await;
    let events = place.events(name).await;
    if let Some((_, text)) = events.iter().find(|(reason, _)| reason == "IgnoredFields") {
        assert!(
            text.contains("containers[main].resources.limits.")
                && text.contains("; limits need control groups, and "),
            "{text}"
        );
        assert!(text.contains("systemd-run"), "{text}");
        testing::skip(testing::Need::Other, text);
        return None;
    }
    let mut containers = status.container_statuses.clone().unwrap();
    Some(containers.remove(0).state.unwrap().terminated.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_wants_more_memory_than_its_limit_is_killed_and_that_is_said() {
    let place = Place::new().await;
    let limits = json!({"memory": "64Mi"});
    let Some(ended) = ended(&place, "hungry", "exec tail /dev/zero", &limits).await else { return };
    assert_eq!((ended.exit_code, ended.signal, ended.reason.as_deref()), (137, Some(9), Some("OOMKilled")));
    // Who stays below its limit is left alone, and who is killed otherwise has not run out of memory.
    place.pod("frugal", limited("true", &limits)).await;
    assert_eq!(phase(&place.ended("frugal").await), "Succeeded");
    place.pod("killed", limited("kill -9 $$$$", &limits)).await;
    let status = place.ended("killed").await;
    let killed = status.container_statuses.unwrap().remove(0).state.unwrap().terminated.unwrap();
    assert_eq!((killed.exit_code, killed.reason.as_deref()), (137, Some("Error")));
}

/// Probes and handlers are within the limits as well.
#[tokio::test(flavor = "multi_thread")]
async fn what_runs_beside_a_container_is_within_its_limits() {
    let place = Place::new().await;
    let mut pod = limited("until [ -e eaten ]; do sleep 0.02; done", &json!({"memory": "64Mi"}));
    let eats = json!(["sh", "-c", "tail /dev/zero; touch eaten"]);
    pod["containers"][0]["lifecycle"] = json!({"postStart": {"exec": {"command": eats}}});
    place.pod("beside", pod).await;
    let status = place.ended("beside").await;
    let events = place.events("beside").await;
    if let Some((_, text)) = events.iter().find(|(reason, _)| reason == "IgnoredFields") {
        return testing::skip(testing::Need::Other, text);
    }
    let ended = status.container_statuses.unwrap().remove(0).state.unwrap().terminated.unwrap();
    assert_eq!(ended.reason.as_deref(), Some("OOMKilled"), "{ended:?}");
}

/// CPU time that was used, and the time that went by meanwhile, in hundredths of a second.
fn times(text: &str) -> (u64, u64) {
    let mut numbers = text.split_whitespace().map(|number| number.parse::<u64>().unwrap());
    let (first, second, from, to) =
        (numbers.next().unwrap(), numbers.next().unwrap(), numbers.next().unwrap(), numbers.next().unwrap());
    (first + second, to - from)
}

#[tokio::test(flavor = "multi_thread")]
async fn who_wants_more_cpu_than_its_limit_waits() {
    let place = Place::new().await;
    // Times of this process in ticks, which are hundredths, and of the machine.
    let text = "now() { read up rest < /proc/uptime; echo ${up%.*}${up#*.}; }; from=$(now); i=0; \
        while [ $i -lt 400000 ]; do i=$((i+1)); done; set -- $(cat /proc/$$/stat); \
        echo ${14} ${15} $from $(now) > /dev/termination-log";
    let Some(ended) = ended(&place, "busy", text, &json!({"cpu": "200m"})).await else { return };
    assert_eq!(ended.exit_code, 0, "{ended:?}");
    let (used, passed) = times(&ended.message.unwrap());
    assert!(used >= 20, "too little was done to say anything: {used}");
    assert!(used * 3 <= passed, "{used} of {passed} hundredths of a second");
}
