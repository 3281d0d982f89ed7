//! Runs a case about a token, authorizers, webhooks or devices.

use serde_json::{Map, Value, json};

use super::{Expected, PlaceCase, PlaceDocuments, Subject};
use crate::devices::SelectedBy;
use crate::report::options::EvalOptions;
use crate::report::recording::Recording;
use crate::request::UserInfo;
use crate::server_config::{AccessReview, Authenticators, NoUser, Token};
use crate::set::PolicySet;
use crate::tools::suite::reach::{self, Stage};
use crate::tools::suite::{Case, CaseResult, Mismatch, Outcome};

/// Runs `case` against `documents`; requests for webhooks are first processed and mutated by `set`. Evaluations are added to
/// `recording`.
///
/// [`PlaceCase`] has an example.
#[must_use]
pub fn run_place(
    case: &PlaceCase,
    set: &PolicySet,
    documents: &PlaceDocuments,
    recording: Option<&Recording>,
) -> CaseResult {
    let run = Run { expect: &case.expect, documents, options: recording.into() };
    match &case.subject {
        Subject::Token { claims, now, endpoints } => {
            let token = Token { claims, now: *now, endpoints: Some(endpoints) };
            run.authentication(|authenticators| authenticators.authenticate(&token, run.options))
        }
        Subject::Anonymous { path } => {
            run.authentication(|authenticators| authenticators.anonymous(path).ok_or(NoUser::Unauthorized))
        }
        Subject::Access(review) => run.authorization(review),
        Subject::Webhooks(sent) => run.webhooks(sent, set),
        Subject::Devices { class, claim, request, selectors } => run.devices(&SelectedBy {
            class: class.as_deref(),
            claim: claim.as_deref(),
            request: request.as_deref(),
            selectors,
        }),
    }
}

/// The result for one authorizer or webhook.
struct Turn {
    /// Either may name it.
    names: [String; 2],
    word: &'static str,
    error: Option<String>,
}

struct Run<'a> {
    expect: &'a Expected,
    documents: &'a PlaceDocuments,
    options: EvalOptions<'a>,
}

impl Run<'_> {
    fn authentication(&self, ask: impl FnOnce(&Authenticators) -> Result<UserInfo, NoUser>) -> CaseResult {
        let Some(authenticators) = &self.documents.authenticators else {
            return missing("AuthenticationConfiguration");
        };
        match (ask(authenticators), &self.expect.user) {
            (Ok(user), expected) => {
                let found = fields_of(&user);
                let mut result = CaseResult { outcome: Outcome::Allow, ..CaseResult::default() };
                for (field, wanted) in expected.iter().flatten() {
                    let actual = found.get(field).unwrap_or(&Value::Null);
                    if actual != wanted {
                        let what = format!("{field}: {wanted}");
                        result.mismatches.push(Mismatch::new("user", &what, &format!("{field}: {actual}")));
                    }
                }
                if let Some(error) = &self.expect.error {
                    let actual = Value::Object(found).to_string();
                    result.mismatches.push(Mismatch::new(
                        "error",
                        &error.describe(),
                        &format!("the user {actual}"),
                    ));
                }
                result
            }
            (Err(why), expected) => {
                let mut result = self.with_errors(Outcome::Deny, &[why.to_string()]);
                if let Some(user) = expected {
                    let user = Value::Object(user.clone()).to_string();
                    result.mismatches.push(Mismatch::new("user", &user, &result.message));
                }
                result
            }
        }
    }

    fn authorization(&self, review: &AccessReview) -> CaseResult {
        let Some(authorizers) = &self.documents.authorizers else {
            return missing("AuthorizationConfiguration");
        };
        let turns = authorizers.ask(review, self.options).into_iter().map(|turn| Turn {
            word: turn.asked.as_str(),
            error: turn.asked.error().map(ToOwned::to_owned),
            names: [turn.name, String::new()],
        });
        self.turns("authorizers", &turns.collect::<Vec<_>>())
    }

    fn webhooks(&self, sent: &Case, set: &PolicySet) -> CaseResult {
        if self.documents.webhooks.is_empty() {
            return missing("ValidatingWebhookConfiguration or MutatingWebhookConfiguration");
        }
        let front = match reach::stage(sent, set, None) {
            Stage::Open(front) => front,
            Stage::Refused(answer) => {
                let told = answer.first().0;
                return CaseResult { refused: true, ..not_sent(answer.refusal.unwrap_or(told)) };
            }
            Stage::Denied(decision) => {
                return not_sent(decision.denial.map(|denial| denial.message).unwrap_or_default());
            }
        };
        let turns = self.documents.webhooks.ask(&front.request, &front.host, self.options);
        let turns = turns.into_iter().map(|turn| Turn {
            word: turn.called.as_str(),
            error: turn.called.error().map(ToOwned::to_owned),
            names: [format!("{}/{}", turn.configuration, turn.webhook), turn.webhook],
        });
        self.turns("webhooks", &turns.collect::<Vec<_>>())
    }

    fn turns(&self, what: &'static str, turns: &[Turn]) -> CaseResult {
        let errors: Vec<String> = turns.iter().filter_map(|turn| turn.error.clone()).collect();
        let outcome = if errors.is_empty() { Outcome::Allow } else { Outcome::Error };
        let mut result = self.with_errors(outcome, &errors);
        for (name, word) in &self.expect.turns {
            let named = turns.iter().find(|turn| turn.names.contains(name));
            let actual = match named {
                Some(turn) if turn.word == word => continue,
                Some(turn) => match &turn.error {
                    Some(error) => format!("{name}: {} ({error})", turn.word),
                    None => format!("{name}: {}", turn.word),
                },
                None => {
                    let names: Vec<&str> =
                        turns.iter().flat_map(|turn| turn.names.first()).map(String::as_str).collect();
                    format!("there is no {name}; these are: {}", names.join(", "))
                }
            };
            result.mismatches.push(Mismatch::new(what, &format!("{name}: {word}"), &actual));
        }
        result
    }

    fn devices(&self, by: &SelectedBy<'_>) -> CaseResult {
        let selected = match self.documents.devices.select(by, self.options) {
            Ok(selected) => selected,
            Err(error) => {
                let mut result = self.with_errors(Outcome::Error, &[error.to_string()]);
                if let Some(devices) = &self.expect.devices {
                    result.mismatches.push(Mismatch::new("devices", &devices.join(", "), &result.message));
                }
                return result;
            }
        };
        let mut errors = Vec::new();
        let mut names = Vec::new();
        for one in selected {
            match one.matches {
                Ok(true) => names.push(one.device.to_string()),
                Ok(false) => {}
                Err(why) => errors.push(why.to_string()),
            }
        }
        errors.dedup();
        let outcome = if errors.is_empty() { Outcome::Allow } else { Outcome::Error };
        let mut result = self.with_errors(outcome, &errors);
        if self.expect.error.is_none() && !errors.is_empty() {
            result.mismatches.push(Mismatch::new("error", "none", &result.message));
        }
        if let Some(expected) = &self.expect.devices {
            let is_named = |name: &String, by: &String| {
                name == by || name.strip_suffix(by.as_str()).is_some_and(|rest| rest.ends_with('/'))
            };
            let agree = expected.len() == names.len()
                && expected.iter().all(|by| names.iter().any(|name| is_named(name, by)));
            if !agree {
                result.mismatches.push(Mismatch::new("devices", &expected.join(", "), &names.join(", ")));
            }
        }
        result
    }

    /// Builds the result from errors, compared with the expectation.
    fn with_errors(&self, outcome: Outcome, errors: &[String]) -> CaseResult {
        let message = errors.join("\n");
        let mut mismatches = Vec::new();
        if let Some(expected) = &self.expect.error
            && !errors.iter().any(|error| expected.holds(error))
        {
            mismatches.push(Mismatch::new("error", &expected.describe(), &message));
        }
        CaseResult { outcome, message, mismatches, ..CaseResult::default() }
    }
}

fn fields_of(user: &UserInfo) -> Map<String, Value> {
    let UserInfo { username, uid, groups, extra } = user;
    let fields = json!({"username": username, "uid": uid, "groups": groups, "extra": extra});
    match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

fn missing(kind: &str) -> CaseResult {
    let why = format!("there is no {kind} among the suite's documents");
    CaseResult {
        outcome: Outcome::Unmatched,
        mismatches: vec![Mismatch::new("documents", kind, "none")],
        message: why,
        ..CaseResult::default()
    }
}

/// Webhooks are not called for a request that is rejected earlier.
fn not_sent(why: String) -> CaseResult {
    CaseResult {
        outcome: Outcome::Error,
        mismatches: vec![Mismatch::new("object", "one that a server takes", &why)],
        message: why,
        ..CaseResult::default()
    }
}
