//! Evaluates an AuthenticationConfiguration: which user a token stands for, and whether anonymous requests are allowed.

use admit_policy::manifest::Document;
use admit_policy::server_config::{Authenticators, Token};
use admit_policy::{EvalOptions, Keep, Recording, UserInfo};
use serde_json::Value;

use super::super::answer::{Answer, Mistake};
use super::super::examples_of_servers as examples;
use super::super::request::Texts;
use super::documents::{both, compiled, of_document, one};
use super::{Mode, Pane};

const CONFIGURATION: Pane = Pane {
    name: "configuration",
    title: "AuthenticationConfiguration",
    hint: "What kube-apiserver reads from the file of --authentication-config",
};
const CLAIMS: Pane = Pane {
    name: "claims",
    title: "Claims of the token",
    hint: "A map, as the issuer signed it: signatures are not verified, and times not compared with now; empty: a request without a token",
};
const PATH: Pane =
    Pane { name: "path", title: "Path of the request", hint: "Of a request without a token, such as /livez" };

pub(super) const MODE: Mode = Mode {
    name: "authentication",
    title: "Claims of tokens (AuthenticationConfiguration)",
    about: "Who a user is to the API server: claims are checked, mapped to a user, and the user is checked.",
    panes: &[CONFIGURATION, CLAIMS, PATH],
    examples: examples::AUTHENTICATION,
    evaluate: |texts| evaluated(texts).unwrap_or_else(Answer::mistaken),
    pictures: None,
};

fn evaluated(texts: &Texts) -> Result<Answer, Vec<Mistake>> {
    let configuration = one(texts, CONFIGURATION.name)
        .and_then(|found| compiled(found, CONFIGURATION.name, Authenticators::compile));
    let claims = one(texts, CLAIMS.name).and_then(|found| found.map(claims).transpose());
    let ((document, authenticators), claims) = both(configuration, claims)?;
    let recording = Recording::new(Keep::TRACES);
    let options = EvalOptions { recording: Some(&recording), ..EvalOptions::default() };
    let told = match &claims {
        Some(claims) => {
            match authenticators.authenticate(&Token { claims, now: None, endpoints: None }, options) {
                Ok(user) => of_user("the token is that of", &user),
                Err(error) => {
                    let message = error.to_string();
                    let messages = vec![Mistake { message, path: String::new(), place: None }];
                    Answer { messages, ..Answer::of("deny", "401 Unauthorized: the token is nobody's") }
                }
            }
        }
        None => match authenticators.anonymous(texts.get(PATH.name).trim()) {
            Some(user) => of_user("without a token this is", &user),
            None => {
                let message = "anonymous requests are not enabled for this path".to_owned();
                let messages = vec![Mistake { message, path: "anonymous".to_owned(), place: None }];
                Answer { messages, ..Answer::of("deny", "401 Unauthorized: there is no token") }
            }
        },
    };
    let (expressions, coverage) = of_document(&document, authenticators.expressions(), &recording.finish());
    Ok(Answer { expressions, coverage, ..told })
}

fn claims(document: Document) -> Result<serde_json::Map<String, Value>, Vec<Mistake>> {
    match document.value {
        Value::Object(map) => Ok(map),
        _ => Err(vec![Mistake::of_pane(CLAIMS.name, "must be a map of claims, such as `sub: ann`")]),
    }
}

fn of_user(who: &str, user: &UserInfo) -> Answer {
    let UserInfo { username, uid, groups, extra } = user;
    let mut notes = vec![format!("username: {username}")];
    if !uid.is_empty() {
        notes.push(format!("uid: {uid}"));
    }
    notes.extend(groups.iter().map(|group| format!("group: {group}")));
    notes.extend(extra.iter().map(|(key, values)| format!("extra {key}: {}", values.join(", "))));
    Answer { notes, ..Answer::of("allow", format!("{who} {username}")) }
}
