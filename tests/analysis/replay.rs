//! Replays of logs: what is decided, what is not and why, and what is never told.

use admit_analysis::replay::{Cause, Effect, Place, Refused, Replay, Report, Side, Unread};
use admit_policy::manifest::Document;
use admit_policy::{PolicySet, manifest};
use serde_json::{Value, json};

const POLICIES: &str = include_str!("data/replay/policies.yaml");

struct Loaded {
    documents: Vec<Document>,
    set: PolicySet,
}

fn loaded(text: &str) -> Loaded {
    let documents = manifest::read("policies.yaml", text).expect("YAML");
    let set = PolicySet::load(&documents).unwrap_or_else(|errors| panic!("{errors:?}"));
    Loaded { documents, set }
}

impl Loaded {
    fn side(&self) -> Side<'_> {
        Side::new(&self.set, &self.documents, false)
    }

    fn replayed(&self, lines: &[Value]) -> Report {
        let mut replay = Replay::new(self.side(), None);
        feed(&mut replay, lines);
        replay.finish()
    }
}

fn feed(replay: &mut Replay<'_>, lines: &[Value]) {
    for (line, event) in (1..).zip(lines) {
        replay.line(Place { file: "audit.log", line }, event.to_string().as_bytes());
    }
}

/// A widget as a server stores it.
fn widget(name: &str, version: u64, size: i64) -> Value {
    json!({
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {
            "name": name, "namespace": "shop", "uid": format!("uid-{name}"), "generation": 1,
            "resourceVersion": version.to_string(), "creationTimestamp": "2026-11-24T10:00:00Z",
        },
        "spec": {"size": size},
    })
}

/// An event with the answer `response`.
fn event(verb: &str, name: &str, response: &Value) -> Value {
    json!({
        "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse", "auditID": format!("{verb}-{name}"),
        "stage": "ResponseComplete", "requestURI": "/apis/example.com/v1/namespaces/shop/widgets", "verb": verb,
        "user": {"username": "ann", "groups": ["devs"]},
        "objectRef": {
            "resource": "widgets", "namespace": "shop", "name": name, "apiGroup": "example.com", "apiVersion": "v1",
        },
        "responseStatus": {"metadata": {}, "code": if verb == "create" { 201 } else { 200 }},
        "responseObject": response,
        "requestReceivedTimestamp": "2026-11-24T10:00:00.000000Z",
        "stageTimestamp": "2026-11-24T10:00:00.100000Z",
    })
}

/// The same with other fields.
fn with(mut event: Value, fields: &[(&str, Value)]) -> Value {
    for (pointer, value) in fields {
        match event.pointer_mut(pointer) {
            Some(place) => *place = value.clone(),
            None => event[pointer.trim_start_matches('/')] = value.clone(),
        }
    }
    event
}

fn without(mut event: Value, field: &str) -> Value {
    event.as_object_mut().expect("an event").shift_remove(field);
    event
}

/// The effects with their counts, by policy.
fn effects(report: &Report) -> Vec<(&str, Option<Effect>, u64)> {
    report.groups.iter().map(|(key, group)| (key.policy.as_str(), key.effect, group.count)).collect()
}

fn undecided(report: &Report) -> Vec<(Cause, u64)> {
    report.undecided.iter().map(|((cause, _), found)| (*cause, found.count)).collect()
}

#[test]
fn old_objects_come_from_earlier_events() {
    let policies = loaded(POLICIES);
    let report = policies.replayed(&[
        event("create", "a", &widget("a", 1, 3)),
        event("update", "a", &widget("a", 2, 4)),
        // Smaller than it was.
        event("update", "a", &widget("a", 3, 2)),
        // A write that changes nothing.
        event("update", "a", &widget("a", 3, 2)),
        event("create", "big", &widget("big", 4, 11)),
        event("delete", "a", &json!({"kind": "Status", "apiVersion": "v1", "status": "Success"})),
        event("get", "a", &widget("a", 3, 2)),
    ]);
    assert_eq!(
        effects(&report),
        [
            ("kept", Some(Effect::Warn), 1),
            ("never-shrinks", Some(Effect::Deny), 1),
            ("small", Some(Effect::Deny), 1)
        ]
    );
    let counts = report.counts;
    assert_eq!((counts.denied, counts.admitted, counts.warned, counts.undecided), (2, 4, 1, 0));
    assert_eq!((counts.reads, counts.newly_denied, counts.newly_admitted), (1, 2, 0));
    let (key, group) = report.groups.iter().find(|(key, _)| key.policy == "never-shrinks").expect("a group");
    assert_eq!(
        (key.user.as_str(), key.namespace.as_str(), key.kind.as_str()),
        ("ann", "shop", "Widget.example.com")
    );
    let sample = &group.samples[0];
    assert_eq!((sample.place.as_str(), sample.audit_id.as_str()), ("audit.log:3", "update-a"));
    assert_eq!(sample.message, "4 must not become 2");
    assert_eq!(group.first, "2026-11-24T10:00:00.000000Z");
}

#[test]
fn no_old_object_is_invented() {
    let policies = loaded(POLICIES);
    let update = || event("update", "a", &widget("a", 9, 1));
    let create = || event("create", "a", &widget("a", 5, 3));
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Success"});
    let metadata = |event: Value| without(with(event, &[("/level", json!("Metadata"))]), "responseObject");
    type Case = (&'static str, Vec<Value>, Vec<(Cause, u64)>);
    let cases: [Case; 12] = [
        ("nothing is known", vec![update()], vec![(Cause::OldObject, 1)]),
        (
            "it was deleted",
            vec![create(), event("delete", "a", &status), update()],
            vec![(Cause::OldObject, 1)],
        ),
        (
            "a write without objects lies between",
            vec![create(), metadata(update()), update()],
            vec![(Cause::Level, 1), (Cause::OldObject, 1)],
        ),
        (
            "the later one was logged first",
            vec![create(), event("update", "a", &widget("a", 4, 1))],
            vec![(Cause::Order, 1)],
        ),
        (
            "another object of the name",
            vec![create(), with(update(), &[("/responseObject/metadata/uid", json!("other"))])],
            vec![(Cause::OldObject, 1)],
        ),
        (
            "a write is missing",
            vec![create(), with(update(), &[("/responseObject/metadata/generation", json!(3))])],
            vec![(Cause::Order, 1)],
        ),
        (
            "it replaced another version",
            vec![create(), with(update(), &[("/requestObject", widget("a", 7, 1))])],
            vec![(Cause::Order, 1)],
        ),
        (
            "only what was sent",
            vec![without(with(create(), &[("/level", json!("Request"))]), "responseObject")],
            vec![(Cause::Response, 1)],
        ),
        (
            "left out for its size",
            vec![without(
                with(create(), &[("/annotations", json!({"audit.k8s.io/truncated": "true"}))]),
                "responseObject",
            )],
            vec![(Cause::Truncated, 1)],
        ),
        (
            "the server failed in between",
            vec![create(), with(update(), &[("/responseStatus/code", json!(500))]), update()],
            vec![(Cause::OldObject, 1)],
        ),
        (
            "many at once",
            vec![create(), event("deletecollection", "", &status), update()],
            vec![(Cause::OldObject, 1), (Cause::Collection, 1)],
        ),
        ("the answer is not told", vec![without(create(), "responseStatus")], vec![(Cause::Response, 1)]),
    ];
    for (what, lines, expected) in cases {
        let report = policies.replayed(&lines);
        assert_eq!(undecided(&report), expected, "{what}: {report:#?}");
        assert_eq!(report.counts.undecided, expected.iter().map(|(_, count)| count).sum::<u64>(), "{what}");
        assert_eq!(report.counts.denied, 0, "{what}");
    }
}

#[test]
fn policies_that_look_at_nothing_unknown_decide_all_the_same() {
    let policies = loaded(POLICIES);
    // Too large whatever it was; whether it shrank is not known.
    let report = policies.replayed(&[event("update", "a", &widget("a", 9, 11))]);
    assert_eq!(effects(&report), [("small", Some(Effect::Deny), 1)]);
    assert_eq!((report.counts.denied, report.counts.undecided), (1, 0), "it is denied in any case");
    // Who asks is known even where nothing else is.
    let told = without(event("create", "a", &Value::Null), "responseObject");
    let told = with(told, &[("/level", json!("Metadata")), ("/user/username", json!("mallory"))]);
    let report = policies.replayed(&[told]);
    assert_eq!(effects(&report), [("not-mallory", Some(Effect::Deny), 1)]);
}

#[test]
fn dumps_tell_what_was_there_before() {
    let policies = loaded(POLICIES);
    let mut replay = Replay::new(policies.side(), None);
    replay.hold(&widget("a", 5, 4));
    replay.hold(&widget("b", 20, 4));
    feed(
        &mut replay,
        &[
            event("update", "a", &widget("a", 6, 2)),
            // The dump was made after this, or of this.
            event("update", "b", &widget("b", 19, 2)),
            event("update", "b", &widget("b", 20, 1)),
        ],
    );
    let report = replay.finish();
    assert_eq!(effects(&report), [("never-shrinks", Some(Effect::Deny), 2)]);
    assert_eq!(undecided(&report), [(Cause::Order, 1)]);
}

#[test]
fn what_was_refused_is_told_apart() {
    let policies = loaded(POLICIES);
    let refused = |code: u16, message: &str| {
        let status = json!({"code": code, "message": message});
        let sent = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"size": 11}});
        let event = without(event("create", "a", &Value::Null), "responseObject");
        with(event, &[("/responseStatus", status), ("/requestObject", sent)])
    };
    let denied = "widgets.example.com \"a\" is forbidden: ValidatingAdmissionPolicy 'small' with binding 'small' denied request: too big";
    let forbidden =
        with(refused(403, "no"), &[("/annotations", json!({"authorization.k8s.io/decision": "forbid"}))]);
    let report = policies.replayed(&[
        refused(422, denied),
        refused(403, &format!("admission webhook \"a.b\" denied the request: {denied}")),
        refused(403, "admission webhook \"a.b\" denied the request: no"),
        refused(401, "Unauthorized"),
        forbidden,
        refused(409, "exists"),
        refused(429, "later"),
        refused(503, "down"),
        refused(400, "bad"),
    ]);
    assert_eq!(effects(&report), [("small", Some(Effect::Deny), 2)]);
    let refused: Vec<_> = report.refused.iter().map(|(by, count)| (*by, *count)).collect();
    use Refused::{Admission, Authentication, Authorization, Conflict, Server, TooManyRequests, Validation};
    let all = [Authentication, Authorization, Validation, Admission, Conflict, TooManyRequests, Server];
    assert_eq!(refused, all.map(|by| (by, 1)));
    let counts = report.counts;
    assert_eq!((counts.denied, counts.as_sent, counts.newly_denied, counts.newly_admitted), (2, 2, 0, 0));
}

#[test]
fn definitions_decide_with_their_transition_rules() {
    let policies = loaded(include_str!("data/replay/definition.yaml"));
    let report = policies.replayed(&[
        event("create", "a", &widget("a", 1, 3)),
        event("update", "a", &widget("a", 2, 4)),
        event("create", "c", &widget("c", 3, -1)),
        event("update", "b", &widget("b", 4, 4)),
    ]);
    let name = "CustomResourceDefinition widgets.example.com";
    assert_eq!(effects(&report), [(name, Some(Effect::Deny), 2)]);
    assert_eq!(undecided(&report), [(Cause::OldObject, 1)]);
    let samples = report.groups.values().flat_map(|group| &group.samples);
    let messages: Vec<&str> = samples.map(|sample| sample.message.as_str()).collect();
    assert!(messages[0].contains("spec.size: Invalid value: 4: the size is fixed"), "{messages:?}");
    assert!(messages[1].contains("spec.size: Invalid value: -1"), "{messages:?}");
}

#[test]
fn values_of_secrets_are_in_no_report() {
    let policies = loaded(POLICIES);
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "shop", "resourceVersion": "1"},
        "data": {"password": "aHVudGVyMg=="}, "type": "Opaque",
    });
    let about = json!({"resource": "secrets", "namespace": "shop", "name": "s", "apiVersion": "v1"});
    let report = policies.replayed(&[with(event("create", "s", &secret), &[("/objectRef", about)])]);
    assert_eq!(
        effects(&report).iter().map(|(policy, ..)| *policy).collect::<Vec<_>>(),
        ["secret-quoted", "secret-written"]
    );
    let shown = format!("{report:?}");
    assert!(!shown.contains("aHVudGVyMg") && !shown.contains("hunter2"), "{shown}");
    assert!(shown.contains("Secrets are not made here"), "what the policy itself says is shown: {shown}");
}

#[test]
fn two_folders_are_compared() {
    let (old, new) = (loaded(POLICIES), loaded(&POLICIES.replace("size <= 10", "size <= 2")));
    let mut replay = Replay::new(new.side(), Some(old.side()));
    let lines = [
        event("create", "a", &widget("a", 1, 1)),
        event("create", "b", &widget("b", 2, 5)),
        event("create", "c", &widget("c", 3, 50)),
    ];
    feed(&mut replay, &lines);
    let report = replay.finish();
    let changes: Vec<_> = report
        .groups
        .iter()
        .map(|(key, group)| (key.policy.as_str(), key.before, key.effect, group.count))
        .collect();
    assert_eq!(changes, [("small", None, Some(Effect::Deny), 1)]);
    assert_eq!((report.counts.changed, report.counts.newly_denied, report.counts.newly_admitted), (1, 1, 0));
    let mut back = Replay::new(old.side(), Some(new.side()));
    feed(&mut back, &lines);
    let report = back.finish();
    let (key, _) = report.groups.iter().next().expect("a change");
    assert_eq!((key.before, key.effect, report.counts.newly_admitted), (Some(Effect::Deny), None, 1));
}

#[test]
fn recorded_reviews_say_everything() {
    let policies = loaded(POLICIES);
    let review = |old: i64, new: i64| {
        json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": "u", "operation": "UPDATE", "name": "a", "namespace": "shop", "userInfo": {"username": "ann"},
                "kind": {"group": "example.com", "version": "v1", "kind": "Widget"},
                "resource": {"group": "example.com", "version": "v1", "resource": "widgets"},
                "object": widget("a", 1, new), "oldObject": widget("a", 1, old),
            },
            "response": {"uid": "u", "allowed": true},
        })
    };
    let report = policies.replayed(&[review(3, 4), review(3, 2)]);
    assert_eq!(effects(&report), [("never-shrinks", Some(Effect::Deny), 1)]);
    let counts = report.counts;
    assert_eq!((counts.reviews, counts.denied, counts.admitted, counts.newly_denied), (2, 1, 1, 1));
}

#[test]
fn a_namespace_is_taken_from_the_log_or_not_guessed() {
    let policies = loaded(include_str!("data/replay/namespaces.yaml"));
    let create = event("create", "a", &widget("a", 5, 1));
    let report = policies.replayed(std::slice::from_ref(&create));
    assert_eq!(undecided(&report), [(Cause::Namespace, 1)]);
    let namespace = |labels: Value| {
        let object =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": labels}});
        let about =
            json!({"resource": "namespaces", "namespace": "shop", "name": "shop", "apiVersion": "v1"});
        with(event("update", "shop", &object), &[("/objectRef", about)])
    };
    let report = policies.replayed(&[namespace(json!({"env": "prod"})), create.clone()]);
    assert_eq!(effects(&report), [("not-in-prod", Some(Effect::Deny), 1)]);
    let report = policies.replayed(&[namespace(json!({"env": "test"})), create]);
    assert_eq!((report.counts.denied, report.counts.undecided), (0, 0));
}

#[test]
fn lines_that_are_none_are_counted_and_named() {
    let policies = loaded(POLICIES);
    let mut replay = Replay::new(policies.side(), None);
    let whole = event("create", "big", &widget("big", 1, 11)).to_string();
    let lines = [&whole[..whole.len() / 2], "garbage", "", "{\"kind\": \"Pod\"}", "[1, 2]", &whole];
    for (line, text) in (1..).zip(lines) {
        replay.line(Place { file: "a.log", line }, text.as_bytes());
    }
    replay.unread(Place { file: "a.log", line: 7 }, Unread::Torn);
    let report = replay.finish();
    let unread: Vec<_> =
        report.unread.iter().map(|(why, lines)| (*why, lines.count, lines.places.join(" "))).collect();
    let expected = [
        (Unread::Cut, 1, "a.log:1"),
        (Unread::Malformed, 2, "a.log:2 a.log:5"),
        (Unread::Foreign, 1, "a.log:4"),
        (Unread::Torn, 1, "a.log:7"),
    ];
    assert_eq!(unread, expected.map(|(why, count, places)| (why, count, places.to_owned())));
    assert_eq!((report.counts.lines, report.counts.denied), (5, 1));
}

/// Every line of a log is counted once, whatever has become of it.
#[test]
fn mutated_lines_are_counted_and_end_nothing() {
    let policies = loaded(POLICIES);
    let definition = loaded(include_str!("data/replay/definition.yaml"));
    let mut replay = Replay::new(policies.side(), Some(definition.side()));
    let lines = [
        event("create", "a", &widget("a", 1, 3)),
        with(event("patch", "a", &widget("a", 2, 4)), &[("/requestObject", json!({"spec": {"size": 4}}))]),
        event("delete", "a", &json!({"kind": "Status", "apiVersion": "v1"})),
    ]
    .map(|line| line.to_string().into_bytes());
    let mut seed = 0x5eed_u64;
    let mut next = |most: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).expect("31 bits") % most.max(1)
    };
    let mut fed = 0;
    for number in 0..100_000 {
        let mut line = lines[number % lines.len()].clone();
        for _ in 0..=next(3) {
            let (at, other) = (next(line.len()), next(line.len()));
            match next(5) {
                0 => line[at] = u8::try_from(next(256)).expect("a byte"),
                1 => line.truncate(at),
                2 => drop(line.drain(at.min(other)..at.max(other))),
                3 => line.splice(at..at, b"\"{}[]:,0\\".iter().copied().skip(next(8)).take(2)).for_each(drop),
                _ => line.swap(at, other),
            }
            if line.is_empty() {
                line.push(b' ');
            }
        }
        fed += u64::from(!line.trim_ascii().is_empty());
        replay.line(Place { file: "mutated.log", line: 1 }, &line);
    }
    let report = replay.finish();
    let unread: u64 = report.unread.values().map(|lines| lines.count).sum();
    let counts = report.counts;
    assert_eq!(counts.lines, fed);
    assert_eq!(counts.events + unread, fed, "each is an event or is not read");
    let told = counts.other_stages + counts.reads + counts.refused + counts.unmatched;
    assert_eq!(told + counts.admitted + counts.denied + counts.undecided, counts.events, "{counts:?}");
    assert!(counts.admitted > 10 && counts.undecided > 10 && unread > 1_000, "{counts:?}");
}

/// Two bytes of text are a value of seventy: what a text may ask for is bounded by its length.
#[test]
fn a_line_of_many_small_values_is_undecided() {
    let policies = loaded(POLICIES);
    let mut dense = widget("a", 1, 3);
    dense["spec"]["items"] = Value::Array(vec![json!(0); 2_000_000]);
    let report = policies.replayed(&[event("create", "a", &dense)]);
    assert_eq!(undecided(&report), [(Cause::Unreadable, 1)]);
    assert_eq!((report.counts.denied, report.counts.admitted), (0, 0));
}

#[test]
fn exceptions_are_those_of_the_time_of_the_request() {
    let text = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: small}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [widgets]}]
  validations: [{expression: object.spec.size < 5, message: too big}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: small}
spec: {policyName: small, validationActions: [Deny]}
---
apiVersion: admit/v1
kind: PolicyException
metadata: {name: fair}
spec: {policies: [small], users: [ann], until: '2026-11-24T12:00:00Z', reason: the fair}
";
    let loaded = loaded(text);
    let at = |name: &str, time: &str| {
        with(event("create", name, &widget(name, 1, 9)), &[("/requestReceivedTimestamp", json!(time))])
    };
    let report = loaded
        .replayed(&[at("early", "2026-11-24T11:59:59.000000Z"), at("late", "2026-11-24T12:00:00.000000Z")]);
    assert_eq!((report.counts.admitted, report.counts.denied), (1, 1));
    let told: Vec<(Option<Effect>, &str, &str)> = report
        .groups
        .iter()
        .map(|(key, group)| (key.effect, &*group.samples[0].name, &*group.samples[0].message))
        .collect();
    assert_eq!(
        told,
        [
            (
                Some(Effect::Excepted),
                "early",
                "too big; exception 'fair' lets it through until 2026-11-24T12:00:00Z: the fair"
            ),
            (
                Some(Effect::Deny),
                "late",
                "too big; exception 'fair' let it through until 2026-11-24T12:00:00Z: the fair"
            ),
        ]
    );
}
