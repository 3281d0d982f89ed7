//! Whose tokens are, and which webhooks are asked what their users may do: the reference's own tables.

use admit_policy::server_config::{AccessReview, Authenticators, Authorizers, Token};
use admit_policy::{EvalOptions, manifest};
use serde_json::{Map, Value, json};

/// When the tokens of the table are used.
const NOW: &str = "2009-11-10T23:00:00Z";

fn rows(file: &str, text: &str) -> Vec<Value> {
    named("cases", file, text)
}

fn named(list: &str, file: &str, text: &str) -> Vec<Value> {
    let documents = manifest::read(file, text).expect("is read");
    documents[0].value[list].as_array().expect("rows").clone()
}

fn text<'v>(row: &'v Value, key: &str) -> Option<&'v str> {
    row.get(key).and_then(Value::as_str)
}

/// A user as the table has it: without what is empty.
fn authenticated(row: &Value) -> Result<Value, String> {
    let configuration = json!({"jwt": [row["authenticator"]]});
    let compiled = Authenticators::compile(&configuration);
    let authenticators = compiled.map_err(|errors| errors[0].to_string())?;
    let none = Map::new();
    let claims = row["claims"].as_object().unwrap_or(&none);
    let now: jiff::Timestamp = NOW.parse().expect("a time");
    let token = Token { claims, now: Some(now.into()), endpoints: row["endpoints"].as_object() };
    let user = authenticators.authenticate(&token, EvalOptions::default());
    let user = user.map_err(|error| error.to_string())?;
    let mut shown = json!({});
    if !user.username.is_empty() {
        shown["username"] = json!(user.username);
    }
    if !user.groups.is_empty() {
        shown["groups"] = json!(user.groups);
    }
    if !user.uid.is_empty() {
        shown["uid"] = json!(user.uid);
    }
    if !user.extra.is_empty() {
        shown["extra"] = json!(user.extra);
    }
    Ok(shown)
}

#[test]
fn tokens_are_of_the_users_of_the_reference() {
    let data = include_str!("data/authentication.yaml");
    let rows = rows("authentication.yaml", data);
    let (mut exceptions, mut wrong) = (0, Vec::new());
    for row in rows.iter().chain(&named("ours", "authentication.yaml", data)) {
        if row.get("exception").is_some() {
            exceptions += 1;
            continue;
        }
        let found = authenticated(row);
        let is_as_expected = match (&found, text(row, "error"), text(row, "elsewhere"), text(row, "invalid"))
        {
            (Ok(user), None, None, None) => *user == row["user"],
            (Err(why), Some(words), _, _) => why == words,
            (Err(why), _, Some(endpoint), _) => {
                why.contains(&format!("is kept at {endpoint}, which is not asked"))
            }
            // The table's options stand alone.
            (Err(why), _, _, Some(words)) => *why == format!("jwt[0].{words}"),
            _ => false,
        };
        if !is_as_expected {
            wrong.push(format!("{}: {found:?}", row["name"]));
        }
    }
    assert_eq!(wrong, [""; 0]);
    assert_eq!((rows.len(), exceptions), (93, 12));
}

#[test]
fn requests_without_a_token_are_taken_where_that_is_allowed() {
    let who = |anonymous: Value, path: &str| {
        let configuration = json!({"anonymous": anonymous});
        let authenticators = Authenticators::compile(&configuration).expect("compiles");
        authenticators.anonymous(path).map(|user| user.username)
    };
    let anonymous = Some("system:anonymous".to_owned());
    assert_eq!(who(json!({"enabled": true}), "/api"), anonymous);
    assert_eq!(who(json!({"enabled": true, "conditions": [{"path": "/livez"}]}), "/livez"), anonymous);
    assert_eq!(who(json!({"enabled": true, "conditions": [{"path": "/livez"}]}), "/livez/"), None);
    assert_eq!(who(json!({"enabled": false}), "/livez"), None);
    assert_eq!(who(Value::Null, "/livez"), None, "flags of the server decide");
}

#[test]
fn webhooks_are_asked_as_those_of_the_reference() {
    let rows = rows("authorization.yaml", include_str!("data/authorization.yaml"));
    assert_eq!(rows.len(), 16);
    for row in &rows {
        let expressions = row["expressions"].as_array().expect("a list");
        let conditions: Vec<Value> = expressions.iter().map(|text| json!({"expression": text})).collect();
        let found = Authorizers::compile(&authorization(&json!(conditions), "NoOpinion"));
        let found = found.map(|authorizers| {
            let review = AccessReview::read(&row["review"]).expect("a review");
            authorizers.ask(&review, EvalOptions::default()).remove(0).asked
        });
        match (found, text(row, "invalid")) {
            (Err(errors), Some(words)) => {
                assert_eq!(errors[0].to_string(), format!("authorizers[0].{words}"), "{row}");
            }
            (Ok(asked), None) => {
                assert_eq!(
                    (Some(asked.as_str()), asked.error()),
                    (text(row, "expect"), text(row, "error")),
                    "{row}"
                );
            }
            (found, _) => panic!("{row}: {found:?}"),
        }
    }
}

fn authorization(conditions: &Value, failure_policy: &str) -> Value {
    json!({"authorizers": [
        {"type": "Webhook", "name": "ours", "webhook": {
            "timeout": "3s", "subjectAccessReviewVersion": "v1", "matchConditionSubjectAccessReviewVersion": "v1",
            "failurePolicy": failure_policy, "connectionInfo": {"type": "InClusterConfig"}, "matchConditions": conditions,
        }},
        {"type": "RBAC", "name": "rbac"},
    ]})
}

#[test]
fn errors_of_conditions_count_where_no_other_is_false() {
    let conditions = json!([
        {"expression": "request.resourceAttributes.verb == 'get'"},
        {"expression": "request.resourceAttributes.name == 'web'"},
    ]);
    let asked = |failure_policy: &str, more: &Value| {
        let mut conditions = conditions.clone();
        conditions.as_array_mut().expect("a list").extend(more.as_array().cloned().unwrap_or_default());
        let authorizers =
            Authorizers::compile(&authorization(&conditions, failure_policy)).expect("compiles");
        let review = AccessReview::read(&json!({"user": "ann", "nonResourceAttributes": {"path": "/"}}));
        let turns = authorizers.ask(&review.expect("a review"), EvalOptions::default());
        turns
            .into_iter()
            .map(|turn| (turn.asked.as_str(), turn.asked.error().map(str::to_owned)))
            .collect::<Vec<_>>()
    };
    let both = "[cel evaluation error: expression 'request.resourceAttributes.verb == 'get'' resulted in error: no such key: \
                resourceAttributes, cel evaluation error: expression 'request.resourceAttributes.name == 'web'' resulted in \
                error: no such key: resourceAttributes]";
    assert_eq!(asked("Deny", &json!([])), [("denied", Some(both.to_owned())), ("not reached", None)]);
    assert_eq!(asked("NoOpinion", &json!([])), [("failed", Some(both.to_owned())), ("called", None)]);
    assert_eq!(asked("Deny", &json!([{"expression": "request.user == 'bob'"}]))[0], ("skipped", None));
}

/// What is said of an expression in its place.
fn told(place: &str, expression: &str) -> Vec<String> {
    let jwt = |part: Value| {
        let mut authenticator = json!({
            "issuer": {"url": "https://issuer.example.com", "audiences": ["shop"]},
            "claimMappings": {"username": {"claim": "sub", "prefix": ""}},
        });
        json_patch::merge(&mut authenticator, &part);
        Authenticators::compile(&json!({"jwt": [authenticator]})).map(|_| ())
    };
    let rule = json!([{"expression": expression}]);
    let compiled = match place {
        "mapping" => {
            let extra = json!([{"key": "example.com/a", "valueExpression": expression}]);
            jwt(json!({"claimMappings": {"extra": extra}}))
        }
        "claims" => jwt(json!({"claimValidationRules": rule})),
        "user" => jwt(json!({"userValidationRules": rule})),
        "request" => Authorizers::compile(&authorization(&rule, "Deny")).map(|_| ()),
        other => panic!("no place: {other}"),
    };
    compiled.err().into_iter().flatten().map(|error| error.to_string()).collect()
}

#[test]
fn expressions_are_compiled_as_by_the_reference() {
    for row in rows("server_expressions.yaml", include_str!("data/server_expressions.yaml")) {
        let found = told(row[0].as_str().expect("a place"), row[1].as_str().expect("an expression"));
        match row[2].as_str() {
            None => assert_eq!(found, [""; 0], "{row}"),
            Some(words) => assert!(found.len() == 1 && found[0].contains(words), "{row}: {found:?}"),
        }
    }
}
